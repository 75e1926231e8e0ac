"""How far to trust the first tool of a ranking, as a word: strong, fair or weak.

The rule: a high score is not enough, because in a large catalog many tools are nearly as good. What counts as
well is the *lead*: by how much the first tool's score exceeds that of the best tool of another kind. Tools of
one kind, such as ``delete_task`` on two servers of the same sort, don't compete, because either will do.

The thresholds were chosen on 675 judged requests for 919 tools of 98 servers and 131 for 3,194 tools of 67,
many of them alike, and on 1,070 requests that no tool of the catalog answers.
"""

from typing import Literal

from mcpzip.search.fusion import COVERED_SCORES, LITERAL_SCORE, SAME_WORDS_SCORES, RankedDocument, Ranking
from mcpzip.search.index import Index
from mcpzip.search.query import Plan
from mcpzip.search.semantic.vectors import cosine

Quality = Literal["strong", "fair", "weak", "none"]

STRONG = 0.6  # least confidence of strong results
FAIR = 0.4  # and of fair ones
MAX_SCORE = 0.5  # what of a score counts; .6 and the whole are worse
MAX_LEAD = 0.3  # what of a lead counts
SOLE_LEAD = 0.1  # the lead of tools of one kind without any other tool
SAME_KIND = 0.7  # least cosine of tools of one kind: in other cases their servers do different things

_NAME_SCORES = (LITERAL_SCORE, SAME_WORDS_SCORES[0], COVERED_SCORES[0])
"""The least scores of tools whose name the query gives, in three ways, the surest first."""


def quality(index: Index, ranking: Ranking, plan: Plan | None = None) -> Quality:
    """How far to trust the first tool of ``ranking``. plan: that of the query, unless it is a part of one."""
    if not ranking.documents:
        return "none"
    if plan is not None and plan.match_all:  # every tool is what the query selects
        return "strong"
    found = confidence(index, ranking)
    return "strong" if found >= STRONG else "fair" if found >= FAIR else "weak"


def confidence(index: Index, ranking: Ranking) -> float:
    """How sure it is that the first tool of ``ranking``, which is not empty, is the right one: 0…1, where
    ten times the difference between two is that of the logarithms of their odds, about.
    """
    first = ranking.documents[0]
    rival = next((each for each in ranking.documents[1:] if not _same_kind(index, first, each)), None)
    score = min(first.score, MAX_SCORE)
    if first.chosen:  # by a model, whose choices are ranked and not measured
        return score + SOLE_LEAD
    if rival is None:
        return score + SOLE_LEAD
    if any(first.score >= least > rival.score for least in _NAME_SCORES):
        return 1.0
    return score + min(first.score - rival.score, MAX_LEAD)


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
