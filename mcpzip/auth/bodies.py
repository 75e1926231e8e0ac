"""How much of the body of an HTTP answer is taken in, and how: for signing in, and for connections.

The rules: bytes are counted after decompression, while they are read; what is too long is not read to its
end, and its connection is closed; the event loop has its turn while a body comes, however it is cut.
"""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO

import httpx2

from mcpzip.model.limits import MESSAGE, REFUSAL, REFUSAL_TIME
from mcpzip.wire.inflating import CODINGS, UnfitAnswerError, decoder

_TURN = 16
"""Pieces after which others have their turn. Of a body in chunks of one byte 64 KiB come at once."""
_OF_THE_BODY = (b"content-encoding", b"transfer-encoding", b"content-length")


class BodyTooLongError(Exception):
    """A body is longer than is taken in."""


async def pieces(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The body of ``response`` without its coding, in short pieces. Raises UnfitAnswerError,
    httpx2.TransportError.
    """
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    coding = decoder(response.headers.get("content-encoding", ""))
    turns = unanswered = 0
    async for sent in response.stream:
        unanswered += len(sent)
        for piece in coding.feed(sent):
            unanswered = 0
            yield piece
            turns += 1
            if turns % _TURN == 0:
                await asyncio.sleep(0)
        if unanswered > MESSAGE:
            raise UnfitAnswerError("its answer is compressed, and is nothing but that")
        turns += 1
        if turns % _TURN == 0:
            await asyncio.sleep(0)


async def whole(response: httpx2.Response, most: int) -> bytes:
    """The body of ``response``, which is closed then. Raises BodyTooLongError, and what `pieces` raises."""
    held = BytesIO()  # whose value is no copy
    try:
        async for piece in pieces(response):
            if held.tell() + len(piece) > most:
                raise BodyTooLongError(f"a body of more than {most} bytes")
            held.write(piece)
    finally:
        await response.aclose()
    await asyncio.sleep(0)
    return held.getvalue()


async def beginning(response: httpx2.Response, patience: float | None = REFUSAL_TIME) -> bytes:
    """What ``response`` begins with, as far as it comes within ``patience`` (s); it is closed then.

    Never fails: what has come by then is all that is known of it.
    """
    held = bytearray()
    try:
        async with asyncio.timeout(patience):
            async for piece in pieces(response):
                held += piece[: REFUSAL - len(held)]
                if len(held) >= REFUSAL:
                    break
    except (TimeoutError, UnfitAnswerError, httpx2.TransportError):
        pass
    finally:
        await response.aclose()
    return bytes(held)


def with_body(response: httpx2.Response, body: bytes | httpx2.AsyncByteStream) -> httpx2.Response:
    """``response`` with ``body`` in the place of its own, which is plain."""
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _OF_THE_BODY]
    request = response._request
    extensions = response.extensions
    if isinstance(body, bytes):
        made = httpx2.Response(
            response.status_code, headers=headers, content=body, extensions=extensions, request=request
        )
    else:
        made = httpx2.Response(
            response.status_code, headers=headers, stream=body, extensions=extensions, request=request
        )
    return made


class Bounded(httpx2.AsyncBaseTransport):
    """An HTTP transport whose answers can be read without harm: none is longer than `REFUSAL`."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["Accept-Encoding"] = CODINGS
        response = await self._inner.handle_async_request(request)
        return with_body(response, _Beginning(response))

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Beginning(httpx2.AsyncByteStream):
    """What an answer begins with, when it is asked for: an event stream has no end."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield await beginning(self._response)

    async def aclose(self) -> None:
        await self._response.aclose()
