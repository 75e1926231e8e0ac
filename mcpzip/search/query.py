"""A query, understood: what is looked up, and what there is to say about its words.

The rule: all that a ranking depends on stands in the `Plan`; the ranking sees nothing else of the query. That
makes the plan the cache's key: two queries share an answer exactly when they come to the same plan, be it in
another order, with other stop words, with a misspelling repaired to the same word, or with another unknown
word in place of an unknown one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from mcpzip.search.index import Index
from mcpzip.search.tokenizer import content, is_bigram, term_of, words
from mcpzip.search.verbs import families

MOST_WORDS = 128  # words of a query that are looked up; what is longer is a document, not a request
REPAIRED = 0.85  # what a repaired word counts for; .7 to .9 are equal, 1: −.002 of nDCG@10
RELATED = 0.5  # what a verb counts for that no tool has, where others of its family stand

_LONGEST_QUERY = 20_000  # characters that are looked at


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

    groups: sorted. asides: the terms of stop words of the query that stand in some name. verbs: the families
    of its verbs. unknown: how many of its words lead nowhere. literal, spoken: the documents it names
    (`names`).
    """

    groups: tuple[Group, ...]
    asides: tuple[int, ...]
    verbs: int
    unknown: int
    literal: tuple[int, ...]
    spoken: tuple[int, ...]
    filters: Filters


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


def understand(query: str, filters: Filters, index: Index) -> Understanding:
    """``query`` in terms of ``index``. Never raises."""
    query = query[:_LONGEST_QUERY].strip()
    everything = words(query)
    looked_up = list(dict.fromkeys(content(everything)))[:MOST_WORDS]
    reading = _Reading(index)
    reading.read(looked_up)
    terms = {term for group in reading.words for term in group.terms}
    in_names = {index.terms[term] for _, term in everything if term in index.terms}
    plan = Plan(
        groups=tuple(sorted(reading.words)),
        asides=tuple(sorted(in_names - terms)),
        verbs=reading.verbs,
        unknown=len(reading.unknown),
        literal=index.names.literal(query),
        spoken=index.names.spoken(everything),
        filters=filters,
    )
    place = {word: place for place, (word, _) in enumerate(looked_up)}
    return Understanding(
        plan,
        tuple(
            sorted(
                ((g, tuple(said)) for g, said in reading.words.items()), key=lambda item: place[item[1][0]]
            )
        ),
        tuple(reading.unknown),
        tuple(reading.corrected),
    )


class _Reading:
    """The groups of a query, word by word, each with the words that led to it."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._groups: dict[tuple[int, ...], Group] = {}
        self.words: dict[Group, list[str]] = {}
        self.verbs = 0
        self.unknown: list[str] = []
        self.corrected: list[tuple[str, str]] = []

    def read(self, pairs: list[tuple[str, str]]) -> None:
        """Groups for every pair of `words`, and one for two neighbours that are a known word when joined."""
        for word, term in pairs:
            self.verbs |= families(term)
            if term in self._index.terms:
                self._add([self._index.terms[term]], 1.0, word)
        for word, term in pairs:
            if term not in self._index.terms:
                relatives = [verb for verb, its in self._index.verbs.items() if its & families(term)]
                if relatives:
                    self._add(sorted(relatives), RELATED, word)
                else:
                    self._repair(word)
        if any(is_bigram(word) for said in self.words.values() for word in said):
            # 天气预报 is cut into 天气, 气预 and 预报: the middle is an artefact, no unknown word.
            self.unknown = [word for word in self.unknown if not is_bigram(word)]
        for (left, _), (right, _) in pairwise(pairs):
            if left + right in self._index.vocabulary:
                self._add([self._index.terms[term_of(left + right)]], 1.0, left, asked=False)

    def _repair(self, word: str) -> None:
        repair = self._index.vocabulary.repair(word)
        if repair is None:
            self.unknown.append(word)
            return
        terms = [self._index.terms[term_of(known)] for known in repair.alternatives]
        self.verbs |= families(term_of(repair.alternatives[0]))
        if repair.kind == "split":
            self.corrected.append((word, " ".join(repair.alternatives)))
            for term in terms:
                self._add([term], REPAIRED, word)
        else:
            self.corrected.append((word, repair.alternatives[0]))
            self._add(sorted(set(terms)), REPAIRED, word)

    def _add(self, terms: Iterable[int], weight: float, word: str, *, asked: bool = True) -> None:
        """A group, or one more word for the group of these terms: what is said twice counts once."""
        group = Group(tuple(terms), weight, asked)
        group = self._groups.setdefault(group.terms, group)
        said_as = self.words.setdefault(group, [])
        if word not in said_as:
            said_as.append(word)
