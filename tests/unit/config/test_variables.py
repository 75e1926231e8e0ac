"""``${NAME}`` is replaced; every other dollar stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config.variables import expand, foreign

ENV = {"TOKEN": "s3cret", "EMPTY": "", "A1_b": "x", "NESTED": "${TOKEN}"}


@pytest.mark.parametrize(
    ("text", "expanded", "unset"),
    [
        ("plain", "plain", ()),
        ("${TOKEN}", "s3cret", ()),
        ("Bearer ${TOKEN}!${A1_b}", "Bearer s3cret!x", ()),
        ("${EMPTY}", "", ()),
        ("${EMPTY:-d}", "d", ()),
        ("${NONE:-d}", "d", ()),
        ("${NONE:-}", "", ()),
        ("${NONE:-https://x/y?z=1:-2}", "https://x/y?z=1:-2", ()),
        ("${TOKEN:-d}", "s3cret", ()),
        ("a${NONE}b${NONE}c${OTHER}", "abc", ("NONE", "OTHER")),
        ("$${TOKEN}", "${TOKEN}", ()),
        ("$${NONE}", "${NONE}", ()),
        ("$$${TOKEN}", "$${TOKEN}", ()),
        ("${NESTED}", "${TOKEN}", ()),
        ("$TOKEN $1 $$ ${} ${1} ${a-b} ${TOKEN", "$TOKEN $1 $$ ${} ${1} ${a-b} ${TOKEN", ()),
        ("${X%.*} ${env:TOKEN}", "${X%.*} ${env:TOKEN}", ()),
    ],
)
def test_a_variable_is_replaced(text, expanded, unset):
    assert expand(text, ENV) == (expanded, unset)


@given(st.text("${}:-AB", max_size=12))
def test_a_text_without_a_variable_is_left_as_it_is(text):
    expanded, unset = expand(text, {})
    if "${A" not in text and "${B" not in text:
        assert (expanded, unset) == (text, ())


@given(st.text(max_size=20))
def test_a_value_goes_in_as_it_is(value):
    assert expand("<${X}>", {"X": value}) == (f"<{value}>", ())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("${env:HOME}/x", "${env:HOME}"),
        ("${input:key}", "${input:key}"),
        ("${HOME}", None),
        ("${X:-env:}", None),
    ],
)
def test_other_programs_references_are_noticed(text, found):
    assert foreign(text) == found
