"""The difference between two definitions, as a person sees it."""

import json

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.pins.difference import Difference, differences, visible
from mcpzip.wire.canonical_json import canonical

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text()
lookalikes = st.lists(st.sampled_from(["<", "U+", "<U+", "200B", ">", "\u200b", "003C"])).map("".join)
scalars = scalars | lookalikes
values = st.recursive(scalars, lambda of: st.lists(of) | st.dictionaries(st.text(), of), max_leaves=10)


def test_each_field_that_differs() -> None:
    old = b'{"name":"a","annotations":{"readOnlyHint":true},"tags":["x","y"],"n":1.0,"gone":null}'
    new = b'{"name":"a","annotations":{"readOnlyHint":false},"tags":["x","z","w"],"n":1,"empty":{}}'
    assert differences(old, new) == [
        Difference("annotations.readOnlyHint", "true", "false"),
        Difference("tags[1]", "y", "z"),
        Difference("tags[2]", None, "w"),
        Difference("n", "1.0", "1"),
        Difference("empty", None, "{}"),
        Difference("gone", "null", None),
    ]


def test_an_item_that_is_new() -> None:
    assert differences(None, b'{"a b":"x"}') == [Difference('"a b"', None, "x")]
    assert differences(None, b'"x"') == [Difference("", None, "x")]
    assert differences(None, b"{") == [Difference("", None, "{")]


def test_a_string_is_not_taken_for_another_value() -> None:
    assert differences(b'{"a":1,"b":"x","c":[]}', b'{"a":"1","b":"\\"x\\"","c":"[]"}') == [
        Difference("a", "1", '"1"'),
        Difference("b", "x", '"\\"x\\""'),
        Difference("c", "[]", '"[]"'),
    ]


def test_a_key_that_occurs_twice() -> None:
    assert differences(b'{"a":1}', b'{"a":1,"a":2}') == [Difference("a (2)", None, "2")]


def test_characters_that_nobody_sees_are_numbers() -> None:
    text = "a\u200bb\u202ec\U000e0041d\ufe0fe\x1b[0m\u00a0f\ud800"
    assert visible(text) == "a<U+200B>b<U+202E>c<U+E0041>d<U+FE0F>e<U+001B>[0m<U+00A0>f<U+D800>"
    assert visible("Grüße, 文字 and\nlines") == "Grüße, 文字 and\nlines"
    assert visible("a\tb") == "a<U+0009>b"


def test_a_number_that_was_written_is_none_that_is_shown() -> None:
    """A server can change what people take for an invisible character into one, and back."""
    old, new = json.dumps({"a": "x<U+200B>"}).encode(), json.dumps({"a": "x\u200b"}).encode()
    assert differences(old, new) == [Difference("a", "x<U+003C>U+200B>", "x<U+200B>")]
    assert len(differences(b'{"<U+200B>":1}', b'{"\\u200b":1}')) == 2


@given(st.text())
def test_what_is_shown_has_only_characters_that_one_sees(text: str) -> None:
    assert all(sign.isprintable() or sign == "\n" for sign in visible(text))


@given(values, values)
def test_texts_that_differ_have_a_difference(one: object, other: object) -> None:
    before, after = (json.dumps(each).encode() for each in (one, other))
    assert (differences(before, after) == []) == (canonical(before) == canonical(after))
