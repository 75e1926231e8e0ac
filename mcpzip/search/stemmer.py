"""The English Snowball stemmer: loaded alone, asked seldom, and made to look its suffixes up.

The rule: `stem(stem(word)) == stem(word)` for every word, which Snowball itself does not promise: a word is
stemmed until nothing changes. Three measured costs shape the rest, for stemming is half the time it takes to
index a catalog:

- `import snowballstemmer` loads forty languages (13 ms) for the one wanted (1 ms): its English module is
  imported alone.
- Half of all words come back unchanged: one without an ending that Snowball's rules look at is not asked.
- The pure-Python runtime compares a word with its suffixes letter by letter; a dictionary of them halves the
  time. Should a later release be built differently, the stemmer is used as it comes.
"""

import importlib
import importlib.util
import sys
import zlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from types import ModuleType
from typing import Protocol, cast

# Every rule of Snowball's english.sbl that changes a word looks for one of these at its end.
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
_SAMPLE = ("relational", "hopefully", "generalizations", "replying", "agreed", "sky")


class Stemmer(Protocol):
    """What is used of snowballstemmer."""

    def stemWord(self, word: str) -> str: ...


class _Suffix(Protocol):
    """A row of a Snowball table: text, the row of its longest own suffix or −1, a condition, an answer."""

    s: str
    substring_i: int
    method: Callable[[object], bool] | None
    result: int


class _Cursor(Protocol):
    """The state of a Snowball stemmer: the word, and between which of its letters it stands."""

    current: str
    cursor: int
    limit_backward: int


def snowball() -> Callable[[], Stemmer]:
    """The library's stemmer, imported below a stand-in package so that its `__init__` does not run."""
    return cast(Callable[[], Stemmer], _english().EnglishStemmer)


@cache
def edition() -> int:
    """What tells one release of the library from another: a checksum of its module, 0 where that is no file.
    The release's number is twenty times as long to come by.
    """
    try:
        with open(_english().__file__ or "", "rb") as file:
            return zlib.crc32(file.read())
    except OSError:
        return 0


def _english() -> ModuleType:
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
    """``plain`` looking its suffixes up, or ``plain`` itself when it isn't built as that expects."""
    quick = cast(Callable[[], Stemmer], type("Quick", (cast(type, plain),), {"find_among_b": _find_among_b}))
    try:
        same = all(quick().stemWord(word) == plain().stemWord(word) for word in _SAMPLE)
    except (AttributeError, TypeError, IndexError):
        same = False
    return quick if same else plain


_tables: dict[int, tuple[dict[str, _Suffix], list[int], Sequence[_Suffix]]] = {}


def _find_among_b(state: _Cursor, suffixes: Sequence[_Suffix]) -> int:
    """Snowball's `among`, backwards: the answer of the longest of ``suffixes`` before the cursor, else 0."""
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
    """``word`` (lower case) without its inflection; itself when it hasn't the shape of an English word."""
    if not (3 <= len(word) <= _LONGEST and word.endswith(ENDINGS) and word.isascii() and word.isalpha()):
        return word
    stemmer = (
        _new_stemmer()
    )  # one a call: it keeps the word in itself, and an index may be built in another thread
    seen = [word]
    while True:
        word = stemmer.stemWord(word)
        if word in seen:  # a fixed point, or the first of a circle
            return min(seen[seen.index(word) :])
        seen.append(word)
