"""HTTP+SSE, the transport of 2024-11-05: one event stream for all that the server sends. Its first event is
the address that messages are posted to.

The rule: as in `http`, it does only what the specification requires of a client (2024-11-05,
basic/transports#http-with-sse). Messages are posted one at a time, so that they arrive in their order.
"""

import asyncio
from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit

import httpx

from mcpzip.http.bodies import BodyTooLongError, whole
from mcpzip.http.events import Cursor, content_type, events
from mcpzip.model.limits import MESSAGE
from mcpzip_conformance.channel import Sink
from mcpzip_conformance.channel.http import BROKEN, HttpChannel, request_id_of
from mcpzip_conformance.processes import Process


class SseChannel(HttpChannel):
    """See `mcpzip_conformance.channel.Channel`, and `HttpChannel` for the arguments. url: of the stream."""

    def __init__(
        self,
        url: str,
        process: Process | None,
        sink: Sink,
        *,
        headers: Mapping[str, str] | None = None,
        owned: bool = True,
    ) -> None:
        super().__init__(url, process, sink, headers=headers, owned=owned)
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._start(self._listen(), None)

    async def _post(self, raw: bytes) -> None:
        request_id = request_id_of(raw)
        try:
            async with self._turn:
                address = await asyncio.shield(self._address)
                response = await self._client.post(address, content=raw)
            if response.is_success:
                return  # the answer comes in the stream
            self._sink.remark(f"HTTP {response.status_code}")
            why = f"HTTP {response.status_code} came for it."
        except BROKEN as error:
            if self._leaving:
                return
            self._sink.remark(f"the connection broke: {error!r}")
            why = f"The connection broke before the answer: {error}"
        if request_id is not None:
            self._sink.refused(request_id, why, None)

    async def _listen(self) -> None:
        """Read the stream, which the connection ends with."""
        why = "the server closed its event stream"
        try:
            async with self._client.stream(
                "GET", self.url, headers={"Accept": "text/event-stream"}
            ) as response:
                if response.is_success and content_type(response) == "text/event-stream":
                    await self._messages(response)
                else:
                    await whole(response, MESSAGE)
                    why = f"HTTP {response.status_code} came instead of an event stream"
        except BROKEN as error:
            why = f"the event stream broke: {error!r}"
        if self._leaving:
            return
        self._sink.remark(why)
        if not self._address.done():
            self._address.set_exception(BodyTooLongError(why))
            self._address.exception()  # it was read: no message may ever be posted
        self._sink.ended()

    async def _messages(self, response: httpx.Response) -> None:
        cursor = Cursor()
        async for event in events(response):
            await self._reading.wait()
            kind = cursor.note(event)
            if kind == "endpoint" and not self._address.done():
                self._address.set_result(self._checked(event.data.decode("utf-8", "replace")))
            elif kind == "message" and event.data:
                self._take(event.data, None)

    def _checked(self, address: str) -> str:
        """The address that messages are posted to. Raises ValueError if it is of another host: a client's
        token must not travel."""
        found = urljoin(self.url, address.strip())
        if urlsplit(found)[:2] != urlsplit(self.url)[:2]:
            raise ValueError(f"it names an address of another host: {found[:200]}")
        return found
