"""Rank fusion: one ranking from the scores of all tiers, in which a tool whose exact name is the query ranks
first.

The rule: `rank` depends on the index, the plan, the tiers' scores and the signals only, not on the order of
tools or of tiers' answers. Scores never rise down the ranking, ties are ordered by name, and a longer ranking
begins with every shorter one. Tools whose name the query gives come first, whatever their scores.

The score of a tool is a weighted sum of its keyword score and its cosine similarity. The keyword score is
first multiplied by itself, because a tool with all words of the query is probably meant, while one with one
word of five matches by chance. In a long query no tool has most words; there the factor is increased
(`_keyword_trust`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from mcpzip.search import keyword
from mcpzip.search.index import Document, Index
from mcpzip.search.keyword import QueryTerms
from mcpzip.search.query import Plan
from mcpzip.search.signals import NO_SIGNALS, Signals

FEW_DOCUMENTS = 256  # left by a filter: then all are compared with the query
POOL = 24  # best documents, of which the final score is computed; 96 are no better

KEYWORD_WEIGHT = 0.45  # of the keyword score; that of the similarity is the rest. .4 and .5 are equal
SERVER_BONUS = 0.06  # of a tool whose server the query names; .03 to .15 are equal, without: −.002
LONG_QUERY = 8  # words from which on a query is long; never: −.003
LONG_QUERY_RANGE = 10  # more words until keyword scores are fully trusted
BACKGROUND_SIMILARITY = 0.15  # of a tool that has nothing to do with the query
REMOTE_WEIGHT = 0.5  # of a remote model's similarity, beside the table's; with MiniLM 0: −.018, 1: −.056
LLM_WEIGHT = 0.6  # of a model's choice, beside all others. Not measured: chosen as more than a half

# The scores of tools whose name the query gives. Ranges are filled by the tool's other score.
LITERAL_SCORE = 1.0  # character by character
SAME_WORDS_SCORES = (0.985, 0.99)  # the words of the name: without stop words, and with all words
COVERED_SCORES = (0.95, 0.98)  # the words of the name, and some of its server's name
PREFIX_SCORES = (0.9, 0.95)  # the beginning of the name
HIGHEST_SCORE = 0.89  # of all other tools


@dataclass(frozen=True, slots=True)
class TierScores:
    """The scores of the tiers other than the keyword tier, by document.

    similarities: cosines, −1…1. missing: computes a similarity that is not in there; None when none is
    missing. choices: of a model, 0…1. threshold: the similarity below which a tool without any word of the
    query is left out.
    """

    similarities: Mapping[int, float] = field(default_factory=dict)
    missing: Callable[[int], float] | None = None
    choices: Mapping[int, float] = field(default_factory=dict)
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document and its score. words: its keyword score, 0…1. similarity: None if unknown. chosen: whether a
    model chose it.
    """

    document: int
    score: float
    words: float
    similarity: float | None
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """documents: best first. matching: the number of tools with any word of the query. searched: the number
    of tools that pass the filters.
    """

    documents: tuple[RankedDocument, ...]
    matching: int
    searched: int


def rank(
    index: Index,
    plan: Plan,
    depth: int,
    tier_scores: TierScores = TierScores(),
    signals: Signals = NO_SIGNALS,
) -> Ranking:
    """The best ``depth`` documents for ``plan``."""
    return _Fusion(index, plan, tier_scores, signals).rank(depth)


def _keyword_trust(plan: Plan) -> float:
    """What is added to the factor of the keyword score: 0 for short queries, up to 1 for long ones."""
    length = plan.unknown + sum([group.counted for group in plan.groups])
    return min(max((length - LONG_QUERY) / LONG_QUERY_RANGE, 0.0), 1.0)


class _Fusion:
    """The ranking of one plan."""

    def __init__(self, index: Index, plan: Plan, tier_scores: TierScores, signals: Signals) -> None:
        self._index, self._plan, self._signals = index, plan, signals
        self._allowed = allowed = keyword.filtered_documents(index, plan)
        keyword_scores = keyword.score_documents(index, plan)
        if allowed is not None:
            keyword_scores = {
                number: keyword_scores.get(number, 0.0)
                for number in allowed
                if number in keyword_scores or plan.match_all
            }
        self._keyword_scores, self._max_score = keyword_scores, keyword.max_score(index, plan)
        self._trust = _keyword_trust(plan)
        self._query_terms = QueryTerms(index, plan)
        self._named = {*plan.literal, *plan.same_words}
        if tier_scores.missing is not None:
            tier_scores = self._with_missing(tier_scores, tier_scores.missing)
        self._tier_scores = tier_scores

    def rank(self, depth: int) -> Ranking:
        choices, similarities = self._tier_scores.choices, self._tier_scores.similarities
        scores = self._approximate_scores()
        order = _top(self._index, scores, max(POOL, depth))
        named = (*self._plan.literal, *self._plan.same_words, *choices)
        pool = {*order[:POOL], *(number for number in named if self._passes(number))}
        documents = sorted((self._score(number) for number in pool), key=self._sort_key)
        if len(documents) < depth:
            least = documents[-1].score if documents else 0.0
            scale = HIGHEST_SCORE * ((1 - KEYWORD_WEIGHT) if similarities else 1.0)
            for number in order[POOL:]:  # in the order of their approximate scores, below the pool's
                if number not in pool:
                    least = min(least, scale * max(scores[number], 0.0))
                    words = min(self._keyword_scores.get(number, 0.0) / self._max_score, 1.0)
                    similarity = similarities.get(number)
                    documents.append(RankedDocument(number, least, words, similarity, number in choices))
        searched = len(self._index) if self._allowed is None else len(self._allowed)
        return Ranking(tuple(documents[: max(depth, 0)]), len(self._keyword_scores), searched)

    def _passes(self, number: int) -> bool:
        """Whether the document passes the filters."""
        return self._allowed is None or number in self._allowed

    def _with_missing(self, tier_scores: TierScores, missing: Callable[[int], float]) -> TierScores:
        """With the similarities of the best by keyword score, and of all where filters leave few."""
        wanted = set(_top(self._index, self._keyword_scores, POOL))
        if self._allowed is not None and len(self._allowed) <= FEW_DOCUMENTS:
            wanted |= self._allowed
        similarities = dict(tier_scores.similarities)
        similarities.update((number, missing(number)) for number in wanted if number not in similarities)
        return replace(tier_scores, similarities=similarities)

    def _approximate_scores(self) -> dict[int, float]:
        """The scores of all documents, without the bonuses that only the pool gets."""
        keyword_scores, max_score, trust = self._keyword_scores, self._max_score, self._trust
        allowed = self._allowed
        if not self._tier_scores.similarities:
            scores = {number: score / max_score for number, score in keyword_scores.items()}
        else:
            scores = dict(self._tier_scores.similarities)
            if allowed is not None:
                scores = {number: score for number, score in scores.items() if number in allowed}
            if (least := self._tier_scores.threshold) is not None:
                scores = {number: s for number, s in scores.items() if s >= least or number in keyword_scores}
            get = scores.get
            weight = KEYWORD_WEIGHT / (1 - KEYWORD_WEIGHT)  # so the similarities, many more, need no scaling
            for number, score in keyword_scores.items():
                share = score / max_score
                factor = share + trust
                scores[number] = get(number, 0.0) + weight * share * (factor if factor < 1.0 else 1.0)
        for number, choice in self._tier_scores.choices.items():
            if self._passes(number):
                scores[number] = scores.get(number, 0.0) + choice
        if boosts := self._signals.boosts:
            for number in scores:
                scores[number] *= boosts.get(self._index.document(number).entry.server, 1.0)
        return scores

    def _sort_key(self, ranked: RankedDocument) -> tuple[float, str]:
        return -ranked.score, self._index.document(ranked.document).name

    def _score(self, number: int) -> RankedDocument:
        document = self._index.document(number)
        terms, tiers = self._query_terms, self._tier_scores
        keyword_score = self._keyword_scores.get(number, 0.0)
        words = min(keyword_score * terms.boost(document) / self._max_score, 1.0) if keyword_score else 0.0
        similarity = tiers.similarities.get(number)
        score = words
        if tiers.similarities:
            trusted = words * min(words + self._trust, 1.0)
            score = KEYWORD_WEIGHT * trusted + (1 - KEYWORD_WEIGHT) * max(similarity or 0.0, 0.0)
            score += SERVER_BONUS * terms.names_server(document.entry.server)
        choice = tiers.choices.get(number)
        if tiers.choices:
            score = LLM_WEIGHT * (choice or 0.0) + (1 - LLM_WEIGHT) * score
        score *= HIGHEST_SCORE * self._signals.factor(document.entry.server, document.name)
        score = min(score, HIGHEST_SCORE)
        if number in self._named or keyword_score:
            score = self._score_by_name(number, document, score)
        return RankedDocument(number, score, words, similarity, choice is not None)

    def _score_by_name(self, number: int, document: Document, score: float) -> float:
        """``score``, or the higher score of a tool whose name the query gives."""
        if number in self._plan.literal:
            return LITERAL_SCORE
        if number in self._plan.same_words:
            return SAME_WORDS_SCORES[self._query_terms.is_exact_name(document)]
        if self._plan.unknown:
            return score
        if self._query_terms.covers_name(document):
            low, high = COVERED_SCORES
        elif self._query_terms.is_name_prefix(document):
            low, high = PREFIX_SCORES
        else:
            return score
        return low + (high - low) * score


def _top(index: Index, scores: Mapping[int, float], depth: int) -> list[int]:
    """The ``depth`` documents with the highest scores, ties by name."""
    found: list[int] = []
    if len(scores) > 4 * depth:  # few have a quarter of the best score, but usually enough
        least = max(scores.values()) / 4
        found = [number for number, score in scores.items() if score >= least]
    if len(found) <= depth:
        found = list(scores)
    found.sort(key=scores.__getitem__, reverse=True)
    if any(scores[one] == scores[other] for one, other in pairwise(found[: depth + 1])):
        found.sort(key=lambda number: (-scores[number], index.document(number).name))
    return found[:depth]


def above_background(similarities: Mapping[int, float]) -> Mapping[int, float]:
    """Another model's cosines, rescaled linearly: the lowest becomes `BACKGROUND_SIMILARITY`, and 1 stays 1.

    Because in some models unrelated texts have high cosines, but in the table's vectors they have low ones.
    """
    if not similarities:
        return similarities
    low = min(similarities.values())
    if low <= BACKGROUND_SIMILARITY:
        return similarities
    scale = (1 - BACKGROUND_SIMILARITY) / (1 - low) if low < 1 else 1.0
    return {number: BACKGROUND_SIMILARITY + scale * (each - low) for number, each in similarities.items()}


def combine_similarities(local: Mapping[int, float], remote: Mapping[int, float]) -> dict[int, float]:
    """The weighted means of the table's and a remote model's similarities. Where one of them lacks a
    document, its lowest similarity is used.
    """
    lows = (min(local.values(), default=0.0), min(remote.values(), default=0.0))
    return {
        number: (1 - REMOTE_WEIGHT) * local.get(number, lows[0]) + REMOTE_WEIGHT * remote.get(number, lows[1])
        for number in local.keys() | remote.keys()
    }
