"""Masks escaped lone surrogates in JSON text for a parser that rejects them (RFC 8259, 8.2).

The masked text has the same length and differs only in one hex digit of some escapes, and parts of it can be
unmasked. To be reversible, the new digit comes from a block of code points that the text does not contain:

    {"a":"\\ud800"}   becomes   {"a":"\\ue800"}   if the text has no \\ue… and no U+E000–U+EFFF
"""

import re
from collections.abc import Mapping

_BLOCKS = "efcba"
"""Candidates for the first hex digit of a code point in place of the surrogates' ``d``, the rarest first."""


class SurrogateMask:
    """A masked JSON text. text: for the parser."""

    def __init__(self, raw: bytes, block: str) -> None:
        self._block = block
        self._escapes = (b"\\u%b" % block.encode(), b"\\u%b" % block.upper().encode())
        self.text = raw.replace(b"\\ud", self._escapes[0]).replace(b"\\uD", self._escapes[1])

    @classmethod
    def over(cls, raw: bytes) -> "SurrogateMask | None":
        """Masks ``raw``; None if the text contains all candidate blocks, which no ordinary text does."""
        for block in _BLOCKS:
            lead = bytes([0xE0 | int(block, 16)])  # the first UTF-8 byte of the block's characters
            digits = (block.encode(), block.upper().encode())
            if lead not in raw and not any(b"\\u" + digit in raw for digit in digits):
                return cls(raw, block)
        return None

    def unmask(self, value: bytes) -> bytes:
        """The original of ``value``, a part of the masked text."""
        return value.replace(self._escapes[0], b"\\ud").replace(self._escapes[1], b"\\uD")

    def unmask_members(self, masked: Mapping[str, bytes]) -> dict[str, bytes] | None:
        """The originals of decoded members; None if the original of a key is ambiguous."""
        first = int(self._block, 16) << 12
        shift = 0xD000 - first
        characters = re.compile(f"[{chr(first)}-{chr(first + 0xFFF)}]")
        escapes = tuple(escape.decode() for escape in self._escapes)
        found: dict[str, bytes] = {}
        for key, value in masked.items():
            if not key.isascii():
                key = characters.sub(lambda character: chr(ord(character[0]) + shift), key)
                key = key.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
            if escapes[0] in key or escapes[1] in key:  # after an escaped backslash, which was masked too
                return None
            found[key] = self.unmask(value)
        return found if len(found) == len(masked) else None
