"""The tokenizer: text into words and their terms (stems).

The rule: tools and queries are both tokenized by `words`, so that different spellings of a word become the
same term. Every step takes time linear in the text.

    the terms of "StateMachine", of "state_machine" and of "STATE machine" are "state", "machin"
    tokenizing terms, joined by spaces, gives the same terms again

The steps: NFKC; remove the diacritics of Latin letters; split by `RULES`; fold the case; stem. Stop words are
removed by the callers (`content_words`), and only where other words remain.
"""

import unicodedata
from functools import lru_cache

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.search.product_names import FULL_NAMES, joined
from mcpzip.search.stemmer import stem

# The shape of a text has one letter for the class of each character. The rules are patterns over shapes:
#   U upper case · l lower case or caseless · s the letter s · d digit · m combining mark
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

# How a string without spaces is split into words. The first rule that matches at a position wins.
RULES = (
    ("cjk", r"c+"),  # 東京都, which is then split into bigrams
    ("number", r"d+"),  # base64: base 64
    ("brand", r"(?<!U)Um*(?=Um*[ls])Um*(?:[ls]m*)+"),  # OAuth, getOAuthToken: get oauth token
    ("prefix", r"(?<![Ulsm])[ls]m*Um*(?:(?:[ls]m*)+|(?:Um*)*)"),  # iPhone: iphone; iOS: ios
    ("plural", r"(?:Um*){2,}s(?![lsm])"),  # userIDs: user ids
    ("acronym", r"(?:Um*)+(?=Um*[ls])"),  # HTTPServer: http server
    ("capitalised", r"Um*(?:[ls]m*)+"),  # StateMachine: state machine
    ("upper", r"(?:Um*)+"),  # GET_USER: get user
    ("lower", r"(?:[ls]m*)+"),
)
_SPLIT = lazy_pattern("|".join(pattern for _, pattern in RULES))

# English function words and polite phrases, which don't distinguish one tool from another.
_STOP_WORDS = """
a about all also am an and any are arent as at be been being but by can cant could couldnt did didnt do does
doesnt doing dont for from had has have havent having he help her here hers hes him his how i if im in into
is isnt it its itself ive just kindly let lets like may me might mine must my need of on or our ours please
shall she should so some such than that thats the their theirs them then there these they theyre this those
to too us very wanna want was wasnt we were what whats when where which while who whom whos whose why will
with wont would you your youre yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_MAX_TERM = 64  # characters; a longer word is an id or encoded data, and its first characters suffice
_MAX_CACHED = 64  # characters
_MAX_GROWTH, _MIN_ROOM = 4, 8  # a factor, and characters: how long NFKC may make a text (U+FDFA becomes 18)
_MAX_MARKS = 30  # in a row (UAX #15, "Stream-Safe Text Format"): sorting n of them takes n² steps

_PUNCTUATION = '"`()[]{}<>.,;:!?*_-/#'  # ASCII that separates words
_POSSESSIVE = lazy_pattern(r"['’][sS](?!\w)")
_LATIN_MARKS = lazy_pattern("(?<=[A-Za-z])[\u0300-\u036f]+")
_ARABIC_MARKS = lazy_pattern("[\u0640\u064b-\u0652]")  # tatweel and the short vowels, often left out
_LATIN_LETTERS = str.maketrans(
    dict(zip("øØłŁđĐðÐħĦı", "oOlLdDdDhHi", strict=True))
    | {"æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "þ": "th", "Þ": "Th", "ß": "ss", "ẞ": "SS"}
)


class _Shapes(dict[int, str]):
    """A `str.translate` table that computes the shape of a code point when it is first looked up."""

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
_MANY_MARKS = lazy_pattern(f"m{{{_MAX_MARKS + 1},}}")


def words(text: str) -> list[tuple[str, str]]:
    """``(word, term)`` of every word in order, stop words too: the folded word, and the indexed term."""
    found: list[tuple[str, str]] = []
    for token in text.split():
        found += _cached_words(token) if len(token) <= _MAX_CACHED else _words(token)
    return found


def content_words(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """``pairs`` of `words` without stop words; all of them where all are stop words."""
    return [pair for pair in pairs if not is_stop_word(pair)] or pairs


def term_of(word: str) -> str:
    """The term that ``word`` is indexed as: its stem. A stop word is not stemmed, so its term is one too; the
    short name of a product has the term of the full one.
    """
    return word if word in STOP_WORDS else stem(FULL_NAMES.get(word, word))


def is_stop_word(pair: tuple[str, str]) -> bool:
    """Whether a pair of `words` is a stop word, by word or by term (so that terms can be tokenized again)."""
    return pair[0] in STOP_WORDS or pair[1] in STOP_WORDS


def is_bigram(word: str) -> bool:
    """Whether ``word``, of `words`, comes from a script written without spaces."""
    return _SHAPES[ord(word[0])] == "c"


def fold(text: str) -> str:
    """``text`` in NFKC without the diacritics of Latin letters. Its case is unchanged: `RULES` need it.

    The result is cut where it would be longer than four times ``text``, and long sequences of combining marks
    are shortened to `_MAX_MARKS`.
    """
    if text.isascii():
        return text
    room = max(_MAX_GROWTH * len(text), _MIN_ROOM)
    if len(text) > _MAX_MARKS:
        text = _with_fewer_marks(text)
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text)[:room])
    text = _ARABIC_MARKS.sub("", _LATIN_MARKS.sub("", text)).translate(_LATIN_LETTERS)
    return unicodedata.normalize("NFKC", text)


def _with_fewer_marks(text: str) -> str:
    kept, start = [], 0
    for many in _MANY_MARKS.finditer(text.translate(_SHAPES)):
        kept.append(text[start : many.start() + _MAX_MARKS])
        start = many.end()
    return "".join((*kept, text[start:]))


def _words(token: str) -> tuple[tuple[str, str], ...]:
    """`words` of a string without white space."""
    word = token.lstrip(_PUNCTUATION).rstrip(_PUNCTUATION + "'")
    if word.isascii() and word.isalpha() and (word.islower() or word.istitle() or word.isupper()):
        word = word[:_MAX_TERM].lower()  # the common case, quickly: the rules below give the same
        return ((word, term_of(word)),)
    return by_rules(token)


def by_rules(token: str) -> tuple[tuple[str, str], ...]:
    """`words` of a string without white space, by `RULES`."""
    text = fold(token)
    if "'" in text or "’" in text:
        text = _POSSESSIVE.sub(" ", text).replace("'", "").replace("’", "")
    found: list[tuple[str, str]] = []
    shapes = text.translate(_SHAPES)
    for match in _SPLIT.finditer(shapes):
        start, end = match.span()
        word = text[start:end]
        if shapes[start] == "c":
            found += [(word[i : i + 2],) * 2 for i in range(max(1, len(word) - 1))]
        elif word.isascii():
            word = word[:_MAX_TERM].lower()
            found.append((word, term_of(word)))
        else:
            found += _case_folded(word[:_MAX_TERM])
    return tuple(_with_product_names(found) if len(found) > 1 else found)


def _with_product_names(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """``pairs``, in which the parts of a product's name are one word."""
    spans = joined([word for word, _ in pairs])
    for start, stop in reversed(spans):
        word = "".join(word for word, _ in pairs[start:stop])
        pairs[start:stop] = [(word, term_of(word))]
    return pairs


_cached_words = lru_cache(maxsize=1024)(_words)


def _case_folded(word: str) -> list[tuple[str, str]]:
    """`words` of ``word``, folded until nothing changes, because a folded text may fold again."""
    for _ in range(_MAX_TERM):
        folded = fold(word.casefold())
        if folded == word:
            break
        word = folded
    shapes = word.translate(_SHAPES)
    parts = [word[match.start() : match.end()][:_MAX_TERM] for match in _SPLIT.finditer(shapes)]
    return [(part, term_of(part)) for part in parts]
