"""A query, understood: what is looked up, and what there is to say about its words.

The rule: everything the ranking depends on stands in the `Plan`, and the ranking sees nothing else of the query. That makes the plan
the cache's key: two queries share an answer exactly when their words, sorted, come to the same plan – in another order, with
other stop words, with a misspelling that is repaired to the same word, with another unknown word in place of an unknown one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from mcpzip.search.index import Index
from mcpzip.search.names import said
from mcpzip.search.stemmer import stem
from mcpzip.search.tokenizer import is_bigram, is_stop_word, words

MOST_WORDS = 128  # content words of a query that are looked up; what is longer is a document, not a request
_LONGEST_QUERY = 20_000  # characters looked at

REPAIRED = 0.85  # what a repaired word counts for; .8 to .9 are equal, 1 is worse by .001


@dataclass(frozen=True, slots=True)
class Filters:
    """Which tools are searched.

    server: only those of the server of this name; read_only: only those that say they do (True) or don't (False) just read.
    """

    server: str | None = None
    read_only: bool | None = None


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """One word of the query as terms of the index: any of them will do, the best one counts.

    weight: what it counts for, 0…1; asked: False when it is another spelling of words that have groups of their own, whose
    absence is no fault.
    """

    terms: tuple[int, ...]
    weight: float
    asked: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """All a ranking depends on.

    groups: sorted. asides: the terms of stop words of the query that stand in names. unknown: how many words lead nowhere. literal, spoken: documents found by name; begun: places of names that
    begin with the query (see `names`).
    """

    groups: tuple[Group, ...]
    asides: tuple[int, ...]
    unknown: int
    literal: tuple[int, ...]
    spoken: tuple[int, ...]
    begun: range
    filters: Filters


@dataclass(frozen=True, slots=True)
class Understanding:
    """A plan, and the query's own words for what is in it.

    words: for each group of the plan, the words that led to it. unknown, corrected: for people, in order of the query.
    """

    plan: Plan
    words: tuple[tuple[str, ...], ...]
    unknown: tuple[str, ...]
    corrected: tuple[tuple[str, str], ...]


def understand(query: str, filters: Filters, index: Index) -> Understanding:
    """``query`` in terms of ``index``. Never raises."""
    query = query[:_LONGEST_QUERY].strip()
    everything = words(query)
    content = [
        pair for pair in everything if not (is_stop_word(pair[0]) or is_stop_word(pair[1]))
    ] or everything
    content = list(dict.fromkeys(content[:MOST_WORDS]))
    reading = _Reading(index)
    reading.read(content)
    order = sorted(reading.groups)
    spelled = [word for word, _ in everything]
    said_terms = {term for group in order for term in group.terms}
    plan = Plan(
        groups=tuple(order),
        asides=tuple(sorted({index.terms[term] for _, term in everything if term in index.terms} - said_terms)),
        unknown=len(reading.unknown),
        literal=index.names.literal(query),
        spoken=index.names.spoken(said([term for _, term in everything])),
        begun=index.names.begun(spelled) if len(spelled) <= MOST_WORDS else range(0),
        filters=filters,
    )
    return Understanding(
        plan,
        tuple(tuple(reading.groups[group]) for group in order),
        tuple(reading.unknown),
        tuple(reading.corrected),
    )


class _Reading:
    """Collects the groups of a query, word by word."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.groups: dict[Group, list[str]] = {}
        self.unknown: list[str] = []
        self.corrected: list[tuple[str, str]] = []

    def read(self, content: list[tuple[str, str]]) -> None:
        terms = self._index.terms
        strange: list[str] = []
        for word, term in content:
            if term in terms:
                self._add((terms[term],), 1.0, word)
            else:
                strange.append(word)
        for word in dict.fromkeys(strange):
            self._repair(word)
        if any(is_bigram(word) for words_ in self.groups.values() for word in words_):
            # 天气预报 is cut into 天气, 气预 and 预报; the middle one is an artefact, not a word nobody knows.
            self.unknown = [word for word in self.unknown if not is_bigram(word)]
        for (left, _), (right, _) in pairwise(content):
            if left + right in self._index.vocabulary:
                self._add((terms[stem(left + right)],), 1.0, left, asked=False)

    def _repair(self, word: str) -> None:
        repair = self._index.vocabulary.repair(word)
        if repair is None:
            self.unknown.append(word)
        elif repair.kind == "split":
            self.corrected.append((word, " ".join(repair.alternatives)))
            for part in repair.alternatives:
                self._add((self._index.terms[stem(part)],), REPAIRED, word)
        else:
            self.corrected.append((word, repair.alternatives[0]))
            self._add(
                sorted({self._index.terms[stem(known)] for known in repair.alternatives}), REPAIRED, word
            )

    def _add(self, terms: Iterable[int], weight: float, word: str, *, asked: bool = True) -> None:
        """A group, unless one with its terms is there already: a word counts once however often and variously it is said."""
        alternatives = tuple(terms)
        for group, said_by in self.groups.items():
            if group.terms == alternatives:
                if word not in said_by:
                    said_by.append(word)
                return
        self.groups[Group(alternatives, weight, asked)] = [word]
