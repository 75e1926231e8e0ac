"""Search as the rest of mcpzip sees it: give it entries, ask it in plain words.

The rule: a search never raises and never comes back empty-handed. When nothing was found the results say
which words are unknown, and which words and servers come closest.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal

from mcpzip.model.entry import Entry
from mcpzip.search import store
from mcpzip.search.analysis import Analyst
from mcpzip.search.cache import Key, QueryCache
from mcpzip.search.fusion import RankedDocument, Ranking, TierScores, above_background, rank, together
from mcpzip.search.index import Index
from mcpzip.search.keyword import max_score
from mcpzip.search.query import Filters, Plan, Understanding, read, understand
from mcpzip.search.query_split import split_query
from mcpzip.search.query_syntax import ParsedQuery
from mcpzip.search.semantic.table import Table
from mcpzip.search.semantic.tool_vectors import ToolEmbedder
from mcpzip.search.semantic.vectors import cosine, packed
from mcpzip.search.signals import NO_SIGNALS, Signals
from mcpzip.search.suggestions import nearest_servers, nearest_words
from mcpzip.search.tiers import KEYWORD, LLM, SEMANTIC, TierAbsence, TierAnswer
from mcpzip.search.tokenizer import words

Quality = Literal["strong", "fair", "weak", "none"]

NEEDED = 0.3  # what the best tool of each of several needs has at least; else they are one
KEPT = 24  # hits of an answer that are kept; a longer list is ranked anew
DEEP = 500  # … anew where so many of them are the same tool that too few are left
NEARLY = 0.8  # of the score of the last tool shown: as good for all that a score says
LIKELY_SAME = 10  # places further that are looked at for tools that are the same: those come close together

# The best hit's score from which an answer is called strong, or fair. Of 675 requests to 919 tools, the right
# tool came first, and among the first five: 98 % and 100 % of the time when strong, 80 % and 95 % when fair,
# 41 % and 68 % when weak.
STRONG = 0.5
FAIR = 0.35

_NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found.

    score: 0…1, comparable between queries (`fusion`). tier: what found it: `KEYWORD` when it has words of the
    query, `SEMANTIC` when it only means the like, `LLM` when a model chose it. matched: the words of the
    query, as written there, that stand in it. words: the share of the query that these are, 0…1. similarity:
    −1…1, None when no tier knows. moved: what its score was multiplied by and why. need: the one of several
    needs that it answers, "" when there is only one. also: tools of other servers that are the same, by name.
    """

    entry: Entry
    score: float
    tier: str
    matched: tuple[str, ...]
    words: float = 0.0
    similarity: float | None = None
    moved: tuple[tuple[str, float], ...] = ()
    need: str = ""
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Results:
    """What a query found, and what there is to say about it.

    hits: best first, ties by name; where there are several needs, the best of each in turn. matching: how
    many tools have any of the words. searched: how many tools the filters left. quality: how far to trust the
    first hit ("none": there is none); of several needs, that of the worst answered. tiers: the ways of
    ranking that answered, those that run elsewhere with what answered ("llm (gemini)"). absent: those that
    were asked and didn't. unknown_words: words of the query that no tool has, nor anything near. corrected:
    (as written, as searched). nearest_words, nearest_servers: only when nothing was found. needs: of the
    query, and how far to trust the best hit of each. elsewhere: where all hits are of one server, the others
    that have a tool nearly as good, best first: who names many tools after a request hides none of theirs.
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
    absent: tuple[TierAbsence, ...] = ()
    needs: tuple[tuple[str, Quality], ...] = ()
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Catalog:
    """An index and the answers given from it: swapped as one, so that neither outlives the other."""

    index: Index
    version: str
    answers: QueryCache[Ranking]


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A need, understood and ranked."""

    text: str
    understood: Understanding
    ranking: Ranking


class Searcher:
    """Searches the catalog it was given last. Safe between threads; it answers while an index is built."""

    def __init__(self, table: Table | None = None, threshold: float | None = None) -> None:
        """table: of word vectors; without one, words alone count. threshold: see `fusion.TierScores`."""
        self._table = table
        self._threshold = threshold
        self._analyst = Analyst(ToolEmbedder(table) if table else None)
        self._catalog = _Catalog(Index(), "", QueryCache())

    def begin_with(self, kept: bytes, entries: Iterable[Entry]) -> None:
        """Begin with an index kept before (`store`), if it is a good one of some of ``entries``."""
        index = store.from_bytes(kept, entries, self._table) if kept else Index()
        self._catalog = _Catalog(index, "", QueryCache())

    def lacking(self, entries: Iterable[Entry]) -> list[Entry]:
        """Those of ``entries`` that it hasn't: to index them is work."""
        return self._catalog.index.lacking(entries)

    def in_brief(self) -> Mapping[str, int]:
        """How many tools are found by their names only, by server: those beyond `limits.INDEXED_WORDS`."""
        return self._catalog.index.briefs

    def index(
        self,
        entries: Iterable[Entry],
        version: str,
        kept: bytes = b"",
        stopped: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Index ``entries``, of which only those it had not are work, and swap that in whole.

        version: becomes part of cache keys. kept: see `begin_with`. stopped: asked again and again; once it
        says so, all stays as it was. Returns whether the index now differs from the one kept, or from the one
        before.
        """
        entries = tuple(entries)
        if kept:
            self.begin_with(kept, entries)
        before = self._catalog.index
        index = before.updated(entries, self._analyst, stopped)
        if stopped():
            return False
        _ = index.meanings, index.briefs  # made here, where nobody waits
        self._catalog = _Catalog(index, version, QueryCache())
        return index is not before

    def kept(self) -> bytes:
        """The index as bytes, for another `index` to begin with."""
        return store.to_bytes(self._catalog.index, self._table)

    def __len__(self) -> int:
        return len(self._catalog.index)

    def search(
        self,
        query: str,
        limit: int,
        filters: Filters = _NO_FILTERS,
        answers: Sequence[TierAnswer | TierAbsence] = (),
        signals: Signals = NO_SIGNALS,
    ) -> Results:
        """The best ``limit`` tools for ``query``. Never raises; a limit below 1 counts but gives no hits.

        answers: of the tiers that run elsewhere. signals: what is known of tools beside their texts.
        """
        catalog = self._catalog
        index = catalog.index
        said = read(query)
        heard = _heard(index, [answer for answer in answers if isinstance(answer, TierAnswer)])
        depth = max(limit, KEPT)
        whole = self._ranked(catalog, said, filters, depth, heard, signals)
        parts: list[_Ranked] = []
        if not heard.choices and not whole.understood.plan.literal:
            parts = [
                self._ranked(catalog, _part(said, part), filters, depth, None, signals)
                for part in split_query(said.text)
            ]
        if any(_best_of(part) < NEEDED for part in parts):
            parts = []  # one of them is no need of its own, but says more of another
        places = _places(index, whole, parts, limit)
        if len(places) < min(limit, len(whole.ranking.found)) and depth < DEEP:  # many are the same tool
            whole = self._ranked(catalog, said, filters, DEEP, heard, signals)
            places = _places(index, whole, parts, limit)
        elsewhere: tuple[str, ...] = ()
        if places and not parts and whole.understood.plan.servers is None:
            elsewhere = _elsewhere(index, whole.ranking.found, places[: max(limit, 0)])
            if not elsewhere and depth < DEEP and _hides_others(index, whole.ranking.found):
                deep = self._ranked(catalog, said, filters, DEEP, heard, signals)
                elsewhere = _elsewhere(index, deep.ranking.found, places[: max(limit, 0)])
        nothing = not places
        understood = whole.understood
        return Results(
            hits=tuple(
                _hit(index, signals, place, place.ranked.text if parts else "")
                for place in places[: max(limit, 0)]
            ),
            matching=whole.ranking.matching,
            searched=whole.ranking.searched,
            quality=_worst(parts) if parts else _quality(whole.ranking, understood.plan),
            tiers=self._tiers(answers),
            unknown_words=understood.unknown,
            corrected=understood.corrected,
            nearest_words=nearest_words(index, understood.unknown) if nothing else (),
            nearest_servers=nearest_servers(index, _spelled(said, filters)) if nothing else (),
            absent=tuple(answer for answer in answers if isinstance(answer, TierAbsence)),
            needs=tuple((part.text, _quality(part.ranking)) for part in parts),
            elsewhere=elsewhere,
        )

    def by_field(self, query: str, filters: Filters, entry: Entry) -> dict[str, float]:
        """What the words of ``query`` are worth in each field of ``entry``, as shares of all there is."""
        index = self._catalog.index
        plan = understand(query, filters, index, self._table).plan
        terms = {term: index.idf(term) for group in plan.groups for term in group.terms}
        spelled = {term: terms[number] for term in index.terms if (number := index.number(term)) in terms}
        found = self._analyst.by_field(entry, spelled)
        whole = max_score(index, plan)
        return {field: worth / whole for field, worth in found.items()}

    def _tiers(self, answers: Sequence[TierAnswer | TierAbsence]) -> tuple[str, ...]:
        there = {answer.tier: answer.method for answer in answers if isinstance(answer, TierAnswer)}
        tiers = [KEYWORD]
        if SEMANTIC in there:
            tiers.append(f"{SEMANTIC} ({there[SEMANTIC]})")
        elif self._table:
            tiers.append(SEMANTIC)
        if LLM in there:
            tiers.append(f"{LLM} ({there[LLM]})")
        return tuple(tiers)

    def _ranked(
        self,
        catalog: _Catalog,
        said: ParsedQuery,
        filters: Filters,
        depth: int,
        heard: TierScores | None,
        signals: Signals,
    ) -> _Ranked:
        """The ranking of what is ``said``: from the cache if it is there and nobody else was heard."""
        understood = understand(said, filters, catalog.index, self._table)
        alone = heard is None or not (heard.choices or heard.similarities)
        key = Key(understood.plan, catalog.version, signals)
        ranking = catalog.answers.get(key) if alone and depth == KEPT else None
        if ranking is None:
            all_heard = self._hearing(catalog.index, understood.plan, heard or TierScores())
            ranking = rank(catalog.index, understood.plan, depth, all_heard, signals)
            if alone and depth == KEPT:
                catalog.answers.put(key, ranking)
        return _Ranked(said.text, understood, ranking)

    def _hearing(self, index: Index, plan: Plan, heard: TierScores) -> TierScores:
        """``heard``, and what the table says."""
        heard = replace(heard, threshold=self._threshold)
        meant = self._table.embed_words(plan.meaning) if self._table else None
        if meant is None or index.meanings is None:
            return heard
        documents, vectors = index.meanings
        near = vectors.cosines(meant, documents)
        if heard.similarities:
            return replace(heard, similarities=together(near, heard.similarities))
        heard = replace(heard, similarities=near)
        if vectors.whole:
            return heard
        query = packed(meant)

        def missing(number: int) -> float:
            vector = index.document(number).vector
            return cosine(vector, query) if vector else 0.0

        return replace(heard, missing=missing)


def _best_of(ranked: _Ranked) -> float:
    return ranked.ranking.found[0].score if ranked.ranking.found else 0.0


def _part(said: ParsedQuery, text: str) -> ParsedQuery:
    """What is ``said``, of which only ``text`` is wanted, and its phrases."""
    phrases = tuple(phrase for phrase in said.phrases if phrase in text)
    return replace(said, written=text, text=text, phrases=phrases)


def _heard(index: Index, answers: Sequence[TierAnswer]) -> TierScores:
    """``answers`` by document. What they say of tools that are gone is passed over."""
    found: dict[str, dict[int, float]] = {SEMANTIC: {}, LLM: {}}
    for answer in answers:
        for name, score in answer.scores.items():
            for number in index.names.literal(name):
                if index.document(number).name == name:
                    found[answer.tier][number] = score
    return TierScores(similarities=above_background(found[SEMANTIC]), choices=found[LLM])


@dataclass(slots=True)
class _Place:
    """A place in the list of hits: what was found for which need, and the same tools of other servers."""

    ranked: _Ranked
    found: RankedDocument
    also: list[str]


def _places(index: Index, whole: _Ranked, parts: Sequence[_Ranked], limit: int) -> list[_Place]:
    """The first ``limit`` places, or some more, in order: for the whole; where there are several needs, the
    first of each in turn.

    Tools that are the same on several servers have one place, that of the first.
    """
    places: list[_Place] = []
    known: dict[tuple[str, str, str], _Place] = {}
    order = _in_turn(whole, parts) if parts else ((whole, found) for found in whole.ranking.found)
    for ranked, found in order:
        if len(places) > limit + LIKELY_SAME:
            break
        entry = index.document(found.document).entry
        place = known.get((entry.tool, entry.description, ranked.text))
        if place is not None and _same(index.document(place.found.document).entry, entry):
            place.also.append(entry.name)
            continue
        places.append(_Place(ranked, found, []))
        if entry.description:
            known.setdefault((entry.tool, entry.description, ranked.text), places[-1])
    return places


def _elsewhere(index: Index, found: Sequence[RankedDocument], shown: Sequence[_Place]) -> tuple[str, ...]:
    """The servers of those ``found`` that are nearly as good as the last ``shown``, where all of these are of
    one server.
    """
    own = {index.document(place.found.document).entry.server for place in shown}
    if len(own) != 1:
        return ()
    also = {name for place in shown for name in place.also}
    least = NEARLY * shown[-1].found.score
    good = (index.document(each.document).entry for each in found if each.score >= least)
    return tuple(
        dict.fromkeys(entry.server for entry in good if entry.server not in own and entry.name not in also)
    )


def _hides_others(index: Index, found: Sequence[RankedDocument]) -> bool:
    """Whether as many were found as are kept, all are of one server, and there are others."""
    several = len({server for server, _ in index.sizes}) > 1
    of = {index.document(each.document).entry.server for each in found}
    return several and len(found) >= KEPT and len(of) == 1


def _in_turn(whole: _Ranked, parts: Sequence[_Ranked]) -> Iterator[tuple[_Ranked, RankedDocument]]:
    """The first of each part, then the second of each, …: every tool once, for the part that it fits best.
    One that fits the whole better than any part is as good as that.
    """
    of_whole = {found.document: found for found in whole.ranking.found}
    best: dict[int, tuple[_Ranked, RankedDocument]] = {}
    for part in parts:
        for found in part.ranking.found:
            if found.document not in best or found.score > best[found.document][1].score:
                best[found.document] = (part, found)
    own: dict[str, list[RankedDocument]] = {part.text: [] for part in parts}
    for number, (part, found) in best.items():
        better = of_whole.get(number, found)
        own[part.text].append(better if better.score > found.score else found)
    for each in own.values():
        each.sort(key=lambda found: -found.score)
    for turn in zip_longest(*own.values()):
        for part, one in zip(parts, turn, strict=True):
            if one is not None:
                yield part, one


def _hit(index: Index, signals: Signals, place: _Place, need: str) -> Hit:
    found = place.found
    document = index.document(found.document)
    matched = _matched(index, place.ranked.understood, found.document)
    return Hit(
        entry=document.entry,
        score=found.score,
        tier=LLM if found.chosen else KEYWORD if matched else SEMANTIC,
        matched=matched,
        words=found.words,
        similarity=found.similarity,
        moved=tuple(signals.parts(document.entry.server, document.name)),
        need=need,
        also=tuple(place.also),
    )


def _same(one: Entry, other: Entry) -> bool:
    return one.raw == other.raw or one.input_schema() == other.input_schema()


def _matched(index: Index, understood: Understanding, document: int) -> tuple[str, ...]:
    """The words of the query that stand in ``document``."""
    found: dict[str, None] = {}
    for group, said in understood.words:
        if any(index.has(document, term) for term in group.terms):
            found.update(dict.fromkeys(said))
    return tuple(found)


def _quality(ranking: Ranking, plan: Plan | None = None) -> Quality:
    if not ranking.found:
        return "none"
    if plan is not None and plan.everything:  # no tool is better than another, and all are what was asked for
        return "strong"
    best = ranking.found[0].score
    return "strong" if best >= STRONG else "fair" if best >= FAIR else "weak"


def _worst(parts: Sequence[_Ranked]) -> Quality:
    order: tuple[Quality, ...] = ("none", "weak", "fair", "strong")
    return min((_quality(part.ranking) for part in parts), key=order.index)


def _spelled(said: ParsedQuery, filters: Filters) -> list[str]:
    """The words a server may have been meant by: of the filter if there is one, of the query if not."""
    return [word for word, _ in words((filters.server or " ".join(said.servers) or said.text)[:1000])]
