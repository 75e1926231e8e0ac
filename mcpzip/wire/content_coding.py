"""Content codings of HTTP, taken off in pieces (RFC 9110, 8.4.1).

The rule: however small what comes in is, what goes out comes in pieces of at most ``PIECE`` bytes, one at a
time: a thousand bytes of gzip may be a million.
"""

import zlib
from collections.abc import Iterator

PIECE = 64 * 1024
"""Bytes that are handed on at a time."""
CODINGS = "gzip, deflate"
"""What can be read, as an Accept-Encoding says it."""

_GZIP = ("gzip", "x-gzip")


class ContentCodingError(ValueError):
    """An answer can't be taken in, whatever is in it. Its text is a part of a sentence that says why."""


class Identity:
    """No coding at all."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """``data``, in pieces."""
        for at in range(0, len(data), PIECE):
            yield data[at : at + PIECE]


class Decompressor(Identity):
    """gzip, or deflate with or without its zlib wrapper, which servers leave out."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._stream = zlib.decompressobj(zlib.MAX_WBITS | 16) if coding in _GZIP else None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What ``data`` is, in pieces. Raises UnfitAnswerError. What follows the end is left out."""
        if not data:
            return
        if self._stream is None:
            self._stream = zlib.decompressobj(zlib.MAX_WBITS if data[0] & 0x0F == 8 else -zlib.MAX_WBITS)
        try:
            while not self._stream.eof and (piece := self._stream.decompress(data, PIECE)):
                yield piece
                data = self._stream.unconsumed_tail
        except zlib.error as error:
            raise ContentCodingError(f"its answer says that it is {self._coding}, and is not") from error


def decoder(coding: str) -> Identity:
    """What takes the coding off a body whose Content-Encoding says ``coding``. Raises UnfitAnswerError."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return Identity()
    if coding in ("deflate", *_GZIP):
        return Decompressor(coding)
    raise ContentCodingError("its answer is compressed in a way that was not asked for")
