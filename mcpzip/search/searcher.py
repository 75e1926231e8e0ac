"""The search engine: indexes the tools of a catalog and answers queries.

The rule: a search never raises. Where nothing was found, the results have the query's unknown words, and the
words and servers most similar to them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from mcpzip.model.entry import Entry
from mcpzip.search import store
from mcpzip.search.analysis import Analyzer
from mcpzip.search.cache import Key, QueryCache
from mcpzip.search.confidence import Quality, quality
from mcpzip.search.english_words import EnglishWords
from mcpzip.search.fusion import (
    RankedDocument,
    Ranking,
    TierScores,
    above_background,
    combine_similarities,
    rank,
)
from mcpzip.search.index import Index
from mcpzip.search.keyword import max_score
from mcpzip.search.needs import RankedQuery, find_needs, merged
from mcpzip.search.query import Filters, Plan, QueryAnalysis, analyze_query, parse_truncated
from mcpzip.search.query_syntax import ParsedQuery
from mcpzip.search.semantic.table import Table
from mcpzip.search.semantic.tool_vectors import ServerVectors, ToolEmbedder
from mcpzip.search.semantic.vectors import cosine, packed, quantize_int4
from mcpzip.search.signals import NO_SIGNALS, Signals
from mcpzip.search.suggestions import nearest_servers, nearest_words
from mcpzip.search.tiers import KEYWORD, LLM, SEMANTIC, TierAbsence, TierAnswer
from mcpzip.search.tokenizer import words

CACHED_HITS = 24  # hits of a cached ranking; a longer one is not cached
AT_ONCE = 100  # new tools that are indexed by their meaning together with their words
DEEP_LIMIT = 500  # hits of the ranking where duplicates leave too few of `CACHED_HITS`
NEARLY_AS_GOOD = 0.8  # share of the score of the last hit
DUPLICATE_WINDOW = 10  # hits after the last one that are checked for duplicates, whose scores are similar

_NO_FILTERS = Filters()


class Hit(msgspec.Struct, frozen=True):
    """A tool that was found.

    score: 0…1, comparable between queries (`fusion`). tier: `KEYWORD` for a tool with words of the query,
    `LLM` for one that a model chose, `SEMANTIC` for others. matched: the words of the query, as written, that
    the tool has. words: its keyword score, 0…1. similarity: −1…1, None if unknown. moved: the factors of its
    score, with reasons (`Signals`). learned: what of the score it has by learned words. need: the information
    need that it answers, "" where there is only one. also: the names of the same tool on other servers.
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
    learned: float = 0.0


class Results(msgspec.Struct, frozen=True):
    """The results of a query.

    hits: best first, ties by name; of several needs, merged (`needs`). matching: the number of tools
    with any word of the query. searched: the number of tools that pass the filters. quality: how far to trust
    the first hit ("none": there is none); of several needs, the lowest. tiers: those that answered, remote
    ones with their method ("llm (gemini)"). absent: those that did not answer. unknown_words: words of the
    query that no tool has and that were not corrected. corrected: (as written, as searched). nearest_words,
    nearest_servers: only where nothing was found. needs: the query's needs that hits are for, and the
    quality of each.
    elsewhere: where all hits are of one server, the others with tools nearly as good, best first; so a server
    that names many tools after a query can't hide the others.
    words: the words that were searched for, "" of the whole query, and by the text of each need.
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
    words: Mapping[str, tuple[str, ...]] = {}


class _Catalog(msgspec.Struct, frozen=True):
    """An index and what is computed from it, which are replaced together.

    servers: the vectors of their names; None without a table.
    """

    index: Index
    version: str
    rankings: QueryCache[Ranking]
    servers: ServerVectors | None = None


class Searcher:
    """Searches a catalog. Safe between threads; it answers from the present index while the next is built."""

    def __init__(self, table: Table | None = None, threshold: float | None = None) -> None:
        """table: of word vectors; None: no semantic tier. threshold: see `fusion.TierScores`."""
        self._table = table
        self._english = EnglishWords(table) if table else None
        self._threshold = threshold
        self._embedder = ToolEmbedder(table) if table else None
        self._analyzer = Analyzer(self._embedder)
        self._catalog = _Catalog(Index(), "", QueryCache())

    def load(self, saved: bytes | memoryview, entries: Iterable[Entry]) -> None:
        """Start with the index in ``saved`` (`to_bytes`), if it is valid and has no tools but ``entries``.
        The index refers to ``saved``.
        """
        index = store.from_bytes(saved, entries, self._table) if saved else Index()
        self._catalog = _Catalog(index, "", QueryCache(), self._server_vectors(index))

    def not_indexed(self, entries: Iterable[Entry]) -> list[Entry]:
        """Those of ``entries`` that are not in the index."""
        return self._catalog.index.not_indexed(entries)

    def name_only_counts(self) -> Mapping[str, int]:
        """How many tools are indexed by name only, by server: those beyond `limits.INDEXED_WORDS`."""
        return self._catalog.index.name_only_counts

    def index(
        self,
        entries: Iterable[Entry],
        version: str,
        saved: bytes | memoryview = b"",
        stopped: Callable[[], bool] = lambda: False,
        *,
        words_first: bool = False,
    ) -> bool:
        """Replace the index by one of ``entries``; only those that are not indexed yet are analyzed.

        version: of the catalog, a part of cache keys. saved: see `load`. stopped: called repeatedly; True
        cancels, and the index stays as it was. words_first: whether many new tools are indexed by their words
        only, and by their meaning in `add_meaning`. Returns whether the new index differs from the one
        before, or from the saved one.
        """
        entries = tuple(entries)
        if saved:
            self.load(saved, entries)
        before = self._catalog.index
        later = words_first and len(before.not_indexed(entries)) > AT_ONCE
        index = before.updated(entries, self._analyzer, stopped, with_vectors=not later)
        if stopped():
            return False
        self._use(index, version)
        return index is not before

    @property
    def state(self) -> object:
        """Another object whenever something else is indexed."""
        return self._catalog

    def restricted(
        self, entries: Iterable[Entry], version: str, own: frozenset[str] = frozenset()
    ) -> "Searcher":
        """A search over those of ``entries`` that are indexed here, and all of the servers ``own``: nothing
        that it returns depends on other tools. version: of ``entries``.
        """
        part, index, wanted = Searcher(self._table, self._threshold), self._catalog.index, tuple(entries)
        later = {entry.digest for entry in index.not_indexed(wanted)}
        known = (entry for entry in wanted if entry.digest not in later or entry.server in own)
        part._use(index.updated(known, part._analyzer), version)
        return part

    @property
    def pending(self) -> int:
        """How many tools are indexed by their words, and not yet by their meaning."""
        return len(self._catalog.index.pending)

    def add_meaning(self, most: int, stopped: Callable[[], bool] = lambda: False) -> None:
        """Index by their meaning ``most`` of the tools for which that is pending. stopped: see `index`. Must
        not run at the same time as `index`.
        """
        catalog = self._catalog
        index = catalog.index.with_vectors(most, self._analyzer, stopped)
        if not stopped():
            self._use(index, catalog.version)

    def _use(self, index: Index, version: str) -> None:
        _ = index.pending, index.name_only_counts  # computed now, so that no search waits for them
        if index.knows_meaning:
            _ = index.document_vectors
        self._catalog = _Catalog(index, version, QueryCache(), self._server_vectors(index))

    def _server_vectors(self, index: Index) -> ServerVectors | None:
        return None if self._embedder is None else ServerVectors(lambda: index.servers, self._embedder)

    def forget(self) -> None:
        """Empty the caches that make indexing many tools faster, when that is done."""
        self._analyzer.forget()
        if self._table is not None:
            self._table.forget()

    def to_bytes(self) -> bytes:
        """The index as bytes, for `load`; b"" while the meaning of tools is pending."""
        index = self._catalog.index
        return b"" if index.pending else store.to_bytes(index, self._table)

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
        """The best ``limit`` tools for ``query``. Never raises; a limit below 1 gives all but the hits.

        answers: of the remote tiers. signals: see `Signals`.
        """
        catalog = self._catalog
        index = catalog.index
        parsed = parse_truncated(query)
        remote = _remote_scores(index, [answer for answer in answers if isinstance(answer, TierAnswer)])
        absences = (answer for answer in answers if isinstance(answer, TierAbsence))
        depth = max(limit, CACHED_HITS)
        whole = self._ranked(catalog, parsed, filters, depth, remote, signals)
        needs: list[RankedQuery] = []
        if not remote.choices:
            needs = find_needs(
                whole,
                lambda text: self._ranked(catalog, _need(parsed, text), filters, depth, None, signals),
            )
        distinct = _distinct(index, whole, needs, limit)
        if len(distinct) < min(limit, len(whole.ranking.documents)) and depth < DEEP_LIMIT:  # many duplicates
            whole = self._ranked(catalog, parsed, filters, DEEP_LIMIT, remote, signals)
            distinct = _distinct(index, whole, needs, limit)
        shown = distinct[: max(limit, 0)]
        elsewhere: tuple[str, ...] = ()
        if shown and not needs and whole.analysis.plan.servers is None:
            elsewhere = _other_servers(index, whole.ranking.documents, shown)
            if not elsewhere and depth < DEEP_LIMIT and _may_hide_servers(index, whole.ranking.documents):
                deep = self._ranked(catalog, parsed, filters, DEEP_LIMIT, remote, signals)
                elsewhere = _other_servers(index, deep.ranking.documents, shown)
        analysis = whole.analysis
        return Results(
            hits=tuple(_hit(index, signals, each, each.query.text if needs else "") for each in shown),
            matching=whole.ranking.matching,
            searched=whole.ranking.searched,
            quality=_lowest_quality(index, needs) if needs else quality(index, whole.ranking, analysis.plan),
            tiers=self._tiers(index, answers),
            unknown_words=analysis.unknown,
            corrected=analysis.corrected,
            nearest_words=() if distinct else nearest_words(index, analysis.unknown),
            nearest_servers=() if distinct else nearest_servers(index, _server_words(parsed, filters)),
            absent=(*self._local_absence(index), *absences),
            needs=tuple(
                (need.text, quality(index, need.ranking, need.analysis.plan))
                for need in needs
                if any(each.query is need for each in shown)
            ),
            elsewhere=elsewhere,
            words={"": _searched_words(analysis)}
            | {need.text: _searched_words(need.analysis) for need in needs},
        )

    def learnable(self, results: Results, text: str, need: str = "") -> tuple[str, ...]:
        """The terms of the query ``text`` that may be learned (`learned_words`), or of its part ``need``.
        results: those of the query.
        """
        from mcpzip.search.learned_words import learnable  # needed only once a tool was found and called

        index, table = self._catalog.index, self._table
        return learnable(
            text,
            results.words.get(need, ()),
            results.corrected,
            lambda term: index.term_id(term) is not None,
            lambda word: table is not None and word in table,
        )

    def similarity(self, some: Sequence[str], others: Sequence[str]) -> float | None:
        """The cosine between words, −1…1; None without a table."""
        if self._table is None:
            return None
        one, other = self._table.embed_words(some), self._table.embed_words(others)
        return 0.0 if one is None or other is None else cosine(packed(one), packed(other))

    def names_tool(self, query: str) -> bool:
        """Whether ``query`` is the name of a tool, character by character."""
        names, parsed = self._catalog.index.names, parse_truncated(query)
        return bool(names.literal(parsed.written) or names.literal(parsed.text))

    def by_field(self, query: str, filters: Filters, entry: Entry) -> dict[str, float]:
        """The keyword score of ``entry`` for ``query``, by field, without bonuses."""
        index = self._catalog.index
        plan = analyze_query(query, filters, index, self._english).plan
        idfs = {term: index.idf(term) for group in plan.groups for term in group.terms}
        idf_by_term = {term: idfs[number] for term in index.terms if (number := index.term_id(term)) in idfs}
        scores = self._analyzer.by_field(entry, idf_by_term)
        whole = max_score(index, plan)
        return {field: score / whole for field, score in scores.items()}

    def _local_absence(self, index: Index) -> tuple[TierAbsence, ...]:
        """Why tools are not ranked by meaning yet."""
        if not index.pending or index.knows_meaning:
            return ()
        reason = f"{len(index.pending):,} tools are not indexed by meaning yet"
        return (TierAbsence(SEMANTIC, "local", reason),)

    def _tiers(self, index: Index, answers: Sequence[TierAnswer | TierAbsence]) -> tuple[str, ...]:
        methods = {answer.tier: answer.method for answer in answers if isinstance(answer, TierAnswer)}
        tiers = [KEYWORD]
        if SEMANTIC in methods:
            tiers.append(f"{SEMANTIC} ({methods[SEMANTIC]})")
        elif self._table and index.knows_meaning:
            tiers.append(SEMANTIC)
        if LLM in methods:
            tiers.append(f"{LLM} ({methods[LLM]})")
        return tuple(tiers)

    def _ranked(
        self,
        catalog: _Catalog,
        parsed: ParsedQuery,
        filters: Filters,
        depth: int,
        remote: TierScores | None,
        signals: Signals,
    ) -> RankedQuery:
        """The ranking of a query, from the cache where it has no remote scores."""
        analysis = analyze_query(parsed, filters, catalog.index, self._english)
        cacheable = depth == CACHED_HITS and (remote is None or not (remote.choices or remote.similarities))
        key = Key(analysis.plan, catalog.version, signals)
        ranking = catalog.rankings.get(key) if cacheable else None
        if ranking is None:
            tier_scores = self._with_local_similarities(catalog, analysis.plan, remote or TierScores())
            ranking = rank(catalog.index, analysis.plan, depth, tier_scores, signals)
            if cacheable:
                catalog.rankings.put(key, ranking)
        return RankedQuery(parsed.text, analysis, ranking)

    def _with_local_similarities(self, catalog: _Catalog, plan: Plan, remote: TierScores) -> TierScores:
        """``remote``, combined with the cosines of the table's vectors."""
        index, scores = catalog.index, replace(remote, threshold=self._threshold)
        query = self._table.query_vector(plan.embedding_words) if self._table else None
        if query is None or not index.knows_meaning or index.document_vectors is None:
            return scores
        documents, vectors = index.document_vectors
        numbers = quantize_int4(query)
        local = vectors.cosines(numbers, documents)
        if catalog.servers is not None:
            scores = replace(scores, servers=catalog.servers.similarities(numbers))
        if scores.similarities:
            return replace(scores, similarities=combine_similarities(local, scores.similarities))
        scores = replace(scores, similarities=local)
        if vectors.exhaustive:
            return scores
        packed_query = packed(query)

        def missing(number: int) -> float:
            vector = index.documents.vector(number)
            return cosine(vector, packed_query) if vector else 0.0

        return replace(scores, missing=missing)


def _need(parsed: ParsedQuery, text: str) -> ParsedQuery:
    """The query of one need: ``text``, the phrases in it, and the operators of the whole query."""
    phrases = tuple(phrase for phrase in parsed.phrases if phrase in text)
    return replace(parsed, written=text, text=text, phrases=phrases)


def _remote_scores(index: Index, answers: Sequence[TierAnswer]) -> TierScores:
    """The scores of remote tiers, by document. Scores of tools that are not in the index are ignored."""
    found: dict[str, dict[int, float]] = {SEMANTIC: {}, LLM: {}}
    for answer in answers:
        for name, score in answer.scores.items():
            for number in index.names.literal(name):
                if index.document(number).name == name:
                    found[answer.tier][number] = score
    return TierScores(similarities=above_background(found[SEMANTIC]), choices=found[LLM])


class _Distinct(msgspec.Struct):
    """A tool of the result list: the query or need that it was found for, and its duplicates' names."""

    query: RankedQuery
    ranked: RankedDocument
    entry: Entry
    also: list[str]


def _distinct(index: Index, whole: RankedQuery, needs: Sequence[RankedQuery], limit: int) -> list[_Distinct]:
    """The result list without duplicates: ``limit`` tools or a few more, merged where there are several
    needs. The same tool on several servers is one entry, that of the best.
    """
    found: list[_Distinct] = []
    known: dict[str, list[_Distinct]] = {}
    order = merged(index, whole, needs) if needs else ((whole, ranked) for ranked in whole.ranking.documents)
    for query, ranked in order:
        if len(found) > limit + DUPLICATE_WINDOW:
            break
        entry = index.document(ranked.document).entry
        namesakes = known.setdefault(entry.tool, [])
        same = next((one for one in namesakes if _same_description(one.entry, entry)), None)
        if same is not None and _same_schema(same.entry, entry):
            if ranked.score > same.ranked.score:  # possible where there are several needs
                entry, same.entry, same.query, same.ranked = same.entry, entry, query, ranked
            same.also.append(entry.name)
            continue
        found.append(_Distinct(query, ranked, entry, []))
        namesakes.append(found[-1])
    return found


def _other_servers(
    index: Index, documents: Sequence[RankedDocument], shown: Sequence[_Distinct]
) -> tuple[str, ...]:
    """Where all tools ``shown`` are of one server: the other servers of ``documents`` that have a tool nearly
    as good as the last one shown, duplicates of those shown excepted.
    """
    own = {index.document(each.ranked.document).entry.server for each in shown}
    if len(own) != 1:
        return ()
    also = {name for each in shown for name in each.also}
    least = NEARLY_AS_GOOD * shown[-1].ranked.score
    good = (index.document(each.document).entry for each in documents if each.score >= least)
    return tuple(
        dict.fromkeys(entry.server for entry in good if entry.server not in own and entry.name not in also)
    )


def _may_hide_servers(index: Index, documents: Sequence[RankedDocument]) -> bool:
    """Whether the ranking is full, all of it is of one server, and there are other servers."""
    servers = {index.document(each.document).entry.server for each in documents}
    return len(index.servers) > 1 and len(documents) >= CACHED_HITS and len(servers) == 1


def _hit(index: Index, signals: Signals, distinct: _Distinct, need: str) -> Hit:
    ranked = distinct.ranked
    document = index.document(ranked.document)
    matched = _matched(index, distinct.query.analysis, ranked.document)
    return Hit(
        entry=document.entry,
        score=ranked.score,
        tier=LLM if ranked.chosen else KEYWORD if matched else SEMANTIC,
        matched=matched,
        words=ranked.words,
        similarity=ranked.similarity,
        moved=tuple(signals.factors(document.entry.server, document.name)),
        need=need,
        also=tuple(distinct.also),
        learned=ranked.learned,
    )


def _same_description(one: Entry, other: Entry) -> bool:
    """Whether the two have the same description, which isn't empty."""
    return bool(one.description) and one.description == other.description


def _same_schema(one: Entry, other: Entry) -> bool:
    return one.read() == other.read() or one.input_schema() == other.input_schema()


def _searched_words(analysis: QueryAnalysis) -> tuple[str, ...]:
    """The words of the query as they were searched; as they were written without a table of vectors."""
    return analysis.plan.embedding_words or tuple(word for _, found in analysis.words for word in found)


def _matched(index: Index, analysis: QueryAnalysis, document: int) -> tuple[str, ...]:
    """The words of the query that ``document`` has."""
    found: dict[str, None] = {}
    for group, written in analysis.words:
        if any(index.has(document, term) for term in group.terms):
            found.update(dict.fromkeys(written))
    return tuple(found)


def _lowest_quality(index: Index, needs: Sequence[RankedQuery]) -> Quality:
    order: tuple[Quality, ...] = ("none", "weak", "fair", "strong")
    return min((quality(index, need.ranking, need.analysis.plan) for need in needs), key=order.index)


def _server_words(parsed: ParsedQuery, filters: Filters) -> list[str]:
    """The words that may be a misspelled server: of the filter or `server:` where there is one, else all."""
    return [word for word, _ in words((filters.server or " ".join(parsed.servers) or parsed.text)[:1000])]
