"""Streamable HTTP: a POST a message, answered by JSON or an event stream; in the legacy era with a session,
and a stream for messages that belong to no request.

The rule: it does only what the specification requires of a client (2025-11-25 and 2026-07-28,
basic/transports/streamable-http). Redirects aren't followed: a client's token must not travel.
"""

import asyncio
import os
import ssl
from collections.abc import Callable, Coroutine, Mapping
from functools import cache

import httpx

from mcpzip.http.bodies import BodyTooLongError, whole
from mcpzip.http.events import Cursor, content_type, events
from mcpzip.model.limits import MESSAGE
from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_KEY,
    NotAnObject,
    split_object,
    unquote,
)
from mcpzip.wire.content_coding import CODINGS
from mcpzip.wire.param_headers import NAMED_BY, header_value
from mcpzip_conformance.channel import Sink
from mcpzip_conformance.processes import Process

_ACCEPT = "application/json, text/event-stream"
_REMARKED = 300
BROKE = "The connection broke before the answer."
"""The error of a request whose connection broke."""
BROKEN = (httpx.HTTPError, httpx.InvalidURL, BodyTooLongError, ValueError)
"""What a response, or the address it should come from, can raise: ValueError for an event that is too long,
or a session id that no header can hold."""
_LEAVING = 1.0
"""Seconds for the DELETE of a session."""


@cache
def tls_context() -> ssl.SSLContext:
    """Trusts whom httpx trusts: ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, or certifi's authorities. Made once,
    because to read all certificates takes 25 ms, and httpx would do so for each client."""
    return httpx.create_ssl_context()


class HttpChannel:
    """See `mcpzip_conformance.channel.Channel`. headers: sent with every request; process: the server's
    process, None if a fake in this process is the server; owned: whether the process is ended with the
    channel; session: the session id, "" before there is one; over: whether the other side ended the session,
    as it may at any time (HTTP 404; 2025-11-25, basic/transports#session-management). transport: through
    which its requests go, None for the usual one."""

    def __init__(
        self,
        url: str,
        process: Process | None,
        sink: Sink,
        *,
        headers: Mapping[str, str] | None = None,
        owned: bool = True,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url, self.session, self.over = url, "", False
        self._process, self._sink, self._owned = process, sink, owned
        self.headers, self.transport = dict(headers or {}), transport
        self._version = ""
        self._client = httpx.AsyncClient(
            headers={
                "Accept": _ACCEPT,
                "Accept-Encoding": CODINGS,
                "Content-Type": "application/json",
                **self.headers,
            },
            timeout=httpx.Timeout(None),
            limits=httpx.Limits(max_connections=None, keepalive_expiry=None),
            trust_env=False,
            verify=tls_context(),
            transport=transport,
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._posts: dict[bytes, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()
        self._leaving = False
        self._reading = asyncio.Event()
        self._reading.set()
        self._watch = None if process is None else asyncio.create_task(self._until_exit(process))

    @property
    def process(self) -> Process:
        """The server's process. There must be one."""
        assert self._process is not None, "no process was started for this connection"
        return self._process

    def last_words(self) -> str:
        """See `Process.last_words`."""
        return "." if self._process is None else self._process.last_words()

    def write(self, raw: bytes) -> None:
        """POST a message. Messages that get no answer are sent one at a time."""
        self._start(self._post(raw), request_id_of(raw))

    def cancel(self, id: bytes, notification: bytes) -> bool:
        """In the modern era by closing the request's stream, else by the notification."""
        if self._version in MODERN_VERSIONS:
            task = self._posts.get(id)
            self._sink.remark("closes the stream of the request")
            if task is not None:
                task.cancel()
            return False
        self.write(notification)
        return True

    def pause(self) -> None:
        """Read no stream any further: what comes stays in the buffers of the connection."""
        self._reading.clear()

    async def leave(self, grace: float = _LEAVING) -> None:
        """DELETE the session, and close every stream."""
        self._leaving = True
        try:
            if self.session and (self._process is None or self._process.code is None):
                async with asyncio.timeout(min(_LEAVING, grace or _LEAVING)):
                    await self._client.delete(self.url, headers=self._headers())
        except (*BROKEN, TimeoutError):
            pass  # the connection is closed in any case
        finally:
            self.session = ""
            await self.crash()

    async def crash(self) -> None:
        """Close every stream; the session stays."""
        self._leaving, self.session = True, ""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    async def end(self, grace: float) -> None:
        """End the session, every stream, and the process if it is owned."""
        try:
            await self.leave(grace)
        finally:
            if self._watch is not None:
                self._watch.cancel()
            if self._owned and self._process is not None:
                if os.name == "posix":
                    self._process.terminate()
                    await self._process.end(grace)
                else:  # without its head the tree below it could not be found any more
                    await self._process.end(0.0)

    # Requests

    def _start(self, work: Coroutine[None, None, None], id: bytes | None) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if id is not None:
            self._posts[id] = task

    async def _post(self, raw: bytes) -> None:
        message = _members(raw)
        request_id = message["id"] if "id" in message and "method" in message else None
        method = _text(message.get("method"))
        await self._turn.acquire()
        held = [self._turn]

        def next_one() -> None:
            while held:
                held.pop().release()

        try:
            headers = self._headers() | self._modern_headers(method, message)
            # Requests run beside each other; what asks for no answer goes alone, and what makes the session
            # does until it is answered: the stream of its answer may stay open.
            if request_id is not None and method != "initialize":
                next_one()
            await self._exchange(raw, headers, method, request_id, next_one)
        except BROKEN as error:
            if not self._leaving:
                self._sink.remark(f"the connection broke: {error!r}")
                if request_id is not None:
                    self._sink.refused(request_id, BROKE, None)
        finally:
            next_one()

    async def _exchange(
        self,
        raw: bytes,
        headers: Mapping[str, str],
        method: str | None,
        request_id: bytes | None,
        answered_now: Callable[[], None],
    ) -> None:
        async with self._client.stream("POST", self.url, content=raw, headers=headers) as response:
            if not response.is_success:
                self.over |= bool(self.session) and response.status_code == 404
                where = response.headers.get("location", "")
                self._sink.remark(f"HTTP {response.status_code} {where}".rstrip())
            if method == "initialize" and response.is_success:
                self.session, self._version = (
                    response.headers.get("mcp-session-id", ""),
                    LATEST_LEGACY_VERSION,
                )
            if method == "notifications/initialized" and response.is_success:
                self._start(self._listen(), None)
            answered = await self._read(response, request_id, answered_now)
        if request_id is not None and not answered:
            self._sink.refused(
                request_id, f"HTTP {response.status_code} came without an answer to the request.", None
            )

    async def _read(
        self,
        response: httpx.Response,
        request_id: bytes | None,
        answered_now: Callable[[], None] = lambda: None,
    ) -> bool:
        """Pass on the messages in a response. Returns whether it answered the request ``asked``.
        answered_now: called as soon as it did, even if the stream stays open."""
        kind = content_type(response)
        if kind == "text/event-stream":
            answered, cursor = False, Cursor()
            async for event in events(response):
                await self._reading.wait()
                told = cursor.note(event) == "message" and bool(event.data)
                if told and self._take(event.data, request_id):
                    answered = True
                    answered_now()
            return answered
        body = await whole(response, MESSAGE)
        if kind != "application/json" or not body:
            if body:
                self._sink.remark(body[:_REMARKED].decode("utf-8", "backslashreplace"))
            return False
        message = _members(body)
        if response.is_success or request_id is None or message.get("id") == request_id:
            return self._take(body, request_id)
        # A refusal that names no request, or none of ours, is for the one that was posted.
        self._sink.remark(body[:_REMARKED].decode("utf-8", "backslashreplace"))
        self._sink.refused(request_id, f"HTTP {response.status_code}", message.get("error"))
        return True

    def _take(self, raw: bytes, request_id: bytes | None) -> bool:
        raw = raw.replace(b"\r\n", b" ").replace(b"\n", b" ")  # between tokens; a JSON string holds none
        message = _members(raw)
        agreed = _text(_members(message.get("result", b"{}")).get("protocolVersion"))
        if agreed is not None and self._version == LATEST_LEGACY_VERSION:
            self._version = agreed
        self._sink.line(raw)
        return request_id is not None and message.get("id") == request_id and "method" not in message

    async def _listen(self) -> None:
        """Open the legacy era's stream for messages that belong to no request. A server may refuse it."""
        headers = self._headers() | {"Accept": "text/event-stream"}
        try:
            async with self._client.stream("GET", self.url, headers=headers) as response:
                if response.is_success:
                    await self._read(response, None)
                elif response.status_code != 405:
                    self._sink.remark(f"HTTP {response.status_code} for the stream (GET)")
        except BROKEN as error:
            if not self._leaving:
                self._sink.remark(f"the stream (GET) broke: {error!r}")

    async def _until_exit(self, process: Process) -> None:
        await process.exited.wait()
        self._sink.ended()

    def _headers(self) -> dict[str, str]:
        headers = {}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        if self._version:
            headers["MCP-Protocol-Version"] = self._version
        return headers

    def _modern_headers(self, method: str | None, message: Mapping[str, bytes]) -> dict[str, str]:
        """The headers that repeat members of a modern request."""
        params = _members(message.get("params", b"{}"))
        version = _text(_members(params.get("_meta", b"{}")).get(PROTOCOL_VERSION_KEY))
        if version is None or method is None:
            return {}
        self._version = version
        headers = {"MCP-Protocol-Version": version, "Mcp-Method": method}
        name = _text(params.get(NAMED_BY.get(method, "")))
        return headers if name is None else headers | {"Mcp-Name": header_value(name)}


def _members(raw: bytes) -> dict[str, bytes]:
    try:
        return split_object(raw)
    except NotAnObject:
        return {}


def _text(raw: bytes | None) -> str | None:
    return unquote(raw) if raw is not None and raw.startswith(b'"') else None


def request_id_of(raw: bytes) -> bytes | None:
    """The id of a request; None for an answer, whose id is of the other side's counting."""
    message = _members(raw)
    return message.get("id") if "method" in message else None
