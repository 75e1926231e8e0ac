"""`mcpzip tokens --html`: a page in which no text of a server is markup."""

import json
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.cli.token_report import SoFar, TokenReport, break_even, page, so_far
from mcpzip.model.entry import Entry

NOTHING = SoFar(0, 0, 0, 0)


def report(*names: tuple[str, str], now: SoFar = NOTHING) -> TokenReport:
    costs = {
        Entry.parse(server, json.dumps({"name": tool}).encode()): 10 * number
        for number, (server, tool) in enumerate(names, 1)
    }
    return TokenReport("tokens", costs, listed=5, instructions=2, search=4.0, so_far=now)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[str] = []
        self._in_cell = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._in_cell = tag == "td"
        if self._in_cell:
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag != "td"

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.cells[-1] += data


def parsed(html: str) -> _Tags:
    found = _Tags()
    found.feed(html)
    return found


@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40))
def test_no_name_is_markup_or_a_control_character(server: str, tool: str) -> None:
    plain, hostile = page(report(("s", "t"))), page(report((server, tool)))
    assert parsed(hostile).tags == parsed(plain).tags
    assert all(character.isprintable() or character == "\n" for character in hostile)


def test_names_are_shown_as_they_are() -> None:
    html = page(report(("shop", "<script>alert(1)</script>"), ("shop", "pay & go {0}")))
    assert "<script>alert(1)</script>" in parsed(html).cells
    assert "pay & go {0}" in parsed(html).cells
    assert "<script" not in html
    assert "http" not in html.replace("http-equiv", "")


def test_the_sentences() -> None:
    small, large = report(("s", "a")), report(("s", "a"), ("s", "b"), ("t", "c"))
    assert large.servers == [("s", 2, 30), ("t", 1, 30)]
    assert (large.everything, large.ours) == (60, 7)
    assert "fewer than 13 searches" in break_even(large)
    assert "fewer than 1 searches" in break_even(small)
    assert "costs more than it saves" in break_even(
        TokenReport("tokens", small.costs, 10, 0, 4.0, small.so_far)
    )
    assert so_far(small) == ""
    assert so_far(report(("s", "a"), now=SoFar(2, 1, 3, 1234))) == (
        "So far, in the agents that run now (2): 1 search and 3 descriptions, "
        "whose replies took about 1,234 tokens."
    )
