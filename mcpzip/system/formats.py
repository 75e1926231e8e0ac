"""The format and version fields of the JSON files that mcpzip writes.

Every file begins with ``format`` and ``version``, so that every version of mcpzip can identify it. A file of
another format, a newer version or another shape is not used, and `UnusableError` says why.
"""

from typing import TypeVar

import msgspec

_QUOTED = 40
"""Characters of a wrong format name that an error message quotes."""


class Head(msgspec.Struct):
    """The first fields of every file."""

    format: str
    version: int


T = TypeVar("T")
File = TypeVar("File", bound=Head)


class UnusableError(Exception):
    """Why a file is not used: the rest of a sentence that begins with the file's name.

    later: whether a newer version of mcpzip wrote the file.
    """

    def __init__(self, why: str, *, later: bool = False) -> None:
        super().__init__(why)
        self.later = later


class Format(msgspec.Struct, frozen=True):
    """A file format.

    version: the one that is written, and the latest that is read. noun: the name of such a file in error
    messages, with its article.
    """

    name: str
    version: int
    noun: str

    def decode(self, data: bytes, shape: type[File]) -> File:
        """Decodes a file of this format. Raises UnusableError."""
        head = self.decode_as(data, Head)
        if head.format != self.name:
            raise UnusableError(f"isn't {self.noun} of mcpzip (its format is {head.format[:_QUOTED]!r})")
        if head.version > self.version:
            both = f"{head.version}; this one reads {self.version}"
            raise UnusableError(f"was written by a newer version of mcpzip ({both})", later=True)
        return self.decode_as(data, shape)

    def decode_as(self, data: bytes, shape: type[T]) -> T:
        """Decodes ``data`` without a look at its format and version. Raises UnusableError."""
        try:
            return msgspec.json.decode(data, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnusableError(f"is damaged or isn't {self.noun} of mcpzip ({error})") from None
