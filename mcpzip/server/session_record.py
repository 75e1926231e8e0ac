"""What `mcpzip serve` remembers of the session that a daemon serves, so that another one can go on with it
(pure).

The rules:

1. A request that may have run is never sent again, unless it can do no harm: only `tools/call` can, and of
   mcpzip's own tools only `execute_tool` and `execute_read_tool`.
2. Every request gets one response, from the daemon or from here.
3. The client is not asked to begin again: what it said at the beginning, and its settings, are replayed.
4. Only whole lines reach the client.

`server.shim` imports this module at every start, so it imports only small modules of the standard library.
"""

import json

from mcpzip.model import limits

KEPT = 16 << 20
"""Bytes of open requests that are kept, to send them again. A request beyond is answered with an error
instead.
"""
SETTINGS, SETTINGS_SIZE = 1_000, 1 << 20
"""Settings of a client (log level, subscriptions) that are kept for a replay, and their bytes; more are not
replayed.
"""
LOST = "mcpzip's daemon ended during the call, so the tool may have run: check before calling it again."
NOT_RUN = "mcpzip's daemon ended before it took the call, so the tool did not run: call it again."
NOT_SENT_AGAIN = "mcpzip's daemon ended during the request; send it again."

_HARMLESS_TOOLS = ("search_tools", "describe_tool", "proxy_status")
_RESPONSE_HEAD = b'{"jsonrpc":"2.0","id":'
_ERROR = -32603  # JSON-RPC 2.0, 5.1: internal error
_MODERN = "io.modelcontextprotocol/protocolVersion"
_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
"""The line that is replayed for it, whatever else was in the client's: a batch may hold calls."""
_FIRST = (("initialize", None), ("notifications/initialized", None))
"""The settings that are replayed before all others, in this order."""
_OPENINGS = ("server/discover", "tools/list")
"""The requests with which a modern client begins, and which can be replayed to tell that it is one."""


class OpenRequest:
    """A request of the client that has no response yet.

    key: of its id. line: None if it is not sent again by itself. batch: in which it came, None for a line of
    its own. end: the number of bytes from the client up to its end. harmful: whether running it twice may do
    harm. setting: what it sets for the rest of the session, None for nothing; replayed: the line that sets it
    once more, without a newline.
    """

    __slots__ = ("batch", "end", "harmful", "id", "key", "line", "method", "modern", "replayed", "setting")

    def __init__(self, message: "dict[str, object]", line: "bytes | None", end: int) -> None:
        self.id, self.line, self.end = message["id"], line, end
        self.key = _key(self.id)
        self.batch: Batch | None = None
        self.method = str(message["method"])
        given = message.get("params")
        params: dict[str, object] = given if isinstance(given, dict) else {}
        meta = params.get("_meta")
        self.modern = isinstance(meta, dict) and _MODERN in meta
        self.setting: tuple[str, object] | None = None
        self.replayed = b""
        self.harmful = self.method == "tools/call"
        if self.harmful:
            self.harmful = params.get("name") not in _HARMLESS_TOOLS
            return
        if self.method in ("initialize", "logging/setLevel"):
            self.setting = self.method, None
        elif self.modern and self.method in _OPENINGS:
            self.setting = "era", None
        elif self.method in ("resources/subscribe", "resources/unsubscribe"):
            self.setting = "resources/subscribe", str(params.get("uri"))
        if self.setting is not None:  # what a batch has set must not repeat the rest of the batch
            self.replayed = (line or _encoded(message)).rstrip(b"\n")

    def failure(self, may_have_run: bool = True) -> bytes:
        """The response that says that it may have run, or that it did not."""
        response: dict[str, object] = {"jsonrpc": "2.0", "id": self.id}
        if self.method == "tools/call":
            result: dict[str, object] = {
                "content": [{"type": "text", "text": LOST if may_have_run else NOT_RUN}],
                "isError": True,
            }
            if self.modern:
                result["resultType"] = "complete"
            response["result"] = result
        else:
            response["error"] = {"code": _ERROR, "message": NOT_SENT_AGAIN}
        return _encoded(response) + b"\n"


class Batch:
    """A JSON-RPC batch. line: b"" if it can't be sent again whole: a request of it is not open any more."""

    __slots__ = ("line",)

    def __init__(self, line: bytes) -> None:
        self.line = line


class Continuation:
    """How a session goes on with another daemon. to_client: what the client is sent. to_daemon: the lines
    that are sent again, and what comes after them. is_awaited: whether the client waits for a response to
    them, and not only for changes (`subscriptions/listen`).
    """

    __slots__ = ("is_awaited", "to_client", "to_daemon")

    def __init__(self, to_client: bytes, to_daemon: bytes, is_awaited: bool) -> None:
        self.to_client, self.to_daemon, self.is_awaited = to_client, to_daemon, is_awaited


class SessionRecord:
    """The record of one session. names_are_ours: whether `search_tools` and the like are mcpzip's, which they
    aren't for a client that is shown one server unchanged.
    """

    def __init__(self, answered: bytes = b"") -> None:
        """answered: the lines that the early handshake has answered."""
        self._open: dict[object, OpenRequest] = {}
        self._kept = 0
        self._settings: dict[tuple[str, object], bytes] = {}
        self._settings_size = 0
        self._asked: dict[object, bytes] = {}
        self.names_are_ours = True
        self._line: list[bytes] = []  # of the client, not complete yet
        self._line_size = 0
        self._reply: list[bytes] = []  # of the daemon, not complete yet
        self._end = 0
        for line in answered.split(b"\n"):
            message = _object(line)
            if message.get("method") == "notifications/initialized":
                self._set(("notifications/initialized", None), line)
            elif not {"id", "method"} <= message.keys():
                continue
            elif setting := OpenRequest(message, line, 0).setting:
                self._set(setting, line)

    @property
    def end(self) -> int:
        """The number of bytes from the client since the beginning or the last loss."""
        return self._end

    @property
    def waits(self) -> bool:
        """Whether a request has no response yet."""
        return bool(self._open)

    @property
    def replay(self) -> bytes:
        """The lines that tell a daemon what was agreed and set so far."""
        first = [key for key in _FIRST if key in self._settings]
        order = [*first, *(key for key in self._settings if key not in _FIRST)]
        return b"".join(self._settings[key] + b"\n" for key in order)

    # --- what passes

    def client_sent(self, data: bytes) -> None:
        """Takes note of bytes that go to the daemon."""
        start = data.find(b"\n") + 1
        if 0 < start == len(data) <= limits.MESSAGE and not self._line_size:  # one line, which is usual
            self._end += start
            self._client_line(data, self._end)
            return
        start = 0
        while end := data.find(b"\n", start) + 1:
            self._keep(data[start:end])
            self._client_line(b"".join(self._line), self._end)
            self._line, self._line_size = [], 0
            start = end
        if start < len(data):
            self._keep(data[start:])

    def _keep(self, part: bytes) -> None:
        """Keeps a part of a line, unless the line is so long that the daemon refuses it."""
        self._end += len(part)
        self._line_size += len(part)
        if self._line_size <= limits.MESSAGE:
            self._line.append(part)
        else:
            self._line.clear()

    def is_line(self, data: bytes) -> bool:
        """Whether bytes from the daemon are one line for the client, which is usual."""
        return not self._reply and data.find(b"\n") + 1 == len(data) and data[:1] != b"!"

    def line_sent(self, line: bytes) -> None:
        """Takes note of a line for the client."""
        if line.startswith(b"["):
            try:
                batch = json.loads(line)
            except (ValueError, RecursionError):
                return
            for each in batch:
                if isinstance(each, dict):
                    self._answered(each.get("id"), failed="error" in each)
            return
        if not line.startswith(_RESPONSE_HEAD):
            return
        start = len(_RESPONSE_HEAD)
        end = _end_of_id(line, start)
        raw = line[start:end]
        try:
            id = int(raw) if raw.isdigit() else json.loads(raw)
        except ValueError:
            return
        if line.startswith(b',"method"', end):
            self._asked[_key(id)] = raw
        else:
            self._answered(id, failed=line.startswith(b',"error"', end))

    def daemon_sent(self, data: bytes) -> "tuple[bytes, list[bytes]]":
        """Takes note of bytes from the daemon. Returns the whole lines for the client, and the notices."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._reply.append(data)
            return b"", []
        complete = b"".join((*self._reply, data[:end]))
        self._reply = [data[end:]] if end < len(data) else []
        notices: list[bytes] = []
        for line in complete.split(b"\n")[:-1]:
            if line.startswith(b"!"):
                notices.append(line)
            else:
                self.line_sent(line)
        if notices:
            kept = (line for line in complete.split(b"\n")[:-1] if not line.startswith(b"!"))
            complete = b"".join(line + b"\n" for line in kept)
        return complete, notices

    def lost(self, read: int) -> Continuation:
        """The daemon has gone. read: the bytes from the client that it may have processed, from the beginning
        or the last loss on; what comes after them can't have run.
        """
        answers: list[bytes] = []
        again: list[bytes] = []
        is_awaited = False
        for id in self._asked.values():
            params = b'{"requestId":%b,"reason":"mcpzip\'s daemon ended"}' % id
            answers.append(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}\n' % params)
        for request in list(self._open.values()):
            may_have_run = request.end <= read
            harmful = request.harmful or (request.method == "tools/call" and not self.names_are_ours)
            line = request.line
            if not may_have_run and request.batch is not None:
                line = request.batch.line or None
            if line is None or (may_have_run and harmful):
                answers.append(request.failure(may_have_run))
            else:
                if not (again and again[-1] is line):  # the requests of a batch follow each other
                    again.append(line)
                is_awaited = is_awaited or request.method != "subscriptions/listen"
        rest = b"".join(self._line)
        continuation = Continuation(b"".join(answers), b"".join(again) + rest, is_awaited or bool(rest))
        self._asked.clear()
        self._open.clear()
        self._line, self._reply = [], []
        self._line_size = self._end = self._kept = 0
        return continuation

    # --- single lines

    def _client_line(self, line: bytes, end: int) -> None:
        try:
            message = _decode(line.decode())
        except (ValueError, RecursionError):
            return  # the daemon says so
        if isinstance(message, dict):
            self._client_message(message, line if self._kept + len(line) <= KEPT else None, end)
        elif isinstance(message, list):
            batch = Batch(line if self._kept + len(line) <= KEPT else b"")
            self._kept += len(batch.line)
            has_requests = False
            for each in message:
                if isinstance(each, dict):
                    has_requests |= self._client_message(each, None, end, batch)
            if not has_requests:
                self._kept -= len(batch.line)

    def _client_message(
        self, message: "dict[str, object]", kept: "bytes | None", end: int, batch: "Batch | None" = None
    ) -> bool:
        """Returns whether it is a request."""
        method, id = message.get("method"), message.get("id")
        if isinstance(method, str) and isinstance(id, (str, int, float)) and not isinstance(id, bool):
            request = OpenRequest(message, kept, end)
            request.batch = batch
            self._kept += 0 if kept is None else len(kept)
            if (before := self._open.pop(request.key, None)) is not None:
                self._close(before)
            self._open[request.key] = request
            return True
        if method == "notifications/initialized":
            self._set(("notifications/initialized", None), _INITIALIZED)
        elif method == "notifications/cancelled":
            params = message.get("params")
            if isinstance(params, dict) and (found := self._open.get(_key(params.get("requestId")))):
                self._close(found)  # which gets no response
        elif method is None:
            self._asked.pop(_key(id), None)
        return False

    def _answered(self, id: object, *, failed: bool) -> None:
        request = self._open.get(_key(id))
        if request is None:
            return
        self._close(request)
        setting = request.setting
        if failed or setting is None:
            return
        if request.method == "resources/unsubscribe":
            self._settings_size -= len(self._settings.pop(setting, b""))
        else:
            self._set(setting, request.replayed)

    def _set(self, setting: "tuple[str, object]", line: bytes) -> None:
        before = self._settings.get(setting)
        size = self._settings_size + len(line) - len(before or b"")
        has_room = before is not None or len(self._settings) < SETTINGS
        if setting in _FIRST or (has_room and size <= SETTINGS_SIZE):
            self._settings[setting], self._settings_size = line, size

    def _close(self, request: OpenRequest) -> None:
        if self._open.get(request.key) is request:
            del self._open[request.key]
        if request.line is not None:
            self._kept -= len(request.line)
        if request.batch is not None:
            self._kept -= len(request.batch.line)
            request.batch.line = b""


def _refuse(constant: str) -> object:
    raise ValueError(constant)


_decoder = json.JSONDecoder(parse_constant=_refuse)
"""Refuses NaN and Infinity, as the daemon does."""
_scan = _decoder.scan_once  # type: ignore[attr-defined] # which `raw_decode` calls


def _decode(text: str) -> object:
    """Raises ValueError, RecursionError."""
    if text.startswith("{"):  # without looking for spaces, which is usual
        try:
            message, end = _scan(text, 0)
            if text[end:] == "\n":
                return message
        except StopIteration:
            pass  # told below
    return _decoder.decode(text)


def _key(id: object) -> object:
    """1, 1.0 and "1" are three ids."""
    return (type(id), id if isinstance(id, (str, int, float)) else None)


def _end_of_id(line: bytes, start: int) -> int:
    """Where the id that begins at ``start`` ends."""
    if line[start : start + 1] != b'"':
        return line.find(b",", start)
    end = line.find(b'"', start + 1)
    while end > 0 and _is_escaped(line, end):
        end = line.find(b'"', end + 1)
    return end + 1


def _is_escaped(line: bytes, at: int) -> bool:
    slashes = 0
    while line[at - 1 - slashes : at - slashes] == b"\\":
        slashes += 1
    return slashes % 2 == 1


def _encoded(message: "dict[str, object]") -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _object(line: bytes) -> "dict[str, object]":
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
