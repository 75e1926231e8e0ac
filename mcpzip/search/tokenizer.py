"""Text into terms: the one place that says what a word is.

The rule: tools and queries go through `words` and nothing else, so that two spellings of one thing meet. A
term is folded, split and stemmed by the tables below, and every step is linear in the text.

    the terms of "StateMachine", of "state_machine" and of "STATE machine" are "state", "machin"
    the terms of any text, joined by spaces, have themselves as their terms

In order: NFKC; diacritics of Latin letters off; split by `RULES` on the shape of the text; case folded;
stemmed. Stop words go last and never empty a query.
"""

import re
import unicodedata
from functools import lru_cache

from mcpzip.search.stemmer import stem

# The shape of a text has one letter for each of its characters, and the rules are patterns over shapes:
#   U upper case · l lower case or caseless · s the letter s itself · d digit · m mark of the letter before it
#   c a script written without spaces (Han, Kana, Hangul) · a space for everything else
_CATEGORIES = {
    **dict.fromkeys(("Lu", "Lt"), "U"),
    **dict.fromkeys(("Ll", "Lm", "Lo"), "l"),
    **dict.fromkeys(("Mn", "Mc", "Me"), "m"),
    "Nd": "d",
}
_WITHOUT_SPACES = (
    (0x1100, 0x11FF),  # Hangul Jamo
    (0x2E80, 0x2FDF),  # radicals
    (0x3005, 0x3007),
    (0x3041, 0x30FA),  # Hiragana, Katakana
    (0x30FC, 0x30FF),
    (0x3131, 0x318E),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xA960, 0xA97F),
    (0xAC00, 0xD7FF),  # Hangul
    (0xF900, 0xFAFF),
    (0x1B000, 0x1B16F),
    (0x20000, 0x3FFFF),
)

# Where words begin and end inside what is written as one. The first rule that matches at a place wins.
RULES = (
    ("cjk", r"c+"),  # 東京都, to be cut into bigrams
    ("number", r"d+"),  # base64: base 64
    ("brand", r"(?<!U)Um*(?=Um*[ls])Um*(?:[ls]m*)+"),  # OAuth, getOAuthToken: get oauth token
    ("prefix", r"(?<![Ulsm])[ls]m*Um*(?:(?:[ls]m*)+|(?:Um*)*)"),  # iPhone: iphone; iOS: ios
    ("plural", r"(?:Um*){2,}s(?![lsm])"),  # userIDs: user ids
    ("acronym", r"(?:Um*)+(?=Um*[ls])"),  # HTTPServer: http server
    ("capitalised", r"Um*(?:[ls]m*)+"),  # StateMachine: state machine
    ("upper", r"(?:Um*)+"),  # GET_USER: get user
    ("lower", r"(?:[ls]m*)+"),
)
_SPLIT = re.compile("|".join(pattern for _, pattern in RULES))

# English function words and the polite wrapping of a request: they tell no tool from another.
_STOP_WORDS = """
a about all also am an and any are arent as at be been being but by can cant could couldnt did didnt do does
doesnt doing dont for from had has have havent having he help her here hers hes him his how i if im in into
is isnt it its itself ive just kindly let lets like may me might mine must my need of on or our ours please
shall she should so some such than that thats the their theirs them then there these they theyre this those
to too us very wanna want was wasnt we were what whats when where which while who whom whos whose why will
with wont would you your youre yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_LONGEST_TERM = 64  # characters; a longer run is an id or encoded data, and its beginning will do
_LONGEST_REMEMBERED = 64  # characters
_GROWTH, _LEAST_ROOM = 4, 8  # times, characters that a run may have in NFKC: U+FDFA becomes 18
_MOST_MARKS = 30  # in a row (UAX #15, "Stream-Safe Text Format"): to order n of them takes n² steps

_PUNCTUATION = '"`()[]{}<>.,;:!?*_-/#'  # ASCII that separates words
_POSSESSIVE = re.compile(r"['’][sS](?!\w)")
_LATIN_MARKS = re.compile("(?<=[A-Za-z])[\u0300-\u036f]+")
_ARABIC_MARKS = re.compile("[\u0640\u064b-\u0652]")  # tatweel and the short vowels, which are seldom written
_LATIN_LETTERS = str.maketrans(
    dict(zip("øØłŁđĐðÐħĦı", "oOlLdDdDhHi", strict=True))
    | {"æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "þ": "th", "Þ": "Th", "ß": "ss", "ẞ": "SS"}
)


class _Shapes(dict[int, str]):
    """A `str.translate` table that fills itself, a code point at a time."""

    def __missing__(self, code: int) -> str:
        if any(first <= code <= last for first, last in _WITHOUT_SPACES):
            shape = "c"
        elif code == ord("s"):
            shape = "s"
        else:
            shape = _CATEGORIES.get(unicodedata.category(chr(code)), " ")
        self[code] = shape
        return shape


_SHAPES = _Shapes()
_MANY_MARKS = re.compile(f"m{{{_MOST_MARKS + 1},}}")


def words(text: str) -> list[tuple[str, str]]:
    """``(word, term)`` of every word in order, stop words too: word is folded, term is what is indexed."""
    found: list[tuple[str, str]] = []
    for written in text.split():
        found += _remembered(written) if len(written) <= _LONGEST_REMEMBERED else _words(written)
    return found


def content(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """``pairs`` of `words` without stop words; all of them when there is nothing else."""
    return [pair for pair in pairs if not is_stop_word(pair)] or pairs


def term_of(word: str) -> str:
    """What ``word`` is indexed as. A stop word keeps its form, so that its term is one too."""
    return word if word in STOP_WORDS else stem(word)


def is_stop_word(pair: tuple[str, str]) -> bool:
    """Whether a pair of `words` is a stop word, by word or by term (so that terms may be tokenized again)."""
    return pair[0] in STOP_WORDS or pair[1] in STOP_WORDS


def is_bigram(word: str) -> bool:
    """Whether ``word``, of `words`, was cut from a script written without spaces."""
    return _SHAPES[ord(word[0])] == "c"


def fold(text: str) -> str:
    """``text`` in NFKC without the diacritics of Latin letters. Its case is kept: `RULES` need it.

    What grows to more than four times its length is cut there, and so are rows of marks that nobody writes.
    """
    if text.isascii():
        return text
    room = max(_GROWTH * len(text), _LEAST_ROOM)
    if len(text) > _MOST_MARKS:
        text = _with_fewer_marks(text)
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text)[:room])
    text = _ARABIC_MARKS.sub("", _LATIN_MARKS.sub("", text)).translate(_LATIN_LETTERS)
    return unicodedata.normalize("NFKC", text)


def _with_fewer_marks(text: str) -> str:
    kept, start = [], 0
    for many in _MANY_MARKS.finditer(text.translate(_SHAPES)):
        kept.append(text[start : many.start() + _MOST_MARKS])
        start = many.end()
    return "".join((*kept, text[start:]))


def _words(written: str) -> tuple[tuple[str, str], ...]:
    """`words` of a run without white space."""
    word = written.lstrip(_PUNCTUATION).rstrip(_PUNCTUATION + "'")
    if word.isascii() and word.isalpha() and (word.islower() or word.istitle() or word.isupper()):
        word = word[:_LONGEST_TERM].lower()  # most of a catalog, and what the rules below would say of it
        return ((word, term_of(word)),)
    return by_rules(written)


def by_rules(written: str) -> tuple[tuple[str, str], ...]:
    """`words` of a run without white space, by `RULES`."""
    text = fold(written)
    if "'" in text or "’" in text:
        text = _POSSESSIVE.sub(" ", text).replace("'", "").replace("’", "")
    found: list[tuple[str, str]] = []
    shapes = text.translate(_SHAPES)
    for match in _SPLIT.finditer(shapes):
        start, end = match.span()
        word = text[start:end]
        if shapes[start] == "c":
            found += [(word[place : place + 2],) * 2 for place in range(max(1, len(word) - 1))]
        elif word.isascii():
            word = word[:_LONGEST_TERM].lower()
            found.append((word, term_of(word)))
        else:
            found += _caseless(word[:_LONGEST_TERM])
    return tuple(found)


_remembered = lru_cache(maxsize=1024)(_words)


def _caseless(word: str) -> list[tuple[str, str]]:
    """`words` of ``word``, folded until nothing changes: folding may leave what folds or splits again."""
    for _ in range(_LONGEST_TERM):
        folded = fold(word.casefold())
        if folded == word:
            break
        word = folded
    shapes = word.translate(_SHAPES)
    parts = [word[match.start() : match.end()][:_LONGEST_TERM] for match in _SPLIT.finditer(shapes)]
    return [(part, term_of(part)) for part in parts]
