"""Texts of others in HTML: they are shown, and nothing in them acts."""

import re
from html import unescape

import pytest
from helpers.hostile_texts import hostile
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from mcpzip.model import sanitize
from mcpzip.ui.rendering import from_path_part, path_part, render

MARKUP = st.sampled_from(
    ["<script>", "</p>", "<!--", "&lt;", '"', "'", "{{ 1 }}", "{% x %}", "onload=", "\x00", "<"]
)
TEXTS = st.lists(st.one_of(hostile, MARKUP), max_size=6).map("".join)


def paragraph(text: str) -> str:
    """The page about a problem with this text; its second paragraph as HTML."""
    page = render("problem.html", title="", text=text, root="/r").decode()
    found = re.search(r"<p>(.*)</p>\n<p><a", page, re.DOTALL)
    assert found, page
    return found[1]


@given(TEXTS)
def test_a_text_has_no_markup_and_no_character_that_acts(text: str) -> None:
    html = paragraph(text)
    assert not set(html) & set("<>\"'")
    assert unescape(html).rstrip("\n") == sanitize.lines(text).encode("utf-8", "replace").decode().rstrip(
        "\n"
    )
    assert sanitize.lines(html) == html


@given(TEXTS)
def test_a_title_can_not_end(text: str) -> None:
    page = render("problem.html", title=text, text="", root="").decode()
    assert page.count("</title>") == 1
    assert page.count("<h1>") == 1


def test_what_hides_is_visible() -> None:
    assert paragraph("a\u202eb\u200bc\x1b[2J\U000e0041") == "a\\u202eb\\u200bc\\x1b[2J\\U000e0041"


def test_a_text_is_cut() -> None:
    assert len(paragraph("x" * 1_000_000)) < 4_100


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("problem.html", title="x")


@given(st.text())
def test_a_part_of_a_path_stays_one_part(text: str) -> None:
    assert re.fullmatch(r"[\w.~%-]*", path_part(text), re.ASCII)


NAMES = st.sampled_from([".", "..", "...", "a.b", "a/b", "%2e"])


@given(st.one_of(NAMES, st.text(st.characters(codec="utf-8"))))
def test_no_name_is_a_step_in_a_path(name: str) -> None:
    part = path_part(name)
    assert not set(part) & set("/?#")
    assert part.lower().replace("%2e", ".") not in (".", "..")
    if name not in ("~.", "~.."):  # no server has such a name
        assert from_path_part(part) == name
