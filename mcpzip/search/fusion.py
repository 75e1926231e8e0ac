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

from bisect import insort
from collections.abc import Callable, Collection, Iterable, Mapping
from heapq import nlargest
from itertools import pairwise
from operator import add

import msgspec
from msgspec.structs import replace

from mcpzip.search import keyword
from mcpzip.search.documents import Document
from mcpzip.search.index import Index
from mcpzip.search.keyword import QueryTerms
from mcpzip.search.query import Plan
from mcpzip.search.signals import NO_SIGNALS, Signals
from mcpzip.search.similarities import Similarities

FEW_DOCUMENTS = 256  # left by a filter: then all are compared with the query
POOL = 24  # best documents, of which the final score is computed; 96 are no better

FEW_POSTINGS = 128  # of a word: then all of its documents are scored
CHECK = 3  # postings that are scored in the time in which it is checked whether a document can be left out
LOOKUP = 8  # postings of a word that are scored in the time in which its weight in a document is looked up
ROUNDING = 1e-9  # by which sums of the same numbers in another order may differ

KEYWORD_WEIGHT = 0.45  # of the keyword score; that of the similarity is the rest. .4 and .5 are equal
SERVER_BONUS = 0.06  # of a tool whose server the query names; .03 to .15 are equal, without: −.001
SERVER_SIMILARITY = 0.08  # times the similarity of the query and its server's name; .04 and .12 are equal
"""Without it: −.001; with three other tables of word vectors −.003 to −.005."""
# The last step: what is added to the scores of the pool, less in long queries. Many queries have the words of
# a short name by chance, so its keyword score is too high, and the name counts against it. All: +.005, with
# the table before +.011.
SERVER_PART = 0.04  # a word of its server's name is in the query; .02 to .06 are equal, without: −.001
VERB_AGREES = 0.01  # without and with .02: equal, with the table before −.004 and −.001
VERB_CONTRADICTS = -0.02  # without: −.002
NAME_IN_QUERY = -0.02  # times the share of its name that is in the query; −.03 is equal, without: −.003
LONG_QUERY = 2  # words from which on a query is long; 3: −.001, 4: −.003, 8: −.005
LONG_QUERY_RANGE = 12  # more words until keyword scores are fully trusted; 8 and 10: −.004, 14: −.002
_RELATIVE_WEIGHT = KEYWORD_WEIGHT / (1 - KEYWORD_WEIGHT)
"""Of keyword scores in approximate scores, in which similarities, which are more in number, count whole."""
BACKGROUND_SIMILARITY = 0.15  # of a tool that has nothing to do with the query
REMOTE_WEIGHT = 0.5  # of a remote model's similarity, beside the table's; with the extra's 0: −.025, 1: −.011
LLM_WEIGHT = 0.6  # of a model's choice, beside all others. Not measured: chosen as more than a half

# The scores of tools whose name the query gives. Ranges are filled by the tool's other score.
LITERAL_SCORE = 1.0  # character by character
SAME_WORDS_SCORES = (0.985, 0.99)  # the words of the name: without stop words, and with all words
COVERED_SCORES = (0.95, 0.98)  # the words of the name, and some of its server's name
PREFIX_SCORES = (0.9, 0.95)  # the beginning of the name
HIGHEST_SCORE = 0.89  # of all other tools


class TierScores(msgspec.Struct, frozen=True):
    """The scores of the tiers other than the keyword tier, by document.

    similarities: cosines, −1…1. missing: computes a similarity that is not in there; None when none is
    missing. servers: the cosines of the query and the names of servers. choices: of a model, 0…1. threshold:
    the similarity below which a tool without any word of the query is left out.
    """

    similarities: Mapping[int, float] = {}
    missing: Callable[[int], float] | None = None
    servers: Mapping[str, float] = {}
    choices: Mapping[int, float] = {}
    threshold: float | None = None


_NO_SCORES = TierScores()


class RankedDocument(msgspec.Struct, frozen=True):
    """A document and its score. words: its keyword score, 0…1. similarity: None if unknown. chosen: whether a
    model chose it. learned: what of the score it has because words of the query led to it before.
    """

    document: int
    score: float
    words: float
    similarity: float | None
    chosen: bool = False
    learned: float = 0.0


class Ranking(msgspec.Struct, frozen=True):
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
    tier_scores: TierScores = _NO_SCORES,
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
        self._keyword = keyword.KeywordScores(index, plan)
        self._max_score = keyword.max_score(index, plan)
        self._trust = _keyword_trust(plan)
        self._query_terms = QueryTerms(index, plan)
        self._named = {*plan.literal, *plan.same_words}
        self._learned = {} if signals.words is None else signals.words.bonuses(index, plan)
        self._can_skip = (
            allowed is None
            and not signals.boosts
            and not tier_scores.choices
            and tier_scores.threshold is None
            and (isinstance(tier_scores.similarities, Similarities) or not tier_scores.similarities)
        )
        """Whether documents that can't be among the best may be left out, because scores are a sum of a
        similarity and what the keyword score is worth."""
        if self._can_skip:
            self._keyword_scores: Mapping[int, float] = {}
        else:
            self._keyword_scores = self._all_keyword_scores()
        if tier_scores.missing is not None:
            tier_scores = self._with_missing(tier_scores, tier_scores.missing)
        self._tier_scores = tier_scores

    def rank(self, depth: int) -> Ranking:
        choices, similarities = self._tier_scores.choices, self._tier_scores.similarities
        if self._can_skip:
            scores = self._best_approximate_scores(max(POOL, depth))
            matching = self._keyword.matching()
        else:
            scores = self._approximate_scores()
            matching = len(self._keyword_scores)
        order = _top(self._index, scores, max(POOL, depth))
        named = (*self._plan.literal, *self._plan.same_words, *choices)
        pool = {*order[:POOL], *(number for number in named if self._passes(number))}
        documents = sorted((self._score(number) for number in pool), key=self._sort_key)
        for learned in self._learned_outside(pool, scores, documents[-1].score if documents else 0.0):
            pool.add(learned.document)
            insort(documents, learned, key=self._sort_key)
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
        return Ranking(tuple(documents[: max(depth, 0)]), matching, searched)

    def _learned_outside(
        self, pool: Collection[int], scores: Mapping[int, float], least: float
    ) -> list[RankedDocument]:
        """The documents outside ``pool`` that have a score above ``least`` by learned words. scores: the
        approximate ones, of what may be found.
        """
        outside = [number for number in self._learned if number not in pool and self._passes(number)]
        if self._tier_scores.threshold is not None or not self._tier_scores.similarities:
            outside = [number for number in outside if number in scores]
        return [ranked for ranked in map(self._score, outside) if ranked.score > least]

    def _passes(self, number: int) -> bool:
        """Whether the document passes the filters."""
        return self._allowed is None or number in self._allowed

    def _all_keyword_scores(self) -> dict[int, float]:
        """The keyword scores of all documents that pass the filters."""
        self._keyword.add_all()
        scores = self._keyword.scores
        if self._allowed is None:
            return scores
        return {
            number: scores.get(number, 0.0)
            for number in self._allowed
            if number in scores or self._plan.match_all
        }

    def _with_missing(self, tier_scores: TierScores, missing: Callable[[int], float]) -> TierScores:
        """With the similarities of the best by keyword score, and of all where filters leave few."""
        similarities = tier_scores.similarities
        by_keyword = self._keyword_scores
        if self._can_skip:
            by_keyword = self._candidates(POOL, list, Similarities((), ()))
        wanted = set(_top(self._index, by_keyword, POOL))
        if self._allowed is not None and len(self._allowed) <= FEW_DOCUMENTS:
            wanted |= self._allowed
        wanted |= self._learned.keys()
        more = {number: missing(number) for number in sorted(wanted) if number not in similarities}
        if isinstance(similarities, Similarities):
            return replace(tier_scores, similarities=similarities.with_more(more))
        return replace(tier_scores, similarities={**similarities, **more})

    def _worths(self, keyword_scores: Iterable[float]) -> list[float]:
        """What each keyword score adds to an approximate score: more, the higher it is."""
        best = self._max_score
        if not self._tier_scores.similarities:
            return [score / best for score in keyword_scores]
        trust = self._trust
        shares = [score / best for score in keyword_scores]
        return [
            _RELATIVE_WEIGHT * share * (share + trust if share + trust < 1.0 else 1.0) for share in shares
        ]

    def _best_approximate_scores(self, count: int) -> dict[int, float]:
        """The scores of the ``count`` best documents and of some more, as `_approximate_scores` has them."""
        similarities = self._tier_scores.similarities
        if not isinstance(similarities, Similarities):
            similarities = Similarities((), ())
        found = self._candidates(count, self._worths, similarities)
        self._keyword_scores = found | self._keyword.with_rest([*self._named, *self._learned])
        sums = map(add, similarities.of(found), self._worths(found.values()))
        return dict(zip(found, sums, strict=True))

    def _candidates(
        self, count: int, worths: Callable[[Iterable[float]], list[float]], similarities: Similarities
    ) -> dict[int, float]:
        """The keyword scores of the ``count`` documents with the highest sum of their similarity and of what
        their keyword score is worth, and of some more documents.
        """
        keyword = self._keyword
        least_similarity = similarities.least_of_best(count)
        while 0 < keyword.next_postings <= max(FEW_POSTINGS, CHECK * len(keyword.scores)):
            keyword.add_next()
        while True:
            scores, rest, left = keyword.scores, keyword.rest, keyword.next_postings
            known, least = similarities.of(scores), least_similarity
            if len(scores) >= count:
                least = max(least, nlargest(count, map(add, known, worths(scores.values())))[-1])
            least -= ROUNDING
            more = worths([rest])[0]
            if not left or (more < least and not similarities.many_reach(least - more, left // LOOKUP)):
                found = [number for number in similarities.at_least(least - more) if number not in scores]
                most = worths([score + rest for score in scores.values()])
                found += [
                    number
                    for number, similarity, worth in zip(scores, known, most, strict=True)
                    if similarity + worth >= least
                ]
                if not left or LOOKUP * len(found) <= left:
                    return keyword.with_rest(found)
            keyword.add_next()
            while 0 < keyword.next_postings <= CHECK * len(scores):
                keyword.add_next()

    def _approximate_scores(self) -> dict[int, float]:
        """The scores of all documents, without the bonuses that only the pool gets."""
        keyword_scores = self._keyword_scores
        allowed, similarities = self._allowed, self._tier_scores.similarities
        scores: dict[int, float] = {}
        if similarities:
            scores = similarities.copy() if isinstance(similarities, Similarities) else dict(similarities)
            if allowed is not None:
                scores = {number: score for number, score in scores.items() if number in allowed}
            if (least := self._tier_scores.threshold) is not None:
                scores = {number: s for number, s in scores.items() if s >= least or number in keyword_scores}
        get = scores.get
        for number, worth in zip(keyword_scores, self._worths(keyword_scores.values()), strict=True):
            scores[number] = get(number, 0.0) + worth
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
        coverage, agree = terms.name_coverage(document), terms.verbs_agree(document)
        words = 0.0
        if keyword_score:
            words = min(keyword_score * terms.boost(document, coverage, agree) / self._max_score, 1.0)
        similarity = tiers.similarities.get(number)
        score = words
        if tiers.similarities:
            trusted = words * min(words + self._trust, 1.0)
            score = KEYWORD_WEIGHT * trusted + (1 - KEYWORD_WEIGHT) * max(similarity or 0.0, 0.0)
            score += SERVER_BONUS * terms.names_server(document.entry.server)
            server = tiers.servers.get(document.entry.server, BACKGROUND_SIMILARITY)
            score += SERVER_SIMILARITY * (server - BACKGROUND_SIMILARITY)
            step = SERVER_PART * terms.names_part_of_server(document.entry.server) + NAME_IN_QUERY * coverage
            step += VERB_AGREES if agree > 0 else VERB_CONTRADICTS * -agree
            score = max(score + (1 - self._trust) * step, 0.0)  # a verb that contradicts takes something away
        choice = tiers.choices.get(number)
        if tiers.choices:
            score = LLM_WEIGHT * (choice or 0.0) + (1 - LLM_WEIGHT) * score
        factor = HIGHEST_SCORE * self._signals.factor(document.entry.server, document.name)
        without = min(score * factor, HIGHEST_SCORE)
        if number in self._named or keyword_score:
            named = self._score_by_name(number, document, without)
            if named > HIGHEST_SCORE:
                return RankedDocument(number, named, words, similarity, choice is not None)
        if number not in self._learned:
            return RankedDocument(number, without, words, similarity, choice is not None)
        score = min((score + self._learned[number]) * factor, HIGHEST_SCORE)
        return RankedDocument(number, score, words, similarity, choice is not None, score - without)

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
