"""Objects and arrays are stepped through as a parser reads them, and no further than was asked for."""

import json
import tracemalloc

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpzip.model.limits import MEMBERS, MiB
from mcpzip.wire import NotAnObject, split_object, with_members
from mcpzip.wire.json_iter import TooManyError, elements_of, has_more_elements, members_of
from mcpzip.wire.json_object import without_members

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
space = st.text(" \t\r\n", max_size=2)


@st.composite
def spelt(draw: st.DrawFn, made: st.SearchStrategy[object]) -> tuple[object, bytes]:
    """A value and a text of it, with space where there may be some."""
    value = draw(made)
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), separators=(", ", " : "))
    return value, (draw(space) + text + draw(space)).encode("utf-8", "surrogatepass")


@given(spelt(st.lists(values)))
def test_elements_are_those_of_the_array(one: tuple[list[object], bytes]):
    expected, raw = one
    assert [json.loads(element) for element in elements_of(raw, len(expected) or 1)] == expected
    assert all(element in raw for element in elements_of(raw, 1000))
    assert not has_more_elements(raw, len(expected))
    if expected:
        assert has_more_elements(raw, len(expected) - 1)
        with pytest.raises(TooManyError):
            elements_of(raw.replace(b"[", b"[0,", 1), len(expected))


@given(spelt(st.dictionaries(st.text(), values)))
def test_members_stand_where_they_are_said_to(one: tuple[dict[str, object], bytes]):
    expected, raw = one
    found = list(members_of(raw, len(expected)))
    assert {member.key: json.loads(raw[member.value : member.end]) for member in found} == expected
    assert all(json.loads(raw[it.start : it.value].rstrip().rstrip(b":")) == it.key for it in found)
    if expected:
        with pytest.raises(TooManyError):
            list(members_of(raw, len(expected) - 1))


@given(st.binary(max_size=40) | spelt(values).map(lambda one: one[1]), st.integers(0, 40))
@example(b'{"a":1}}', 40)
@example(b'{"a":1,}', 40)
@example(b'{"a" 1}', 40)
@example(b"[1,,2]", 40)
@example(b"[1] x", 40)
@example(b'["\\ud800"]', 40)
def test_what_a_parser_refuses_is_refused(raw: bytes, length: int):
    raw = raw[:length]
    for read, shape in ((lambda: list(members_of(raw, 99)), dict), (lambda: elements_of(raw, 99), list)):
        try:
            msgspec.json.decode(raw, type=shape[str, msgspec.Raw] if shape is dict else list[msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError):
            with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
                read()
        else:
            read()


@given(st.dictionaries(st.text(), values, min_size=1), st.data())
def test_the_same_comes_of_an_object_of_many_colons(fields: dict[str, object], data: st.DataObject):
    raw = json.dumps({**fields, "colons": ":" * 2 * MEMBERS}).encode()
    assert {key: json.loads(value) for key, value in split_object(raw).items()} == json.loads(raw)
    key = data.draw(st.sampled_from(sorted(fields)))
    assert json.loads(with_members(raw, {key: b"7"})) == {**json.loads(raw), key: 7}
    assert json.loads(without_members(raw, [key])) == {k: v for k, v in json.loads(raw).items() if k != key}


def test_a_message_of_millions_of_members_is_not_made_into_values():
    """64 MiB of them took 7 s and 1.6 GB."""
    raw = b"{%b}" % b",".join(b'"%x":0' % number for number in range(1_000_000))
    tracemalloc.start()
    try:
        for read in (split_object, lambda raw: with_members(raw, {"1": b"2"})):
            with pytest.raises(NotAnObject, match="more than 1,024 members"):
                read(raw)
        assert tracemalloc.get_traced_memory()[1] < 4 * MiB
    finally:
        tracemalloc.stop()
