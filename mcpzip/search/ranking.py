"""From a plan to a ranking: the arithmetic of the keyword tier, and nothing of words.

The rule: `rank` is a function of the index and the plan alone. Scores fall, ties go by name, and a longer ranking begins
with every shorter one.

A score is a share, 0…1, of what a tool could have that answers every word of the query: BM25F over the postings, plus small
advantages for the best of those (`POOL`), over the sum of the rarities of all words asked for, unknown words being the rarest.
"""

from dataclasses import dataclass

from mcpzip.search.index import Index
from mcpzip.search.query import Filters, Plan
from mcpzip.search.verbs import contradict

POOL = 64  # documents whose advantages are looked at; 32 and 128 rank the first ten alike

# Advantages, in units of the rarity of a word that stands nowhere (so they keep their size from ten tools to a hundred thousand).
VERB = 0.13  # the verb of the name is of a family the query asks for: +.009 nDCG@10, flat from .08 to .2
CONTRADICTION = 0.08  # the query reads and the name writes, or the other way round; taken off: +.002
NAME = 0.07  # times the share of the name that the query says: +.002; more than .2 starts to lose
SERVER = 0.06  # every word of the server's name is in the query: +.001, and it settles ties

# A tool that is called what the query says comes first whatever else is said of it.
LITERAL_SCORE = 1.0
SPOKEN_SCORE = 0.99
BEGUN_SCORES = (0.90, 0.98)  # a beginning of the name; between these by score
HIGHEST_SCORE = 0.89


@dataclass(frozen=True, slots=True)
class Ranking:
    """documents and their scores, best first; matching: how many tools matched at all; searched: how many the filters left."""

    documents: tuple[int, ...]
    scores: tuple[float, ...]
    matching: int
    searched: int


def rank(index: Index, plan: Plan, depth: int) -> Ranking:
    """The best ``depth`` documents for ``plan``."""
    worths = _add_up(index, plan)
    begun = index.names.between(plan.begun)
    for document in (*plan.literal, *plan.spoken, *begun):
        worths.setdefault(document, 0.0)
    worths = _filtered(index, plan.filters, worths)
    most = sum(max(index.rarity[term] for term in group.terms) for group in plan.groups if group.asked)
    most = (most + plan.unknown * index.rarest) or 1.0
    order = _best(worths, max(depth, POOL))
    named = _best({document: worths[document] for document in begun if document in worths}, POOL)
    named += [document for document in (*plan.literal, *plan.spoken) if document in worths]
    pool = {document: worths[document] for document in (*order[:POOL], *named)}
    ranked = _with_advantages(index, plan, begun, pool, most)
    if len(ranked) < depth:
        floor = ranked[-1][1] if ranked else 0.0
        rest = [document for document in order if document not in pool]
        ranked += [(document, min(floor, HIGHEST_SCORE * worths[document] / most)) for document in rest]
    documents, scores = zip(*ranked[:depth], strict=True) if ranked else ((), ())
    return Ranking(documents, scores, len(worths), _searched(index, plan.filters))


def _add_up(index: Index, plan: Plan) -> dict[int, float]:
    """BM25F: for every document with a term of the plan, what its terms are worth together."""
    totals: dict[int, float] = {}
    get = totals.get
    for group in plan.groups:
        if len(group.terms) == 1 and group.weight == 1.0:
            for document, worth in index.worths(group.terms[0]):
                totals[document] = get(document, 0.0) + worth
            continue
        best: dict[int, float] = {}
        for term in group.terms:
            for document, worth in index.worths(term):
                if worth > best.get(document, 0.0):
                    best[document] = worth
        for document, worth in best.items():
            totals[document] = get(document, 0.0) + group.weight * worth
    return totals


def _best(worths: dict[int, float], depth: int) -> list[int]:
    """The ``depth`` documents of most worth, ties by name."""
    if len(worths) > 4 * depth:  # a sort of bare floats is several times cheaper than one with a key
        least = sorted(worths.values())[-depth]
        worths = {document: worth for document, worth in worths.items() if worth >= least}
    return [document for document, _ in sorted(worths.items(), key=lambda item: (-item[1], item[0]))][:depth]


def _with_advantages(
    index: Index, plan: Plan, begun: set[int], pool: dict[int, float], most: float
) -> list[tuple[int, float]]:
    """The documents of ``pool`` and their scores, best first, ties by name."""
    said = {term: index.rarity[term] for group in plan.groups for term in group.terms}
    asked = 0
    for term in said:
        asked |= index.verbs.get(term, 0)
    said.update((term, index.rarity[term]) for term in plan.asides)
    rarity = said.get
    unit = index.rarest
    whole_server: dict[int, bool] = {}
    scores: list[tuple[int, float]] = []
    for document, worth in pool.items():
        if index.name_rarity[document]:
            known = sum([rarity(term, 0.0) for term in index.name_terms[document]])
            worth += NAME * unit * known / index.name_rarity[document]
        done = index.verb[document]
        if asked & done:
            worth += VERB * unit
        elif asked and contradict(asked, done):
            worth -= CONTRADICTION * unit
        server = index.server[document]
        if server not in whole_server:
            terms = index.server_terms[server]
            whole_server[server] = bool(terms) and terms <= said.keys()
        if whole_server[server]:
            worth += SERVER * unit
        score = HIGHEST_SCORE * min(max(worth / most, 0.0), 1.0)
        if document in plan.literal:
            score = LITERAL_SCORE
        elif document in plan.spoken:
            score = SPOKEN_SCORE
        elif document in begun:
            score = BEGUN_SCORES[0] + (BEGUN_SCORES[1] - BEGUN_SCORES[0]) * score
        scores.append((document, score))
    return sorted(scores, key=lambda item: (-item[1], item[0]))


def _filtered(index: Index, filters: Filters, worths: dict[int, float]) -> dict[int, float]:
    """What of ``worths`` the filters leave."""
    if filters == Filters():
        return worths
    entries = index.entries
    return {
        document: worth
        for document, worth in worths.items()
        if (filters.server is None or entries[document].server == filters.server)
        and (filters.read_only is None or entries[document].read_only is filters.read_only)
    }


def _searched(index: Index, filters: Filters) -> int:
    """How many tools the filters leave."""
    return sum(
        size
        for (server, read_only), size in index.sizes.items()
        if (filters.server is None or server == filters.server)
        and (filters.read_only is None or read_only is filters.read_only)
    )
