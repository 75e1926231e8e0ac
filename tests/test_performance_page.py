"""docs/performance.md and its plots agree with docs/performance.json."""

import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bench.suite.figures import ROWS, Figure, Results, Shown, read
from bench.suite.plots import every_plot

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "tools" / "performance.py"))


def by_hand() -> dict[str, Any]:
    return tomllib.loads((ROOT / "bench" / "performance.toml").read_text("utf-8"))


def test_the_page_is_up_to_date(tool: dict[str, Any]) -> None:
    results = read((ROOT / "docs" / "performance.json").read_bytes())
    current = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert current.count("<!-- measured: ") == current.count("<!-- end of measured -->") == 9
    assert current == tool["page"](results, by_hand()), "run: python tools/performance.py"


def test_the_plots_are_up_to_date() -> None:
    results = read((ROOT / "docs" / "performance.json").read_bytes())
    files = (ROOT / "docs" / "pictures" / "performance").glob("*.svg")
    assert {file.stem: file.read_text("utf-8") for file in files} == every_plot(results)


def test_reasons_and_budgets_are_of_rows_that_exist() -> None:
    keys = {row.key for row in ROWS}
    written = by_hand()
    assert set(written["why"]) <= keys
    assert {budget["row"] for budget in written["budget"]} <= keys


def test_a_missing_reason_is_asked_for(tool: dict[str, Any]) -> None:
    subjects = tuple(Shown(key, key, "", "", peer=key == "peer") for key in ("mcpzip", "peer"))
    figures = Figure("search", "mcpzip", values=(2.0,)), Figure("search", "peer", values=(1.0,))
    found = Results({}, subjects, figures)
    with pytest.raises(SystemExit, match="why a peer is better: search-500"):
        tool["better"](found, {})
    assert "2.0 times better" in tool["better"](found, {"search-500": "It is written in assembler."})
