"""Letters that look like Latin ones (Unicode Technical Standard 39, confusables; the common ones) (pure)."""

import re
import unicodedata

_PAIRS = {
    # Cyrillic
    "а": "a", "в": "b", "е": "e", "ё": "e", "һ": "h", "і": "i", "ї": "i", "ј": "j", "к": "k", "м": "m",
    "н": "h", "о": "o", "р": "p", "ԛ": "q", "ѕ": "s", "т": "t", "у": "y", "ѵ": "v", "ԝ": "w", "х": "x",
    "с": "c", "ԁ": "d", "ԍ": "g", "ӏ": "l", "А": "A", "В": "B", "Е": "E", "Н": "H", "І": "I", "Ј": "J",
    "К": "K", "М": "M", "О": "O", "Р": "P", "Ѕ": "S", "Т": "T", "У": "Y", "Х": "X", "С": "C", "Ԁ": "D",
    # Greek
    "α": "a", "ο": "o", "ν": "v", "ρ": "p", "ι": "i", "κ": "k", "υ": "u", "τ": "t", "γ": "y", "χ": "x",
    "Α": "A", "Β": "B", "Ε": "E", "Ζ": "Z", "Η": "H", "Ι": "I", "Κ": "K", "Μ": "M", "Ν": "N", "Ο": "O",
    "Ρ": "P", "Τ": "T", "Υ": "Y", "Χ": "X",
    # Armenian, Cherokee, Latin letters and symbols beside
    "օ": "o", "ս": "u", "հ": "h", "ո": "n", "ց": "g", "ɡ": "g", "ⅼ": "l", "ꓲ": "I", "Ꭺ": "A",
    "Ꮯ": "C", "Ꭼ": "E", "Ꮋ": "H", "Ꮇ": "M", "Ꮲ": "P", "Ꭲ": "T", "ᴀ": "a", "ᴄ": "c", "ᴏ": "o", "ѡ": "w",
}  # fmt: skip
LOOKALIKES = str.maketrans(_PAIRS)
"""For `str.translate`: from a letter to the Latin letter that it looks like."""
_LATIN = re.compile(r"[A-Za-z]")


def skeleton(name: str) -> str:
    """The Latin letters that ``name`` looks like."""
    return name if name.isascii() else unicodedata.normalize("NFKC", name).translate(LOOKALIKES)


def is_lookalike(name: str) -> bool:
    """Whether ``name`` mixes Latin letters with letters of another script that look like them, or has wide or
    styled forms of Latin letters, so that it reads as a name in Latin letters.
    """
    if name.isascii():
        return False
    return skeleton(name).isascii() and (_LATIN.search(name) is not None or "NFKC" in _form(name))


def _form(name: str) -> str:
    return "NFKC" if unicodedata.normalize("NFKC", name).isascii() else ""
