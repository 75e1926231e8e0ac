"""The keyword tier: BM25F scores of documents, normalised by the query's maximum score.

The rule: a document's keyword score is its share, 0…1, of the score of a document that has every word of the
query: BM25F over the postings, with bonuses for its name, over the sum of the idf of all words (an unknown
word has the highest idf). So a score says how much of the query a tool matches, whatever the query's length.
One more matching word never lowers it.
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from mcpzip.model.entry import Entry
from mcpzip.search.documents import Document
from mcpzip.search.index import Index
from mcpzip.search.phrases import documents_with_phrase
from mcpzip.search.query import Plan
from mcpzip.search.verbs import contradict

# Bonuses, as shares of the document's score. Beside each, the loss of nDCG@10 without it.
VERB_BONUS = 0.2  # the verb of the name is of a family of the query's verbs: −.009; .1: −.003, .3: −.0005
CONTRADICTION_PENALTY = 0.15  # the query's verbs read and the name's verb writes, or the reverse: −.002
NAME_BONUS = 0.15  # times the share of the name that is in the query: −.004; .1 and .3: −.001
SERVER_BONUS = 0.1  # every word of the server's name is in the query: −.002


def score_documents(index: Index, plan: Plan) -> dict[int, float]:
    """The BM25F score, idf included, of every document that has a term of the plan."""
    keyword = KeywordScores(index, plan)
    keyword.add_all()
    return keyword.scores


class KeywordScores:
    """The BM25F scores of a plan, computed as far as needed: the groups with few postings first.

    The rest, words that most tools have, are worth little and take most of the time. They can be left out of
    a document that can't be among the best with them either (MaxScore: Turtle & Flood, "Query evaluation:
    strategies and optimizations", Information Processing & Management 31, 1995).

    scores: by document, of the groups that were added; of all their documents. rest: the highest score of the
    groups that were not added.
    """

    __slots__ = ("_groups", "_index", "rest", "scores")

    def __init__(self, index: Index, plan: Plan) -> None:
        self._index = index
        self._groups = sorted(plan.groups, key=lambda group: -sum(map(index.document_frequency, group.terms)))
        self.scores: dict[int, float] = {}
        self.rest = self._sum_of_rest()

    @property
    def next_postings(self) -> int:
        """How many postings the next group has; 0 where all were added."""
        return sum(map(self._index.document_frequency, self._groups[-1].terms)) if self._groups else 0

    def add_next(self) -> None:
        """Add the group with the fewest postings of those that are left."""
        group = self._groups.pop()
        self.rest = self._sum_of_rest()
        scores, index = self.scores, self._index
        get = scores.get
        if len(group.terms) == 1:
            weight = group.weight * index.idf(group.terms[0])
            postings: Iterable[tuple[int, float]] = index.postings_of(group.terms[0])
        else:
            weight = group.weight
            best: dict[int, float] = {}
            for term in group.terms:
                idf = index.idf(term)
                for document, term_weight in index.postings_of(term):
                    if idf * term_weight > best.get(document, 0.0):
                        best[document] = idf * term_weight
            postings = best.items()
        if scores:
            for document, term_weight in postings:
                scores[document] = get(document, 0.0) + weight * term_weight
        else:
            scores.update([(document, weight * term_weight) for document, term_weight in postings])

    def add_all(self) -> None:
        """Add all groups."""
        while self._groups:
            self.add_next()

    def with_rest(self, documents: Sequence[int]) -> dict[int, float]:
        """The scores of ``documents`` with all groups, whether they were added or not."""
        get, index = self.scores.get, self._index
        totals = [get(document, 0.0) for document in documents]
        for group in reversed(self._groups):
            best: list[float] = []
            for term in group.terms:
                idf = index.idf(term)
                scores = [idf * weight for weight in index.weights_in(documents, term)]
                best = list(map(max, best, scores)) if best else scores
            totals = [total + group.weight * score for total, score in zip(totals, best, strict=True)]
        return dict(zip(documents, totals, strict=True))

    def matching(self) -> int:
        """The number of documents with a term of any group, whether it was added or not."""
        if not self._groups:
            return len(self.scores)
        bits = 0
        for group in self._groups:
            for term in group.terms:
                bits |= self._index.documents_of(term)
        flags = bits.to_bytes(bits.bit_length() // 8 + 1, "little")
        last = 8 * len(flags)
        others = [
            document
            for document in self.scores
            if document >= last or not flags[document >> 3] >> (document & 7) & 1
        ]
        return bits.bit_count() + len(others)

    def _sum_of_rest(self) -> float:
        return sum([group.weight * max(map(self._index.idf, group.terms)) for group in self._groups])


def max_score(index: Index, plan: Plan) -> float:
    """The divisor of scores: the sum of the highest idf of every word of the query; above 0."""
    known = sum(max(map(index.idf, group.terms)) for group in plan.groups if group.counted)
    return (known + plan.unknown * index.max_idf) or 1.0


def filtered_documents(index: Index, plan: Plan) -> frozenset[int] | None:
    """The documents that pass the plan's filters; None where it has no filters."""
    filters = (
        plan.servers is not None,
        plan.read_only is not None,
        plan.excluded,
        plan.phrases,
        plan.match_all,
    )
    if not any(filters):
        return None
    left = {number for number, entry in index.documents.entries() if _passes(plan, entry)}
    for term in plan.excluded:
        left -= {number for number, _ in index.postings_of(term)}
    for phrase in plan.phrases:
        left &= documents_with_phrase(index, phrase)
    return frozenset(left)


def _passes(plan: Plan, entry: Entry) -> bool:
    return (plan.servers is None or entry.server in plan.servers) and (
        plan.read_only is None or entry.read_only is plan.read_only
    )


class QueryTerms:
    """The terms and verbs of a plan, to be compared with the names of tools."""

    __slots__ = ("_counted", "_groups", "_index", "_servers", "_terms", "_verbs")

    def __init__(self, index: Index, plan: Plan) -> None:
        groups = [group.terms for group in plan.groups if group.counted]
        self._index = index
        self._servers: dict[str, tuple[bool, bool]] = {}
        self._groups = groups
        self._terms = {term for group in plan.groups for term in group.terms} | set(plan.stop_word_terms)
        self._counted = {term for group in groups for term in group} | set(plan.stop_word_terms)
        self._verbs = plan.verbs

    def boost(self, document: Document, coverage: float, agree: int) -> float:
        """The factor of the document's keyword score: 1 with all bonuses and penalties. coverage, agree: its
        `name_coverage` and `verbs_agree`.
        """
        boost = 1 + NAME_BONUS * coverage + SERVER_BONUS * self.names_server(document.entry.server)
        return boost + (VERB_BONUS if agree > 0 else CONTRADICTION_PENALTY * agree)

    def name_coverage(self, document: Document) -> float:
        """The share of the tool's own name that is in the query, 0…1, its terms weighted by idf."""
        whole = covered = 0.0
        for term in document.name_terms:
            idf = self._index.idf(term)
            whole += idf
            if term in self._terms:
                covered += idf
        return covered / whole if whole else 0.0

    def is_exact_name(self, document: Document) -> bool:
        """Whether the terms of the query are those of the tool's name, with its server's name or without."""
        server = self._index.server_terms(document.entry.server)
        return self._counted in (set(document.name_terms), {*server, *document.name_terms})

    def covers_name(self, document: Document) -> bool:
        """Whether the query has every term of the tool's name, and every word of the query is in that name or
        in its server's name.
        """
        if not document.name_terms or not self._terms >= set(document.name_terms):
            return False
        names = {*document.name_terms, *self._index.server_terms(document.entry.server)}
        return all(not names.isdisjoint(group) for group in self._groups)

    def is_name_prefix(self, document: Document) -> bool:
        """Whether the tool's name, with its server's name or without, begins with all words of the query."""
        server = self._index.server_terms(document.entry.server)
        return self._begins_with_query(document.name_terms) or (
            bool(server)
            and server[0] in self._terms
            and self._begins_with_query(server + document.name_terms)
        )

    def _begins_with_query(self, terms: tuple[int, ...]) -> bool:
        if not terms or terms[0] not in self._terms:
            return False
        start = set(takewhile(self._terms.__contains__, terms))
        return all(not start.isdisjoint(group) for group in self._groups)

    def verbs_agree(self, document: Document) -> int:
        """1 if the verb of the tool's name is of a family of the query's verbs, −1 if it contradicts them."""
        if self._verbs & document.verbs:
            return 1
        return -1 if self._verbs and contradict(self._verbs, document.verbs) else 0

    def names_server(self, server: str) -> bool:
        """Whether every word of the name of ``server`` is in the query."""
        return self._named(server)[0]

    def names_part_of_server(self, server: str) -> bool:
        """Whether any word of the name of ``server`` is in the query."""
        return self._named(server)[1]

    def _named(self, server: str) -> tuple[bool, bool]:
        named = self._servers.get(server)
        if named is None:
            terms = set(self._index.server_terms(server))
            named = (bool(terms) and self._terms >= terms, not self._terms.isdisjoint(terms))
            self._servers[server] = named
        return named
