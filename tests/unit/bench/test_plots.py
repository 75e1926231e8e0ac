"""The SVG plots of `python -m bench`."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from bench.suite.figures import SIZES, Figure, Results, Row, Shown, growth_rows
from bench.suite.plots import Axis, every_plot, growth_plots, row_plot

SUBJECTS = (
    Shown("mcpzip", "mcpzip `--no-daemon`", "1", "ours", peer=False),
    Shown("peer", "Peer & <sons>", "2", "theirs", peer=True),
)


def results(*figures: Figure) -> Results:
    return Results({}, SUBJECTS, figures)


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def grown() -> Results:
    return results(
        *(
            Figure(quantity, "mcpzip", row.tools, row.servers, (size / 1e6, size / 9e5))
            for quantity in ("search", "searchable")
            for size, row in growth_rows(quantity, "tools").items()
        ),
        *(Figure("search", "peer", size, 10, (size / 1e5,)) for size in SIZES[:2]),
    )


def test_a_plot_says_every_value_and_name_as_text() -> None:
    svg = row_plot(
        results(Figure("search", "mcpzip", values=(0.002,)), Figure("search", "peer", values=(0.5,))),
        Row("search"),
    )
    said = texts(svg)
    assert {"a search, 500 tools", "mcpzip --no-daemon", "2.00", "Peer & <sons>", "500"} <= set(said)


def test_a_plot_needs_no_script_and_has_colours_for_the_dark() -> None:
    svg = row_plot(results(Figure("rate", "mcpzip", values=(9.0, 8.0, 7.0))), Row("rate"))
    assert "prefers-color-scheme:dark" in svg
    assert not re.search(r"<script|onload|href=|url\(", svg)


def test_the_dots_are_in_the_order_of_the_values() -> None:
    svg = row_plot(
        results(Figure("memory", "mcpzip", values=(9e7,)), Figure("memory", "peer", values=(3e7,))),
        Row("memory"),
    )
    first, second = (float(x) for x in re.findall(r'<circle class="mark \w+" cx="([\d.]+)"', svg))
    assert first < second


def test_growth_is_one_plot_a_quantity_with_a_line_a_subject() -> None:
    plots = growth_plots(grown())
    assert set(plots) == {"growth-search-tools", "growth-searchable-tools"}
    ElementTree.fromstring(plots["growth-search-tools"])
    assert plots["growth-search-tools"].count("<polyline") == 1, "the peer isn't one whose growth is measured"
    assert {"100k", "106 ms at 100,000"} <= set(texts(plots["growth-search-tools"]))


def test_growth_with_fewer_than_three_sizes_is_not_drawn() -> None:
    assert growth_plots(results(*(Figure("search", "mcpzip", size, 10, (1.0,)) for size in SIZES[:2]))) == {}


def test_only_what_was_measured_is_drawn() -> None:
    assert set(
        every_plot(results(Figure("rate", "peer", 30, 3, (9.0,)), Figure("idle", "peer", why="No.")))
    ) == {"rate"}


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([3.0, 4000.0], [1, 10, 100, 1000, 10_000]),
        ([12.0, 260.0], [10, 20, 50, 100, 200, 500]),
        ([0.0, 4.2], [0, 1, 2, 3, 4, 5]),
        ([-0.1, 0.4], [-0.1, 0, 0.1, 0.2, 0.3, 0.4]),
        ([5.0, 5.0], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_ticks_are_round_and_enclose_the_values(values: list[float], ticks: list[float]) -> None:
    axis = Axis(values, 0, 100)
    assert axis.ticks == pytest.approx(ticks)
    assert axis.at(ticks[0]) == pytest.approx(0)
    assert axis.at(ticks[-1]) == pytest.approx(100)
