"""The legacy HTTP+SSE transport (spec 2024-11-05: basic/transports)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx

from mcpzip.http.bodies import beginning
from mcpzip.http.events import Cursor, content_type, events, is_event_stream
from mcpzip.model.quoting import quoted, shortened
from mcpzip.system.tasks import cancel
from mcpzip.transport.base import ChannelClosedError, Incoming, Signing
from mcpzip.transport.http_channel import LINGER, STREAM_HEADERS, Around, HttpChannel
from mcpzip.transport.http_errors import LOST, failure
from mcpzip.wire import JsonRpcError


@asynccontextmanager
async def open_sse(
    url: str,
    headers: Mapping[str, str],
    signing: Signing,
    incoming: Incoming,
    around: Around | None = None,
) -> AsyncIterator["SseChannel"]:
    """A legacy HTTP+SSE channel; its event stream is open when it is entered.

    Raises ChannelClosedError (sent=False) when the event stream can't be opened.
    """
    channel = SseChannel(url, headers, signing, incoming, around)
    try:
        await channel.open()
        yield channel
    finally:
        await channel.aclose()


class SseChannel(HttpChannel):
    """A `Channel` over HTTP+SSE: one stream for all responses, and a URL to which messages are posted."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        signing: Signing,
        incoming: Incoming,
        around: Around | None = None,
    ) -> None:
        super().__init__(url, headers, signing, incoming, around)
        self._post_url: asyncio.Future[httpx.URL] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        """Opens the stream and waits for the `endpoint` event. Raises ChannelClosedError."""
        self._spawn(self._read_stream())
        await asyncio.shield(self._post_url)

    @property
    def _endpoint(self) -> httpx.URL:
        return self._post_url.result()

    async def _handle_response(self, number: int, method: str, response: httpx.Response) -> None:
        """Waits: the response comes on the stream. Some servers end the POST only when the tool is done."""
        body = asyncio.ensure_future(beginning(response, None))
        try:
            while not body.done() and self._rpc.is_open(number):
                await asyncio.wait({body}, timeout=LINGER)
        finally:
            await cancel(body)

    async def _end_session(self) -> None:
        """Nothing to send: closing the stream ends the session."""

    async def _read_stream(self) -> None:
        """Reads the stream to its end."""
        try:
            response = await self._send("GET", self._client.url, STREAM_HEADERS)
            try:
                await self._read_events(response)
            finally:
                await response.aclose()
            reason = ChannelClosedError("the server closed the stream", sent=False)
        except Exception as error:
            reason = failure(error, self._client.url)
        if self._post_url.done():
            lost = reason.reason == LOST
            self._rpc.end("the server closed the stream" if lost else reason.reason)
        else:
            self._post_url.set_exception(_not_opened(reason))

    async def _read_events(self, response: httpx.Response) -> None:
        fault = await self._fault(response, in_session=False)
        if isinstance(fault, JsonRpcError):
            raise ValueError(f"{quoted(fault.error.message)} ({fault.error.code})")
        if fault is not None:
            raise fault
        if not is_event_stream(response):
            raise ValueError(f"it answered with {quoted(content_type(response) or 'nothing')}")
        cursor = Cursor()
        async for event in events(response):
            kind = cursor.note(event)
            if kind == "endpoint" and not self._post_url.done():
                self._post_url.set_result(self._endpoint_url(event.data))
            elif kind == "message" and event.data:
                await self._receive(event.data)

    def _endpoint_url(self, data: bytes) -> httpx.URL:
        """The URL in an `endpoint` event. Raises ValueError for one in another origin."""
        own = self._client.url
        try:
            target = own.join(data.decode("utf-8", "replace"))
        except httpx.InvalidURL as error:
            raise ValueError(f"the endpoint it names is no URL: {shortened(str(error))}") from error
        if (target.scheme, target.host, target.port) != (own.scheme, own.host, own.port):
            raise ValueError(f"the endpoint it names, {quoted(str(target))}, is in another origin")
        return target


def _not_opened(error: ChannelClosedError) -> ChannelClosedError:
    """The error for a stream that could not be opened; nothing was sent on it."""
    plain = error.status is None and not error.remedy and not error.login
    reason = f"its event stream can't be opened ({error.reason})" if plain else error.reason
    return ChannelClosedError(reason, sent=False, remedy=error.remedy, status=error.status, login=error.login)
