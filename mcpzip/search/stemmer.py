"""The English Snowball stemmer, made faster.

The rule: `stem(stem(word)) == stem(word)` for every word. Snowball does not promise that, so a word is
stemmed until nothing changes. Stemming takes half the time of indexing a catalog, hence:

- `import snowballstemmer` loads forty languages (13 ms), so only its English module is imported (1 ms).
- Half of all words stay unchanged: a word without an ending that Snowball's rules test is not stemmed.
- The pure-Python runtime compares a word with its suffixes letter by letter; looking them up in a dictionary
  halves the time. Where a later release is built differently, the stemmer is used unchanged.
"""

import importlib
import importlib.util
import sys
import zlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from types import ModuleType
from typing import Protocol, cast

# Every rule of Snowball's english.sbl that changes a word tests for one of these endings.
_ENDINGS = "s ed ing y e al ful ll er or ic nt ion ism i ist '"
ENDINGS = tuple(_ENDINGS.split())

_LONGEST = 40  # letters; a longer word is no English word but an id or a hash, and is not stemmed
_SAMPLE = ("relational", "hopefully", "generalizations", "replying", "agreed", "sky")


class Stemmer(Protocol):
    """The part of snowballstemmer's interface that is used here."""

    def stemWord(self, word: str) -> str: ...


class _Suffix(Protocol):
    """A row of a Snowball suffix table: the suffix, the row of its longest own suffix (−1: none), a
    condition, and the result.
    """

    s: str
    substring_i: int
    method: Callable[[object], bool] | None
    result: int


class _Cursor(Protocol):
    """The state of a Snowball stemmer: the word and the cursor's position in it."""

    current: str
    cursor: int
    limit_backward: int


def snowball() -> Callable[[], Stemmer]:
    """The library's English stemmer class."""
    return cast(Callable[[], Stemmer], _english().EnglishStemmer)


@cache
def stemmer_checksum() -> int:
    """A checksum of the library's module, to tell its releases apart; 0 where the module is no file. Reading
    the release's version number takes twenty times as long.
    """
    try:
        with open(_english().__file__ or "", "rb") as file:
            return zlib.crc32(file.read())
    except OSError:
        return 0


def _english() -> ModuleType:
    """The library's English module, imported below a stand-in package so that its `__init__` does not run."""
    package = f"{__name__}.snowball"
    if package not in sys.modules:
        spec = importlib.util.find_spec("snowballstemmer")
        if spec is None or spec.submodule_search_locations is None:
            raise ModuleNotFoundError("mcpzip needs snowballstemmer; install it: pip install snowballstemmer")
        stand_in = ModuleType(package)
        stand_in.__path__ = list(spec.submodule_search_locations)
        sys.modules[package] = stand_in
    return importlib.import_module(f"{package}.english_stemmer")


def with_dictionary(plain: Callable[[], Stemmer]) -> Callable[[], Stemmer]:
    """``plain`` with a dictionary of suffixes; ``plain`` itself where its internals are not as expected."""
    quick = cast(Callable[[], Stemmer], type("Quick", (cast(type, plain),), {"find_among_b": _find_among_b}))
    try:
        same = all(quick().stemWord(word) == plain().stemWord(word) for word in _SAMPLE)
    except (AttributeError, TypeError, IndexError):
        same = False
    return quick if same else plain


_tables: dict[int, tuple[dict[str, _Suffix], list[int], Sequence[_Suffix]]] = {}


def _find_among_b(state: _Cursor, suffixes: Sequence[_Suffix]) -> int:
    """Snowball's `among`, backwards: the result of the longest of ``suffixes`` before the cursor, else 0."""
    known = _tables.get(id(suffixes))
    if known is None:
        lengths = sorted({len(row.s) for row in suffixes}, reverse=True)
        known = _tables[id(suffixes)] = ({row.s: row for row in suffixes}, lengths, suffixes)
    rows, lengths, _ = known
    end = state.cursor
    for length in lengths:
        row = rows.get(state.current[end - length : end]) if length <= end - state.limit_backward else None
        while row is not None:
            state.cursor = end - len(row.s)
            if row.method is None:
                return row.result
            if row.method(state):
                state.cursor = end - len(row.s)
                return row.result
            if row.substring_i < 0:
                return 0
            row = suffixes[row.substring_i]
    return 0


_new_stemmer = with_dictionary(snowball())


@lru_cache(maxsize=2048)
def stem(word: str) -> str:
    """The stem of ``word``, which is in lower case; ``word`` itself where it can't be an English word."""
    if not (3 <= len(word) <= _LONGEST and word.endswith(ENDINGS) and word.isascii() and word.isalpha()):
        return word
    stemmer = _new_stemmer()  # one per call: it stores the word, and other threads stem at the same time
    seen = [word]
    while True:
        word = stemmer.stemWord(word)
        if word in seen:  # a fixed point, or the start of a cycle
            return min(seen[seen.index(word) :])
        seen.append(word)
