"""An upstream over Streamable HTTP (spec 2025-11-25 and 2026-07-28: basic/transports/streamable-http)."""

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
from mcpzip.transport.http_channel import LINGER, LISTENING, HttpChannel
from mcpzip.transport.http_errors import LOST, NEITHER, NETWORK, NOT_OURS

_SESSION = b"Mcp-Session-Id"
_RETRY = 1.0
"""Seconds after which a stream is opened again, where the server doesn't say."""
_RETRY_SELDOM = 300.0
"""The same where that has failed several times."""
_RESUMPTIONS = 2
"""Times in a row that a stream which broke off is asked for in vain."""
_PASSING = (401, 403, 408, 425, 429)
"""Refusals (4xx) of the stream that may not last."""
_GOOD_BYE = 1.0
"""Seconds that a server may take to hear that its session ends."""


@asynccontextmanager
async def open_http(
    url: str, headers: Mapping[str, str], signing: Signing, incoming: Incoming
) -> AsyncIterator["StreamableHttpChannel"]:
    """A Streamable HTTP channel. Nothing is sent until the first request."""
    channel = StreamableHttpChannel(url, headers, signing, incoming)
    try:
        yield channel
    finally:
        await channel.aclose()


class StreamableHttpChannel(HttpChannel):
    """A `Channel` over Streamable HTTP.

    In the legacy era it keeps the session that `initialize` opened, listens on a stream of its own (GET), and
    resumes a response that broke off (`Last-Event-ID`); the modern era has none of these.
    """

    def __init__(self, url: str, headers: Mapping[str, str], signing: Signing, incoming: Incoming) -> None:
        super().__init__(url, headers, signing, incoming)
        self._session = self._offered = b""
        self._listens = False
        self._put_off: set[int] = set()
        """Requests that were accepted, and not answered (202)."""

    async def request(self, method: str, params: bytes | None, **options: object) -> bytes:
        result = await super().request(method, params, **options)  # type: ignore[arg-type]
        if method == "initialize":
            self._session = self._offered
        return result

    async def notify(self, method: str, params: bytes | None = None) -> None:
        await super().notify(method, params)
        if method == "notifications/initialized" and self._session and self._rpc.gone is None:
            self._listens = True
            self._spawn(self._listen())

    @property
    def _in_session(self) -> bool:
        return bool(self._session)

    @property
    def _closing_cancels(self) -> bool:
        return self._modern

    def _headers(self) -> list[tuple[bytes, bytes]]:
        session = [(_SESSION, self._session)] if self._session else []
        return [*session, *super()._headers()]

    async def _answered(self, number: int, method: str, response: httpx.Response) -> None:
        if method == "initialize":
            raw = {name.lower(): value for name, value in response.headers.raw}
            self._offered = raw.get(_SESSION.lower(), b"")
        kind = content_type(response)
        if kind == "text/event-stream":
            await self._streamed(number, response)
        elif response.status_code == 202 and self._listens:
            self._put_off = {
                number,
                *filter(self._rpc.is_open, self._put_off),
            }  # its answer may come on the stream
            await beginning(response)
        elif kind == "application/json":
            fault = await self._receive(await whole(response, MESSAGE), number)
            self._rpc.fail(number, ChannelClosedError(fault or NOT_OURS, sent=True, fatal=False))
        else:
            what = f" ({quoted(kind)})" if kind else ""
            self._rpc.fail(number, ChannelClosedError(NEITHER + what, sent=True, fatal=False))

    async def _streamed(self, number: int, response: httpx.Response) -> None:
        """The answer comes as an event stream, and perhaps goes on with another."""
        cursor, fault = Cursor(), ""
        try:
            fault = await self._read(response, cursor, number)
        except httpx.TransportError:
            pass
        if self._rpc.is_open(number) and cursor.id and not self._modern:
            await response.aclose()
            await self._resume(number, cursor)
        self._rpc.fail(number, ChannelClosedError(fault or LOST, sent=True, fatal=False))

    async def _read(self, response: httpx.Response, cursor: Cursor, number: int | None) -> str:
        """Takes in the messages of an event stream, to its end; that of an answer for a moment after it.

        Returns what was wrong with the last that was no answer; "" where nothing was.
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
        """Asks for the rest of a response that broke off (spec 2025-11-25: "Resumability and Redelivery")."""
        in_vain = 0
        while self._rpc.is_open(number) and in_vain < _RESUMPTIONS:
            await asyncio.sleep(_RETRY if cursor.retry is None else cursor.retry)
            in_vain = 0 if await self._opened(cursor, number) is None else in_vain + 1

    async def _listen(self) -> None:
        """Hears what belongs to no request, for as long as the server has a stream for that."""
        cursor, seldom = Cursor(), Backoff(2 * _RETRY, _RETRY_SELDOM)
        while True:
            status = await self._opened(cursor, None)
            if status is not None and 400 <= status < 500 and status not in _PASSING:
                self._listens = False
                for number in self._put_off:
                    self._rpc.fail(number, ChannelClosedError(LOST, sent=True, fatal=False))
                self._put_off.clear()
                return
            wait = _RETRY if cursor.retry is None else cursor.retry
            if status is None:
                seldom.reset()
            else:
                wait = max(wait, seldom.next())
            await asyncio.sleep(wait)

    async def _opened(self, cursor: Cursor, number: int | None) -> int | None:
        """Opens a stream where ``cursor`` is, and takes in its messages to its end.

        Returns None when there was one, else the HTTP status, 0 where there was none.
        """
        last = [(b"Last-Event-ID", cursor.id)] if cursor.id else []
        opened = False
        try:
            response = await self._send("GET", self._endpoint, [*LISTENING, *last])
            try:
                if response.status_code != 200 or not is_event_stream(response):
                    return response.status_code if response.status_code != 200 else 406
                opened = True
                await self._read(response, cursor, number)
            finally:
                await response.aclose()
        except NETWORK:
            pass  # whoever waits for something is told when it is given up
        return None if opened else 0

    async def _leave(self) -> None:
        if not self._session:
            return
        try:
            async with asyncio.timeout(_GOOD_BYE):
                response = await self._send("DELETE", self._endpoint, ())
                await response.aclose()
        except NETWORK:
            pass  # the session ends by itself one day
