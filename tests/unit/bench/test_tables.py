"""The Markdown of `python -m bench`."""

from bench.suite.figures import SIZES, Figure, Results, Row, Shown
from bench.suite.tables import better, growth_table, page, section

SUBJECTS = (
    Shown("mcpzip-running", "mcpzip, its daemon runs", "1", "ours", peer=False),
    Shown("mcpzip", "mcpzip", "1", "ours", peer=False),
    Shown("peer", "Peer", "2", "theirs", peer=True),
)
MACHINE = {
    "date": "2026-01-02",
    "processors": 2,
    "processor": "Abacus",
    "memory_gb": 4.2,
    "system": "Linux",
    "load_before": 0.1,
    "load_after": 1.5,
    "seconds": 60,
    "python": "3.11",
    "mcpzip": "1",
    "node": "",
}


def results(*figures: Figure) -> Results:
    return Results(MACHINE, SUBJECTS, figures, ("NCP is skipped: nobody installed it.",))


def test_a_section_has_a_line_a_subject_and_says_why_something_is_missing() -> None:
    found = results(
        Figure("search", "mcpzip", values=(0.002, 0.004, 0.003)), Figure("search", "peer", why="It ended.")
    )
    lines = section(found, (Row("search"), Row("rate", 30, 3))).splitlines()
    assert [cell.strip() for cell in lines[0].split("|")] == ["", "", "a search, 500 tools (ms)", ""]
    assert [cell.strip() for cell in lines[2].split("|")] == ["", "mcpzip", "3.00 (2.50–3.50)", ""]
    assert lines[-1] == "- Peer: a search, 500 tools. It ended."
    assert len(lines) == 5


def test_nothing_measured_is_no_section() -> None:
    assert section(results(Figure("search", "peer", why="It ended.")), (Row("search"),)) == ""


def test_growth_has_a_column_a_size() -> None:
    figures = [Figure("searchable", "mcpzip", size, 10, (size / 1000,)) for size in SIZES[:3]]
    lines = growth_table(results(*figures), "searchable", along="tools").splitlines()
    assert [cell.strip() for cell in lines[2].split("|")[1:-1]] == ["mcpzip", "50.0", "500", "5,000"]
    assert growth_table(results(*figures[:1]), "searchable", along="tools") == ""


def test_a_peer_is_better_if_it_is_so_beyond_the_spread() -> None:
    def beats(ours: tuple[float, ...], theirs: tuple[float, ...], quantity: str = "search") -> bool:
        figures = Figure(quantity, "mcpzip", values=ours), Figure(quantity, "peer", values=theirs)
        return bool(better(results(*figures)))

    assert beats((3.0, 3.1, 3.2), (1.0, 1.1, 1.2))
    assert not beats((3.0, 1.0, 5.0), (2.0, 1.0, 2.5)), "their quartiles overlap"
    assert not beats((1.05, 1.05), (1.0, 1.0)), "less than a tenth"
    assert not beats((1.0, 1.0), (3.0, 3.0))


def test_where_more_is_better_the_greater_wins() -> None:
    row = {"tools": 30, "servers": 3}
    found = better(
        results(Figure("rate", "mcpzip", **row, values=(9.0,)), Figure("rate", "peer", **row, values=(20.0,)))
    )
    assert [(one[0].key, one[3].key) for one in found] == [("rate", "peer")]


def test_a_daemon_that_runs_already_doesnt_hide_that_a_peer_starts_faster() -> None:
    found = better(
        results(
            Figure("initialize", "mcpzip-running", values=(1.0,)),
            Figure("initialize", "mcpzip", values=(9.0,)),
            Figure("initialize", "peer", values=(3.0,)),
        )
    )
    assert [one[0].quantity for one in found] == ["initialize"]


def test_the_page_names_the_machine_the_versions_and_what_was_skipped() -> None:
    text = page(results(Figure("search", "mcpzip", values=(0.002,))))
    for said in ("2026-01-02", "2 processors", "load 0.1", "Python 3.11", "Peer 2", "NCP is skipped"):
        assert said in text
