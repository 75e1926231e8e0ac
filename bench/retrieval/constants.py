"""What the constants of `mcpzip.search` are worth: each changed alone, or all searched at random.

    python -m bench.retrieval.constants FOLDER                 one at a time: overall nDCG@10 and its
    difference python -m bench.retrieval.constants FOLDER --search N      N random settings, five-fold
    cross-validated

The search reports what the best setting of four folds gets on the fifth, beside what the present one gets
there: only where that differs by more than the folds do is a constant worth changing.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from bench.retrieval.dataset import Dataset, read
from bench.retrieval.metrics import Row, judge, overall
from bench.tables import table
from mcpzip.search import Searcher, analysis, fields, fusion, keyword, query, vocabulary
from mcpzip.search.analysis import FIELD_WEIGHTS, FieldWeight
from mcpzip.search.semantic import local_table, tool_vectors

FOLDS = 5


@dataclass(frozen=True)
class Constant:
    """A constant of a module and values to try. field: where it stands in `FIELD_WEIGHTS`, if there."""

    module: ModuleType
    name: str
    values: tuple[float, ...]
    field: str | None = None

    @property
    def label(self) -> str:
        return f"{self.field} {self.name}" if self.field else self.name

    @property
    def present(self) -> float:
        source = FIELD_WEIGHTS[self.field] if self.field else self.module
        return float(getattr(source, self.name))


CONSTANTS = (
    *(Constant(analysis, "weight", (0.0, 0.5, 2.0), field) for field in FIELD_WEIGHTS),
    *(Constant(analysis, "length", (0.2, 0.5, 0.9), field) for field in FIELD_WEIGHTS),
    Constant(analysis, "SATURATION", (0.6, 0.9, 1.5, 2.0)),
    Constant(fields, "DESCRIPTION_WORDS", (20, 40, 60, 200, 1000)),
    Constant(fields, "PARAMETER_WORDS", (0, 6, 12, 40)),
    Constant(keyword, "VERB", (0.0, 0.1, 0.3)),
    Constant(keyword, "CONTRADICTION", (0.0, 0.1, 0.25)),
    Constant(keyword, "NAME", (0.0, 0.1, 0.3)),
    Constant(keyword, "SERVER", (0.0, 0.05, 0.2)),
    Constant(query, "REPAIRED", (0.7, 0.8, 0.9, 1.0)),
    Constant(query, "TRANSLATED", (0.5, 0.7, 1.0)),
    Constant(vocabulary, "SHORTEST_REPAIRED", (3, 5, 99)),
    Constant(vocabulary, "TWO_MISTAKES_FROM", (6, 8, 99)),
    Constant(vocabulary, "SHORTEST_BEGINNING", (4, 99)),
    Constant(vocabulary, "SHORTEST_PART", (2, 4, 99)),
    Constant(vocabulary, "MOST_ALTERNATIVES", (1, 2, 5)),
    Constant(tool_vectors, "NAME", (0.0, 0.5, 2.0)),
    Constant(tool_vectors, "SERVER", (0.0, 0.5, 2.0)),
    Constant(tool_vectors, "DESCRIPTION", (0.0, 0.5, 2.0)),
    Constant(tool_vectors, "SUMMARY", (0.0, 0.5, 2.0)),
    Constant(tool_vectors, "PARAMETERS", (0.0, 0.1, 0.6)),
    Constant(fusion, "WORDS", (0.0, 0.2, 0.3, 0.5, 0.6, 1.0)),
    Constant(fusion, "POOL", (16, 32, 128)),
)
"""Of a field's weight the values are factors; of everything else they are the values themselves."""

Setting = dict[Constant, float]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.retrieval.constants", description=__doc__.split("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--search", type=int, metavar="N", help="try so many random settings")
    options = parser.parse_args()
    dataset = read(options.folder)
    print(_search(dataset, options.search) if options.search else _one_at_a_time(dataset))


def _one_at_a_time(dataset: Dataset) -> str:
    base = overall(_run(dataset, {})).ndcg
    lines = [["as it is", "", f"{base:.4f}", ""]]
    for constant in CONSTANTS:
        for value in constant.values:
            found = overall(_run(dataset, {constant: _meant(constant, value)})).ndcg
            lines.append(
                [constant.label, f"{_meant(constant, value):g}", f"{found:.4f}", f"{found - base:+.4f}"]
            )
            print(*lines[-1], sep="\t", flush=True)
    return "\n" + table(["constant", "value", "nDCG@10", "difference"], lines)


def _search(dataset: Dataset, count: int) -> str:
    draw = random.Random(11)
    settings: list[Setting] = [{}]
    for _ in range(count):
        choices = {
            constant: [constant.present, *(_meant(constant, v) for v in constant.values)]
            for constant in CONSTANTS
        }
        settings.append({constant: draw.choice(values) for constant, values in choices.items()})
    runs = [_run(dataset, setting) for setting in settings]
    fold = {row.id: place % FOLDS for place, row in enumerate(draw.sample(runs[0], len(runs[0])))}

    def score(run: Sequence[Row], folds: set[int]) -> float:
        return overall([row for row in run if fold[row.id] in folds]).ndcg

    lines = []
    for held in range(FOLDS):
        others = set(range(FOLDS)) - {held}
        best = max(runs, key=lambda run: score(run, others))
        lines.append(
            [
                str(held),
                f"{score(best, others):.4f}",
                f"{score(best, {held}):.4f}",
                f"{score(runs[0], {held}):.4f}",
            ]
        )
    report = table(["fold", "best on the others", "the same, on it", "as it is, on it"], lines)
    means: dict[str, list[float]] = defaultdict(list)
    for setting, run in zip(settings[1:], runs[1:], strict=True):
        for constant, value in setting.items():
            means[f"{constant.label} {value:g}"].append(overall(run).ndcg)
    rows = [
        [name, str(len(values)), f"{sum(values) / len(values):.4f}"] for name, values in sorted(means.items())
    ]
    return report + "\n\n" + table(["constant and value", "settings", "mean nDCG@10"], rows)


def _meant(constant: Constant, value: float) -> float:
    return value * constant.present if constant.name == "weight" else value


def _run(dataset: Dataset, setting: Setting) -> list[Row]:
    with _set(setting):
        searcher = Searcher(local_table())
        searcher.index(dataset.entries, "1")
        answers = ((query, searcher.search(query.text, 10)) for query in dataset.queries)
        return [
            Row(query.id, query.kind, judge(query, [hit.entry.name for hit in results.hits]))
            for query, results in answers
        ]


@contextmanager
def _set(setting: Setting) -> Iterator[None]:
    weights = dict(FIELD_WEIGHTS)
    with ExitStack() as stack:
        for constant, value in setting.items():
            if constant.field:
                weights[constant.field] = _with(weights[constant.field], constant.name, value)
            else:
                value = int(value) if isinstance(getattr(constant.module, constant.name), int) else value
                stack.enter_context(patch.object(constant.module, constant.name, value))
        stack.enter_context(patch.object(analysis, "FIELD_WEIGHTS", weights))
        yield


def _with(field: FieldWeight, name: str, value: float) -> FieldWeight:
    return replace(field, weight=value) if name == "weight" else replace(field, length=value)


if __name__ == "__main__":
    main()
