"""The ASGI application around the SDK's: it records all messages and plays the faults of HTTP itself.

The rule: requests that no fault affects reach the SDK unchanged, and its answers are sent unchanged unless a
fault of stage ``reply`` fires. The faults that fire on a message are in its ASGI scope (`FIRING`), so that
each message is counted once.
"""

import asyncio
import time
import zlib
from collections.abc import Iterator

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcpzip.wire import INVALID_REQUEST, MODERN_VERSIONS
from mcpzip_fakes import process
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.distort import Pad, Pause, Step, Write, distort
from mcpzip_fakes.eras import unsupported
from mcpzip_fakes.faults import NOTHING, Fault, Firing, Plan
from mcpzip_fakes.oauth.guard import Guard
from mcpzip_fakes.record import Writer
from mcpzip_fakes.request import Refused, as_object
from mcpzip_fakes.scenario import Scenario

FIRING = "fakes.firing"
TRANSPORT = "fakes.transport"
"""The connection that a request came on, in its ASGI scope."""
_INTERIM = b"HTTP/1.1 103 Early Hints\r\n\r\n"
_AT_ONCE, _UNREAD = 1_000, 1 << 20
"""Interim answers that are written at a time; bytes of them that may wait for the client."""
_POLL = 0.001
"""Seconds between two checks whether they were read."""
_ASIDE = "/aside"
"""Path of a redirect within the origin: the same server under another path."""
_ABROAD = "localhost"
"""Host of a redirect to another origin: the same server under another name."""
_WIND_UP = 1.0
"""Seconds the SDK may take to notice that a connection was cut."""


class Gate:
    """The ASGI application around the SDK's.

    guard: checks the tokens of requests. opens: when it begins to answer (`time.monotonic`); until then
    requests wait.
    doomed: by request id, the fault that breaks the reply; set by the code that computes the reply.
    distorted: by request id, the faults that change the reply.
    """

    def __init__(
        self,
        app: ASGIApp,
        scenario: Scenario,
        plan: Plan,
        record: Writer,
        transport: str,
        guard: Guard | None = None,
    ) -> None:
        self._app, self._scenario, self._plan, self._record = app, scenario, plan, record
        self._transport, self._guard = transport, guard
        self._connections: dict[object, int] = {}
        self.opens = time.monotonic() + sum(
            f.number("seconds") for f in plan.at("start") if f.kind == "slow-start"
        )
        self.doomed: dict[object, Fault] = {}
        self.distorted: dict[object, Firing] = {}
        self._forgotten: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI 3.0."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await asyncio.sleep(max(self.opens - time.monotonic(), 0))
        number = self._connections.setdefault(tuple(scope["client"]), len(self._connections) + 1)
        verb: str = scope["method"]
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        told: JsonObject = {"verb": verb, "path": scope["path"], "headers": headers}
        body = await _body(receive) if verb == "POST" else b""
        if body:
            self._record.message("in", body, number, **told)
        else:
            self._record.event("http", told, number)
        message = _message(body)
        firing = self._meet(verb, message)
        scope[FIRING] = firing
        if early := firing.get("interim"):
            await _hint(scope[TRANSPORT], int(early.number("count")))
        recorder = _Recorder(self, send, receive, self._record, number, told, firing)
        if firing.get("hang"):
            while (await receive())["type"] != "http.disconnect":
                pass
        elif (turned := self._turned_away(firing, scope, headers)) or (
            self._guard and (turned := self._guard.turns_away(headers.get("authorization"), message, number))
        ):
            await _respond(recorder.send, *turned)
        elif refused := self._out_of_era(verb, message, headers):
            code, refusal = refused
            reply = msgspec.json.encode({"jsonrpc": "2.0", "id": message.get("id"), "error": refusal.error()})
            await _respond(recorder.send, code, reply, {"content-type": "application/json"})
        else:
            if "id" in message and _of_reply(firing).faults:
                self.distorted[message["id"]] = _of_reply(firing)
            path = scope["path"].removeprefix(_ASIDE)
            aside = {**scope, "path": path, "raw_path": path.encode()}
            await self._pass(aside, _Replay(body, receive, recorder.cut), recorder)

    def _turned_away(
        self, firing: Firing, scope: Scope, headers: dict[str, str]
    ) -> tuple[int, bytes, dict[str, str]] | None:
        """Status, body and headers of a refusal before the message is read; None if there is none."""
        if status := firing.get("status"):
            return int(status.number("status")), status.string("text").encode(), dict(status.headers or {})
        if (redirect := firing.get("redirect")) and (location := _elsewhere(redirect, scope, headers)):
            return int(redirect.number("status")), b"", {"location": location}
        if (token := firing.get("token")) and not _accepted(token, headers.get("authorization", "")):
            said = token.string("text")
            challenge = f'Bearer error="invalid_token", error_description="{said}"'
            return int(token.number("status")), said.encode(), {"www-authenticate": challenge}
        session = headers.get("mcp-session-id", "")
        if session and firing.get("forget-session"):
            self._forgotten.add(session)
        return (404, b"Session not found", {}) if session in self._forgotten else None

    async def _pass(self, scope: Scope, receive: Receive, recorder: "_Recorder") -> None:
        """Let the SDK answer; if the connection is cut, wait until the SDK has noticed. The HTTP server
        closes
        the connection when this returns."""
        answer = asyncio.ensure_future(self._app(scope, receive, recorder.send))
        cut = asyncio.ensure_future(recorder.cut.wait())
        try:
            await asyncio.wait((answer, cut), return_when=asyncio.FIRST_COMPLETED)
            if recorder.cut.is_set():
                await asyncio.wait((answer,), timeout=_WIND_UP)
            else:
                answer.result()
        finally:
            cut.cancel()
            answer.cancel()
            await asyncio.gather(answer, cut, return_exceptions=True)

    def _meet(self, verb: str, message: JsonObject) -> Firing:
        method = message.get("method")
        if not isinstance(method, str):
            return self._plan.meet(f"http/{verb}", {}, carrier=True)
        firing = self._plan.meet(method, as_object(message.get("params")), carrier="id" not in message)
        crash = firing.get("crash")
        if crash and crash.string("when") == "before":
            process.leave(self._record, "crash", int(crash.number("code")), crash.string("text"))
        return firing

    def _out_of_era(
        self, verb: str, message: JsonObject, headers: dict[str, str]
    ) -> tuple[int, Refused] | None:
        """The status and error with which a server of this scenario's era refuses the request; None if it
        accepts it."""
        if self._transport == "sse":  # no header shows the era; the engine checks it
            return None
        asked = headers.get("mcp-protocol-version")
        if asked in MODERN_VERSIONS and not self._scenario.modern_versions:
            offered = ", ".join(self._scenario.legacy_versions)
            text = f"Bad Request: Unsupported protocol version: {asked} (supported: {offered})"
            return 400, Refused(INVALID_REQUEST, text)
        if asked not in MODERN_VERSIONS and not self._scenario.legacy_versions:
            if verb != "POST":
                return 405, Refused(INVALID_REQUEST, "Method Not Allowed")
            params = as_object(message.get("params"))
            return 400, unsupported(self._scenario, asked or params.get("protocolVersion"))
        return None


class _Recorder:
    """``send`` of one exchange, recorded. firing: the faults that fire on its request."""

    def __init__(
        self,
        gate: Gate,
        send: Send,
        receive: Receive,
        record: Writer,
        number: int,
        told: JsonObject,
        firing: Firing,
    ) -> None:
        self._gate, self._record, self._number = gate, record, number
        self._send = squeezed(send) if firing.get("gzip-bomb") else send
        self._receive = receive
        self._told = told
        self._streaming = False
        self._pending = b""
        cut = firing.get("cut")
        self._holds = bool(_of_reply(firing).faults) or (cut is not None and cut.flag("clean"))
        self._held: Message | None = None
        self.cut = asyncio.Event()
        """Set when nothing more is sent and the connection is to be closed."""

    async def send(self, message: Message) -> None:
        """Records and sends a message (ASGI 3.0)."""
        if self.cut.is_set():
            return
        if message["type"] == "http.response.start":
            kinds = dict(message.get("headers", ()))
            self._streaming = kinds.get(b"content-type", b"").startswith(b"text/event-stream")
            status: JsonObject = {
                "status": message["status"],
                "verb": self._told["verb"],
                "path": self._told["path"],
            }
            self._record.event("status", status, self._number)
            if self._holds and not self._streaming:  # its length is not known yet
                self._held = message
                return
        elif message["type"] == "http.response.body":
            body, more = message.get("body", b""), message.get("more_body", False)
            texts = self._whole(body, more)
            for id in _answered(texts):
                if fault := self._gate.doomed.pop(id, None):
                    self._note(texts)
                    await self._break(fault, message, body)
                    return
                if firing := self._gate.distorted.pop(id, None):
                    await self._distort(firing, texts, more)
                    return
            self._note(texts)
            await self._begin(len(body))
        await self._send(message)

    def _whole(self, body: bytes, more: bool) -> list[bytes]:
        """The messages that ``body`` completes."""
        self._pending += body
        if self._streaming:
            *events, self._pending = self._pending.replace(b"\r\n", b"\n").split(b"\n\n")
            texts = [
                b"\n".join(line[5:].strip() for line in e.split(b"\n") if line.startswith(b"data:"))
                for e in events
            ]
        else:
            texts = [] if more else [self._pending]
        return [text for text in texts if text]

    def _note(self, texts: list[bytes]) -> None:
        """Record them."""
        for text in texts:
            if _message(text):
                self._record.message("out", text, self._number)
            else:  # an endpoint, a status page
                self._record.event("body", {"text": text.decode("utf-8", "backslashreplace")}, self._number)

    async def _begin(self, length: int | None) -> None:
        """Send the delayed head of the response, for a body of so many bytes (None: unknown)."""
        if self._held is None:
            return
        held, self._held = self._held, None
        fields = [field for field in held["headers"] if field[0] != b"content-length"]
        known = [] if length is None else [(b"content-length", b"%d" % length)]
        await self._send({**held, "headers": [*fields, *known]})

    async def _distort(self, firing: Firing, texts: list[bytes], more: bool) -> None:
        """Send a reply as the faults change it: events of a stream, or one body."""
        torn = firing.get("torn")
        others = Firing(tuple(fault for fault in firing.faults if fault is not torn))
        steps = [
            step for text in texts for step in distort(text + b"\n", others if _answered([text]) else NOTHING)
        ]
        if any(isinstance(step, Pad) for step in steps):
            await self._pour(steps, more)
            return
        lines = [step.data for step in steps if isinstance(step, Write)]
        self._note([line.strip() for line in lines])
        whole = b"".join(map(_event, lines)) if self._streaming else b"".join(lines)
        await self._begin(len(whole))
        for step in [Write(whole)] if torn is None else distort(whole, Firing((torn,))):
            if isinstance(step, Write):
                await self._send({"type": "http.response.body", "body": step.data, "more_body": True})
            elif isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
        await self._send({"type": "http.response.body", "body": b"", "more_body": more})

    async def _pour(self, steps: list[Step], more: bool) -> None:
        """Send a reply that is generated while it is sent, as one event or one body, until the client has
        disconnected. Its padding is not recorded."""
        await self._begin(None)
        gone = asyncio.ensure_future(_gone(self._receive))
        self._note([b"".join(step.data for step in steps if isinstance(step, Write)).strip()])
        try:
            for piece in _pieces(steps, self._streaming):
                if gone.done():
                    return
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
                await asyncio.sleep(0)
        finally:
            gone.cancel()
        await self._send({"type": "http.response.body", "body": b"", "more_body": more})

    async def _break(self, fault: Fault, message: Message, body: bytes) -> None:
        """Send the reply, half of it or nothing, then do what ``fault`` does."""
        when = fault.string("when")
        part = body if when == "after" else body[: len(body) // 2] if when == "middle" else b""
        await self._begin(len(part))
        whole = {} if when == "after" else {"more_body": not fault.flag("clean")}
        await self._send({**message, "body": part, **whole})
        if fault.kind == "crash":
            process.leave(self._record, "crash", int(fault.number("code")), fault.string("text"))
        if fault.flag("clean") and when == "after" and message.get("more_body", False):
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        self.cut.set()


def _of_reply(firing: Firing) -> Firing:
    """Those of them that change a reply."""
    return Firing(tuple(fault for fault in firing.faults if fault.row.stage == "reply"))


def _elsewhere(redirect: Fault, scope: Scope, headers: dict[str, str]) -> str:
    """The target of a redirect; "" if the request was redirected already."""
    path, query = scope["path"], scope["query_string"].decode("latin-1")
    asked = f"?{query}" if query else ""
    if redirect.string("to") == "same":
        return "" if path.startswith(_ASIDE) else f"{_ASIDE}{path}{asked}"
    host, _, port = headers.get("host", "").partition(":")
    return "" if host == _ABROAD else f"http://{_ABROAD}:{port}{path}{asked}"


def _accepted(token: Fault, authorization: str) -> bool:
    """Whether a request with this header is accepted."""
    bearer = authorization.removeprefix("Bearer ")
    accept = token.words("accept")
    return bearer not in token.words("refuse") and (not accept or bearer in accept)


def _answered(texts: list[bytes]) -> list[object]:
    """The ids of the replies among these messages."""
    messages = [_message(text) for text in texts]
    return [message["id"] for message in messages if "id" in message and "method" not in message]


def _event(data: bytes) -> bytes:
    """One server-sent event."""
    return b"event: message\r\n%b\r\n" % b"".join(
        b"data: %b\r\n" % line for line in data.rstrip(b"\n").split(b"\n")
    )


def _pieces(steps: list[Step], streaming: bool) -> Iterator[bytes]:
    """The bytes of padded replies, in pieces: events of a stream, or a body."""
    fresh = True
    for step in steps:
        match step:
            case Write():
                if streaming and fresh:
                    yield b"event: message\r\ndata: "
                fresh = step.data.endswith(b"\n")
                yield step.data.rstrip(b"\n") + (b"\r\n\r\n" if streaming and fresh else b"")
            case Pad():
                yield from step.pieces()


async def _gone(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def squeezed(send: Send) -> Send:
    """``send`` for a response that is compressed, even if the client doesn't accept that."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)

    async def squeeze(message: Message) -> None:
        if message["type"] == "http.response.start":
            fields = [field for field in message["headers"] if field[0] != b"content-length"]
            message = {**message, "headers": [*fields, (b"content-encoding", b"gzip")]}
        elif message["type"] == "http.response.body":
            more = message.get("more_body", False)
            packed = packer.compress(message.get("body", b""))
            packed += packer.flush(zlib.Z_SYNC_FLUSH if more else zlib.Z_FINISH)
            message = {**message, "body": packed}
        await send(message)

    return squeeze


async def _hint(transport: asyncio.Transport, count: int) -> None:
    """Send ``count`` interim answers; 0: until the client has disconnected."""
    left = count
    while not transport.is_closing() and (left or not count):
        if transport.get_write_buffer_size() > _UNREAD:
            await asyncio.sleep(_POLL)
            continue
        now = min(left, _AT_ONCE) if count else _AT_ONCE
        transport.write(_INTERIM * now)
        left -= now
        await asyncio.sleep(0)


async def _body(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    more = True
    while more:
        part = await receive()
        pieces.append(part.get("body", b""))
        more = part.get("more_body", False)
    return b"".join(pieces)


class _Replay:
    """``receive`` as before the body was read; once ``cut`` is set it reports that the client has
    disconnected."""

    def __init__(self, body: bytes, receive: Receive, cut: asyncio.Event) -> None:
        self._body: bytes | None = body
        self._receive, self._cut = receive, cut

    async def __call__(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        arriving, cut = asyncio.ensure_future(self._receive()), asyncio.ensure_future(self._cut.wait())
        try:
            await asyncio.wait((arriving, cut), return_when=asyncio.FIRST_COMPLETED)
            return arriving.result() if arriving.done() else {"type": "http.disconnect"}
        finally:
            arriving.cancel()
            cut.cancel()


async def _respond(send: Send, status: int, body: bytes, headers: dict[str, str] | None) -> None:
    fields = {
        "content-length": str(len(body)),
        **{key.lower(): value for key, value in (headers or {}).items()},
    }
    raw = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def _message(body: bytes) -> JsonObject:
    try:
        return as_object(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
