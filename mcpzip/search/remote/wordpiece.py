"""Texts as BERT reads them: numbers of word pieces (pure).

The rules (J. Devlin et al., "BERT", NAACL 2019): letters lose their case and accents; spaces part words;
punctuation and Chinese characters are words by themselves; of a word the longest piece is taken, and again of
the rest. `wordpieces.txt` is BERT's uncased vocabulary (Google, Apache-2.0), a piece a line, numbered from 0.
"""

import unicodedata
from functools import lru_cache
from pathlib import Path

VOCABULARY = Path(__file__).with_name("wordpieces.txt")

_LONGEST_WORD = 100  # characters; a longer one is unknown
_NOTHING = ("Mn", "Cc", "Cf", "Co")  # accents, and what shows nothing
_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPieces:
    """The vocabulary. Raises OSError when it can't be read."""

    def __init__(self) -> None:
        pieces = VOCABULARY.read_text(encoding="utf-8").split("\n")
        self._numbers = {piece: number for number, piece in enumerate(pieces) if piece}
        self._unknown, self._begin, self._end = (
            self._numbers[special] for special in ("[UNK]", "[CLS]", "[SEP]")
        )

    def numbers(self, text: str, most: int) -> list[int]:
        """The numbers of the pieces of ``text``, with those that begin and end it, ``most`` in all."""
        found = [self._begin]
        for word in "".join(map(_read, unicodedata.normalize("NFD", text))).lower().split():
            if len(found) >= most:
                break
            found += self._pieces(word)
        return [*found[: most - 1], self._end]

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [self._unknown]
        found: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._numbers.get(mark + word[start:end])
                if number is not None:
                    found.append(number)
                    start = end
                    break
            else:
                return [self._unknown]
        return found


@lru_cache(maxsize=4_096)
def _read(character: str) -> str:
    """How one character is read: not at all, as a space, as a word by itself, or as part of a word."""
    if character in "\t\n\r":
        return " "
    category = unicodedata.category(character)
    if category[0] == "Z":
        return " "
    if category in _NOTHING or character == "\ufffd":
        return ""
    code = ord(character)
    symbol = code < 128 and not character.isalnum()  # BERT calls all of these punctuation, "$" and "+" too
    if category[0] == "P" or symbol or any(first <= code <= last for first, last in _CHINESE):
        return f" {character} "
    return character
