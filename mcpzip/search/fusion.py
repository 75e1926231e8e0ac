"""From what the tiers say to one ranking.

The rule: `rank` is a function of the index, the plan, the tiers' answers and the signals alone: it doesn't
matter which tier answered first, nor in which order tools came. Scores never rise down the list, ties go by
name, and a longer ranking begins with every shorter one. A tool that is called what the query says comes
first, whatever any tier says of it.

A score is what the words and the meaning of a query say together. The words are trusted as far as they answer
the query: a tool that has all of them is most likely meant, one that happens to have one of five is not. Of a
long request no tool answers much; there, a little is more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from mcpzip.search import keyword
from mcpzip.search.index import Document, Index
from mcpzip.search.keyword import QueryTerms
from mcpzip.search.query import Plan
from mcpzip.search.signals import NO_SIGNALS, Signals

FEW = 256  # tools that a filter leaves, which are all compared with the query
POOL = 24  # the best by words and meaning, of which all is looked at; 96 are no better

WORDS = 0.45  # what the words count for, beside the meaning; .4 and .5 are equal
SERVER = 0.06  # what a tool gains whose server the query names; .03 to .15 are equal, without: −.002
LONG = 8  # words of a request from which on a part of an answer is trusted more; never: −.003
LONGER = 10  # words more, from which on it is trusted like a whole
BACKGROUND = 0.15  # the similarity of a tool that has nothing to do with the query
THEIRS = 0.5  # what another model's similarity counts for, beside ours; with MiniLM 0: −.018, 1: −.056
LLM = 0.6  # what a model's choice counts for, beside both. No experiment: it was chosen as more than a half

# A tool that is called what the query says comes first, whatever else is said of it.
LITERAL_SCORE = 1.0
SPOKEN_SCORES = (0.985, 0.99)  # but for stop words, and to the last word
COVERED_SCORES = (0.95, 0.98)  # but for words of its server's name: between these, by score
BEGUN_SCORES = (0.9, 0.95)  # the name begins with what is asked
HIGHEST_SCORE = 0.89  # of any other


@dataclass(frozen=True, slots=True)
class TierScores:
    """What the tiers beside the words say, by document.

    similarities: cosines, −1…1. missing: gives one that isn't among them; None when none is missing. choices:
    of a model, 0…1. threshold: the similarity below which a tool that has none of the words is left out.
    """

    similarities: Mapping[int, float] = field(default_factory=dict)
    missing: Callable[[int], float] | None = None
    choices: Mapping[int, float] = field(default_factory=dict)
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document, its score, the share of the query's words it answers, its similarity if that is known, and
    whether a model chose it.
    """

    document: int
    score: float
    words: float
    similarity: float | None
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """What was found, best first. matching: how many tools have any of the words. searched: how many the
    filters left.
    """

    found: tuple[RankedDocument, ...]
    matching: int
    searched: int


def rank(
    index: Index, plan: Plan, depth: int, heard: TierScores = TierScores(), signals: Signals = NO_SIGNALS
) -> Ranking:
    """The best ``depth`` documents for ``plan``."""
    worths = keyword.score_documents(index, plan)
    left = keyword.left_by_filters(index, plan)
    if left is not None:
        worths = {number: worths.get(number, 0.0) for number in left if number in worths or plan.everything}
    most = keyword.max_score(index, plan)
    trust = _trust(plan)
    if heard.missing is not None:
        heard = _completed(index, heard, heard.missing, worths, left)
    scores = _together(worths, most, trust, heard, left)
    named = (*plan.literal, *plan.spoken, *heard.choices)
    certain = [number for number in named if left is None or number in left]
    if signals.boosts:
        _boost(index, scores, signals)
    order = _best(index, scores, max(POOL, depth))
    pool = {*order[:POOL], *certain}
    judge = _Judge(index, plan, worths, most, trust, heard, signals)
    found = sorted((judge.found(number) for number in pool), key=judge.order)
    if len(found) < depth:
        least = found[-1].score if found else 0.0
        scale = HIGHEST_SCORE * ((1 - WORDS) if heard.similarities else 1.0)
        for number in order[POOL:]:  # in the order in which they are just short of the best
            if number not in pool:
                least = min(least, scale * max(scores[number], 0.0))
                found.append(RankedDocument(number, least, *judge.alone(number), number in heard.choices))
    searched = len(index) if left is None else len(left)
    return Ranking(tuple(found[: max(depth, 0)]), len(worths), searched)


def _trust(plan: Plan) -> float:
    """How far words are trusted of which a tool has none, 0…1: what it has is added to that."""
    asked = plan.unknown + sum([group.asked for group in plan.groups])
    return min(max((asked - LONG) / LONGER, 0.0), 1.0)


def _together(
    worths: Mapping[int, float], most: float, trust: float, heard: TierScores, left: frozenset[int] | None
) -> dict[int, float]:
    """What words and meaning say of every document, without what only the best are looked at for."""
    if not heard.similarities:
        scores = {number: worth / most for number, worth in worths.items()}
    else:
        scores = dict(heard.similarities)
        if left is not None:
            scores = {number: score for number, score in scores.items() if number in left}
        if heard.threshold is not None:
            least = heard.threshold
            scores = {number: s for number, s in scores.items() if s >= least or number in worths}
        get = scores.get
        beside = WORDS / (1 - WORDS)  # the similarities are left as they are: there are many more of them
        for number, worth in worths.items():
            words = worth / most
            trusted = words + trust
            scores[number] = get(number, 0.0) + beside * words * (trusted if trusted < 1.0 else 1.0)
    for number, choice in heard.choices.items():
        if left is None or number in left:
            scores[number] = scores.get(number, 0.0) + choice
    return scores


def _boost(index: Index, scores: dict[int, float], signals: Signals) -> None:
    for number in scores:
        server = index.document(number).entry.server
        if server in signals.boosts:
            scores[number] *= signals.boosts[server]


def _completed(
    index: Index,
    heard: TierScores,
    missing: Callable[[int], float],
    worths: Mapping[int, float],
    left: frozenset[int] | None,
) -> TierScores:
    """``heard`` with the similarities of all that the words alone would find, or that a filter leaves."""
    wanted = set(_best(index, worths, POOL))
    if left is not None and len(left) <= FEW:
        wanted |= left
    found = dict(heard.similarities)
    found.update((number, missing(number)) for number in wanted if number not in found)
    return replace(heard, similarities=found)


def _best(index: Index, scores: Mapping[int, float], depth: int) -> list[int]:
    """The ``depth`` documents of most worth, ties by name."""
    found: list[int] = []
    if len(scores) > 4 * depth:  # a quarter as good as the best are few, but enough as a rule
        least = max(scores.values()) / 4
        found = [number for number, score in scores.items() if score >= least]
    if len(found) <= depth:
        found = list(scores)
    found.sort(key=scores.__getitem__, reverse=True)
    if any(scores[one] == scores[other] for one, other in pairwise(found[: depth + 1])):
        found.sort(key=lambda number: (-scores[number], index.document(number).name))
    return found[:depth]


def above_background(similarities: Mapping[int, float]) -> Mapping[int, float]:
    """Cosines of another model on the scale of ours, where most tools have next to nothing in common.

    What is common to nearly all tools is no similarity: the lowest counts as `BACKGROUND`, 1 stays 1.
    """
    if not similarities:
        return similarities
    low = min(similarities.values())
    if low <= BACKGROUND:
        return similarities
    scale = (1 - BACKGROUND) / (1 - low) if low < 1 else 1.0
    return {number: BACKGROUND + scale * (each - low) for number, each in similarities.items()}


def together(ours: Mapping[int, float], theirs: Mapping[int, float]) -> dict[int, float]:
    """The similarities of the table and of another model in one: each sees what the other doesn't. Where one
    names only the best, the others have what its last has.
    """
    lows = (min(ours.values(), default=0.0), min(theirs.values(), default=0.0))
    return {
        number: (1 - THEIRS) * ours.get(number, lows[0]) + THEIRS * theirs.get(number, lows[1])
        for number in ours.keys() | theirs.keys()
    }


class _Judge:
    """Scores a document by all that is known."""

    def __init__(
        self,
        index: Index,
        plan: Plan,
        worths: Mapping[int, float],
        most: float,
        trust: float,
        heard: TierScores,
        signals: Signals,
    ) -> None:
        self._index, self._plan, self._worths, self._most = index, plan, worths, most
        self._trust = trust
        self._heard, self._signals = heard, signals
        self._said = QueryTerms.of(index, plan)
        self._named = {*plan.literal, *plan.spoken}

    def order(self, found: RankedDocument) -> tuple[float, str]:
        return -found.score, self._index.document(found.document).name

    def alone(self, number: int) -> tuple[float, float | None]:
        """What the words and the meaning say each, without what a closer look would add."""
        return min(self._worths.get(number, 0.0) / self._most, 1.0), self._heard.similarities.get(number)

    def found(self, number: int) -> RankedDocument:
        document = self._index.document(number)
        worth = self._worths.get(number, 0.0)
        words = min(worth * self._said.advantage(document) / self._most, 1.0) if worth else 0.0
        similarity = self._heard.similarities.get(number)
        score = words
        if self._heard.similarities:
            trusted = words * min(words + self._trust, 1.0)
            score = WORDS * trusted + (1 - WORDS) * max(similarity or 0.0, 0.0)
            score += SERVER * self._said.names_server(document.entry.server)
        choice = self._heard.choices.get(number)
        if self._heard.choices:
            score = LLM * (choice or 0.0) + (1 - LLM) * score
        score *= HIGHEST_SCORE * self._signals.factor(document.entry.server, document.name)
        score = min(score, HIGHEST_SCORE)
        if number in self._named or worth:
            score = self._by_name(number, document, score)
        return RankedDocument(number, score, words, similarity, choice is not None)

    def _by_name(self, number: int, document: Document, score: float) -> float:
        """``score``, or what a tool gets that is called what the query says."""
        if number in self._plan.literal:
            return LITERAL_SCORE
        if number in self._plan.spoken:
            return SPOKEN_SCORES[self._said.wholly(document)]
        if self._plan.unknown:
            return score
        if self._said.covers(document):
            low, high = COVERED_SCORES
        elif self._said.begins(document):
            low, high = BEGUN_SCORES
        else:
            return score
        return low + (high - low) * score
