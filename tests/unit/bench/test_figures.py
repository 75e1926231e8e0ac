"""The figures of `python -m bench`: statistics, rows, their JSON."""

import pytest

from bench.suite.figures import QUANTITIES, ROWS, Figure, Results, Row, Shown, added, read, text
from bench.suite.probes import probes

MCPZIP = Shown("mcpzip", "mcpzip", "1", "ours", peer=False)
PEER = Shown("peer", "Peer", "2", "theirs", peer=True)


def results(*figures: Figure) -> Results:
    return Results({"date": "2026-01-02"}, (MCPZIP, PEER), figures, ("Other is skipped.",))


def test_the_quartiles_are_those_of_the_values() -> None:
    figure = Figure("search", "mcpzip", values=(5.0, 1.0, 2.0, 4.0, 3.0))
    assert figure.median == 3
    assert figure.quartiles == (2, 4)


def test_of_two_values_the_quartiles_are_the_extremes() -> None:
    assert Figure("search", "mcpzip", values=(7.0, 3.0)).quartiles == (3, 7)


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("search", 0.000234, "0.234"),
        ("search", 0.00234, "2.34"),
        ("search", 0.0234, "23.4"),
        ("search", 2.34567, "2,346"),
        ("memory", 85_400_000, "85.4"),
        ("rate", 12_345.6, "12,346"),
        ("agents-processes", 20, "20"),
        ("idle", 0.0, "0"),
    ],
)
def test_values_are_shown_with_three_digits_in_the_unit(key: str, value: float, shown: str) -> None:
    assert QUANTITIES[key].shown(value) == shown


def test_the_best_comes_first_whichever_way_is_better() -> None:
    found = results(
        Figure("search", "mcpzip", values=(2.0,)),
        Figure("search", "peer", values=(1.0,)),
        Figure("rate", "mcpzip", values=(9.0,)),
        Figure("rate", "peer", values=(5.0,)),
    )
    assert [one.key for one, _ in found.of(Row("search"))] == ["peer", "mcpzip"]
    assert [one.key for one, _ in found.of(Row("rate"))] == ["mcpzip", "peer"]


def test_what_a_proxy_adds_is_its_call_less_the_direct_median() -> None:
    figures = [
        Figure("call-direct", "direct", 30, 3, (1.0, 2.0, 3.0)),
        Figure("call-direct", "peer", 30, 3, (4.0, 6.0)),
        Figure("rate", "peer", 30, 3, (9.0,)),
    ]
    assert added(figures) == [figures[2], Figure("added", "peer", 30, 3, (2.0, 4.0))]


def test_without_the_direct_connection_nothing_is_known_to_be_added() -> None:
    [only] = added([Figure("call-direct", "peer", 30, 3, (4.0,))])
    assert only.values == ()
    assert "direct" in only.why


def test_results_survive_their_file() -> None:
    figures = (
        Figure("search", "mcpzip", 5_000, 10, (0.5, 0.25)),
        Figure("rate", "peer", 30, 3, (), "It ended."),
    )
    before = results(*figures)
    assert read(text(before)) == before


def test_every_row_is_measured_by_a_probe() -> None:
    measured = {
        (quantity.replace("call-direct", "added"), probe.setup.tools, probe.setup.servers)
        for probe in probes()
        for quantity in probe.notes
    }
    assert {(row.quantity, row.tools, row.servers) for row in ROWS} <= measured


def test_rows_have_different_keys() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)
