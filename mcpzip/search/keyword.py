"""The keyword tier: how well the words of a query fit the tools that have them.

The rule: what a tool answers is a share, 0…1, of what a tool would have that answers every word of the query:
BM25F over the postings, and small advantages for the best of those, over the sum of the rarities of all words
asked for (an unknown word is as rare as can be). So it says how much of the query is there, whatever the
query's length. A word more that fits never lowers it.
"""

from collections.abc import Iterable
from itertools import takewhile

from mcpzip.search.index import Document, Index
from mcpzip.search.phrases import documents_with
from mcpzip.search.query import Plan
from mcpzip.search.verbs import contradict

# Advantages, as shares of what a tool's words are worth. Beside each, what is lost of nDCG@10 without it.
VERB = 0.2  # the verb of the name is of a family the query asks for: −.009; .1: −.003, .3: −.0005
CONTRADICTION = 0.15  # the query reads and the name writes, or the other way round; taken off: −.002
NAME = 0.15  # times the share of the name that the query says: −.004; .1 and .3: −.001
SERVER = 0.1  # every word of the server's name is in the query: −.002


def score_documents(index: Index, plan: Plan) -> dict[int, float]:
    """For every document that has a term of the plan, what its terms are worth together, rarities and all."""
    longest_first = sorted(plan.groups, key=lambda group: -sum(map(index.frequency, group.terms)))
    totals: dict[int, float] = {}
    get = totals.get
    for group in longest_first:
        if len(group.terms) == 1:
            weight = group.weight * index.idf(group.terms[0])
            worths: Iterable[tuple[int, float]] = index.postings_of(group.terms[0])
        else:
            weight = group.weight
            best: dict[int, float] = {}
            for term in group.terms:
                rarity = index.idf(term)
                for document, worth in index.postings_of(term):
                    if rarity * worth > best.get(document, 0.0):
                        best[document] = rarity * worth
            worths = best.items()
        if totals:
            for document, worth in worths:
                totals[document] = get(document, 0.0) + weight * worth
        else:  # most of the adding is done by the commonest word, and here at little cost
            totals.update([(document, weight * worth) for document, worth in worths])
    return totals


def max_score(index: Index, plan: Plan) -> float:
    """What a tool would have that answers all that is asked; above 0."""
    asked = sum(max(map(index.idf, group.terms)) for group in plan.groups if group.asked)
    return (asked + plan.unknown * index.max_idf) or 1.0


def left_by_filters(index: Index, plan: Plan) -> frozenset[int] | None:
    """The documents that the plan's filters leave; None when it has none."""
    filters = (
        plan.servers is not None,
        plan.read_only is not None,
        plan.without,
        plan.phrases,
        plan.everything,
    )
    if not any(filters):
        return None
    left = {number for number, document in enumerate(index.documents) if document and _passes(plan, document)}
    for term in plan.without:
        left -= {number for number, _ in index.postings_of(term)}
    for phrase in plan.phrases:
        left &= documents_with(index, phrase)
    return frozenset(left)


def _passes(plan: Plan, document: Document) -> bool:
    entry = document.entry
    return (plan.servers is None or entry.server in plan.servers) and (
        plan.read_only is None or entry.read_only is plan.read_only
    )


class QueryTerms:
    """What a plan says, ready to be held against the names of tools.

    terms: by term, its rarity. asked: the terms that are asked for themselves.
    """

    __slots__ = ("_groups", "_index", "_servers", "asked", "terms", "verbs")

    def __init__(self, index: Index, terms: dict[int, float], asked: set[int], verbs: int) -> None:
        self._index = index
        self._servers: dict[str, bool] = {}
        self._groups: list[tuple[int, ...]] = []
        self.terms, self.asked, self.verbs = terms, asked, verbs

    @classmethod
    def of(cls, index: Index, plan: Plan) -> "QueryTerms":
        """What ``plan`` says."""
        terms = {term for group in plan.groups for term in group.terms} | set(plan.asides)
        asked = {term for group in plan.groups if group.asked for term in group.terms} | set(plan.asides)
        said = cls(index, {term: index.idf(term) for term in terms}, asked, plan.verbs)
        said._groups = [group.terms for group in plan.groups if group.asked]
        return said

    def advantage(self, document: Document) -> float:
        """What the worth of the tool's words is multiplied by: all advantages together, about 1."""
        advantage = 1 + NAME * self.coverage(document) + SERVER * self.names_server(document.entry.server)
        if self.verbs & document.verb:
            return advantage + VERB
        if self.verbs and contradict(self.verbs, document.verb):
            return advantage - CONTRADICTION
        return advantage

    def coverage(self, document: Document) -> float:
        """The share of the tool's own name that is said, 0…1, by rarity."""
        whole = covered = 0.0
        for term in document.terms:
            rarity = self._index.idf(term)
            whole += rarity
            if term in self.terms:
                covered += rarity
        return covered / whole if whole else 0.0

    def wholly(self, document: Document) -> bool:
        """Whether the tool's name, with its server or without, is what is asked, to the last word."""
        server = self._index.server_terms(document.entry.server)
        return self.asked in (set(document.terms), {*server, *document.terms})

    def covers(self, document: Document) -> bool:
        """Whether the tool's whole name is said, and nothing that stands neither in it nor in its
        server's."""
        if not document.terms or not self.terms.keys() >= set(document.terms):
            return False
        names = {*document.terms, *self._index.server_terms(document.entry.server)}
        return all(not names.isdisjoint(group) for group in self._groups)

    def begins(self, document: Document) -> bool:
        """Whether the tool's name, with its server or without, begins with all that is asked."""
        server = self._index.server_terms(document.entry.server)
        return self._start_says_all(document.terms) or (
            bool(server) and server[0] in self.terms and self._start_says_all(server + document.terms)
        )

    def _start_says_all(self, terms: tuple[int, ...]) -> bool:
        if not terms or terms[0] not in self.terms:
            return False
        start = set(takewhile(self.terms.__contains__, terms))
        return all(not start.isdisjoint(group) for group in self._groups)

    def names_server(self, server: str) -> bool:
        """Whether every word of the name of ``server`` is said."""
        known = self._servers.get(server)
        if known is None:
            terms = self._index.server_terms(server)
            known = bool(terms) and self.terms.keys() >= set(terms)
            self._servers[server] = known
        return known
