"""What stands between the HTTP server and the SDK's: it records, and it plays the faults of HTTP itself.

The rule: the SDK sees only what a scenario lets through, untouched; what it answers goes out untouched,
unless a crash cuts it. The faults that fire on a message travel in its ASGI scope (`FIRING`), so that each
message is counted once.
"""

import asyncio
import time

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fakes import process
from fakes.answer import JsonObject
from fakes.calls import Refused, as_object
from fakes.eras import unsupported
from fakes.faults import Fault, Firing, Plan
from fakes.record import Writer
from fakes.scenario import Scenario
from mcpzip.wire import INVALID_REQUEST, MODERN_VERSIONS

FIRING = "fakes.firing"
_WIND_UP = 1.0
"""Seconds the SDK may take to notice that a connection was cut."""


class Gate:
    """The ASGI application around the SDK's.

    opens: when it begins to answer (`time.monotonic`); until then requests wait.
    doomed: by request id, the fault that is to break the reply; whoever works out the reply sets it.
    """

    def __init__(self, app: ASGIApp, scenario: Scenario, plan: Plan, record: Writer, transport: str) -> None:
        self._app, self._scenario, self._plan, self._record = app, scenario, plan, record
        self._transport = transport
        self._connections: dict[object, int] = {}
        self.opens = time.monotonic() + sum(
            f.number("seconds") for f in plan.at("start") if f.kind == "slow-start"
        )
        self.doomed: dict[object, Fault] = {}

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
        recorder = _Recorder(self, send, self._record, number, told)
        if firing.get("hang"):
            while (await receive())["type"] != "http.disconnect":
                pass
        elif status := firing.get("status"):
            await _respond(
                recorder.send, int(status.number("status")), status.string("text").encode(), status.headers
            )
        elif refused := self._out_of_era(verb, message, headers):
            code, refusal = refused
            reply = msgspec.json.encode({"jsonrpc": "2.0", "id": message.get("id"), "error": refusal.error()})
            await _respond(recorder.send, code, reply, {"content-type": "application/json"})
        else:
            await self._pass(scope, _Replay(body, receive, recorder.cut), recorder)

    async def _pass(self, scope: Scope, receive: Receive, recorder: "_Recorder") -> None:
        """Let the SDK answer; when the connection is cut, let it wind up. Returning makes the HTTP server
        close."""
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
        """The status and the error a server of this scenario's era would refuse the request with; None when
        it wouldn't."""
        if self._transport == "sse":  # it has no header to tell the era by; the engine sees to it
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
    """The way out for one exchange."""

    def __init__(self, gate: Gate, send: Send, record: Writer, number: int, told: JsonObject) -> None:
        self._gate, self._send, self._record, self._number = gate, send, record, number
        self._told = told
        self._streaming = False
        self._pending = b""
        self.cut = asyncio.Event()
        """Set when nothing more is to be sent and the connection is to go."""

    async def send(self, message: Message) -> None:
        """Record what goes out, and let it."""
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
        elif message["type"] == "http.response.body":
            body, more = message.get("body", b""), message.get("more_body", False)
            for id in self._note(body, more):
                if fault := self._gate.doomed.pop(id, None):
                    await self._break(fault, message, body)
                    return
        await self._send(message)

    def _note(self, body: bytes, more: bool) -> list[object]:
        """Record the messages that ``body`` completes; the ids of the replies among them."""
        self._pending += body
        if self._streaming:
            *events, self._pending = self._pending.replace(b"\r\n", b"\n").split(b"\n\n")
            whole = [
                b"\n".join(line[5:].strip() for line in e.split(b"\n") if line.startswith(b"data:"))
                for e in events
            ]
        else:
            whole = [] if more else [self._pending]
        found = [text for text in whole if text]
        answered: list[object] = []
        for text in found:
            message = _message(text)
            if not message:  # an endpoint, a status page
                self._record.event("body", {"text": text.decode("utf-8", "backslashreplace")}, self._number)
                continue
            self._record.message("out", text, self._number)
            if "id" in message and "method" not in message:
                answered.append(message["id"])
        return answered

    async def _break(self, fault: Fault, message: Message, body: bytes) -> None:
        """Send the reply, or half of it, and act on ``fault``."""
        if fault.string("when") == "after":
            await self._send(message)
        else:
            await self._send(
                {"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True}
            )
        if fault.kind == "crash":
            process.leave(self._record, "crash", int(fault.number("code")), fault.string("text"))
        self.cut.set()


async def _body(receive: Receive) -> bytes:
    whole, more = b"", True
    while more:
        part = await receive()
        whole += part.get("body", b"")
        more = part.get("more_body", False)
    return whole


class _Replay:
    """``receive`` as it was before the body was read; once ``cut`` is set it says that the client has
    gone."""

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
