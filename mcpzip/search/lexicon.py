"""What a word of another language means, in the English that tools are described in.

The rule: a word is a key of `lexicon.tsv` only where it can't be taken for an English word of another
meaning, and what is not in there stays unknown. Inflection is undone by the endings below, for words that are
no key themselves; an English word taken for a foreign one is worse than a foreign one not understood.

The file: a row a concept, a column a language, keys separated by commas and written as `spelled` spells them.
The English of a row is the words a tool would use, the best first; of the row whose English is `-` it is
nothing, in whichever language the word stands. The file is read once, when the first word is looked up.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from zlib import crc32

from mcpzip.search.tokenizer import fold, is_bigram, words

NOTHING = "-"

_FILE = Path(__file__).with_name("lexicon.tsv")
_LONGEST_WORD = 40  # characters
_REMEMBERED = 512  # words

# Letters that people don't keep apart.
_SPELLINGS = str.maketrans("ёأإآىة", "еااايه")


@dataclass(frozen=True, slots=True)
class Inflection:
    """How words change: ``beginning + worn`` is known when ``beginning + own`` is a key of the language.

    shortest: letters of the beginning. prefixes: what is written
    together with a word that it stands before.
    """

    shortest: int
    worn: frozenset[str]
    own: tuple[str, ...]
    prefixes: tuple[str, ...]


def _inflection(shortest: int, worn: str, own: str, prefixes: str = "") -> Inflection:
    return Inflection(shortest, frozenset(worn.split()) | {""}, ("", *own.split()), ("", *prefixes.split()))


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
LONGEST_ENDING = 5  # letters; what may stand there is in the table

# Frequent English words that look inflected and would be taken for something else.
_ENGLISH_ALL_THE_SAME = """
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
ENGLISH = frozenset(_ENGLISH_ALL_THE_SAME.split())

_LINKS = ("", "s", "n", "en", "es", "e")  # between the parts of a German compound
_PLURALS = ("", "e", "n", "en", "s", "es")
_SHORTEST_PART = 4  # letters of a German compound


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """meanings: English words by key. inflected: the keys that have a meaning, by language of `INFLECTIONS`.

    unspaced: characters of the longest key in a script without spaces. phrases: by the first word of a key of
    several, how many words the longest has. synonyms: by the best English of a concept, its others.
    """

    meanings: dict[str, tuple[str, ...]]
    inflected: dict[str, frozenset[str]]
    unspaced: int
    phrases: dict[str, int]
    synonyms: dict[str, tuple[str, ...]]


def gloss(word: str) -> tuple[str, ...] | None:
    """The English for one word of `tokenizer.words`; () when it means nothing, None when it isn't known.

    Of several English words all are meant ("wettervorhersage": weather, forecast). Never raises.
    """
    return _glossed(word) if len(word) <= _LONGEST_WORD else None


def gloss_text(text: str) -> str:
    """The English words, in order, for what ``text`` says in scripts other than Latin; "" when nothing.

    Scripts without spaces are read by the longest known key at each place. Of Latin script only keys of
    several words count, and only in a text that is not all ASCII. Never raises; takes time linear in
    ``text``.
    """
    return "" if text.isascii() else " ".join(_read(spelled(text)))


def synonyms(english: str) -> tuple[str, ...]:
    """The other English words of the concept whose best one is ``english`` ("email": mail)."""
    return _lexicon().synonyms.get(english, ())


def spelled(text: str) -> str:
    """``text`` in the spelling of the keys."""
    return fold(fold(text).casefold()).translate(_SPELLINGS)


def _read(text: str) -> Iterator[str]:
    """The English of a spelled text."""
    pieces = ["".join(piece) for _, piece in groupby(text, is_bigram)]
    run = ""
    for place, piece in enumerate(pieces):
        if is_bigram(piece):
            run += piece
        elif not (run and piece == " " and place + 1 < len(pieces)):  # Korean puts spaces between its words
            yield from _of_run(run)
            run = ""
            yield from _of_words([word for word, _ in words(piece)])
    yield from _of_run(run)


def _of_run(run: str) -> Iterator[str]:
    """What a run of a script without spaces says."""
    place = 0
    while place < len(run):
        lexicon = _lexicon()
        for end in range(min(len(run), place + lexicon.unspaced), place, -1):
            meaning = lexicon.meanings.get(run[place:end])
            if meaning is not None:
                yield from meaning
                place = end
                break
        else:
            place += 1


def _of_words(run: list[str]) -> Iterator[str]:
    """What words say: those of no Latin script, and phrases of any."""
    place = 0
    while place < len(run):
        lexicon = _lexicon()
        for end in range(min(len(run), place + lexicon.phrases.get(run[place], 0)), place + 1, -1):
            meaning = lexicon.meanings.get(" ".join(run[place:end]))
            if meaning is not None:
                yield from meaning
                place = end
                break
        else:
            if not run[place].isascii():
                yield from gloss(run[place]) or ()
            place += 1


@lru_cache(maxsize=_REMEMBERED)
def _glossed(word: str) -> tuple[str, ...] | None:
    lexicon = _lexicon()
    word = word.translate(_SPELLINGS)
    meaning = lexicon.meanings.get(word)
    if meaning is not None or word in ENGLISH:
        return meaning
    languages = [language for language in INFLECTIONS if _alike(word, language)]
    for ending in range(LONGEST_ENDING + 1):
        for language in languages:
            key = _uninflected(word, ending, INFLECTIONS[language], lexicon.inflected[language])
            if key:
                return lexicon.meanings[key]
    return _compound(word) if "de" in languages else None


_SCRIPTS = {
    "ru": "а",
    "uk": "а",
    "ar": "ا",
    "he": "א",
    "hi": "अ",
}  # a letter of it; of the others it is Latin


def _alike(word: str, language: str) -> bool:
    """Whether ``word`` is in the script of ``language``: its first letter stands near the script's."""
    return ord(word[:1] or " ") >> 8 == ord(_SCRIPTS.get(language, "a")) >> 8


def _uninflected(word: str, ending: int, how: Inflection, keys: Collection[str]) -> str | None:
    """The key that ``word`` is when its last ``ending`` letters are what it wears."""
    for prefix in how.prefixes:
        if not word.startswith(prefix):
            continue
        rest = word[len(prefix) :]
        beginning = rest[: len(rest) - ending]
        if len(beginning) < how.shortest or rest[len(beginning) :] not in how.worn:
            continue
        for own in how.own:
            if beginning + own in keys and (ending or not own):
                return beginning + own
    return None


def _compound(word: str) -> tuple[str, ...] | None:
    """What the two known parts of a German compound mean, the last part as long as can be."""
    lexicon = _lexicon()
    for cut in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1):
        first = _part(word[:cut], _LINKS)
        second = _part(word[cut:], _PLURALS) if first else None
        if first and second:
            return lexicon.meanings[first] + lexicon.meanings[second]
    return None


def _part(written: str, endings: tuple[str, ...]) -> str | None:
    """The German key that ``written`` is, but for an ending."""
    known = _lexicon().inflected["de"]
    for ending in endings:
        key = written.removesuffix(ending)
        if key + ending == written and len(key) >= _SHORTEST_PART and key in known:
            return key
    return None


@cache
def checksum() -> int:
    """Of the data file: it changes with it."""
    return crc32(_FILE.read_bytes())


@cache
def _lexicon() -> _Lexicon:
    meanings: dict[str, tuple[str, ...]] = {}
    others: dict[str, tuple[str, ...]] = {}
    inflected: dict[str, set[str]] = {language: set() for language in INFLECTIONS}
    header, *rows = _FILE.read_text(encoding="utf-8").splitlines()
    columns = {
        place: language for place, language in enumerate(header.split("\t")) if language in INFLECTIONS
    }
    for row in reversed(rows):  # a word of two rows means what the first of them says
        english, *cells = row.split("\t")
        best, *rest = english.split(",")
        meaning = () if best == NOTHING else tuple(best.split())
        if rest:
            others[best] = tuple(rest)
        for place, cell in enumerate(cells, start=1):
            keys = cell.split(",")
            meanings.update(dict.fromkeys(keys, meaning))
            if meaning and place in columns:
                inflected[columns[place]].update(keys)
    del meanings[""]  # of empty cells
    phrases: dict[str, int] = {}
    for key in meanings:
        if " " in key:
            first, count = key[: key.index(" ")], key.count(" ") + 1
            phrases[first] = max(count, phrases.get(first, 0))
    return _Lexicon(
        meanings,
        {language: frozenset(keys) for language, keys in inflected.items()},
        max(len(key) for key in meanings if not key.isascii() and is_bigram(key)),
        phrases,
        others,
    )
