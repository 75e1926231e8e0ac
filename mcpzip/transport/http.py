"""The Streamable HTTP transport (spec 2025-11-25 and 2026-07-28: basic/transports/streamable-http)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx

from mcpzip.http.bodies import beginning, whole
from mcpzip.http.events import Cursor, content_type, events, is_event_stream
from mcpzip.model.limits import MESSAGE
from mcpzip.model.quoting import quoted
from mcpzip.system.backoff import Backoff
from mcpzip.transport.base import ChannelClosedError, Incoming, Signing
from mcpzip.transport.http_channel import LINGER, STREAM_HEADERS, Around, HttpChannel
from mcpzip.transport.http_errors import LOST, NEITHER, NETWORK, NOT_OURS

_SESSION = b"Mcp-Session-Id"
_RETRY = 1.0
"""Seconds after which a stream is opened again, unless the server sets another delay."""
_LONGEST_RETRY = 300.0
"""The longest delay while opening the stream keeps failing."""
_RESUMPTIONS = 2
"""Failed attempts in a row after which a broken response is no longer resumed."""
_TEMPORARY = (401, 403, 408, 425, 429)
"""Statuses (4xx) refusing the stream that may be temporary."""
_DELETE_TIMEOUT = 1.0
"""Seconds a server has to answer the DELETE of its session."""


@asynccontextmanager
async def open_http(
    url: str,
    headers: Mapping[str, str],
    signing: Signing,
    incoming: Incoming,
    around: Around | None = None,
) -> AsyncIterator["StreamableHttpChannel"]:
    """A Streamable HTTP channel. Nothing is sent until the first request."""
    channel = StreamableHttpChannel(url, headers, signing, incoming, around)
    try:
        yield channel
    finally:
        await channel.aclose()


class StreamableHttpChannel(HttpChannel):
    """A `Channel` over Streamable HTTP.

    In the legacy era it has the session that `initialize` opened, reads a standalone stream (GET), and
    resumes broken responses (`Last-Event-ID`); the modern era has none of these.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        signing: Signing,
        incoming: Incoming,
        around: Around | None = None,
    ) -> None:
        super().__init__(url, headers, signing, incoming, around)
        self._session = self._new_session = b""
        self._has_stream = False
        self._accepted: set[int] = set()
        """Requests answered with 202; their responses may come on the stream."""

    async def request(self, method: str, params: bytes | None, **options: object) -> bytes:
        result = await super().request(method, params, **options)  # type: ignore[arg-type]
        if method == "initialize":
            self._session = self._new_session
        return result

    async def notify(self, method: str, params: bytes | None = None) -> None:
        await super().notify(method, params)
        if method == "notifications/initialized" and self._session and self._rpc.gone is None:
            self._has_stream = True
            self._spawn(self._read_stream())

    @property
    def _in_session(self) -> bool:
        return bool(self._session)

    @property
    def _closing_cancels(self) -> bool:
        return self._modern

    def _headers(self) -> list[tuple[bytes, bytes]]:
        session = [(_SESSION, self._session)] if self._session else []
        return [*session, *super()._headers()]

    async def _handle_response(self, number: int, method: str, response: httpx.Response) -> None:
        if method == "initialize":
            raw = {name.lower(): value for name, value in response.headers.raw}
            self._new_session = raw.get(_SESSION.lower(), b"")
        kind = content_type(response)
        if kind == "text/event-stream":
            await self._read_response_stream(number, response)
        elif response.status_code == 202 and self._has_stream:
            self._accepted = {number, *filter(self._rpc.is_open, self._accepted)}
            await beginning(response)
        elif kind == "application/json":
            fault = await self._receive(await whole(response, MESSAGE), number)
            self._rpc.fail(number, ChannelClosedError(fault or NOT_OURS, sent=True, fatal=False))
        else:
            what = f" ({quoted(kind)})" if kind else ""
            self._rpc.fail(number, ChannelClosedError(NEITHER + what, sent=True, fatal=False))

    async def _read_response_stream(self, number: int, response: httpx.Response) -> None:
        """Reads a response that is an event stream, resuming it if it breaks."""
        cursor, fault = Cursor(), ""
        try:
            fault = await self._read_events(response, cursor, number)
        except httpx.TransportError:
            pass
        if self._rpc.is_open(number) and cursor.id and not self._modern:
            await response.aclose()
            await self._resume(number, cursor)
        self._rpc.fail(number, ChannelClosedError(fault or LOST, sent=True, fatal=False))

    async def _read_events(self, response: httpx.Response, cursor: Cursor, number: int | None) -> str:
        """Handles the messages of an event stream until its end, or for a moment after the response to
        ``number``.

        Returns what was wrong with the last message that was no response; "" if nothing was.
        """
        fault = ""
        async with asyncio.timeout(None) as lingering:
            async for event in events(response):
                if cursor.note(event) == "message" and event.data:
                    fault = await self._receive(event.data, number) or fault
                if number is not None and lingering.when() is None and not self._rpc.is_open(number):
                    lingering.reschedule(asyncio.get_running_loop().time() + LINGER)
        return fault

    async def _resume(self, number: int, cursor: Cursor) -> None:
        """Requests the rest of a broken response (spec 2025-11-25: "Resumability and Redelivery")."""
        failures = 0
        while self._rpc.is_open(number) and failures < _RESUMPTIONS:
            await asyncio.sleep(_RETRY if cursor.retry is None else cursor.retry)
            failures = 0 if await self._open_stream(cursor, number) is None else failures + 1

    async def _read_stream(self) -> None:
        """Reads the standalone stream for as long as the server offers one."""
        cursor, backoff = Cursor(), Backoff(2 * _RETRY, _LONGEST_RETRY)
        while True:
            status = await self._open_stream(cursor, None)
            if status is not None and 400 <= status < 500 and status not in _TEMPORARY:
                self._has_stream = False
                for number in self._accepted:
                    self._rpc.fail(number, ChannelClosedError(LOST, sent=True, fatal=False))
                self._accepted.clear()
                return
            wait = _RETRY if cursor.retry is None else cursor.retry
            if status is None:
                backoff.reset()
            else:
                wait = max(wait, backoff.next())
            await asyncio.sleep(wait)

    async def _open_stream(self, cursor: Cursor, number: int | None) -> int | None:
        """Opens a stream at ``cursor`` and handles its messages until its end.

        Returns None after a stream, else the HTTP status; 0 without a response.
        """
        last_id = [(b"Last-Event-ID", cursor.id)] if cursor.id else []
        opened = False
        try:
            response = await self._send("GET", self._endpoint, [*STREAM_HEADERS, *last_id])
            try:
                if response.status_code != 200 or not is_event_stream(response):
                    return response.status_code if response.status_code != 200 else 406
                opened = True
                await self._read_events(response, cursor, number)
            finally:
                await response.aclose()
        except NETWORK:
            pass  # the caller retries, or fails the request
        return None if opened else 0

    async def _end_session(self) -> None:
        if not self._session:
            return
        try:
            async with asyncio.timeout(_DELETE_TIMEOUT):
                response = await self._send("DELETE", self._endpoint, ())
                await response.aclose()
        except NETWORK:
            pass  # the server will expire the session
