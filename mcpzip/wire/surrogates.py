"""JSON with lone surrogates, for a parser that refuses them (RFC 8259, 8.2): the same text under a veil.

The rule: a veiled text is as long as the one under it, byte for byte the same but for one hex digit of some
escapes, and what is cut out of it comes back as it was. So that this can be told, the digit comes from a
block of letters that the text has nothing of.

    {"a":"\\ud800"}      becomes      {"a":"\\ue800"}      where there is no \\ue… and no letter U+E000–U+EFFF
"""

import re
from collections.abc import Mapping

_BLOCKS = "efcba"
"""Hex digits that a code point may begin with in place of the surrogates' ``d``, the rarest first."""


class SurrogateMask:
    """One text, veiled. text: what a parser reads in its place."""

    def __init__(self, raw: bytes, block: str) -> None:
        self._block, self._ours = block, (b"\\u%b" % block.encode(), b"\\u%b" % block.upper().encode())
        self.text = raw.replace(b"\\ud", self._ours[0]).replace(b"\\uD", self._ours[1])

    @classmethod
    def over(cls, raw: bytes) -> "SurrogateMask | None":
        """The veil for ``raw``; None where every block is in use, as it is in no text that means anything."""
        for block in _BLOCKS:
            lead = bytes([0xE0 | int(block, 16)])  # of the block's letters in UTF-8
            if lead not in raw and not any(b"\\u" + digit in raw for digit in _cases(block)):
                return cls(raw, block)
        return None

    def lifted(self, value: bytes) -> bytes:
        """``value``, a part of the text, as it was."""
        return value.replace(self._ours[0], b"\\ud").replace(self._ours[1], b"\\uD")

    def members(self, veiled: Mapping[str, bytes]) -> dict[str, bytes] | None:
        """Members of the text as they were; None where it can't be told what a key of theirs was."""
        first = int(self._block, 16) << 12
        shift = 0xD000 - first
        letters = re.compile(f"[{chr(first)}-{chr(first + 0xFFF)}]")
        spelt = tuple(ours.decode() for ours in self._ours)  # behind an escaped backslash, or another of ours
        found: dict[str, bytes] = {}
        for key, value in veiled.items():
            if not key.isascii():
                key = letters.sub(lambda letter: chr(ord(letter[0]) + shift), key)
                key = key.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
            if spelt[0] in key or spelt[1] in key:
                return None
            found[key] = self.lifted(value)
        return found if len(found) == len(veiled) else None


def _cases(block: str) -> tuple[bytes, bytes]:
    return block.encode(), block.upper().encode()
