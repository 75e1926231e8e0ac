"""What a part of the search is worth: each is really left out, and the rest is as it was."""

from unittest.mock import patch

import pytest

from bench.retrieval.ablation import PARTS, Part, report, without
from bench.retrieval.alike import made, queries
from bench.retrieval.dataset import Dataset
from bench.retrieval.metrics import Row, Scores, difference
from mcpzip.search.semantic import local_table

ENTRIES, REQUESTS = made()
FEW = Dataset(tuple(ENTRIES[:400]), tuple(queries(REQUESTS)[:8]))


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.label)
def test_all_that_is_left_out_is_there(part: Part) -> None:
    for target, name, value in part.changes:
        with patch.object(target, name, value):  # raises where there is no such attribute
            assert getattr(target, name) == value


def test_a_search_without_a_part_finds_other_tools_and_then_the_same_again() -> None:
    table = local_table()
    whole = without(FEW, (), table)
    assert without(FEW, (), None) != whole
    assert without(FEW, PARTS[0].changes, table) != whole
    assert without(FEW, (), table) == whole


def test_the_report_has_a_line_for_the_whole_and_for_each_part() -> None:
    lines = report(FEW).splitlines()
    assert len(lines) == 2 + 1 + 1 + len(PARTS)
    assert [part.label for part in PARTS] == [line.split("|")[1].strip() for line in lines[4:]]


def test_a_difference_is_that_of_the_same_queries() -> None:
    rows = [Row(str(n), "step", Scores(0, 0, 0, n / 10, 0, 0)) for n in range(10)]
    before = {row.id: Scores(0, 0, 0, row.scores.ndcg - 0.1, 0, 0) for row in rows[:5]}
    gain, low, high = difference(rows, before)
    assert (round(gain, 9), round(low, 9), round(high, 9)) == (0.1, 0.1, 0.1)
