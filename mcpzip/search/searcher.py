"""Search as the rest of mcpzip sees it: give it entries, ask it in plain words.

The rule: a search never raises and never comes back empty-handed. Where nothing was found, the results say which words are unknown,
and which words and servers come closest.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from mcpzip.model.entry import Entry
from mcpzip.search.cache import Key, QueryCache
from mcpzip.search.index import Index
from mcpzip.search.nearest import nearest_servers, nearest_words
from mcpzip.search.query import Filters, Understanding, understand
from mcpzip.search.ranking import Ranking, rank
from mcpzip.search.tokenizer import words

Quality = Literal["strong", "fair", "weak", "none"]

KEYWORD = "keyword"
KEPT = 50  # hits of an answer that are kept; a longer list is ranked anew

# The best hit's score from which an answer is called so.
STRONG = 0.5
FAIR = 0.3

_NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found.

    score: 0…1, comparable between queries (see `ranking`). tier: the way of ranking that found it. matched: the words of the query
    that stand in it. similarity: −1…1, of a semantic tier only.
    """

    entry: Entry
    score: float
    tier: str
    matched: tuple[str, ...]
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """What a query found, and what there is to say about it.

    hits: best first, ties by name. matching: how many tools have any of the words. searched: how many tools the filters left.
    quality: how far to trust the first hit. tiers: the ways of ranking that answered. unknown_words: words of the query that no
    tool has and nothing near. corrected: (as written, as searched). nearest_words, nearest_servers: only when there
    are no hits.
    """

    hits: tuple[Hit, ...]
    matching: int
    searched: int
    quality: Quality
    tiers: tuple[str, ...]
    unknown_words: tuple[str, ...]
    corrected: tuple[tuple[str, str], ...]
    nearest_words: tuple[str, ...]
    nearest_servers: tuple[str, ...]


class Searcher:
    """Searches the catalog it was given last. Safe between threads; searches go on while an index is built."""

    def __init__(self) -> None:
        self._cache: QueryCache[Ranking] = QueryCache()
        self._state = (Index(()), "", self._cache)

    def index(self, entries: Iterable[Entry], version: str) -> None:
        """Build the index of ``entries`` and swap it in whole. ``version`` names this set of entries."""
        self._state = (Index(entries), version, QueryCache())

    def search(self, query: str, limit: int, filters: Filters = _NO_FILTERS) -> Results:
        """The best ``limit`` tools for ``query``. Never raises; a limit below 1 finds nothing but still counts."""
        index, version, cache = self._state
        understood = understand(query, filters, index)
        ranking = self._ranking(index, version, cache, understood, limit)
        documents = ranking.documents[: max(limit, 0)]
        hits = tuple(
            Hit(index.entries[document], score, KEYWORD, _matched(index, understood, document))
            for document, score in zip(documents, ranking.scores, strict=False)
        )
        nothing = not ranking.documents
        return Results(
            hits=hits,
            matching=ranking.matching,
            searched=ranking.searched,
            quality=_quality(ranking),
            tiers=(KEYWORD,),
            unknown_words=understood.unknown,
            corrected=understood.corrected,
            nearest_words=nearest_words(index, understood.unknown) if nothing else (),
            nearest_servers=nearest_servers(index, _asked(query, filters)) if nothing else (),
        )

    @staticmethod
    def _ranking(
        index: Index, version: str, cache: QueryCache[Ranking], understood: Understanding, limit: int
    ) -> Ranking:
        if limit > KEPT:
            return rank(index, understood.plan, limit)
        key = Key(understood.plan, version, (KEYWORD,))
        ranking = cache.get(key)
        if ranking is None:
            ranking = rank(index, understood.plan, KEPT)
            cache.put(key, ranking)
        return ranking


def _matched(index: Index, understood: Understanding, document: int) -> tuple[str, ...]:
    groups = zip(understood.plan.groups, understood.words, strict=True)
    found = (said for group, said in groups if any(index.has(document, term) for term in group.terms))
    return tuple(dict.fromkeys(word for said in found for word in said))


def _quality(ranking: Ranking) -> Quality:
    if not ranking.scores:
        return "none"
    best = ranking.scores[0]
    return "strong" if best >= STRONG else "fair" if best >= FAIR else "weak"


def _asked(query: str, filters: Filters) -> list[str]:
    return [word for word, _ in words(query[:1000])] + [word for word, _ in words(filters.server or "")]
