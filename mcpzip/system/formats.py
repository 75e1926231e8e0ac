"""What the JSON files that we keep say of themselves: their format, and its version.

The rule: ``format`` and ``version`` come first in every version, so that any of them can tell what a file is.
A file of another format, of a later version, or of another shape is not used, and there is a sentence that
says so.
"""

from dataclasses import dataclass
from typing import TypeVar

import msgspec

_ECHO = 40
"""Characters of a wrong format that are repeated."""


class Head(msgspec.Struct):
    """How every such file begins."""

    format: str
    version: int


T = TypeVar("T")
File = TypeVar("File", bound=Head)


class UnusableError(Exception):
    """Why a file is not used: goes on from its name. later: whether a later version of mcpzip wrote it."""

    def __init__(self, why: str, *, later: bool = False) -> None:
        super().__init__(why)
        self.later = later


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files. version: the latest that is read, and the one that is written. noun: what such a
    file is called, with its article.
    """

    name: str
    version: int
    noun: str

    def decode(self, data: bytes, shape: type[File]) -> File:
        """What a file of this format holds. Raises UnusableError."""
        head = self.shaped(data, Head)
        if head.format != self.name:
            raise UnusableError(f"isn't {self.noun} of mcpzip (its format is {head.format[:_ECHO]!r})")
        if head.version > self.version:
            both = f"{head.version}; this one reads {self.version}"
            raise UnusableError(f"is of a later version of mcpzip ({both})", later=True)
        return self.shaped(data, shape)

    def shaped(self, data: bytes, shape: type[T]) -> T:
        """What ``data`` holds if it has this shape, whatever it says of itself. Raises UnusableError."""
        try:
            return msgspec.json.decode(data, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnusableError(f"is damaged or isn't {self.noun} of mcpzip ({error})") from None
