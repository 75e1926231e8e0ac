"""Measures the effect of the constants of `mcpzip.search`: of each alone, or of random settings of all.

    python -m bench.retrieval.constants FOLDER                 one at a time: the difference in nDCG@10
    python -m bench.retrieval.constants FOLDER --search N      N random settings, five-fold cross-validated

The random search reports, for each fold, the score of the setting that is best on the other four folds, and
the score of the present setting. A constant should be changed only where these differ by more than the folds
do.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from msgspec.structs import replace

from bench.retrieval.dataset import Dataset, read_dataset
from bench.retrieval.metrics import Row, measured, overall
from bench.tables import table
from mcpzip.search import Searcher, analysis, fields, fusion, keyword, needs, query, vocabulary
from mcpzip.search.analysis import FIELD_WEIGHTS
from mcpzip.search.semantic import local_table, tool_vectors

FOLDS = 5


@dataclass(frozen=True)
class Constant:
    """A constant of a module, and values to try. field: the field, for a parameter in `FIELD_WEIGHTS`."""

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
    *(Constant(analysis, "b", (0.2, 0.5, 0.9), field) for field in FIELD_WEIGHTS),
    Constant(analysis, "SATURATION", (0.6, 0.9, 1.5, 2.0)),
    Constant(fields, "DESCRIPTION_WORDS", (20, 40, 60, 200, 1000)),
    Constant(fields, "PARAMETER_WORDS", (0, 6, 12, 40)),
    Constant(keyword, "VERB_BONUS", (0.0, 0.1, 0.3)),
    Constant(keyword, "CONTRADICTION_PENALTY", (0.0, 0.1, 0.25)),
    Constant(keyword, "NAME_BONUS", (0.0, 0.1, 0.3)),
    Constant(keyword, "SERVER_BONUS", (0.0, 0.05, 0.2)),
    Constant(needs, "MIN_NEED_SCORE", (0.15, 0.2, 0.22)),
    Constant(needs, "ANSWERS_ALL", (0.35, 0.7)),
    Constant(needs, "NEED_MET", (0.5, 0.8)),
    Constant(needs, "WHOLE_WEIGHT", (0.1, 0.3)),
    Constant(needs, "FIRST_BONUS", (0.0, 0.1, 0.2)),
    Constant(needs, "SERVER_WEIGHT", (0.0, 0.4)),
    Constant(query, "CORRECTED_WEIGHT", (0.7, 0.8, 0.9, 1.0)),
    Constant(query, "TRANSLATED_WEIGHT", (0.5, 0.7, 1.0)),
    Constant(vocabulary, "MIN_CORRECTED_LENGTH", (3, 5, 99)),
    Constant(vocabulary, "TWO_EDITS_LENGTH", (6, 8, 99)),
    Constant(vocabulary, "MIN_PREFIX_LENGTH", (4, 99)),
    Constant(vocabulary, "MIN_PART_LENGTH", (2, 4, 99)),
    Constant(vocabulary, "MAX_ALTERNATIVES", (1, 2, 5)),
    Constant(tool_vectors, "NAME_WEIGHT", (0.0, 0.5, 2.0)),
    Constant(tool_vectors, "SERVER_WEIGHT", (0.0, 0.5, 2.0)),
    Constant(tool_vectors, "DESCRIPTION_WEIGHT", (0.0, 0.5, 2.0)),
    Constant(tool_vectors, "SUMMARY_WEIGHT", (0.0, 0.5, 2.0)),
    Constant(tool_vectors, "PARAMETERS_WEIGHT", (0.0, 0.1, 0.6)),
    Constant(fusion, "KEYWORD_WEIGHT", (0.0, 0.2, 0.3, 0.5, 0.6, 1.0)),
    Constant(fusion, "SERVER_PART", (0.0, 0.02, 0.06)),
    Constant(fusion, "VERB_AGREES", (0.0, 0.005, 0.02)),
    Constant(fusion, "VERB_CONTRADICTS", (0.0, -0.01, -0.03)),
    Constant(fusion, "NAME_IN_QUERY", (0.0, -0.01, -0.03)),
    Constant(fusion, "POOL", (16, 32, 128)),
)
"""The values of a field's weight are factors of the present one; all others are absolute."""

Setting = dict[Constant, float]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.retrieval.constants", description=__doc__.split("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--search", type=int, metavar="N", help="try N random settings")
    options = parser.parse_args()
    dataset = read_dataset(options.folder)
    print(_random_search(dataset, options.search) if options.search else _one_at_a_time(dataset))


def _one_at_a_time(dataset: Dataset) -> str:
    base = overall(_run(dataset, {})).ndcg
    lines = [["unchanged", "", f"{base:.4f}", ""]]
    for constant in CONSTANTS:
        for value in constant.values:
            absolute = _absolute(constant, value)
            found = overall(_run(dataset, {constant: absolute})).ndcg
            lines.append([constant.label, f"{absolute:g}", f"{found:.4f}", f"{found - base:+.4f}"])
            print(*lines[-1], sep="\t", flush=True)
    return "\n" + table(["constant", "value", "nDCG@10", "difference"], lines)


def _random_search(dataset: Dataset, count: int) -> str:
    rng = random.Random(11)
    settings: list[Setting] = [{}]
    for _ in range(count):
        choices = {
            constant: [constant.present, *(_absolute(constant, v) for v in constant.values)]
            for constant in CONSTANTS
        }
        settings.append({constant: rng.choice(values) for constant, values in choices.items()})
    runs = [_run(dataset, setting) for setting in settings]
    fold = {row.id: i % FOLDS for i, row in enumerate(rng.sample(runs[0], len(runs[0])))}

    def score(run: Sequence[Row], folds: set[int]) -> float:
        return overall([row for row in run if fold[row.id] in folds]).ndcg

    lines = []
    for held_out in range(FOLDS):
        others = set(range(FOLDS)) - {held_out}
        best = max(runs, key=lambda run: score(run, others))
        scores = score(best, others), score(best, {held_out}), score(runs[0], {held_out})
        lines.append([str(held_out), *(f"{each:.4f}" for each in scores)])
    report = table(["fold", "best on the others", "the same, on it", "unchanged, on it"], lines)
    means: dict[str, list[float]] = defaultdict(list)
    for setting, run in zip(settings[1:], runs[1:], strict=True):
        for constant, value in setting.items():
            means[f"{constant.label} {value:g}"].append(overall(run).ndcg)
    rows = [
        [name, str(len(values)), f"{sum(values) / len(values):.4f}"] for name, values in sorted(means.items())
    ]
    return report + "\n\n" + table(["constant and value", "settings", "mean nDCG@10"], rows)


def _absolute(constant: Constant, value: float) -> float:
    return value * constant.present if constant.name == "weight" else value


def _run(dataset: Dataset, setting: Setting) -> list[Row]:
    with _patched(setting):
        searcher = Searcher(local_table())
        searcher.index(dataset.entries, "1")
        return measured(searcher, dataset.queries)


@contextmanager
def _patched(setting: Setting) -> Iterator[None]:
    weights = dict(FIELD_WEIGHTS)
    with ExitStack() as stack:
        for constant, value in setting.items():
            if constant.field:
                weights[constant.field] = replace(weights[constant.field], **{constant.name: value})
            else:
                value = int(value) if isinstance(getattr(constant.module, constant.name), int) else value
                stack.enter_context(patch.object(constant.module, constant.name, value))
        stack.enter_context(patch.object(analysis, "FIELD_WEIGHTS", weights))
        yield


if __name__ == "__main__":
    main()
