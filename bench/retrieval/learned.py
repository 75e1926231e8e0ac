"""What learned words gain and cost: simulated use of the tools of a folder.

    python -m bench.retrieval.learned FOLDER

An agent searches, and calls the right tool if it is among the first ten; what `mcpzip.proxy.search_sequences`
learns of that is the memory of the next searches. One request of each tool is learned, drawn anew in each of
`ROUNDS` rounds; the means of a request over the rounds are compared with those without a memory.

    another request for it    other requests for the same tool, unless most of their words are the same
    with fewer words          the learned request, a third of its words left out
    again                     the learned request; also after three uses
    that had failed           a request that did not find the tool among the first five, after the tool was
                              asked for in other words and called
    for other tools           all requests for tools that were never called
    after all others          each request, after the other requests of all tools, its own too
    200 wrong calls           all requests, after 200 requests led to some tool; and the same 200
    200 near misses           the same, to a wrong tool of the first five; also 28 days later
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

from bench.retrieval.dataset import Query, read_dataset
from bench.retrieval.metrics import Row, Scores, evaluate, interval
from bench.tables import table
from mcpzip.proxy.search_sequences import SearchSequences
from mcpzip.search import Results, Searcher
from mcpzip.search.learned_words import LearnedWords
from mcpzip.search.semantic import local_table
from mcpzip.search.signals import Signals

ROUNDS = 8
WRONG = 200
LEARNED_KINDS = ("step", "natural", "paraphrase")
"""Of requests that are learned: others are names of tools, or tasks of several tools."""
MOST_IN_COMMON = 0.6
"""Share of the words of two requests that are the same, from which on they are one request."""

Memory = dict[str, dict[str, float]]
"""By tool, by term: how often it led there."""
Outcome = tuple[Query, Scores, Scores, str, str]
"""A request; its scores without the memory and with it; the quality without and with it."""


class Simulation:
    """The requests of a folder, and what is found for them without a memory."""

    def __init__(self, folder: Path) -> None:
        dataset = read_dataset(folder)
        self.searcher = Searcher(local_table())
        self.searcher.index(dataset.entries, "1")
        self.tools = [entry.name for entry in dataset.entries]
        self.queries = dataset.queries
        self.found = {query.id: self.searcher.search(query.text, 10) for query in dataset.queries}
        self.terms = {
            query.id: frozenset(self.searcher.learnable(self.found[query.id], query.text))
            for query in dataset.queries
        }
        self.of_tool: dict[str, list[Query]] = defaultdict(list)
        for query in dataset.queries:
            if len(query.needs) == 1:
                for name in sorted(query.needs[0]):
                    self.of_tool[name].append(query)

    def called(self, name: str, *texts: str) -> Mapping[str, float]:
        """What is learned if an agent searches for ``texts``, and then calls the tool called ``name``."""
        sequences = SearchSequences(lambda: 0.0)
        for text in texts:
            sequences.searched("agent", text, self.searcher.search(text, 10))
        return sequences.called("agent", name, self.searcher)

    def is_same(self, one: Query, other: Query) -> bool:
        some, others = self.terms[one.id], self.terms[other.id]
        return len(some & others) >= MOST_IN_COMMON * len(some | others)

    def outcome(self, query: Query, memory: Memory, text: str = "") -> Outcome:
        """What the memory does to ``query``, or to the same request as ``text``."""
        before = self.searcher.search(text, 10) if text else self.found[query.id]
        after = self.searcher.search(text or query.text, 10, signals=Signals(words=LearnedWords(memory)))
        scores = [evaluate(query, _names(results)) for results in (before, after)]
        return query, scores[0], scores[1], before.quality, after.quality

    def learned(self, rng: random.Random) -> dict[str, Query]:
        """One request of each tool that has several, which finds it."""
        found: dict[str, Query] = {}
        for name, queries in sorted(self.of_tool.items()):
            good = [
                query
                for query in queries
                if query.kind in LEARNED_KINDS and name in _names(self.found[query.id])
            ]
            if good and len(queries) > 1:
                found[name] = rng.choice(good)
        return found


def _names(results: Results) -> list[str]:
    return [name for hit in results.hits for name in (hit.entry.name, *hit.also)][:10]


def _memory(of_tools: Iterable[tuple[str, Mapping[str, float]]], weight: float = 1.0) -> Memory:
    memory: Memory = {}
    for name, terms in of_tools:
        own = memory.setdefault(name, {})
        for term, count in terms.items():
            own[term] = own.get(term, 0.0) + weight * count
    return memory


def right_calls(simulation: Simulation, seed: int) -> Iterator[tuple[str, Outcome]]:
    """Scenarios, and what comes out of a request in each."""
    rng = random.Random(seed)
    learned = simulation.learned(rng)
    words = {name: simulation.called(name, query.text) for name, query in learned.items()}
    memory, thrice = _memory(words.items()), _memory(words.items(), 3.0)
    known = {query.id for name in learned for query in simulation.of_tool[name]}
    for name, query in learned.items():
        for other in simulation.of_tool[name]:
            if other.kind != "misspelled" and not simulation.is_same(query, other):
                yield "another request for it", simulation.outcome(other, memory)
        kept = [word for word in query.text.split() if rng.random() > 1 / 3]
        yield "with fewer words", simulation.outcome(query, memory, " ".join(kept) or query.text)
        yield "again", simulation.outcome(query, memory)
        yield "again, after three uses", simulation.outcome(query, thrice)
    for query in simulation.queries:
        if query.id not in known:
            yield "for other tools", simulation.outcome(query, memory)


def failed_searches(simulation: Simulation) -> Iterator[tuple[str, Outcome]]:
    """Every pair of requests for a tool of which only the second finds it."""
    for name, queries in sorted(simulation.of_tool.items()):
        own = [query for query in queries if query.kind in LEARNED_KINDS]
        for failed in own:
            if name in _names(simulation.found[failed.id])[:5]:
                continue
            for query in own:
                if name in _names(simulation.found[query.id])[:5] and not simulation.is_same(failed, query):
                    words = simulation.called(name, failed.text, query.text)
                    yield "that had failed", simulation.outcome(failed, {name: dict(words)})


def all_others(simulation: Simulation) -> Iterator[tuple[str, Outcome]]:
    """Each request, after all others that find their tool."""
    calls = []
    for query in simulation.queries:
        right = [name for name in _names(simulation.found[query.id]) if query.relevance.get(name) == 2]
        if query.kind in LEARNED_KINDS and right:
            calls.append((query, right[0], simulation.called(right[0], query.text)))
    for query in simulation.queries:
        others = [(name, terms) for other, name, terms in calls if not simulation.is_same(query, other)]
        yield "after all others", simulation.outcome(query, _memory(others))


def wrong_calls(simulation: Simulation, seed: int) -> Iterator[tuple[str, Outcome]]:
    """Requests after some of them led to wrong tools."""
    rng = random.Random(seed)
    usual = [query for query in simulation.queries if query.kind in LEARNED_KINDS]
    chosen = rng.sample(usual, min(WRONG, len(usual)))
    some, near = [], []
    for query in chosen:
        terms = dict.fromkeys(simulation.terms[query.id], 1.0)
        some.append((rng.choice(simulation.tools), terms))
        wrong = [name for name in _names(simulation.found[query.id])[:5] if name not in query.relevance]
        near.extend([(rng.choice(wrong), terms)] if wrong else [])
    ids = {query.id for query in chosen}
    memories = (
        ("200 wrong calls", _memory(some)),
        ("200 near misses", _memory(near)),
        ("200 near misses, 28 days later", _memory(near, 0.25)),
    )
    for label, memory in memories:
        for query in simulation.queries:
            same = ": the same" if query.id in ids else ": other requests"
            yield label + same, simulation.outcome(query, memory)


def report(outcomes: Iterable[tuple[str, Outcome]]) -> str:
    """A table of scenarios: means without and with the memory, and the interval of the paired difference."""
    by_scenario: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for scenario, outcome in outcomes:
        by_scenario[scenario][outcome[0].id].append(outcome)
    lines = []
    for scenario, by_query in by_scenario.items():
        before, after, difference = [], [], []
        for same in by_query.values():
            query = same[0][0]
            means = [Scores.mean([outcome[place] for outcome in same]) for place in (1, 2)]
            before.append(means[0])
            after.append(means[1])
            change = [now - then for then, now in zip(astuple(means[0]), astuple(means[1]), strict=True)]
            difference.append(Row(query.id, query.kind, Scores(*change)))
        then, now = Scores.mean(before), Scores.mean(after)
        cells = [
            f"{getattr(then, name):.3f} → {getattr(now, name):.3f}"
            for name in ("recall_1", "recall_5", "ndcg")
        ]
        lines.append([scenario, str(len(by_query)), *cells, _interval(difference, lambda one: one.recall_1)])
        lines[-1].append(_interval(difference, lambda one: one.ndcg))
    head = ["requests", "n", "R@1", "R@5", "nDCG@10", "R@1, 95 %", "nDCG@10, 95 %"]
    return table(head, lines)


def _interval(rows: Sequence[Row], of: Callable[[Scores], float]) -> str:
    low, high = interval(rows, lambda drawn: sum(of(row.scores) for row in drawn) / len(drawn))
    return f"{low:+.3f} to {high:+.3f}"


def calibration(outcomes: Sequence[tuple[str, Outcome]]) -> str:
    """A table: how often the first tool is right, by the word of the status line."""
    lines = []
    for quality in ("strong", "fair", "weak"):
        cells = []
        for place in (0, 1):
            right = [outcome[1 + place].recall_1 for _, outcome in outcomes if outcome[3 + place] == quality]
            cells.append(f"{sum(right) / len(right):.3f} of {len(right)}" if right else "")
        lines.append([quality, *cells])
    return table(["quality", "R@1 without", "R@1 with it"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.retrieval.learned", description=__doc__.split("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    simulation = Simulation(parser.parse_args().folder)
    rounds = range(ROUNDS)
    right = [each for seed in rounds for each in right_calls(simulation, seed)]
    others = [*failed_searches(simulation), *all_others(simulation)]
    wrong = [each for seed in rounds for each in wrong_calls(simulation, seed)]
    print(report([*right, *others, *wrong]))
    kinds = ("another request for it", "with fewer words", "for other tools")
    print("\n" + calibration([each for each in right if each[0] in kinds]))


if __name__ == "__main__":
    main()
