"""Recall@k and mean reciprocal rank of a search (pure).

Recall@k of a request is the share of its needs with a right tool among the first k lines of the reply
(C. D. Manning, P. Raghavan, H. Schütze, "Introduction to Information Retrieval", 2008, 8.4: the share of the
relevant documents that are retrieved). The reciprocal rank of a request is 1 / the line of the first right
tool, 0 where none is found (E. M. Voorhees, "The TREC-8 Question Answering Track Report", 1999). Both are
averaged over requests.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcpzip.model.names import split
from mcpzip.search.evaluation.requests import Request

DEPTH = 50
"""Lines of a reply that are looked at."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a search answered a request.

    ranks: of each need, the line of its first right tool, from 1; None if it is not among the first `DEPTH`.
    before: the tools, at most a few, of the lines before the right one, or of the first lines where there is
    none; tools that answer another need of the request are not among them.
    """

    request: Request
    ranks: tuple[int | None, ...]
    before: tuple[str, ...] = ()

    @property
    def rank(self) -> int | None:
        """The line of the first right tool."""
        return min((rank for rank in self.ranks if rank is not None), default=None)

    def recall(self, k: int) -> float:
        """The number of needs with a right tool in the first ``k`` lines, divided by the number of all needs
        (0…1).
        """
        return sum(rank is not None and rank <= k for rank in self.ranks) / len(self.ranks)


@dataclass(frozen=True, slots=True)
class Scores:
    """The means over requests, 0…1. count: of requests. recall: by k. mrr: mean reciprocal rank."""

    count: int
    recall: Mapping[int, float]
    mrr: float


def outcome(request: Request, lines: Sequence[Sequence[str]], named: int = 3) -> Outcome:
    """The outcome of ``request``. lines: the names of the tools of each line of the reply, best first.
    named: tools of ``before`` at most.
    """
    ranks: list[int | None] = []
    for need in request.needs:
        found = (line for line, tools in enumerate(lines[:DEPTH], 1) if not need.isdisjoint(tools))
        ranks.append(next(found, None))
    last = max((rank for rank in ranks if rank is not None), default=0)
    ahead = lines[: DEPTH if None in ranks else last]
    right = set(request.tools)
    before = tuple(tools[0] for tools in ahead if tools and right.isdisjoint(tools))
    return Outcome(request, tuple(ranks), before[:named])


def scores(outcomes: Sequence[Outcome], ks: Iterable[int], weights: Sequence[float] | None = None) -> Scores:
    """The means over ``outcomes``; 0 where there are none. weights: how much each counts; None: the same."""
    weights = [1.0] * len(outcomes) if weights is None else weights
    total = sum(weights) or 1.0
    pairs = list(zip(outcomes, weights, strict=True))
    return Scores(
        len(outcomes),
        {k: sum(weight * one.recall(k) for one, weight in pairs) / total for k in ks},
        sum(weight / one.rank for one, weight in pairs if one.rank is not None) / total,
    )


def by_kind(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """``outcomes`` by the kind of their requests, in the order in which the kinds come."""
    found: dict[str, list[Outcome]] = {}
    for one in outcomes:
        found.setdefault(one.request.kind, []).append(one)
    return found


def by_server(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """``outcomes`` by the servers of the right tools, sorted. One with needs of two servers counts for each,
    with the needs of that server only.
    """
    found: dict[str, list[Outcome]] = {}
    for one in outcomes:
        needs: dict[str, list[int]] = {}
        for number, need in enumerate(one.request.needs):
            for server in {_server(tool) for tool in need}:
                needs.setdefault(server, []).append(number)
        for server, numbers in needs.items():
            own = Request(
                one.request.query, tuple(one.request.needs[number] for number in numbers), one.request.kind
            )
            ranks = tuple(one.ranks[number] for number in numbers)
            found.setdefault(server, []).append(Outcome(own, ranks, one.before))
    return dict(sorted(found.items()))


def _server(tool: str) -> str:
    parts = split(tool)
    return parts[0] if parts else tool
