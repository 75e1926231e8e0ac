"""How far to trust the first tool of a ranking, as a word: strong, fair or weak.

The rule: a high score is not enough, because in a large catalog many tools are nearly as good. What counts as
well is the *lead*: by how much the first tool's score exceeds that of the best tool of another kind. Tools of
one kind, such as ``delete_task`` on two servers of the same sort, don't compete, because either will do.

That the query has the words of the tool's name counts against it a little: many requests have the words of
``list_songs`` by chance, and its score is high then.

What a tool has by learned words doesn't count, because a call may have been a mistake: a tool that is before
a better one by these only has a lead below 0.

The constants were chosen, cross-validated, on 675 judged requests for 919 tools of 98 servers, on 341 for
three catalogs of some 3,000 tools, many of them alike (one is `bench.retrieval.alike`), and on 1,070 requests
that no tool of a catalog answers.
"""

from typing import Literal

from mcpzip.search.fusion import COVERED_SCORES, LITERAL_SCORE, SAME_WORDS_SCORES, RankedDocument, Ranking
from mcpzip.search.index import Index
from mcpzip.search.keyword import QueryTerms
from mcpzip.search.query import Plan
from mcpzip.search.semantic.vectors import cosine

Quality = Literal["strong", "fair", "weak", "none"]

STRONG = 0.58  # least confidence of strong results
FAIR = 0.35  # and of fair ones
MAX_SCORE = 0.5  # what of a score counts; .6: a quarter fewer results can be called strong, the whole: half
MAX_LEAD = 0.3  # what of a lead counts
LEAD_WEIGHT = 1.5  # 1: a seventh fewer, without the lead: three fifths fewer
NAME_WEIGHT = 0.15  # without it: a fifth fewer
BONUS = 0.1  # of a tool that has no lead, because there is no other, or because a model chose it
SAME_KIND = 0.7  # least cosine of tools of one kind: in other cases their servers do different things

_NAME_SCORES = (LITERAL_SCORE, SAME_WORDS_SCORES[0], COVERED_SCORES[0])
"""The least scores of tools whose name the query gives, in three ways, the surest first."""


def quality(index: Index, ranking: Ranking, plan: Plan) -> Quality:
    """How far to trust the first tool of ``ranking``. plan: that of the query."""
    if not ranking.documents:
        return "none"
    if plan.match_all:  # every tool is what the query selects
        return "strong"
    found = confidence(index, ranking, plan)
    return "strong" if found >= STRONG else "fair" if found >= FAIR else "weak"


def confidence(index: Index, ranking: Ranking, plan: Plan) -> float:
    """How sure it is that the first tool of ``ranking``, which is not empty, is the right one: 1 where the
    query gives its name and no other kind of tool's, else less; below −`NAME_WEIGHT` only where learned
    words put it before a better one.
    """
    first = ranking.documents[0]
    rival = next((each for each in ranking.documents[1:] if not _same_kind(index, first, each)), None)
    if first.chosen or rival is None:
        return min(first.score - first.learned, MAX_SCORE) + BONUS
    if any(first.score >= least > rival.score for least in _NAME_SCORES):
        return 1.0
    score, best = first.score, rival.score
    if any(each.learned for each in ranking.documents):
        score, best = _without_learned(index, ranking)
    lead = min(score - best, MAX_LEAD)
    name = QueryTerms(index, plan).name_coverage(index.document(first.document))
    return min(score, MAX_SCORE) + LEAD_WEIGHT * lead - NAME_WEIGHT * name


def _without_learned(index: Index, ranking: Ranking) -> tuple[float, float]:
    """The score of the first tool, and the best one of another kind, without what they have by learned words:
    these say which of several tools is meant, not how well it fits.
    """
    first, *others = ranking.documents
    rivals = [each.score - each.learned for each in others if not _same_kind(index, first, each)]
    return first.score - first.learned, max(rivals)


def _same_kind(index: Index, one: RankedDocument, other: RankedDocument) -> bool:
    """Whether two tools have the same words in their names, with those of their servers' names or without,
    and mean nearly the same.
    """
    if _kinds(index, one.document).isdisjoint(_kinds(index, other.document)):
        return False
    vectors = index.documents.vector(one.document), index.documents.vector(other.document)
    return not vectors[0] or not vectors[1] or cosine(vectors[0], vectors[1]) >= SAME_KIND


def _kinds(index: Index, number: int) -> set[frozenset[int]]:
    """The words of the name of a tool, and without those of its server's name if others are left."""
    document = index.document(number)
    terms = frozenset(document.name_terms)
    return {terms, terms.difference(index.server_terms(document.entry.server)) or terms}
