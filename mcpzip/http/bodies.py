"""Reads the bodies of HTTP responses within limits.

Bytes are counted after decompression, while they are read. A body that is too long is not read to its end,
and its connection is closed. Reading lets other tasks run, however small the chunks are.
"""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO

import httpx

from mcpzip.model.limits import MESSAGE, REFUSAL, REFUSAL_TIME
from mcpzip.wire.content_coding import PIECE, ContentCodingError, decoder

_TURN = 16
"""Pieces after which other tasks run. A body in chunks of one byte arrives 64 KiB at a time."""
_BODY_HEADERS = (b"content-encoding", b"transfer-encoding", b"content-length")


class BodyTooLongError(Exception):
    """A body is longer than the caller's limit."""


async def pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yields the decoded body of ``response`` in short pieces.

    Raises ContentCodingError, httpx.TransportError.
    """
    assert isinstance(response.stream, httpx.AsyncByteStream)
    coding = decoder(response.headers.get("content-encoding", ""))
    count = without_output = 0
    async for chunk in response.stream:
        without_output += len(chunk)
        for piece in coding.feed(chunk):
            without_output = 0
            yield piece
            count += 1
            if count % _TURN == 0:
                await asyncio.sleep(0)
        if without_output > MESSAGE:
            raise ContentCodingError("its answer is compressed, but decodes to nothing")
        count += 1
        if count % _TURN == 0:
            await asyncio.sleep(0)


async def whole(response: httpx.Response, most: int) -> bytes:
    """The decoded body of ``response``, which is closed afterwards.

    Raises BodyTooLongError for more than ``most`` bytes, and what `pieces` raises.
    """
    body = BytesIO()  # its `getvalue` makes no copy
    try:
        async for piece in pieces(response):
            if body.tell() + len(piece) > most:
                raise BodyTooLongError(f"a body of more than {most} bytes")
            body.write(piece)
    finally:
        await response.aclose()
    if body.tell() > PIECE:
        await asyncio.sleep(0)
    return body.getvalue()


async def beginning(response: httpx.Response, patience: float | None = REFUSAL_TIME) -> bytes:
    """Up to `limits.REFUSAL` bytes of the body of ``response``, which is closed afterwards.

    After ``patience`` seconds or an error, returns what was read until then.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(patience):
            async for piece in pieces(response):
                body += piece[: REFUSAL - len(body)]
                if len(body) >= REFUSAL:
                    break
    except (TimeoutError, ContentCodingError, httpx.TransportError):
        pass
    finally:
        await response.aclose()
    return bytes(body)


def read_response(response: httpx.Response, body: bytes) -> httpx.Response:
    """A copy of ``response`` with the decoded ``body`` as its content."""
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _BODY_HEADERS]
    return httpx.Response(
        response.status_code,
        headers=headers,
        content=body,
        extensions=response.extensions,
        request=response._request,
    )
