"""Text of others on its way to a terminal: what is left of it is obeyed by nobody and hides nothing."""

import json
import unicodedata

import pytest
from helpers.hostile_texts import hostile, writable
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.limits import SHOWN_LINE, SHOWN_MARKS, SHOWN_TEXT, SHOWN_WORDS
from mcpzip.model.sanitize import json_text, lines, one_line

odd = st.text(st.characters(categories=["Cc", "Cf", "Cs", "Mn", "Lo", "Zs"]))
anything = st.one_of(hostile, st.text(max_size=40), odd)
values = st.recursive(
    writable | st.text() | st.integers() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(writable, inner),
    max_leaves=8,
)


def acts(text: str, kept: str = "") -> list[str]:
    """The characters of ``text`` that a terminal may obey, or that hide or reorder others."""
    return [sign for sign in text if not sign.isprintable() and sign not in kept + "\u200c\u200d"]


@given(anything)
def test_nothing_that_acts_is_left(text):
    assert acts(lines(text), "\n\t") == []
    assert acts(one_line(text)) == []
    assert {unicodedata.category(sign) for sign in acts(json_text(text), "\n\t")} <= {"Zs"}


@given(anything)
def test_what_is_harmless_stays_as_it_is(text):
    for made in (lines, one_line, json_text):
        assert made(made(text)) == made(text)


@given(values)
def test_json_means_the_same(value):
    for text in (json.dumps(value, ensure_ascii=False), json.dumps(value, ensure_ascii=False, indent=2)):
        assert json.loads(json_text(text)) == value


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, with ünïcode, 日本語 and 👍🏽", "plain, with ünïcode, 日本語 and 👍🏽"),
        ("two\nlines\r\nof\ttext", "two\nlines\nof\ttext"),
        ("\x1b]52;c;cGF5\x1b\\", "\\x1b]52;c;cGF5\\x1b\\"),
        ("\x9b31m\x07\x08\r\x7f", "\\x9b31m\\x07\\x08\\r\\x7f"),
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("a\u2028b\u2029c\u200bd\ufeff", "a\\u2028b\\u2029c\\u200bd\\ufeff"),
        ("hi\U000e0041\ud800", "hi\\U000e0041\\ud800"),
        ("نمی\u200cخواهم 👩\u200d💻", "نمی\u200cخواهم 👩\u200d💻"),
        ("pay\u200dment \u200c", "pay\\u200dment \\u200c"),
        ("a\xa0b\u3000c", "a b c"),
    ],
)
def test_what_acts_is_shown_as_its_escape(text, shown):
    assert lines(text) == shown


def test_a_name_is_on_one_line():
    assert one_line("slack\nevil: connected\t9") == "slack evil: connected 9"


def test_marks_are_counted_and_the_rest_left_out():
    assert lines("a" + "\u0301" * 500 + "b") == "a" + "\u0301" * SHOWN_MARKS + "…b"
    assert lines("e\u0301te\u0301") == "e\u0301te\u0301"


def test_what_is_too_long_is_cut_and_said_to_be():
    assert lines("x" * (SHOWN_LINE + 5) + "\ny") == "x" * SHOWN_LINE + "… (5 more characters)\ny"
    text = "x\n" * (SHOWN_TEXT // 2)
    assert lines(text) == text
    assert lines(text + "more") == text + "… (4 more characters)"
    assert len(one_line("n" * 10_000_000)) == SHOWN_WORDS
