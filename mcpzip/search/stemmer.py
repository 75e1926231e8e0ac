"""The English Snowball stemmer, loaded alone and asked only when it could answer something else.

The rule: `stem(stem(word)) == stem(word)` for every word, which Snowball itself does not promise; a word is stemmed until
nothing changes. Two measured costs shape this file. `import snowballstemmer` loads forty languages (13 ms) for the one wanted
(under 1 ms), so its English module is imported on its own. One word takes the pure-Python stemmer 25 µs and half of
them come back unchanged, so a word without an ending that Snowball's English rules look at is not asked.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Protocol, cast

# Every rule of english.sbl that changes a word looks for one of these at its end.
ENDINGS = (
    "s",
    "ed",
    "ing",
    "y",
    "e",
    "al",
    "ful",
    "ll",
    "er",
    "or",
    "ic",
    "nt",
    "ion",
    "ism",
    "i",
    "ist",
    "'",
)
_LONGEST = 40  # longer than any English word: an id or a hash, kept whole


class _Stemmer(Protocol):
    """What is used of snowballstemmer."""

    def stemWord(self, word: str) -> str: ...


def _english() -> Callable[[], _Stemmer]:
    """The class of the stemmer, imported below a stand-in package so that the real one's `__init__` does not run."""
    package = f"{__name__}._snowball"
    if package not in sys.modules:
        spec = importlib.util.find_spec("snowballstemmer")
        if spec is None or spec.submodule_search_locations is None:
            raise ModuleNotFoundError(
                "No module named 'snowballstemmer'; install it with: pip install snowballstemmer"
            )
        stand_in = ModuleType(package)
        stand_in.__path__ = list(spec.submodule_search_locations)
        sys.modules[package] = stand_in
    module = importlib.import_module(f"{package}.english_stemmer")
    return cast(Callable[[], _Stemmer], module.EnglishStemmer)


_Stemmer_ = _english()


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """``word`` (lower case) without its inflection; unchanged when it is not an English word's shape."""
    if (
        len(word) < 3
        or not word.endswith(ENDINGS)
        or len(word) > _LONGEST
        or not (word.isascii() and word.isalpha())
    ):
        return word
    seen = {word}
    while True:
        # A fresh stemmer a word: it keeps the word in itself, and the index may be built in another thread.
        shorter = _Stemmer_().stemWord(word)
        if shorter in seen:
            return min(seen & {shorter, word}, key=lambda form: (len(form), form))
        seen.add(shorter)
        word = shorter
