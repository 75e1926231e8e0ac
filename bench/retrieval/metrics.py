"""Quality metrics of a ranking.

R@k: the share of a query's needs with a right tool among the first k. nDCG@10: graded, gain 2^relevance − 1
(Järvelin & Kekäläinen, TOIS 2002). MRR@10: the reciprocal rank of the first right tool.

The overall mean is weighted by kind, so that a kind with more queries counts no more.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

from bench.retrieval.dataset import Query
from mcpzip.search import Searcher

WEIGHTS = {
    "step": 0.30,  # one step of a plan, as an agent writes it
    "natural": 0.15,
    "paraphrase": 0.15,  # no word in common with the tool
    "style": 0.13,  # names and phrases in any case and separators
    "misspelled": 0.12,
    "task": 0.10,  # a whole assignment with several needs
    "keyword": 0.05,
}
OTHER_WEIGHT = 0.10  # of other kinds


@dataclass(frozen=True)
class Scores:
    """The metrics of one query, or their means; 0…1."""

    recall_1: float
    recall_5: float
    recall_10: float
    ndcg: float
    mrr: float
    empty: float

    @classmethod
    def mean(cls, rows: Sequence["Scores"], weights: Sequence[float] | None = None) -> "Scores":
        weights = weights or [1.0] * len(rows)
        total = sum(weights)
        return cls(
            *(
                sum(weight * getattr(row, name) for row, weight in zip(rows, weights, strict=True)) / total
                for name in cls.__dataclass_fields__
            )
        )


@dataclass(frozen=True)
class Row:
    """The scores of a query."""

    id: str
    kind: str
    scores: Scores


def evaluate(query: Query, names: Sequence[str]) -> Scores:
    """The metrics of ``names``, best first, as the result of ``query``."""
    gains = [2 ** query.relevance.get(name, 0) - 1 for name in names[:10]]
    ideal = [2**grade - 1 for grade in sorted(query.relevance.values(), reverse=True)[:10]]
    right = [position for position, name in enumerate(names[:10], 1) if query.relevance.get(name) == 2]
    return Scores(
        recall_1=_share_met(query, names[:1]),
        recall_5=_share_met(query, names[:5]),
        recall_10=_share_met(query, names[:10]),
        ndcg=_dcg(gains) / _dcg(ideal),
        mrr=1 / right[0] if right else 0.0,
        empty=0.0 if names else 1.0,
    )


def measured(searcher: Searcher, queries: Sequence[Query]) -> list[Row]:
    """The scores of each query. A tool that is the same on several servers is found under all its names."""
    rows = []
    for query in queries:
        hits = searcher.search(query.text, 10).hits
        names = [name for hit in hits for name in (hit.entry.name, *hit.also)]
        rows.append(Row(query.id, query.kind, evaluate(query, names)))
    return rows


def by_kind(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """``rows`` by kind, in the order of `WEIGHTS`, then alphabetically."""
    kinds = sorted(
        {row.kind for row in rows},
        key=lambda kind: (list(WEIGHTS).index(kind) if kind in WEIGHTS else 99, kind),
    )
    return {kind: [row for row in rows if row.kind == kind] for kind in kinds}


def overall(rows: Sequence[Row]) -> Scores:
    """The weighted mean over kinds."""
    kinds = by_kind(rows)
    means = [Scores.mean([row.scores for row in kinds[kind]]) for kind in kinds]
    return Scores.mean(means, [WEIGHTS.get(kind, OTHER_WEIGHT) for kind in kinds])


def interval(
    rows: Sequence[Row], measure: Callable[[Sequence[Row]], float], rounds: int = 1000
) -> tuple[float, float]:
    """The 95 % bootstrap interval of ``measure``, stratified by kind, with a fixed seed."""
    rng = random.Random(7)
    kinds = by_kind(rows)
    values = sorted(
        measure([row for same in kinds.values() for row in rng.choices(same, k=len(same))])
        for _ in range(rounds)
    )
    return values[int(0.025 * rounds)], values[int(0.975 * rounds) - 1]


def difference(rows: Sequence[Row], before: Mapping[str, Scores]) -> tuple[float, float, float]:
    """The paired difference in overall nDCG@10 to the scores ``before``, by the id of a query, and its 95 %
    interval. Queries without a score before don't count."""
    both = [row for row in rows if row.id in before]

    def gain(drawn: Sequence[Row]) -> float:
        return overall(drawn).ndcg - overall([Row(row.id, row.kind, before[row.id]) for row in drawn]).ndcg

    return (gain(both), *interval(both, gain))


def _share_met(query: Query, names: Sequence[str]) -> float:
    return sum(not need.isdisjoint(names) for need in query.needs) / len(query.needs)


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / log2(position + 1) for position, gain in enumerate(gains, 1))
