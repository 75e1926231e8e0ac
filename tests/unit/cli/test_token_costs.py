"""`mcpzip tokens`: the arithmetic of what was replied so far; its page, into which no server can write."""

import re
from collections.abc import Mapping
from html.parser import HTMLParser

import pytest
from helpers.hostile_texts import writable
from helpers.search_tools import tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.cli import tokens_page
from mcpzip.cli.tokens_page import render
from mcpzip.model import sanitize
from mcpzip.model.entry import Entry
from mcpzip.server.run_file import Run, RunReplies
from mcpzip.server.token_costs import Costs, ReplyCost, SoFar, so_far

SEARCH, DESCRIPTION = ReplyCost(200.0, 0.25), ReplyCost(300.0, 0.3)
VOID = {"meta", "rect", "line", "path", "circle"}


def costs(tools: Mapping[Entry, int], told: SoFar | None = None, unit: str = "tokens") -> Costs:
    return Costs(unit, tools, 200, 100, SEARCH, DESCRIPTION, told)


def run(searches: int = 0, replies: dict[str, RunReplies] | None = None) -> Run:
    more = {"host": "h", "started_at": 0.0, "config": "c", "project": "", "address": "", "clients": ()}
    return Run(version="1", pid=1, searches=searches, servers=(), replies=replies or {}, **more)


def test_the_replies_of_all_processes_are_added() -> None:
    busy = run(3, {"search_tools": RunReplies(3, 2_000), "describe_tool": RunReplies(1, 1_000)})
    found = so_far([busy, run(), busy], SEARCH, DESCRIPTION)
    assert found == SoFar(2, 6, 2, 6_000, 2 * (500 + 300), 0)
    assert so_far([run()], SEARCH, DESCRIPTION) is None


def test_searches_of_a_version_that_does_not_measure_count_as_the_mean() -> None:
    found = so_far([run(4)], SEARCH, DESCRIPTION)
    assert found == SoFar(1, 4, 0, 0, 800, 4)
    told = costs({tool("s", "a"): 5_000}, found).so_far_sentences()
    assert "The bytes of 4 searches are not known; these count as the mean." in told


def test_what_was_saved_is_what_the_lists_would_cost_more_less_the_replies() -> None:
    found = costs({tool("s", "a"): 5_000}, SoFar(2, 6, 2, 6_000, 1_600, 0))
    assert found.saved == 2 * (5_000 - 300) - 1_600
    assert found.break_even == 24
    assert "2 conversations that have them all in context, mcpzip saves 7,800 tokens." in " ".join(
        found.so_far_sentences()
    )
    few = costs({tool("s", "a"): 50}, SoFar(1, 1, 0, 800, 200, 0))
    assert (few.break_even, few.saved) == (0, -450)
    assert "mcpzip costs 450 tokens more than it saves." in few.so_far_sentences()[-1]


# --- the page -----------------------------------------------------------------------------------------------


class Outline(HTMLParser):
    """The elements of a page with their attributes, and its texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


markup = st.sampled_from(
    ["<b>", "</td>", "<script>", "&amp;", '"', "'", "<!--", "]]>", "</style>", "&#0;", "a"]
)
texts = st.one_of(
    writable,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.lists(markup, max_size=4).map("".join),
)


@given(texts.filter(bool), texts, texts)
def test_no_text_of_a_server_becomes_markup(name: str, description: str, unit: str) -> None:
    def page(*words: str) -> Outline:
        return Outline(render(costs({tool("s", words[0], words[1]): 700}, unit=words[2])))

    hostile_page, plain = page(name, description, unit), page("n", "d", "u")
    assert [tag for tag, _ in hostile_page.tags] == [tag for tag, _ in plain.tags]
    ours = {attributes for _, attributes in plain.tags if dict(attributes).get("datetime") is None}
    others = {attributes for _, attributes in hostile_page.tags if dict(attributes).get("datetime") is None}
    assert others == ours
    for text in hostile_page.texts:
        assert sanitize.lines(text) == text
    render(costs({tool("s", name, description): 700}, unit=unit)).encode()


def test_the_page_refers_to_nothing_outside() -> None:
    page = render(costs({tool(server, "a", "Do it"): 700 for server in ("s", "t")}))
    assert not re.search(r"(?:src|href)=|url\(|@import|//", page.replace("<!doctype html>", ""))
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert '<html lang="en">' in page


def test_a_page_of_very_many_tools_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_page, "_MOST_TOOLS", 3)
    tools = {tool(server, f"t{n}"): 9 for server in ("a", "b", "c") for n in range(2)}
    page = render(costs(tools))
    assert page.count('<tr><th scope="row">') == 3 + 3
    assert "3 of 6 tools are listed" in page


@pytest.mark.parametrize("tokens", [0, 1, 299, 10**9])
def test_every_catalog_has_a_chart(tokens: int) -> None:
    assert "<figure>" in render(costs({tool("s", "a"): tokens}))
