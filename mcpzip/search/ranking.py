"""From a plan to a ranking: the arithmetic of the keyword tier.

The rule: `rank` is a function of the index and the plan alone. Scores never rise down the list, ties go by
name, and a longer ranking begins with every shorter one.

A score is a share, 0…1, of what a tool would have that answers every word of the query: BM25F over the
postings, and small advantages for the best of those, over the sum of the rarities of all words asked for (an
unknown word is as rare as can be). So it says how sure a hit is, whatever the query's length: see `searcher`
for what it amounts to.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from heapq import nlargest
from itertools import takewhile

from mcpzip.search.index import Index
from mcpzip.search.query import Filters, Plan
from mcpzip.search.verbs import contradict

POOL = 64  # the best by BM25F, whose advantages are looked at; 32 and 128 give the same first ten

# Advantages, as shares of what a tool's words are worth. Beside each, what is lost of nDCG@10 without it.
VERB = 0.2  # the verb of the name is of a family the query asks for: −.009; .1: −.003, .3: −.0005
CONTRADICTION = 0.15  # the query reads and the name writes, or the other way round; taken off: −.002
NAME = 0.15  # times the share of the name that the query says: −.004; .1 and .3: −.001
SERVER = 0.1  # every word of the server's name is in the query: −.002

# A tool that is called what the query says comes first, whatever else is said of it.
LITERAL_SCORE = 1.0
SPOKEN_SCORES = (0.985, 0.99)  # but for stop words, and to the last word
BEGUN_SCORES = (0.9, 0.98)  # the name begins with what is asked: between these, by score
HIGHEST_SCORE = 0.89  # of any other


@dataclass(frozen=True, slots=True)
class Ranking:
    """Documents and their scores, best first.

    matching: how many tools have any of the words. searched: how many the filters left.
    """

    documents: tuple[int, ...]
    scores: tuple[float, ...]
    matching: int
    searched: int


def rank(index: Index, plan: Plan, depth: int) -> Ranking:
    """The best ``depth`` documents for ``plan``."""
    worths = _add_up(index, plan)
    for document in (*plan.literal, *plan.spoken):
        worths.setdefault(document, 0.0)
    worths = _filtered(index, plan.filters, worths)
    most = sum(max(index.rarity[term] for term in group.terms) for group in plan.groups if group.asked)
    most = (most + plan.unknown * index.rarest) or 1.0
    order = _best(worths, max(depth, POOL))
    named = [document for document in (*plan.literal, *plan.spoken) if document in worths]
    pool = {document: worths[document] for document in (*order[:POOL], *named)}
    ranked = _with_advantages(index, plan, pool, most)
    if len(ranked) < depth:
        least = ranked[-1][1] if ranked else 0.0
        rest = [document for document in order if document not in pool]
        ranked += [(document, min(least, HIGHEST_SCORE * worths[document] / most)) for document in rest]
    ranked = ranked[: max(depth, 0)]
    return Ranking(
        documents=tuple(document for document, _ in ranked),
        scores=tuple(score for _, score in ranked),
        matching=len(worths),
        searched=_searched(index, plan.filters),
    )


def _add_up(index: Index, plan: Plan) -> dict[int, float]:
    """BM25F: for every document that has a term of the plan, what its terms are worth together."""
    longest_first = sorted(plan.groups, key=lambda group: (-index.frequency(group.terms), group))
    totals: dict[int, float] = {}
    get = totals.get
    for group in longest_first:
        if len(group.terms) == 1:
            worths = index.worths(group.terms[0])
        else:
            best: dict[int, float] = {}
            for term in group.terms:
                for document, worth in index.worths(term):
                    if worth > best.get(document, 0.0):
                        best[document] = worth
            worths = best.items()
        if group.weight != 1.0:
            worths = [(document, group.weight * worth) for document, worth in worths]
        if not totals:  # most of the adding is done by the commonest word, and here at no cost
            totals.update(worths)
        else:
            for document, worth in worths:
                totals[document] = get(document, 0.0) + worth
    return totals


def _best(worths: dict[int, float], depth: int) -> list[int]:
    """The ``depth`` documents of most worth, ties by name."""
    items: Iterable[tuple[int, float]] = worths.items()
    if len(worths) > 4 * depth:  # bare floats are found several times faster than pairs are sorted
        least = nlargest(depth, worths.values())[-1]
        items = [(document, worth) for document, worth in items if worth >= least]
    return [document for document, _ in sorted(items, key=_by_worth)][:depth]


def _with_advantages(
    index: Index, plan: Plan, pool: dict[int, float], most: float
) -> list[tuple[int, float]]:
    """The documents of ``pool`` and their scores, best first, ties by name."""
    said = {term: index.rarity[term] for group in plan.groups for term in group.terms}
    said.update((term, index.rarity[term]) for term in plan.asides)
    asked = {term for group in plan.groups if group.asked for term in group.terms} | set(plan.asides)
    rarity = said.get
    named: dict[int, bool] = {}
    scores: list[tuple[int, float]] = []
    for document, worth in pool.items():
        name = index.name_terms[document]
        advantage = 1.0
        if index.name_rarity[document]:
            advantage += NAME * sum([rarity(term, 0.0) for term in name]) / index.name_rarity[document]
        done = index.verb[document]
        if plan.verbs & done:
            advantage += VERB
        elif plan.verbs and contradict(plan.verbs, done):
            advantage -= CONTRADICTION
        server = index.server[document]
        if server not in named:
            terms = index.server_terms[server]
            named[server] = bool(terms) and said.keys() >= set(terms)
        if named[server]:
            advantage += SERVER
        score = HIGHEST_SCORE * min(worth * advantage / most, 1.0)
        if document in plan.literal:
            score = LITERAL_SCORE
        elif document in plan.spoken:
            score = SPOKEN_SCORES[asked in (set(name), {*index.server_terms[server], *name})]
        elif not plan.unknown and _begins(index, document, plan, said):
            low, high = BEGUN_SCORES
            score = low + (high - low) * score
        scores.append((document, score))
    return sorted(scores, key=_by_worth)


def _begins(index: Index, document: int, plan: Plan, said: Container[int]) -> bool:
    """Whether the name of ``document``, or its server and name, begin with all that is asked."""
    name = index.name_terms[document]
    for terms in (name, index.server_terms[index.server[document]] + name):
        start = set(takewhile(said.__contains__, terms))
        if start and all(not start.isdisjoint(group.terms) for group in plan.groups if group.asked):
            return True
    return False


def _by_worth(item: tuple[int, float]) -> tuple[float, int]:
    return -item[1], item[0]


def _filtered(index: Index, filters: Filters, worths: dict[int, float]) -> dict[int, float]:
    """What of ``worths`` the filters leave."""
    if filters.server is None and filters.read_only is None:
        return worths
    return {
        document: worth
        for document, worth in worths.items()
        if _passes(filters, index.entries[document].server, index.entries[document].read_only)
    }


def _searched(index: Index, filters: Filters) -> int:
    """How many tools the filters leave."""
    return sum(
        size for (server, read_only), size in index.sizes.items() if _passes(filters, server, read_only)
    )


def _passes(filters: Filters, server: str, read_only: bool) -> bool:
    return filters.server in (None, server) and filters.read_only in (None, read_only)
