"""A bilingual lexicon: English glosses of words of other languages, for query translation.

The rule: translating an English word by mistake is worse than not translating a foreign one. So a word is a
key of `lexicon.tsv` only where it is not also an English word of another meaning, and a word that is not in
the file is not translated. Of a word that is no key, the inflection is removed by the endings below.

The file: a row per concept, a column per language; keys are separated by commas and normalised by
`normalized`. The English column has the words that tools use, the best first; `-` in it marks words without
a gloss, such as stop words. The file is read once, when the first word is looked up.
"""

import os
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from itertools import groupby
from zlib import crc32

import msgspec

from mcpzip.search.tokenizer import fold, is_bigram, words

NOTHING = "-"

_FILE = os.path.join(os.path.dirname(__file__), "lexicon.tsv")
_MAX_WORD = 40  # characters
_CACHED_WORDS = 512

_INTERCHANGEABLE = str.maketrans("ёأإآىة", "еااايه")  # letters that are often written for each other


class Inflection(msgspec.Struct, frozen=True):
    """The suffixes of a language: ``stem + ending`` means the same as the key ``stem + key_ending``.

    min_stem: letters of the stem. prefixes: articles and prepositions that are written together with the word
    after them.
    """

    min_stem: int
    endings: frozenset[str]
    key_endings: tuple[str, ...]
    prefixes: tuple[str, ...]


def _inflection(min_stem: int, endings: str, key_endings: str, prefixes: str = "") -> Inflection:
    return Inflection(
        min_stem, frozenset(endings.split()) | {""}, ("", *key_endings.split()), ("", *prefixes.split())
    )


INFLECTIONS = {
    "de": _inflection(4, "e en er em es n st t te", "en e n"),
    "fr": _inflection(4, "s x e es ee ez ent ons", "er re e", "l d qu j"),
    "es": _inflection(4, "s es o a as os an en ando iendo ado ada ar", "ar er ir o a e"),
    "pt": _inflection(4, "s es o a as os am em ando endo ado ada ar", "ar er ir o a e"),
    "it": _inflection(4, "i e o a are ato ata ando iamo", "are ere ire o a e", "l dell all nell sull un"),
    "nl": _inflection(4, "en s e t", "en e"),
    "ru": _inflection(
        3,
        "а я у ю о е ы и й ь ов ев ей ой ый ий ая ое ее ые ие ом ем ам ям ах ях ами ями его ого ему ому ую "
        "юю их ых им ым ть ит ят ет ют ут ишь ешь ите йте те л ла ли ию ией ии ия",
        "а я о е ь й ть ить ать ять еть ти ие ия ый ий ая ое ые и ы",
    ),
    "uk": _inflection(
        3,
        "а я у ю о е и й ь ів ей ою ий ом ам ах ами ть ти ії ію єю ові ого і ї",
        "а я о е ь й ти ий і",
    ),
    "ar": _inflection(
        3, "ي ه ها هم ك نا ات ين ون تي ته تها تك ا ان", "ه", "وال بال فال كال ولل لل ال و ف ب ل ك"
    ),
    "he": _inflection(3, "ים ות י ה ך נו יי", "ה", "וה מה שה ה ו ב ל מ ש כ"),
    "hi": _inflection(3, "ें ों े ी ा ो ना ने नी", "ा ी े ना"),
}
LONGEST_ENDING = 5  # letters

# Frequent English words that would be taken for an inflected key.
_ENGLISH = """
active amiss annex attendee attendees ayers beginner bells beware bogus calls camaro canals carpets carts
ceases chains channels college comers command commands comment comments controls corrigan courts cries curse
curses davis demands digits diners discs divides dorms economics element elements empress envoys equip
firmer firms fonts gents grabs graves guards guide halls implants implement implements impotent informs
ingress lamps lands lectures legend legends liquid matinee medicare module orders parties passes paste
payers places plans plant ports posts pratt premieres present press primers probes probs proves quits rapids
records redeem regards remedies responders rests resume resumes retiree retires revenue revenues roller
salaries slaps sonnet spelt stems studio studios surf symbol symbols tells termite tier transfers tries
trove vigil
"""
ENGLISH = frozenset(_ENGLISH.split())

_LINKS = ("", "s", "n", "en", "es", "e")  # between the parts of a German compound
_PLURALS = ("", "e", "n", "en", "s", "es")
_MIN_PART = 4  # letters of a part of a German compound


class _Lexicon(msgspec.Struct, frozen=True):
    """glosses: English words by key. inflected: the keys that have a gloss, by language of `INFLECTIONS`.

    max_unspaced: characters of the longest key in a script without spaces. phrases: by the first word of a
    key of several words, the number of words of the longest such key. synonyms: by the best English word of a
    concept, its other English words.
    """

    glosses: dict[str, tuple[str, ...]]
    inflected: dict[str, frozenset[str]]
    max_unspaced: int
    phrases: dict[str, int]
    synonyms: dict[str, tuple[str, ...]]


def gloss(word: str) -> tuple[str, ...] | None:
    """The English words for a word of `tokenizer.words`; () for one to be ignored, None for an unknown one.

    Several English words are meant together ("wettervorhersage": weather, forecast). Never raises.
    """
    return _gloss(word) if len(word) <= _MAX_WORD else None


def gloss_text(text: str) -> str:
    """The English words, in order, for the parts of ``text`` in other scripts than Latin; "" where none.

    Scripts without spaces are segmented by the longest known key at each position. In Latin script only keys
    of several words are translated, and only in a text that is not all ASCII. Never raises; takes time linear
    in ``text``.
    """
    return "" if text.isascii() else " ".join(_translate(normalized(text)))


def synonyms(english: str) -> tuple[str, ...]:
    """The other English words of the concept whose best English word is ``english`` ("email": mail)."""
    return _lexicon().synonyms.get(english, ())


def normalized(text: str) -> str:
    """``text`` in the spelling of the keys."""
    return fold(fold(text).casefold()).translate(_INTERCHANGEABLE)


def _translate(text: str) -> Iterator[str]:
    """The English words of a normalised text."""
    pieces = ["".join(piece) for _, piece in groupby(text, is_bigram)]
    unspaced = ""
    for i, piece in enumerate(pieces):
        if is_bigram(piece):
            unspaced += piece
        elif not (unspaced and piece == " " and i + 1 < len(pieces)):  # Korean puts spaces between its words
            yield from _translate_unspaced(unspaced)
            unspaced = ""
            yield from _translate_words([word for word, _ in words(piece)])
    yield from _translate_unspaced(unspaced)


def _translate_unspaced(text: str) -> Iterator[str]:
    """The English words of a text in a script without spaces."""
    start = 0
    while start < len(text):
        lexicon = _lexicon()
        for end in range(min(len(text), start + lexicon.max_unspaced), start, -1):
            english = lexicon.glosses.get(text[start:end])
            if english is not None:
                yield from english
                start = end
                break
        else:
            start += 1


def _translate_words(tokens: list[str]) -> Iterator[str]:
    """The English words of words in other scripts than Latin, and of phrases in any script."""
    start = 0
    while start < len(tokens):
        lexicon = _lexicon()
        for end in range(min(len(tokens), start + lexicon.phrases.get(tokens[start], 0)), start + 1, -1):
            english = lexicon.glosses.get(" ".join(tokens[start:end]))
            if english is not None:
                yield from english
                start = end
                break
        else:
            if not tokens[start].isascii():
                yield from gloss(tokens[start]) or ()
            start += 1


@lru_cache(maxsize=_CACHED_WORDS)
def _gloss(word: str) -> tuple[str, ...] | None:
    lexicon = _lexicon()
    word = word.translate(_INTERCHANGEABLE)
    english = lexicon.glosses.get(word)
    if english is not None or word in ENGLISH:
        return english
    languages = [language for language in INFLECTIONS if _in_script_of(word, language)]
    for length in range(LONGEST_ENDING + 1):
        for language in languages:
            key = _lemma(word, length, INFLECTIONS[language], lexicon.inflected[language])
            if key:
                return lexicon.glosses[key]
    return _gloss_compound(word) if "de" in languages else None


# A letter of the script of each language; the other languages are in Latin script.
_SCRIPTS = {"ru": "а", "uk": "а", "ar": "ا", "he": "א", "hi": "अ"}


def _in_script_of(word: str, language: str) -> bool:
    """Whether the first letter of ``word`` is in the Unicode block of 256 of the script of ``language``."""
    return ord(word[:1] or " ") >> 8 == ord(_SCRIPTS.get(language, "a")) >> 8


def _lemma(word: str, length: int, inflection: Inflection, keys: Collection[str]) -> str | None:
    """The key of ``keys`` of which ``word`` is an inflection, its ending being ``length`` letters long."""
    for prefix in inflection.prefixes:
        if not word.startswith(prefix):
            continue
        rest = word[len(prefix) :]
        stem = rest[: len(rest) - length]
        if len(stem) < inflection.min_stem or rest[len(stem) :] not in inflection.endings:
            continue
        for key_ending in inflection.key_endings:
            if stem + key_ending in keys and (length or not key_ending):
                return stem + key_ending
    return None


def _gloss_compound(word: str) -> tuple[str, ...] | None:
    """The English of the two known parts of a German compound, the last part as long as possible."""
    lexicon = _lexicon()
    for cut in range(_MIN_PART, len(word) - _MIN_PART + 1):
        first = _compound_part(word[:cut], _LINKS)
        second = _compound_part(word[cut:], _PLURALS) if first else None
        if first and second:
            return lexicon.glosses[first] + lexicon.glosses[second]
    return None


def _compound_part(part: str, endings: tuple[str, ...]) -> str | None:
    """The German key that ``part`` is when one of ``endings`` is removed."""
    known = _lexicon().inflected["de"]
    for ending in endings:
        key = part.removesuffix(ending)
        if key + ending == part and len(key) >= _MIN_PART and key in known:
            return key
    return None


@cache
def checksum() -> int:
    """The CRC-32 of the data file."""
    with open(_FILE, "rb") as file:
        return crc32(file.read())


@cache
def _lexicon() -> _Lexicon:
    glosses: dict[str, tuple[str, ...]] = {}
    others: dict[str, tuple[str, ...]] = {}
    inflected: dict[str, set[str]] = {language: set() for language in INFLECTIONS}
    with open(_FILE, encoding="utf-8") as file:
        header, *rows = file.read().splitlines()
    columns = {i: language for i, language in enumerate(header.split("\t")) if language in INFLECTIONS}
    for row in reversed(rows):  # for a key of two rows, the first row wins
        english, *cells = row.split("\t")
        best, *rest = english.split(",")
        meaning = () if best == NOTHING else tuple(best.split())
        if rest:
            others[best] = tuple(rest)
        for column, cell in enumerate(cells, start=1):
            keys = cell.split(",")
            glosses.update(dict.fromkeys(keys, meaning))
            if meaning and column in columns:
                inflected[columns[column]].update(keys)
    del glosses[""]  # the key of empty cells
    phrases: dict[str, int] = {}
    for key in glosses:
        if " " in key:
            first, count = key[: key.index(" ")], key.count(" ") + 1
            phrases[first] = max(count, phrases.get(first, 0))
    return _Lexicon(
        glosses,
        {language: frozenset(keys) for language, keys in inflected.items()},
        max(len(key) for key in glosses if not key.isascii() and is_bigram(key)),
        phrases,
        others,
    )
