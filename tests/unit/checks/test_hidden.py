"""Characters that hide text: which are found, which belong to their script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.checks.finding import INVISIBLE, excerpt, visible
from mcpzip.checks.hidden import hidden_text, may_hide

FLAG = "\U0001f3f4" + "".join(chr(0xE0000 + ord(char)) for char in "gbeng") + "\U000e007f"


def found(text: str, *, name: bool = False) -> list[tuple[str, str]]:
    return [(hit.check, hit.severity) for hit in hidden_text(text, name=name)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\U000e0041b", [("hidden.tags", "hard")]),
        (FLAG + "\U000e0041", [("hidden.tags", "hard")]),
        ("a\u202eb", [("hidden.bidi", "hard")]),
        ("\u202eשלום", [("hidden.bidi", "risky")]),
        ("\u2066abc\u2069", [("hidden.bidi", "hard")]),
        ("a\u200bb", [("hidden.zero-width", "risky")]),
        ("a\u200bb c\u200bd e\u200bf", [("hidden.zero-width", "hard")]),
        ("a \u200b\u200c\u200b\u200c b", [("hidden.zero-width", "hard")]),
        ("Daten\u00adbank\u00adver\u00adbin\u00addung", [("hidden.zero-width", "risky")]),
        ("x\ufe00\ufe01", [("hidden.variation", "hard")]),
        ("😊\U000e0158", [("hidden.variation", "hard")]),
        ("\ue000\ue001\ue002\ue003", [("hidden.private-use", "hard")]),
        ("\uf8ff", [("hidden.private-use", "note")]),
        ("\x1b[8mno", [("hidden.control", "hard")]),
        ("see" + " " * 300 + "also", [("hidden.blank", "risky")]),
        ("see" + "\n" * 50 + "also", [("hidden.blank", "risky")]),
    ],
)
def test_hidden_text_is_found(text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        FLAG,
        "👩🏽\u200d💻 ❤\ufe0f ☎\ufe0e 1\ufe0f\u20e3",
        "\u200fשלום\u200f (a)",
        "\u2068report.pdf\u2069 שלום",
        "فایل\u200cها",
        "ശ്രീ\u200dലങ്ക क्\u200dष",
        "葛\U000e0100",
        "Line\r\n\tnext",
        "\ufeffa text with a byte order mark",
        "a word\u200b and another",
        "trailing" + " " * 300,
    ],
)
def test_what_a_script_needs_is_no_finding(text: str) -> None:
    assert found(text) == []


def test_nothing_invisible_belongs_in_a_name() -> None:
    assert found("ci\u200bty", name=True) == [("hidden.zero-width", "hard")]
    assert found("city\u200b", name=True) == [("hidden.zero-width", "hard")]


@given(st.text(alphabet=st.sampled_from("a \n\u200b\u200d\ufe0f\u202e\U000e0041\ue000\x1bא👩")))
def test_a_text_is_searched_exactly_if_something_can_be_found(text: str) -> None:
    assert may_hide(text) or found(text) == []


@given(st.text(), st.integers(0, 50), st.integers(0, 50))
def test_an_excerpt_is_one_short_line_without_invisible_characters(text: str, start: int, end: int) -> None:
    shown = excerpt(text, start, end)
    assert len(shown) <= 160
    assert "\n" not in shown
    assert visible(shown) == shown


def test_invisible_characters_are_shown_by_their_code_points() -> None:
    assert visible("a\u200bb\U000e0041") == "a<U+200B>b<U+E0041>"
    assert "\u200b" not in INVISIBLE.replace("\u200b-", "")
