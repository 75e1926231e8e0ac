"""Decodes HTTP content codings incrementally (RFC 9110, 8.4.1).

Decoders yield at most ``PIECE`` bytes at a time, because a thousand bytes of gzip may expand to a million.
"""

import zlib
from collections.abc import Iterator

PIECE = 64 * 1024
"""Maximum bytes that a decoder yields at a time."""
CODINGS = "gzip, deflate"
"""The supported codings, as the value of Accept-Encoding."""

_GZIP = ("gzip", "x-gzip")


class ContentCodingError(ValueError):
    """A response that can't be read. The text is the part of a sentence that says why."""


class Identity:
    """The decoder of a body without a content coding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields ``data`` in pieces."""
        for start in range(0, len(data), PIECE):
            yield data[start : start + PIECE]


class Decompressor(Identity):
    """Decodes gzip, and deflate with or without its zlib wrapper, which some servers omit."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._stream = zlib.decompressobj(zlib.MAX_WBITS | 16) if coding in _GZIP else None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yields the decoded ``data`` in pieces. Data after the end of the stream is ignored.

        Raises ContentCodingError.
        """
        if not data:
            return
        if self._stream is None:
            self._stream = zlib.decompressobj(zlib.MAX_WBITS if data[0] & 0x0F == 8 else -zlib.MAX_WBITS)
        try:
            while not self._stream.eof and (piece := self._stream.decompress(data, PIECE)):
                yield piece
                data = self._stream.unconsumed_tail
        except zlib.error as error:
            raise ContentCodingError(f"its answer is not valid {self._coding}") from error


def decoder(coding: str) -> Identity:
    """The decoder for a body with the Content-Encoding ``coding``. Raises ContentCodingError."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return Identity()
    if coding in ("deflate", *_GZIP):
        return Decompressor(coding)
    raise ContentCodingError("its answer has a content coding that was not requested")
