"""A query, understood: what is looked up, and what there is to say about its words.

The rule: all that a ranking depends on stands in the `Plan`; the ranking sees nothing else of the query. That
makes the plan the cache's key: two queries share an answer exactly when they come to the same plan, be it
with another article or "please", or with a misspelling repaired to the same word; where words alone count,
also with other stop words, or with another unknown word in place of an unknown one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from mcpzip.model.limits import NAME
from mcpzip.search.index import Index
from mcpzip.search.lexicon import gloss, gloss_text, synonyms
from mcpzip.search.phrases import documents_with
from mcpzip.search.query_syntax import ParsedQuery, parse_query
from mcpzip.search.semantic.table import Table
from mcpzip.search.tokenizer import content, fold, is_bigram, term_of, words
from mcpzip.search.verbs import families

MOST_WORDS = 128  # words of a query that are looked up; what is longer is a document, not a request
MOST_REPAIRS = 12  # words of one query that are compared with the whole vocabulary
REPAIRED = 0.85  # what a repaired word counts for; .7 to .9 are equal, 1: −.002 of nDCG@10
RELATED = 0.5  # what a verb counts for that no tool has, where others of its family stand
EMPTY = frozenset(("a", "an", "the", "please", "kindly"))  # words that never change what is meant
TRANSLATED = 0.85  # what a word of another language counts for, in English

_LONGEST_QUERY = 20_000  # characters that are looked at, as written and folded
_MOST_SAID = 2_048  # words that are looked at


@dataclass(frozen=True, slots=True)
class Filters:
    """Which tools are searched.

    server: those of the server of this name. read_only: those that say they only read (True), or don't
    (False).
    """

    server: str | None = None
    read_only: bool | None = None


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """One word of the query as terms of the index: any of them will do, the best counts.

    weight: what it counts for, 0…1. asked: False when it is another spelling of words that have groups of
    their own, so that a tool without it lacks nothing.
    """

    terms: tuple[int, ...]
    weight: float
    asked: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a ranking depends on.

    groups: in the order of the query. asides: the terms of stop words of the query that stand in some name.
    verbs: the families of its verbs. unknown: how many of its words lead nowhere. literal, spoken: the
    documents it names (`names`). meaning: its words in order, for a tier that goes by meaning. servers: the
    only ones searched, None: all. read_only: as in `Filters`. without: terms a tool must not have. phrases:
    the terms that it must have one after the other, if any tool has. everything: no word is looked for, all
    that is left matches.
    """

    groups: tuple[Group, ...]
    asides: tuple[int, ...]
    verbs: int
    unknown: int
    literal: tuple[int, ...]
    spoken: tuple[int, ...]
    meaning: tuple[str, ...]
    servers: tuple[str, ...] | None = None
    read_only: bool | None = None
    without: tuple[int, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Understanding:
    """A plan, and the query's own words for what is in it.

    words: the groups of the plan and the words that led to each. unknown, corrected: words that led nowhere,
    and (as written, as looked up). All in order of the query.
    """

    plan: Plan
    words: tuple[tuple[Group, tuple[str, ...]], ...]
    unknown: tuple[str, ...]
    corrected: tuple[tuple[str, str], ...]


def understand(
    query: str | ParsedQuery, filters: Filters, index: Index, table: Table | None = None
) -> Understanding:
    """``query`` in terms of ``index``. Words that ``table`` knows mean what they say. Never raises."""
    signs = read(query) if isinstance(query, str) else query
    everything = words(signs.text)[:_MOST_SAID]
    looked_up = list(dict.fromkeys(content(everything)))[:MOST_WORDS]
    reading = _Reading(index, table)
    if not signs.text.isascii():
        reading.translate(signs.text)
    reading.read(looked_up)
    terms = {term for group in reading.words for term in group.terms}
    in_names = {number for _, term in everything if (number := index.number(term)) is not None}
    excluded = {index.number(term) for word in signs.without for _, term in words(word)}
    phrases = {tuple(term for _, term in words(phrase)) for phrase in signs.phrases}
    plan = Plan(
        groups=tuple(reading.words),
        asides=tuple(sorted(in_names - terms)),
        verbs=reading.verbs,
        unknown=len(reading.unknown),
        literal=index.names.literal(signs.written) or index.names.literal(signs.text),
        spoken=index.names.spoken(everything),
        meaning=reading.meant(everything) if table else (),
        servers=_servers(index, signs, filters.server),
        read_only=filters.read_only,
        without=tuple(sorted(number for number in excluded if number is not None)),
        phrases=tuple(sorted(phrase for phrase in phrases if documents_with(index, phrase))),
        everything=not everything and bool(signs.servers or signs.but or signs.without),
    )
    place = {word: place for place, (word, _) in enumerate(looked_up)}
    return Understanding(
        plan,
        tuple(
            sorted(
                ((g, tuple(said)) for g, said in reading.words.items()),
                key=lambda item: place.get(item[1][0], -1),
            )
        ),
        tuple(reading.unknown),
        tuple(reading.corrected),
    )


def read(query: str) -> ParsedQuery:
    """``query`` and its signs; of a very long one, the beginning."""
    query = query[:_LONGEST_QUERY]
    while len(fold(query)) > _LONGEST_QUERY:
        query = query[: len(query) // 2]
    return parse_query(query.strip())


def _servers(index: Index, signs: ParsedQuery, only: str | None) -> tuple[str, ...] | None:
    """The servers that are meant: by their name, else in any case, else by a word of it. () when none is."""
    if not signs.servers and not signs.but and only is None:
        return None
    known = sorted({server for server, _ in index.sizes})
    meant = (
        {server for sign in signs.servers for server in named(known, sign)} if signs.servers else set(known)
    )
    meant -= {server for sign in signs.but for server in named(known, sign)}
    if only is not None:
        meant &= set(named(known, only))
    return tuple(sorted(meant))


def named(known: list[str], name: str) -> list[str]:
    """Those of the servers ``known`` that ``name`` means."""
    if name in known:
        return [name]
    if len(name) > NAME:
        return []
    alike = [server for server in known if server.casefold() == name.casefold()]
    asked_for = {term for _, term in words(name)}
    return alike or [server for server in known if asked_for and asked_for <= {t for _, t in words(server)}]


class _Reading:
    """The groups of a query, word by word, each with what led to it; and its words as it means them."""

    def __init__(self, index: Index, table: Table | None) -> None:
        self._index = index
        self._table = table
        self._groups: dict[tuple[int, ...], Group] = {}
        self._repairs = 0
        self._translated = self._foreign = False
        self._said: list[str] = []  # in English, of what is in another script
        self._instead: dict[str, tuple[str, ...]] = {}  # of words that mean something else
        self.words: dict[Group, list[str]] = {}
        self.verbs = 0
        self.unknown: list[str] = []
        self.corrected: list[tuple[str, str]] = []

    def translate(self, text: str) -> None:
        """Take in what ``text`` says in scripts other than Latin, in English."""
        for english in dict.fromkeys(gloss_text(text).split()):
            self._english(english, english)
            self._said.append(english)
            self._translated = True

    def read(self, pairs: list[tuple[str, str]]) -> None:
        """Groups for every pair of `words`, and one for two neighbours that are a known word when joined."""
        joined = self._joined(pairs)
        for word, term in pairs:
            self.verbs |= families(term)
            number = self._index.number(term)
            if number is not None:
                asked = word not in joined and not (self._translated and is_bigram(word))
                self._add([number], 1.0, word, asked=asked)
        self._foreign = self._translated or any(
            self._index.number(term) is None and self._not_english(word) for word, term in pairs
        )
        for word, term in pairs:
            if self._index.number(term) is None and word not in joined:
                self._meant_by(word, term)
        if any(is_bigram(word) for said in self.words.values() for word in said) or self._translated:
            # 天气预报 is cut into 天气, 气预 and 预报: the middle is an artefact, no unknown word.
            self.unknown = [word for word in self.unknown if not is_bigram(word)]

    def _joined(self, pairs: list[tuple[str, str]]) -> frozenset[str]:
        """Groups for neighbours that are a word of the catalog when joined ("Git Hub", "to-do"). Returns
        their halves, which are not asked for themselves any more.
        """
        halves: set[str] = set()
        for (left, _), (right, _) in pairwise(pairs):
            if left + right in self._index.written and not is_bigram(left):
                number = self._index.number(term_of(left + right))
                if number is not None:
                    self._add([number], 1.0, left)
                    halves.update((left, right))
                    self._instead.update({right: (), left: (left + right,)})
        return frozenset(halves)

    def meant(self, pairs: list[tuple[str, str]]) -> tuple[str, ...]:
        """The words of ``pairs`` as they are meant, in order, repeats and all stop words but `EMPTY` too:
        "who is in" means something.
        """
        found = [
            each
            for word, _ in pairs[: 2 * MOST_WORDS]
            if not is_bigram(word) and word not in EMPTY
            for each in self._instead.get(word, (word,))
        ]
        return (*self._said, *found)

    def _not_english(self, word: str) -> bool:
        """Whether ``word`` is one of another language and of no use in English."""
        return (self._table is None or word not in self._table) and gloss(word) is not None

    def _meant_by(self, word: str, term: str) -> None:
        """What ``word`` may mean, that stands in no tool."""
        relatives = [verb for verb, its in self._index.verbs.items() if its & families(term)]
        if relatives:
            self._add(sorted(relatives), RELATED, word)
            return
        known = self._table is not None and word in self._table
        english = gloss(word) if self._foreign or not known else None
        if english is None:
            if known:  # a word, if not one of this catalog's
                self.unknown.append(word)
            else:
                self._repair(word)
            return
        self._instead[word] = english
        if english:
            self.corrected.append((word, " ".join(english)))
        for each in english:
            self._english(each, word)

    def _english(self, english: str, word: str) -> None:
        """A word of another language, said in English: what that leads to, be it nowhere."""
        terms = [term_of(each) for each in (english, *synonyms(english))]
        term = next((each for each in terms if self._index.number(each) is not None), terms[0])
        self.verbs |= families(term)
        number = self._index.number(term)
        if number is not None:
            self._add([number], TRANSLATED, word)
        else:
            relatives = [verb for verb, its in self._index.verbs.items() if its & families(term)]
            if relatives:
                self._add(sorted(relatives), RELATED, word)

    def _repair(self, word: str) -> None:
        """Look up what ``word`` was probably meant to be."""
        self._repairs += 1
        repair = self._index.vocabulary.repair(word) if self._repairs <= MOST_REPAIRS else None
        if repair is None:
            self.unknown.append(word)
            return
        terms = [self._index.terms[term_of(known)] for known in repair.alternatives]
        self.verbs |= families(term_of(repair.alternatives[0]))
        if repair.kind == "split":
            self.corrected.append((word, " ".join(repair.alternatives)))
            self._instead[word] = repair.alternatives
            for term in terms:
                self._add([term], REPAIRED, word)
        else:
            self.corrected.append((word, repair.alternatives[0]))
            self._instead[word] = repair.alternatives[:1]
            self._add(sorted(set(terms)), REPAIRED, word)

    def _add(self, terms: Iterable[int], weight: float, word: str, *, asked: bool = True) -> None:
        """A group, or one more word for the group of these terms: what is said twice counts once."""
        group = Group(tuple(terms), weight, asked)
        group = self._groups.setdefault(group.terms, group)
        said_as = self.words.setdefault(group, [])
        if word not in said_as:
            said_as.append(word)
