"""Text into terms: the one place that says what a word is.

The rule: tools and queries go through `tokenize` and nothing else, so that two spellings of one thing meet. A term is
folded, split and stemmed by the tables below; every step is linear in the text.

    tokenize("StateMachine") == tokenize("state_machine") == tokenize("STATE machine") == ["state", "machin"]
    tokenize(" ".join(tokenize(text))) == tokenize(text)            for every text

In order: NFKC; diacritics of Latin letters off; split by `RULES` on the shape of the text; case folded; stemmed. Stop words
go last and never empty a query.
"""

import re
import unicodedata
from functools import lru_cache

from mcpzip.search.stemmer import stem

# The shape of a text has one letter for each of its characters, and the rules are patterns over shapes:
#   U upper case · l lower case or caseless · s the letter s itself · d digit · m mark, which belongs to the letter before it
#   c a script written without spaces (Han, Kana, Hangul) · space for everything else
_CJK = (
    (0x1100, 0x11FF), (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3041, 0x30FA), (0x30FC, 0x30FF), (0x3131, 0x318E),
    (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA960, 0xA97F), (0xAC00, 0xD7FF), (0xF900, 0xFAFF),
    (0x1B000, 0x1B16F), (0x20000, 0x3FFFF),
)  # fmt: skip
_CATEGORIES = {
    "Lu": "U",
    "Lt": "U",
    "Ll": "l",
    "Lm": "l",
    "Lo": "l",
    "Nd": "d",
    "Mn": "m",
    "Mc": "m",
    "Me": "m",
}

# Where words begin and end inside an identifier. The first rule that matches at a place wins.
RULES = (
    ("cjk",         r"c+"),                                     # 東京都: cut into bigrams afterwards
    ("number",      r"d+"),                                     # base64: base 64
    ("brand",       r"(?<!U)(?:Um*(?=Um*[ls])Um*(?:[ls]m*)+|(?<![ls])[ls]m*(?=U)(?:Um*(?:[ls]m*)+|(?:Um*)+))"),
    ("plural",      r"(?:Um*){2,}s(?![lsm])"),                  # userIDs: user ids
    ("acronym",     r"(?:Um*)+(?=Um*[ls])"),                    # HTTPServer: http server
    ("capitalised", r"Um*(?:[ls]m*)+"),                         # StateMachine: state machine
    ("upper",       r"(?:Um*)+"),                               # GET_USER: get user
    ("lower",       r"(?:[ls]m*)+"),
)  # fmt: skip

# English function words, and the polite wrapping of a request: no tool is told from another by them.
STOP_WORDS = frozenset(
    "a about all also am an and any are arent as at be been being but by can cant could couldnt did didnt do does doesnt doing "
    "dont for from had has have havent having he help her here hers hes him his how i if im in into is isnt it its itself ive "
    "just kindly let lets like may me might mine must my need of on or our ours please shall she should so some such than "
    "that thats the their theirs them then there these they theyre this those to too us very wanna want was wasnt we were what "
    "whats when where which while who whom whos whose why will with wont would you your youre yours".split()
)

_LONGEST_TERM = (
    64  # characters; a longer run is an id or encoded data, and its beginning is enough to find it by
)
_LONGEST_CACHED = 64  # characters of a written word worth remembering

_POSSESSIVE = re.compile(r"(?i)['’]s(?!\w)")
_LATIN_MARKS = re.compile("(?<=[A-Za-z])[\u0300-\u036f]+")
_ARABIC_MARKS = re.compile("[\u0640\u064b-\u0652]")
_LATIN_LETTERS = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ħ": "h", "Ħ": "H",
     "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ı": "i", "ß": "ss", "ẞ": "SS"}
)  # fmt: skip
_SPLIT = re.compile("|".join(pattern for _, pattern in RULES))


class _Shapes(dict[int, str]):
    """A `str.translate` table that fills itself, one code point at a time."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in "sS":
            shape = "s" if character == "s" else "U"
        elif any(first <= code <= last for first, last in _CJK):
            shape = "c"
        else:
            shape = _CATEGORIES.get(unicodedata.category(character), " ")
        self[code] = shape
        return shape


_SHAPES = _Shapes()


def tokenize(text: str, *, keep_stop_words: bool = False) -> list[str]:
    """The terms of ``text`` in order, repeats kept. Never raises; linear in ``text``.

    Stop words are dropped unless that would leave nothing, or ``keep_stop_words``.
    """
    terms = [term for _, term in words(text)]
    return terms if keep_stop_words else without_stop_words(terms)


def words(text: str) -> list[tuple[str, str]]:
    """``(word, term)`` of every word in order, stop words too: the word folded, the term what is indexed for it."""
    found: list[tuple[str, str]] = []
    for written in text.split():
        found += _remembered(written) if len(written) <= _LONGEST_CACHED else _words(written)
    return found


def is_stop_word(word: str) -> bool:
    """Whether no tool is told from another by ``word`` (a word or a term)."""
    return word in STOP_WORDS


def is_bigram(word: str) -> bool:
    """Whether ``word`` was cut from a script written without spaces."""
    return _SHAPES[ord(word[0])] == "c"


def without_stop_words(terms: list[str]) -> list[str]:
    """``terms`` without stop words; all of them when there is nothing else."""
    return [term for term in terms if term not in STOP_WORDS] or terms


def fold(text: str) -> str:
    """``text`` in NFKC, without the diacritics of Latin letters; its case is kept, for `RULES` need it."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    text = _ARABIC_MARKS.sub("", _LATIN_MARKS.sub("", text)).translate(_LATIN_LETTERS)
    return unicodedata.normalize("NFKC", text)


def _words(written: str) -> tuple[tuple[str, str], ...]:
    """The words of one run without white space."""
    text = fold(written)
    if "'" in text or "’" in text:
        text = _POSSESSIVE.sub(" ", text).replace("'", "").replace("’", "")
    found: list[tuple[str, str]] = []
    shapes = text.translate(_SHAPES)
    for match in _SPLIT.finditer(shapes):
        start, end = match.span()
        word = text[start:end]
        if shapes[start] == "c":
            found += [(word[i : i + 2], word[i : i + 2]) for i in range(max(1, len(word) - 1))]
        elif word.isascii():
            word = word.lower()[:_LONGEST_TERM]
            found.append((word, stem(word)))
        else:
            found += _caseless(word)
    return tuple(found)


_remembered = lru_cache(maxsize=1024)(_words)


def _caseless(word: str) -> list[tuple[str, str]]:
    """The words of ``word`` case-folded. Folding may leave what folds or splits again (ŉ, ΐ): until nothing changes."""
    folded = fold(word[:_LONGEST_TERM].casefold())
    for _ in range(4):
        again = fold(folded.casefold())
        if again == folded:
            break
        folded = again
    shapes = folded.translate(_SHAPES)
    parts = [folded[match.start() : match.end()][:_LONGEST_TERM] for match in _SPLIT.finditer(shapes)]
    return [(part, stem(part)) for part in parts]
