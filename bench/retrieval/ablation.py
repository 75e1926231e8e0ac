"""What each part of the search is worth: the quality without it, and the paired difference to the whole.

    python -m bench.retrieval.ablation FOLDER

A part is left out of the search, not of the table of word vectors: that was learned together with the layer
that queries pass, so another table would do better without the layer than this one.
"""

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from bench.retrieval.dataset import Dataset, read_dataset
from bench.retrieval.metrics import Row, Scores, by_kind, difference, measured, overall
from bench.tables import table
from mcpzip.search import Searcher, fusion, keyword, needs, query, searcher
from mcpzip.search.english_words import EnglishWords
from mcpzip.search.semantic import local_table
from mcpzip.search.semantic.table import Table
from mcpzip.search.vocabulary import Vocabulary

LEAST = 0.005  # of nDCG@10: a smaller difference of a kind of request is not named

Change = tuple[object, str, object]
"""A module or a class, the name of an attribute, and the value that it has instead."""


@dataclass(frozen=True)
class Part:
    """A part of the search, and what leaves it out."""

    label: str
    changes: tuple[Change, ...]


def _constants(module: object, *names: str) -> tuple[Change, ...]:
    """All of them 0."""
    return tuple((module, name, 0.0) for name in names)


_NO_ENGLISH: Change = (EnglishWords, "nearest", lambda words, word: None)
PARTS = (
    Part("the layer that queries pass", ((Table, "query_vector", lambda of, words: of.embed_words(words)),)),
    Part(
        "the scores of words (exact names still come first)",
        _constants(fusion, "KEYWORD_WEIGHT", "_RELATIVE_WEIGHT"),
    ),
    Part("a higher weight of words in long queries", ((fusion, "_keyword_trust", lambda plan: 0.0),)),
    Part("names of servers", _constants(fusion, "SERVER_BONUS", "SERVER_SIMILARITY", "SERVER_PART")),
    Part(
        "verbs",
        _constants(fusion, "VERB_AGREES", "VERB_CONTRADICTS")
        + _constants(keyword, "VERB_BONUS", "CONTRADICTION_PENALTY"),
    ),
    Part("the penalty for a name that is in the query", _constants(fusion, "NAME_IN_QUERY")),
    Part("spelling correction", (_NO_ENGLISH, (Vocabulary, "correct", lambda words, word: None))),
    Part("… to words that no tool has", (_NO_ENGLISH,)),
    Part("addresses and ids left out", ((query, "without_values", lambda text, is_known: text),)),
    Part("several needs", ((searcher, "find_needs", lambda whole, rank: []),)),
    Part("… files that are written", ((needs, "written_files", lambda text: ()),)),
)


def without(dataset: Dataset, changes: Sequence[Change], words: Table | None) -> list[Row]:
    """The scores of every query with these changes. words: the table of word vectors; None: words alone."""
    with ExitStack() as stack:
        for target, name, value in changes:
            stack.enter_context(patch.object(target, name, value))
        engine = Searcher(words)
        engine.index(dataset.entries, "1")
        return measured(engine, dataset.queries)


def report(dataset: Dataset) -> str:
    """A table: a line a part."""
    words = local_table()
    whole = without(dataset, (), words)
    before = {row.id: row.scores for row in whole}
    lines = [["the whole search", *_figures(overall(whole)), "", "", ""]]
    for label, changes, vectors in [
        ("word vectors: words alone", (), None),
        *((part.label, part.changes, words) for part in PARTS),
    ]:
        rows = without(dataset, changes, vectors)
        lost, low, high = difference(rows, before)
        kinds = [
            f"{kind} {change:+.3f}"
            for kind, same in by_kind(rows).items()
            if abs(change := _mean(same) - _mean([row for row in whole if row.kind == kind])) >= LEAST
        ]
        interval = f"{low:+.3f} to {high:+.3f}"
        lines.append([label, *_figures(overall(rows)), f"{lost:+.4f}", interval, ", ".join(kinds)])
    return table(["without", "R@1", "R@5", "nDCG@10", "difference", "95 %", "nDCG@10 by kind"], lines)


def _figures(scores: Scores) -> list[str]:
    return [f"{value:.3f}" for value in (scores.recall_1, scores.recall_5, scores.ndcg)]


def _mean(rows: Sequence[Row]) -> float:
    return Scores.mean([row.scores for row in rows]).ndcg


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.retrieval.ablation", description=__doc__.split("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    dataset = read_dataset(options.folder)
    print(f"{len(dataset.entries)} tools, {len(dataset.queries)} queries\n\n{report(dataset)}")


if __name__ == "__main__":
    main()
