"""A `Channel` over the SDK's HTTP transports.

The rule: the SDK does all of HTTP; its typed layer, which would drop unknown fields, is left out: requests go
through its raw `JSONRPCDispatcher`. Importing this takes about half a second: it is imported only for a
server that needs it.
"""

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

import anyio
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED

from mcpzip.model import limits
from mcpzip.system.tasks import looked_at
from mcpzip.system.threads import in_thread
from mcpzip.transport.answering import Answers
from mcpzip.transport.base import (
    ChannelClosedError,
    Dialect,
    Incoming,
    ProgressSink,
    RpcFaultError,
    Signing,
)
from mcpzip.transport.witness import Fault, Witness
from mcpzip.wire import (
    INTERNAL_ERROR,
    Era,
    NotAnObject,
    RpcError,
    split_object,
    with_members,
    with_progress_token,
)
from mcpzip.wire.envelope import own_id, read_error, text_of
from mcpzip.wire.stepping import elements_of

MIRRORS = b"x-mcp-header"
"""What a schema says of a parameter that is to be repeated in a header."""

STREAM_READ_TIMEOUT = 3600.0
"""Seconds a stream may stay silent: a call's own timeout is what ends a call."""

# What the SDK puts in the place of an HTTP failure whose body wasn't a JSON-RPC error.
_SUBSTITUTES = {"Server returned an error response", "Not Found", "Session terminated"}

# How the SDK words a loss of its own, under a code that servers use for errors of any kind.
_LOSSES = ("Connection closed", "SSE stream ")

# How it words that an answer came which it can't read; what was called has run, or may have.
_UNREADABLE = {
    "Failed to parse ": "its answer is not JSON-RPC",
    "Unexpected content type": "it answered with something else than JSON or an event stream",
}


@asynccontextmanager
async def dispatching(
    read: ReadStream[SessionMessage | Exception],
    write: WriteStream[SessionMessage],
    witness: Witness,
    signing: Signing,
    incoming: Incoming,
) -> AsyncIterator["SdkChannel"]:
    answers = Answers(write)
    channel = SdkChannel(JSONRPCDispatcher(read, answers), answers, witness, signing, incoming)
    async with anyio.create_task_group() as group:
        await group.start(channel.run)
        try:
            yield channel
        finally:
            channel.close()
            group.cancel_scope.cancel()


class SdkChannel:
    """A `Channel` over an SDK dispatcher."""

    def __init__(
        self,
        dispatcher: "JSONRPCDispatcher[TransportContext]",
        answers: Answers,
        witness: Witness,
        signing: Signing,
        incoming: Incoming,
    ) -> None:
        self.dialect: Dialect | None = None
        self._dispatcher, self._witness, self._incoming = dispatcher, witness, incoming
        self._signing = signing
        self._ids = itertools.count(1)
        self._progress: dict[int | str, ProgressSink] = {}
        self._gone: str | None = None
        witness.verbatim.heard = self._heard
        witness.verbatim.deaf = lambda: self._questions >= 2 * limits.ASKED
        self._answers = answers
        self._asked = 0

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Reads until the stream ends. Started by `dispatching` in the owner's task group."""
        try:
            await self._dispatcher.run(self._on_request, self._on_notification, task_status=task_status)
        finally:
            self._end("the server closed the stream")

    async def request(
        self,
        method: str,
        params: bytes | None,
        *,
        on_progress: ProgressSink | None = None,
        cancellable: bool = True,
        definition: bytes | None = None,
    ) -> bytes:
        if self._gone is not None:
            raise ChannelClosedError(self._gone, sent=False)
        number = next(self._ids)
        if on_progress is not None:
            params = with_progress_token(params, b"%d" % number)
            self._progress[number] = on_progress
        fields = _members(params)
        options: CallOptions = {
            "request_id": number,
            "headers": {**self._headers(method, fields), **await self._mirrored(definition, fields)},
            "cancel_on_abandon": cancellable,
        }
        self._witness.verbatim.params[number] = params or b"{}"
        sending = asyncio.ensure_future(self._dispatcher.send_raw_request(method, {}, options))
        sending.add_done_callback(looked_at)  # we may be cancelled in the very moment it fails
        try:
            return await self._outcome(method, number, sending)
        finally:
            self._progress.pop(number, None)
            self._witness.faults.pop(number, None)
            self._witness.verbatim.params.pop(number, None)
            self._witness.verbatim.answers.pop(number, None)
            if not sending.done():
                sending.cancel()
                await asyncio.wait({sending})

    async def _outcome(self, method: str, number: int, sending: "asyncio.Future[dict[str, object]]") -> bytes:
        await self._witness.settled(number, sending)
        if not sending.done():
            raise self._closed_by(self._witness.faults[number])
        try:
            result = sending.result()
        except MCPError as error:
            raise self._failure(number, error) from error
        answer = self._witness.verbatim.answers.get(number)
        text = encode_json(result) if answer is None else answer.text
        modern = self.dialect is not None and self.dialect.era is Era.MODERN
        if method == "tools/list" and modern and MIRRORS in text:
            return await in_thread(lambda: _without_invalid(text), "mirrors")
        return text

    def _failure(self, number: int, error: MCPError) -> Exception:
        fault = self._witness.faults.get(number)
        if fault is not None and (wanted := self._signing.refused(fault.status or 0)) is not None:
            return wanted
        if fault is not None and fault.counts:
            return self._closed_by(fault)
        answer = self._witness.verbatim.answers.get(number)
        if answer is not None:
            return RpcFaultError(read_error(answer.text))
        lost = error.code == CONNECTION_CLOSED and error.message.startswith(_LOSSES)
        if fault is not None and (lost or error.message in _SUBSTITUTES):
            return self._closed_by(fault)
        if lost:
            return ChannelClosedError(
                self._gone or "the connection was lost", sent=True, fatal=self._gone is not None
            )
        for beginning, reason in _UNREADABLE.items():
            if error.message.startswith(beginning):
                return ChannelClosedError(reason, sent=True, fatal=False)
        data = None if error.data is None else encode_json(error.data)
        return RpcFaultError(RpcError(error.code, error.message, data))

    def _closed_by(self, fault: Fault) -> ChannelClosedError:
        if (wanted := self._signing.refused(fault.status or 0)) is not None:
            return wanted
        if fault.status == 404 and fault.in_session:
            # The server doesn't know our session: it can't have run anything for it (spec: session
            # management).
            self._end("the server forgot our session")
            return ChannelClosedError("the server forgot our session", sent=False, status=404)
        # A status is an answer: the request arrived. Refusals by class, before anything ran, are safe to send
        # again. A server that forgot a session may say so with a 400, too.
        refused = fault.status in (307, 308, 401, 403, 404, 405, 406, 413, 415, 421, 429)
        return ChannelClosedError(
            fault.reason,
            sent=fault.sent and not refused,
            remedy=fault.remedy,
            fatal=not fault.sent or fault.status == 401 or (fault.status == 400 and fault.in_session),
            status=fault.status,
        )

    async def notify(self, method: str, params: bytes | None = None) -> None:
        if self._gone is not None:
            return
        body = cast(dict[str, object], json.loads(params)) if params else None
        await self._dispatcher.notify(method, body, {"headers": self._headers(method, _members(params))})

    def diagnosis(self) -> str:
        return ""

    def close(self) -> None:
        """Marks the channel closed; its context ends the transport."""
        self._end("the connection was closed")

    def _end(self, reason: str) -> None:
        if self._gone is None:
            self._gone = self._witness.gone or reason
            self._incoming.ended(self._gone)

    def _headers(self, method: str, fields: Mapping[str, bytes]) -> dict[str, str]:
        version = self.dialect.version if self.dialect else _claimed_version(fields)
        if version is None:
            return {}
        headers = {MCP_PROTOCOL_VERSION_HEADER: version}
        if self.dialect is None or self.dialect.era is Era.MODERN:
            headers[MCP_METHOD_HEADER] = method
            key = NAME_BEARING_METHODS.get(method)
            name = text_of(fields.get(key, b"")) if key else None
            if name is not None:
                headers[MCP_NAME_HEADER] = encode_header_value(name)
        return headers

    async def _mirrored(self, definition: bytes | None, fields: Mapping[str, bytes]) -> dict[str, str]:
        """The arguments that the tool's schema wants repeated in headers (spec 2026-07-28: basic/transports/
        streamable-http, "Custom headers from tool parameters").
        """
        if definition is None or MIRRORS not in definition:
            return {}
        if self.dialect is None or self.dialect.era is Era.LEGACY:
            return {}
        arguments, tool = fields.get("arguments", b"{}"), definition
        if len(tool) + len(arguments) <= limits.READ_AT_ONCE:
            return _repeated(tool, arguments)
        return await in_thread(lambda: _repeated(tool, arguments), "mirror")

    def _heard(self, method: str, params: bytes | None) -> None:
        """A notification, in wire order: progress stays ahead of its result."""
        if self._gone is not None:
            return
        if method == _PROGRESS and params is not None:
            number = own_id(_members(params).get("progressToken", b""))
            if number is not None and (sink := self._progress.get(number)) is not None:
                sink(params)
                return
        self._incoming.notified(method, params)

    @property
    def _questions(self) -> int:
        """Requests of the server under way: that are worked on, or whose answer isn't sent yet."""
        return self._asked + self._answers.waiting

    async def _on_notification(self, _context: object, _method: str, _params: object) -> None:
        """What is left of `notifications/cancelled`, the only kind that the SDK is shown."""

    async def _on_request(
        self, _context: object, method: str, params: Mapping[str, object] | None
    ) -> dict[str, object]:
        if self._questions >= limits.ASKED:
            raise MCPError(INTERNAL_ERROR, "There are too many requests under way.")
        self._asked += 1
        try:
            text = None if params is None else self._witness.verbatim.taken_up(dict(params))
            if text is None and params is not None:
                text = encode_json(dict(params))
            reply = await self._incoming.asked(method, text)
        except RpcFaultError as fault:
            error = fault.error
            raise MCPError(
                error.code, error.message, None if error.data is None else json.loads(error.data)
            ) from fault
        finally:
            self._asked -= 1
        return cast(dict[str, object], json.loads(reply))


def _repeated(definition: bytes, arguments: bytes) -> dict[str, str]:
    """The headers that repeat those of ``arguments`` which the tool wants repeated."""
    schema = json.loads(definition).get("inputSchema")
    wanted = x_mcp_header_map(schema) if isinstance(schema, dict) else {}
    given = json.loads(arguments) if wanted else {}
    return mcp_param_headers(wanted, given if isinstance(given, dict) else {})


def _without_invalid(text: bytes) -> bytes:
    """The listing ``text`` without the tools whose schema asks for headers that can't be: a client over HTTP
    must leave them out (spec 2026-07-28: basic/transports/streamable-http, "Custom headers from tool
    parameters").
    """
    try:
        tools = elements_of(_members(text).get("tools", b""), limits.LIST_ITEMS)
    except ValueError:
        return text  # whoever reads it says why it can't be read
    kept = list(filter(_can_be_mirrored, tools))
    if len(kept) == len(tools):
        return text
    return with_members(text, {"tools": b"[%b]" % b",".join(kept)})


def _can_be_mirrored(tool: bytes) -> bool:
    """Whether the headers that ``tool`` asks for can be. One that is too large is left out elsewhere."""
    if MIRRORS not in tool or len(tool) > limits.ITEM:
        return True
    try:
        said = json.loads(tool)
    except (ValueError, RecursionError):
        return True
    return not isinstance(said, dict) or find_invalid_x_mcp_header(said.get("inputSchema")) is None


def _members(text: bytes | None) -> dict[str, bytes]:
    try:
        return split_object(text) if text else {}
    except NotAnObject:
        return {}


def _claimed_version(fields: Mapping[str, bytes]) -> str | None:
    return text_of(_members(fields.get("_meta")).get("io.modelcontextprotocol/protocolVersion", b""))


_PROGRESS = "notifications/progress"
# Strings are matched to be stepped over.
_NOT_JSON = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|Infinity|NaN')
_JSON_FOR = {"Infinity": "1e999", "NaN": "null"}


def encode_json(value: object) -> bytes:
    """``value`` as compact JSON text: key order kept, integers exact, ints and floats distinct, lone
    surrogates escaped.

    A number too big for a double, which was read as infinity, becomes one that is again; NaN, which no JSON
    text holds, becomes null.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = _NOT_JSON.sub(_spelt_as_json, json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return text.encode("utf-8", "backslashreplace")  # what UTF-8 can't hold: lone surrogates


def _spelt_as_json(found: re.Match[str]) -> str:
    return _JSON_FOR.get(found[0], found[0])
