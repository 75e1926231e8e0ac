"""BERT's WordPiece tokenizer: text into numbers of word pieces (pure).

The rule (J. Devlin et al., "BERT", NAACL 2019): case and accents are removed; words are separated by spaces;
each punctuation mark and Chinese character is a word; words are split greedily into the longest known pieces.
`wordpieces.txt` is BERT's uncased vocabulary (Google, Apache-2.0), a piece per line, numbered from 0.
"""

import unicodedata
from functools import lru_cache
from pathlib import Path

VOCABULARY = Path(__file__).with_name("wordpieces.txt")

_MAX_WORD = 100  # characters; a longer word is unknown
_REMOVED = ("Mn", "Cc", "Cf", "Co")  # accents and invisible characters
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
        """At most ``most`` numbers: those of [CLS], of the pieces of ``text``, and of [SEP]."""
        found = [self._begin]
        for word in "".join(map(_cleaned, unicodedata.normalize("NFD", text))).lower().split():
            if len(found) >= most:
                break
            found += self._pieces(word)
        return [*found[: most - 1], self._end]

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _MAX_WORD:
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
def _cleaned(character: str) -> str:
    """``character``, or what replaces it: nothing, a space, or itself between spaces."""
    if character in "\t\n\r":
        return " "
    category = unicodedata.category(character)
    if category[0] == "Z":
        return " "
    if category in _REMOVED or character == "\ufffd":
        return ""
    code = ord(character)
    symbol = code < 128 and not character.isalnum()  # BERT also treats symbols such as "$" as punctuation
    if category[0] == "P" or symbol or any(first <= code <= last for first, last in _CHINESE):
        return f" {character} "
    return character
