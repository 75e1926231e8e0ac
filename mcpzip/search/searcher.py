"""Search as the rest of mcpzip sees it: give it entries, ask it questions."""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from typing import Literal

from mcpzip.model.entry import Entry
from mcpzip.search.index import Index
from mcpzip.search.tokenizer import words, is_stop_word, stem

Quality = Literal["strong", "fair", "weak", "none"]


@dataclass(frozen=True, slots=True)
class Filters:
    """Which tools are searched: of one server; only those that say they do (True) or don't (False) just read."""

    server: str | None = None
    read_only: bool | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found. score: 0…1; tier: the way of ranking that found it; matched: the query's words it has;
    similarity: -1…1, of the semantic tier only."""

    entry: Entry
    score: float
    tier: str
    matched: tuple[str, ...]
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """What a query found, best first, and what there is to say about it."""

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
    """Searches the catalog it was given last."""

    def __init__(self) -> None:
        self._index = Index(())
        self._version = ""

    def index(self, entries: Iterable[Entry], version: str) -> None:
        """Build a new index and swap it in whole; searches meanwhile use the old one."""
        self._index, self._version = Index(entries), version

    def search(self, query: str, limit: int, filters: Filters = Filters()) -> Results:  # noqa: B008 - frozen
        """The best ``limit`` tools for ``query``. Never raises."""
        ix = self._index
        pairs = words(query)
        pairs = [p for p in pairs if not is_stop_word(p[1])] or pairs
        unknown: list[str] = []
        corrected: list[tuple[str, str]] = []
        groups: dict[tuple[int, ...], str] = {}
        for word, term in pairs:
            if term in ix.terms:
                groups.setdefault((ix.terms[term],), word)
            elif word not in unknown:
                repair = ix.vocabulary.repair(word)
                if repair is None:
                    unknown.append(word)
                elif repair.kind == "split":
                    corrected.append((word, " ".join(repair.alternatives[0])))
                    for part in repair.alternatives[0]:
                        groups.setdefault((ix.terms[stem(part)],), word)
                else:
                    corrected.append((word, repair.alternatives[0][0]))
                    groups.setdefault(tuple(dict.fromkeys(ix.terms[stem(a[0])] for a in repair.alternatives)), word)
        scores: dict[int, float] = {}
        for group in groups:
            for term in group:
                for d, w in zip(*ix.postings(term), strict=True):
                    scores[d] = scores.get(d, 0.0) + w
        allowed = {
            d: s for d, s in scores.items()
            if (filters.server is None or ix.entries[d].server == filters.server)
            and (filters.read_only is None or ix.entries[d].read_only is filters.read_only)
        }
        ideal = sum(max(ix.rarity[t] for t in g) for g in groups) + len(unknown) * 5 or 1.0
        top = nlargest(limit, allowed.items(), key=lambda item: (item[1], -item[0]))
        hits = tuple(
            Hit(ix.entries[d], min(1.0, s / ideal), "keyword",
                tuple(dict.fromkeys(w for g, w in groups.items() if any(ix.worth(t, d) for t in g))))
            for d, s in top
        )
        quality: Quality = "none" if not hits else "strong" if hits[0].score > .5 else "fair" if hits[0].score > .3 else "weak"
        return Results(hits, len(allowed), len(ix.entries), quality, ("keyword",), tuple(unknown), tuple(corrected), (), ())
