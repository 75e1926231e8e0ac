"""One downstream client: its messages in, ours out (sans I/O but for the tasks that run its calls).

The rules: the client's first request decides the era (spec: basic/versioning); whatever arrives, every
request gets exactly one answer or none because the client cancelled it; requests run concurrently and the
reader never waits for one.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial

import msgspec

from mcpzip import __version__
from mcpzip.model.errors import McpzipError, UnknownToolError, UpstreamRpcError
from mcpzip.proxy.metatools import instructions, tools_list
from mcpzip.proxy.proxy import Context, Proxy
from mcpzip.wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MODERN_VERSION,
    MODERN_VERSIONS,
    Cancelled,
    Era,
    Event,
    Invalid,
    NotAnObject,
    Notification,
    Opening,
    Peer,
    Request,
    Role,
    RpcError,
    join_object,
    negotiate,
    progress_token,
    quote,
    read_opening,
    split_object,
    stamp_result,
    unsupported_version_error,
    with_members,
)

SERVER_INFO = join_object({"name": quote("mcpzip"), "title": quote("mcpzip"), "version": quote(__version__)})
CAPABILITIES = b'{"tools":{}}'
LISTING_TTL = 3_600_000
"""Milliseconds a modern client may keep `tools/list` and `server/discover`: they change with the config only.
"""
LETTING_GO = 0.5
"""Seconds a cancelled call may take to tell its server."""


_ABSENT = msgspec.Raw()


class _Call(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = _ABSENT
    meta: msgspec.Raw = msgspec.field(default=_ABSENT, name="_meta")


_CALL = msgspec.json.Decoder(_Call)
_NAME = msgspec.json.Decoder(str)


def _read_call(params: bytes) -> _Call:
    """The members of ``params``. Raises msgspec.DecodeError, NotAnObject."""
    try:
        return _CALL.decode(params)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        fields = split_object(params)  # takes the lone surrogates that msgspec doesn't
        name = _NAME.decode(fields.get("name", b"null"))
        raw = {key: msgspec.Raw(fields[key]) if key in fields else _ABSENT for key in ("arguments", "_meta")}
        return _Call(name, raw["arguments"], raw["_meta"])


def _asks_for_page(params: bytes | None) -> bool:
    try:
        return split_object(params or b"{}").get("cursor", b"null") != b"null"
    except NotAnObject:
        return False


class _FaultError(Exception):
    """A request to be answered with this error."""

    def __init__(self, code: int, message: str, data: bytes | None = None) -> None:
        self.error = RpcError(code, message, data)
        super().__init__(message)


class Welcome:
    """What every client of a config is told first, as JSON texts. A pure function of the config."""

    def __init__(self, proxy: Proxy) -> None:
        names = [name for name, server in proxy.config.servers.items() if not server.disabled]
        said = quote(instructions(names))
        self.tools = tools_list(proxy.config.search.default_limit)
        self.modern_tools = self.stamped(self.tools)
        self.initialize = join_object(
            {"capabilities": CAPABILITIES, "serverInfo": SERVER_INFO, "instructions": said}
        )
        versions = b",".join(quote(version) for version in MODERN_VERSIONS)
        self.discover = self.stamped(
            join_object(
                {"supportedVersions": b"[%b]" % versions, "capabilities": CAPABILITIES, "instructions": said}
            )
        )

    @staticmethod
    def stamped(result: bytes) -> bytes:
        """``result`` as a modern server sends a cacheable one."""
        return stamp_result(result, server_info=SERVER_INFO, ttl_ms=LISTING_TTL, cache_scope="private")


class Session:
    """A client's conversation, from its first byte to its last."""

    def __init__(self, proxy: Proxy, welcome: Welcome, send: Callable[[bytes], None]) -> None:
        """send: takes the frames for the client, in order."""
        self._proxy, self._welcome, self._send = proxy, welcome, send
        self._peer = Peer(role=Role.SERVER)
        self._era: Era | None = None
        self._calls: dict[bytes, asyncio.Task[None]] = {}

    def replay(self, data: bytes) -> None:
        """Takes note of what the front desk has already answered."""
        send, self._send = self._send, lambda frame: None
        try:
            self.receive(data)
        finally:
            self._send = send

    def receive(self, data: bytes) -> None:
        """Acts on bytes from the client."""
        # Line by line: an id is free again once its request was answered, also within one piece.
        start = 0
        while end := data.find(b"\n", start) + 1:
            self._handle(self._peer.receive(data[start:end]))
            start = end
        if start < len(data):
            self._handle(self._peer.receive(data[start:]))

    def end(self) -> None:
        """The client sends no more; a last line without its newline counts."""
        self._handle(self._peer.eof())

    def _handle(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Request():
                    self._request(event)
                case Cancelled(id=number):
                    if (call := self._calls.get(number)) is not None:
                        call.cancel()
                case Invalid(id=number, code=code, message=message):
                    self._send(self._peer.error(number, code, message))
                case Notification() | _:
                    pass  # initialized, roots/list_changed …: nothing we do depends on them

    async def finish(self, patience: float) -> None:
        """What the client still waits for gets ``patience`` seconds, then is cancelled."""
        calls = list(self._calls.values())
        if calls:
            await asyncio.wait(calls, timeout=patience)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls, timeout=LETTING_GO)

    def _request(self, request: Request) -> None:
        try:
            opening = read_opening(request.method, request.params)
            self._settle_era(request.method, opening)
            result = self._at_once(request, opening)
        except _FaultError as fault:
            error = fault.error
            self._send(self._peer.error(request.id, error.code, error.message, error.data))
            return
        if isinstance(result, bytes):
            self._send(self._peer.result(request.id, result))
        else:
            task = asyncio.create_task(result)
            self._calls[request.id] = task
            task.add_done_callback(partial(self._done, request.id))

    def _done(self, number: bytes, task: "asyncio.Task[None]") -> None:
        if self._calls.get(number) is task:  # the id of a cancelled call may be another's by now
            del self._calls[number]

    def _settle_era(self, method: str, opening: Opening | None) -> None:
        if opening is None:
            if self._era is None and method != "ping":
                raise _FaultError(INVALID_REQUEST, "The conversation has not begun: send initialize first.")
            if self._era is Era.MODERN:
                raise _FaultError(
                    INVALID_PARAMS, "The request lacks its _meta of protocol version 2026-07-28."
                )
            return
        if opening.era is Era.LEGACY and opening.version is None:
            raise _FaultError(INVALID_PARAMS, "initialize needs a 'protocolVersion'.")
        if opening.era is Era.MODERN:
            if opening.version is None or opening.capabilities is None:
                raise _FaultError(
                    INVALID_PARAMS,
                    "_meta lacks io.modelcontextprotocol/protocolVersion or …/clientCapabilities.",
                )
            if opening.version not in MODERN_VERSIONS:
                error = unsupported_version_error(opening.version)
                raise _FaultError(error.code, error.message, error.data)
        if self._era not in (None, opening.era):
            raise _FaultError(INVALID_REQUEST, f"This connection already speaks {self._spoken()}.")
        self._era = opening.era

    def _spoken(self) -> str:
        return MODERN_VERSION if self._era is Era.MODERN else "a version negotiated with initialize"

    def _at_once(self, request: Request, opening: Opening | None) -> bytes | Coroutine[None, None, None]:
        """The result, where it takes no waiting; otherwise the work that will answer."""
        welcome, modern = self._welcome, self._era is Era.MODERN
        match request.method:
            case "initialize":
                asked = opening.version if opening is not None else None
                return b'{"protocolVersion":' + quote(negotiate(asked or "")) + b"," + welcome.initialize[1:]
            case "server/discover" if modern:
                return welcome.discover
            case "ping" if not modern:
                return b"{}"
            case "tools/list":
                if _asks_for_page(request.params):
                    raise _FaultError(INVALID_PARAMS, "There is no such page: tools/list has one only.")
                return welcome.modern_tools if modern else welcome.tools
            case "tools/call":
                return self._call(request)
            case _:
                raise _FaultError(METHOD_NOT_FOUND, f"mcpzip does not offer {request.method}.")

    async def _call(self, request: Request) -> None:
        peer, number = self._peer, request.id
        try:
            result = await self._called(request)
        except UpstreamRpcError as error:
            self._send(peer.error(number, error.code, error.message, error.data))
        except UnknownToolError as error:
            self._send(peer.error(number, INVALID_PARAMS, str(error)))
        except McpzipError as error:
            self._send(peer.error(number, INTERNAL_ERROR, str(error)))
        except _FaultError as fault:
            self._send(peer.error(number, fault.error.code, fault.error.message))
        except asyncio.CancelledError:
            raise  # a cancelled request gets no answer (spec: basic/utilities/cancellation)
        except Exception as error:
            # A defect of ours must not leave the client waiting.
            self._send(peer.error(number, INTERNAL_ERROR, f"mcpzip failed: {type(error).__name__}: {error}"))
        else:
            if self._era is Era.MODERN:
                result = stamp_result(result, server_info=SERVER_INFO)
            self._send(peer.result(number, result))

    async def _called(self, request: Request) -> bytes:
        try:
            call = _read_call(request.params or b"{}")
        except (msgspec.DecodeError, NotAnObject, RecursionError) as error:
            raise _FaultError(INVALID_PARAMS, f"tools/call can't read its params: {error}.") from error
        meta, arguments = bytes(call.meta), bytes(call.arguments)
        context = Context(
            meta=meta if meta.startswith(b"{") else None,
            on_progress=self._progress_for(request),
        )
        return await self._proxy.call(call.name, None if arguments in (b"", b"null") else arguments, context)

    def _progress_for(self, request: Request) -> Callable[[bytes], None] | None:
        token = progress_token(request.params)
        if token is None:
            return None

        def relay(params: bytes) -> None:
            told = with_members(params, {"progressToken": token})
            self._send(self._peer.notify("notifications/progress", told))

        return relay
