"""One HTTP/1.1 connection (RFC 9112), on h11.

The rule: nothing that a server sends before or after its response is read without a limit, and none of it is
taken for the response to the next request.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

import h11
import httpx

from mcpzip.http.network import Stream
from mcpzip.model.limits import HEAD
from mcpzip.wire.content_coding import ContentCodingError

Headers = list[tuple[bytes, bytes]]

_LONGEST_LINE = 100 * 1024
"""Bytes of a head, or of a chunk's size, that h11 keeps until it is complete."""
_HEAD_READ = 4 * 1024
"""Bytes of a head that are read at a time: at most 256 interim responses."""
_BODY_READ = 32 * 1024
"""Bytes of a body that are read at a time."""


class HeadTooLongError(ContentCodingError):
    """The interim responses and the head of a response exceed `limits.HEAD`."""


class Connection:
    """A connection over ``stream``. One request is under way at a time.

    has_answered: whether a byte has come since the last request was sent. has_acknowledged: whether an
    interim response (1xx; RFC 9110, 15.2) has come.
    """

    def __init__(self, stream: Stream, ended: Callable[["Connection"], None] = lambda _: None) -> None:
        """ended: is called when a response has been read or given up; see `is_idle`."""
        self.stream, self._ended = stream, ended
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_LINE)
        self._is_open = False
        self.has_answered = self.has_acknowledged = False

    @property
    def is_idle(self) -> bool:
        """Whether the last response was read to its end, and nothing came after it."""
        return self._h11.our_state is h11.IDLE and not self.stream.is_closing

    @property
    def trailing(self) -> bytes:
        """What was read after the response."""
        return self._h11.trailing_data[0]

    async def send(
        self, method: bytes, target: bytes, headers: Headers, body: bytes, timeouts: dict[str, float | None]
    ) -> httpx.Response:
        """Sends a request and returns the response with its body unread.

        timeouts: as httpx has them. Raises HeadTooLongError, httpx.TransportError; the connection is closed
        then.
        """
        self._is_open = True
        self.has_answered = self.has_acknowledged = False
        try:
            data = self._request(method, target, headers, body)
            try:
                await self.stream.write(data, timeouts.get("write"))
            except httpx.WriteError:
                pass  # a server may refuse a request, and close, before it has read all of it
            head = await self._head(timeouts.get("read"))
        except BaseException:
            self.finish()
            raise
        extensions = {"http_version": b"HTTP/" + head.http_version, "reason_phrase": head.reason}
        stream = _Body(self, timeouts.get("read"))
        return httpx.Response(
            head.status_code, headers=head.headers.raw_items(), stream=stream, extensions=extensions
        )

    def finish(self) -> None:
        """Ends the exchange. The connection is closed unless it can be used again."""
        if not self._is_open:
            return
        self._is_open = False
        if self._h11.our_state is self._h11.their_state is h11.DONE and not self.trailing:
            self._h11.start_next_cycle()
        else:
            self.stream.close()
        self._ended(self)

    def _request(self, method: bytes, target: bytes, headers: Headers, body: bytes) -> bytes:
        """The bytes of a request. Raises httpx.LocalProtocolError."""
        try:
            head = self._h11.send(h11.Request(method=method, target=target, headers=headers)) or b""
            sent = self._h11.send(h11.Data(data=body)) if body else b""
            return b"".join((head, sent or b"", self._h11.send(h11.EndOfMessage()) or b""))
        except h11.LocalProtocolError as error:
            raise httpx.LocalProtocolError(str(error)) from error

    async def _head(self, timeout: float | None) -> h11.Response:
        """The head of the response. Interim responses are only noted."""
        read = 0
        while True:
            data = await self.stream.read(_HEAD_READ, timeout)
            if not data:
                raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
            read += len(data)
            self.has_answered = True
            self._h11.receive_data(data)
            while (event := self._event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Response):
                    return event
                self.has_acknowledged = True
            if read >= HEAD:
                raise HeadTooLongError(f"its answer has not begun after {HEAD:,} bytes")
            await asyncio.sleep(0)  # other tasks run between interim responses

    async def body(self, timeout: float | None) -> AsyncIterator[bytes]:
        """The chunks of the body as they are received. An error ends the exchange."""
        try:
            while True:
                event = self._event()
                if isinstance(event, h11.Data):
                    yield bytes(event.data)
                elif event is h11.NEED_DATA:
                    self._h11.receive_data(await self.stream.read(_BODY_READ, timeout))
                else:
                    return
        except BaseException:
            self.finish()
            raise

    def _event(self) -> object:
        try:
            return self._h11.next_event()
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error


class _Body(httpx.AsyncByteStream):
    """The body of a response. Closing it ends the exchange."""

    def __init__(self, connection: Connection, timeout: float | None) -> None:
        self._connection, self._timeout = connection, timeout

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._connection.body(self._timeout)

    async def aclose(self) -> None:
        self._connection.finish()
