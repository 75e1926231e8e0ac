"""How much of the body of an HTTP response is read, and how.

The rules: bytes are counted after decompression, while they are read; what is too long is not read to its
end, and its connection is closed; the event loop has its turn while a body comes, however it is cut.
"""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO

import httpx

from mcpzip.model.limits import MESSAGE, REFUSAL, REFUSAL_TIME
from mcpzip.wire.content_coding import ContentCodingError, decoder

_TURN = 16
"""Pieces after which others have their turn. Of a body in chunks of one byte 64 KiB come at once."""
_OF_THE_BODY = (b"content-encoding", b"transfer-encoding", b"content-length")


class BodyTooLongError(Exception):
    """A body is longer than is taken in."""


async def pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body of ``response`` without its coding, in short pieces. Raises UnfitAnswerError,
    httpx.TransportError.
    """
    assert isinstance(response.stream, httpx.AsyncByteStream)
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
            raise ContentCodingError("its answer is compressed, and is nothing but that")
        turns += 1
        if turns % _TURN == 0:
            await asyncio.sleep(0)


async def whole(response: httpx.Response, most: int) -> bytes:
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


async def beginning(response: httpx.Response, patience: float | None = REFUSAL_TIME) -> bytes:
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
    except (TimeoutError, ContentCodingError, httpx.TransportError):
        pass
    finally:
        await response.aclose()
    return bytes(held)


def read_response(response: httpx.Response, body: bytes) -> httpx.Response:
    """``response`` with ``body``, which was read of it, as its content."""
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _OF_THE_BODY]
    return httpx.Response(
        response.status_code,
        headers=headers,
        content=body,
        extensions=response.extensions,
        request=response._request,
    )
