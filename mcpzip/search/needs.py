"""The needs of a query, found by what its parts find; and one ranking from theirs.

The rule: `query_split` proposes the parts of a query, and the rankings decide. A part whose best tool is no
good is no need. A part is two where both halves find as good a tool as the whole part does, and another one.
A query is one need where one tool answers all parts, or where it gives the name of a tool.

The ranking is a greedy cover: the next tool is always the one that adds most, and a need that has a tool
already counts less from then on. What a tool adds is its score for a need, and a share of its score for the
whole query and of what the needs find at its server, because a task is often one server's. So a wrong split
costs little, and neither does a need that is only implied.

The constants were chosen on tasks composed of two to four requests for three catalogs, and checked on other
compositions (`bench.retrieval.tasks`). What other values do, in the mean of these: of R@5.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush

import msgspec

from mcpzip.search.file_paths import only_says_where, written_files
from mcpzip.search.fusion import HIGHEST_SCORE, RankedDocument, Ranking
from mcpzip.search.index import Index
from mcpzip.search.query import QueryAnalysis
from mcpzip.search.query_split import MAX_NEEDS, halves, is_statement, split_query

MIN_NEED_SCORE = 0.18  # of the best tool of a need; .2: −.01, .22: −.025
MIN_HALF_SCORE = 0.3  # of the best tool of a half; .25: single requests of real servers lose .002
MAX_HALVES = 4  # pairs of halves that are ranked, of a query; 8 are equal, 2: −.016 of lists
SHARE_OF_PART = 0.9  # of the score of a part's best tool that each half's has; .8: +.01, 1: −.01, of lists
ANSWERS_ALL = 0.5  # of each part's best score that a tool for all has; .7: single requests lose .002

NEED_MET = 0.65  # factor of a need's scores for each tool taken for it; .8: −.02, .5: +.01, nDCG@10 −.01
STATEMENT_WEIGHT = 0.6  # of the scores for a part that asks for nothing; .4 and .8 are equal
WHOLE_WEIGHT = 0.2  # of the score for the whole query; .1: +.006, .3: −.006
FIRST_BONUS = 0.15  # of the first tool for the whole query; without: single requests lose .002
SERVER_WEIGHT = 0.25  # of the mean over the needs of the best score at its server; without: −.02


class RankedQuery(msgspec.Struct, frozen=True):
    """A query, or one need of it: its text, analysis and ranking."""

    text: str
    analysis: QueryAnalysis
    ranking: Ranking

    @property
    def best_score(self) -> float:
        return self.ranking.documents[0].score if self.ranking.documents else 0.0

    def scores(self) -> dict[int, float]:
        """By document, of those that are ranked."""
        return {each.document: each.score for each in self.ranking.documents}


def find_needs(whole: RankedQuery, rank: Callable[[str], RankedQuery]) -> list[RankedQuery]:
    """The needs of the query ``whole``, each once, in order; [] where it has only one. rank: a part of it."""
    if whole.best_score > HIGHEST_SCORE:
        return []
    parts = [rank(text) for text in _parts(whole.text)] or [whole]
    halving = _Halving(rank)
    parts = [each for part in parts for each in halving.needs(part)]
    needs = list({part.text: part for part in parts if part.best_score >= MIN_NEED_SCORE}.values())
    if not 2 <= len(needs) <= MAX_NEEDS or _answers_all(whole, needs):
        return []
    return needs


def _parts(text: str) -> tuple[str, ...]:
    """The parts of a query that may be needs; () where there is one."""
    parts, files = split_query(text), written_files(text)
    if not files:
        return parts
    return (*[part for part in parts or (text,) if not only_says_where(part)], *files)


class _Halving:
    """Splits parts at their commas and "and"s where the halves have other meanings."""

    def __init__(self, rank: Callable[[str], RankedQuery]) -> None:
        self._rank = rank
        self._left = MAX_HALVES  # pairs that may still be ranked

    def needs(self, part: RankedQuery) -> Iterator[RankedQuery]:
        """The needs in ``part``."""
        best: tuple[float, list[RankedQuery]] = (max(MIN_HALF_SCORE, SHARE_OF_PART * part.best_score), [])
        for texts in halves(part.text):
            if self._left == 0:
                break
            self._left -= 1
            pair = [self._rank(text) for text in texts]
            least = min(half.best_score for half in pair)
            if least >= best[0] and not _answers_all(part, pair):
                best = (least, pair)
        if not best[1]:
            yield part
        for half in best[1]:
            yield from self.needs(half)


def _answers_all(query: RankedQuery, parts: Sequence[RankedQuery]) -> bool:
    """Whether the first tool for ``query`` answers each of its ``parts``."""
    if not query.ranking.documents:
        return True
    first = query.ranking.documents[0].document
    return all(part.scores().get(first, 0.0) >= ANSWERS_ALL * part.best_score for part in parts)


def merged(
    index: Index, whole: RankedQuery, needs: Sequence[RankedQuery]
) -> Iterator[tuple[RankedQuery, RankedDocument]]:
    """The tools for ``needs``, best first, each once, with the need where its score is highest. A tool
    has its score for the whole query where that is higher.
    """
    found = {each.document: each for each in whole.ranking.documents}
    for_whole = whole.scores()
    for_needs: dict[int, list[float]] = {number: [0.0] * len(needs) for number in found}
    for place, need in enumerate(needs):
        weight = STATEMENT_WEIGHT if is_statement(need.text) else 1.0
        for each in need.ranking.documents:
            for_needs.setdefault(each.document, [0.0] * len(needs))[place] = weight * each.score
            if each.document not in found or each.score > found[each.document].score:
                found[each.document] = each
    at_servers = _scores_of_servers(index, for_needs, len(needs))
    fixed = {
        number: WHOLE_WEIGHT * for_whole.get(number, 0.0)
        + SERVER_WEIGHT * at_servers[index.document(number).entry.server]
        for number in found
    }
    for each in whole.ranking.documents[:1]:
        fixed[each.document] += FIRST_BONUS
    weights = [1.0] * len(needs)

    def added(number: int) -> tuple[float, str, int, int]:
        scores = [weight * score for weight, score in zip(weights, for_needs[number], strict=True)]
        most = max(scores)
        return -most - fixed[number], index.document(number).name, scores.index(most), number

    # What a tool adds only ever becomes less, so only the first of the heap has to be computed again.
    heap = [added(number) for number in found]
    heapify(heap)
    while heap:
        then = heappop(heap)
        now = added(then[3])
        if now != then and heap and now > heap[0]:
            heappush(heap, now)
            continue
        _, _, place, number = now
        weights[place] *= NEED_MET
        yield needs[for_needs[number].index(max(for_needs[number]))], found[number]


def _scores_of_servers(index: Index, for_needs: dict[int, list[float]], count: int) -> dict[str, float]:
    """By server: the mean over the needs of the best score of its tools."""
    best: dict[str, list[float]] = {}
    for number, scores in for_needs.items():
        server = index.document(number).entry.server
        known = best.get(server)
        best[server] = list(map(max, known, scores)) if known else scores
    return {server: sum(scores) / count for server, scores in best.items()}
