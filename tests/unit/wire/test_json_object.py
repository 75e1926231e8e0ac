import json

import pytest
from helpers.json_texts import objects, patient, spread_objects, strings, values
from hypothesis import example, given
from hypothesis import strategies as st

from mcpzip.wire import (
    NotAnObject,
    is_json,
    join_object,
    json_object,
    quote,
    split_object,
    unquote,
    with_members,
    without_members,
)
from mcpzip.wire.json_object import check_utf8, members, scan, without_surrogates

Pairs = list[tuple[str, object]]


def pairs(text: bytes) -> Pairs:
    """What stands at the top level, in order, a key that stands twice twice; numbers by their spelling."""
    found: list[Pairs] = [[]]

    def keep(items: Pairs) -> Pairs:
        found[0] = items
        return items

    json.loads(text, parse_int=str, parse_float=str, object_pairs_hook=keep)
    return found[0]


def meaning(text: bytes) -> object:
    return json.loads(text, parse_int=str, parse_float=str, object_pairs_hook=list)


@patient
@given(objects | spread_objects)
def test_split_gives_every_value_as_it_stands(text: bytes) -> None:
    fields = split_object(text)
    assert {key: meaning(value) for key, value in fields.items()} == dict(pairs(text))
    assert list(fields) == list(dict(pairs(text)))
    assert all(value in text for value in fields.values())


@patient
@given(st.dictionaries(st.text(st.characters()), values))
@example({chr(0xD800): b"1", chr(0xD801): b"2"})
@example({'"': b"1e400", "\\": b'"\\ud800"'})
def test_split_undoes_join(fields: dict[str, bytes]) -> None:
    assert split_object(join_object(fields)) == fields
    assert list(split_object(join_object(fields))) == list(fields)


@patient
@given(objects | spread_objects)
def test_members_are_where_they_say(text: bytes) -> None:
    found = members(text)
    assert [(member.key, meaning(text[member.value : member.end])) for member in found] == pairs(text)
    assert all(text[member.start : member.start + 1] == b'"' for member in found)
    assert list(scan(text, {})) == found


@patient
@given(objects | spread_objects, st.integers(0, 200))
def test_torn_text_is_read_as_far_as_it_goes(text: bytes, place: int) -> None:
    torn = text[: place % (len(text) + 1)]
    whole = members(text)
    found = list(scan(torn, {}))
    finished = [member for member in found if member.end >= 0]
    assert finished == whole[: len(finished)]
    assert len(found) <= len(finished) + 1


@patient
@given(
    objects | spread_objects, st.dictionaries(st.sampled_from(["a", "b", "_meta", "new", "\ud800"]), values)
)
def test_with_members_sets_these_and_leaves_the_rest(text: bytes, fields: dict[str, bytes]) -> None:
    changed = with_members(text, fields)
    before = pairs(text)
    kept = [(key, meaning(fields[key]) if key in fields else value) for key, value in before]
    new = [(key, meaning(value)) for key, value in fields.items() if key not in dict(before)]
    assert pairs(changed) == kept + new
    assert all(split_object(changed)[key] == value for key, value in fields.items())
    others = {key: value for key, value in split_object(text).items() if key not in fields}
    assert {key: value for key, value in split_object(changed).items() if key not in fields} == others


@pytest.mark.parametrize(
    ("torn", "ends"),
    [
        (b"", []),
        (b"{", []),
        (b'{"a', []),
        (b'{"a"', []),
        (b'{"a":', [-1]),
        (b'{"a":"', [-1]),
        (b'{"a":"b', [-1]),
        (b'{"a":"b\\"', [-1]),
        (b'{"a":"b\\', [-1]),
        (b'{"a":"b"', [8]),
        (b'{"a":1', [-1]),
        (b'{"a":12,', [7]),
        (b'{"a":tr', [-1]),
        (b'{"a":[1,{"b":"]', [-1]),
        (b'{"a":[1,{"b":"]"}]', [18]),
        (b'{"a":1,"a', [6]),
        (b'{"a":1 x', [6]),
        (b'{"a":1}, "b":2}', [6]),
        (b'{"a":1,"\\q":2', [6]),
    ],
)
def test_torn_texts(torn: bytes, ends: list[int]) -> None:
    assert [member.end for member in scan(torn, {})] == ends


@patient
@given(objects | spread_objects)
def test_with_what_stands_there_changes_nothing(text: bytes) -> None:
    standing = pairs(text)
    once = {
        key: value for key, value in split_object(text).items() if [k for k, _ in standing].count(key) == 1
    }
    assert with_members(text, once) == text
    assert with_members(text, {}) == text
    assert without_members(text, ()) == text


@patient
@given(objects | spread_objects, st.sets(st.sampled_from(["a", "b", "_meta", "\ud800", ""])))
def test_without_members_leaves_the_rest(text: bytes, gone: set[str]) -> None:
    changed = without_members(text, gone)
    assert pairs(changed) == [(key, value) for key, value in pairs(text) if key not in gone]
    assert split_object(changed) == {
        key: value for key, value in split_object(text).items() if key not in gone
    }


@patient
@given(objects.filter(lambda text: not {"new", "newer"} & set(split_object(text))))
def test_without_undoes_with_to_the_byte(text: bytes) -> None:
    if split_object(text):
        assert without_members(with_members(text, {"new": b"1", "newer": b"[2]"}), ("new", "newer")) == text


@pytest.mark.parametrize(
    ("text", "fields", "changed"),
    [
        (b"{}", {"a": b"1"}, b'{"a":1}'),
        (b" { } ", {"a": b"1"}, b' {"a":1 } '),
        (b'{ "a" : 1.0 , "b":2}', {"a": b"3"}, b'{ "a" : 3 , "b":2}'),
        (b'{"a":1 }', {"b": b"2"}, b'{"a":1,"b":2 }'),
        (b'{"a":1,"a":2}', {"a": b"3"}, b'{"a":3,"a":3}'),
        (b'{"a":12,"a":1}', {"b": b"3"}, b'{"a":12,"a":1,"b":3}'),
        (b'{"\\u0061":1}', {"a": b"2"}, b'{"\\u0061":2}'),
        (b'{"x":"}","a":{"a":1}}', {"a": b"2"}, b'{"x":"}","a":2}'),
    ],
)
def test_with_members(text: bytes, fields: dict[str, bytes], changed: bytes) -> None:
    assert with_members(text, fields) == changed


@pytest.mark.parametrize(
    ("text", "keys", "changed"),
    [
        (b'{"a":1,"b":2,"c":3}', ("b",), b'{"a":1,"c":3}'),
        (b'{ "a":1, "b":2, "c":3 }', ("a",), b'{ "b":2, "c":3 }'),
        (b'{ "a":1, "b":2, "c":3 }', ("c",), b'{ "a":1, "b":2 }'),
        (b'{ "a":1, "b":2, "c":3 }', ("a", "c"), b'{ "b":2 }'),
        (b'{ "a":1 }', ("a",), b"{}"),
        (b'{"a":1,"b":2,"a":3}', ("a",), b'{"b":2}'),
        (b'{ "a":1 }', ("b",), b'{ "a":1 }'),
    ],
)
def test_without_members(text: bytes, keys: tuple[str, ...], changed: bytes) -> None:
    assert without_members(text, keys) == changed


TOO_DEEP = 1_000_000
NO_OBJECTS = [
    b"",
    b"null",
    b"[]",
    b'"{}"',
    b"{",
    b"{}{}",
    b'{"a":1,}',
    b'{"a":NaN}',
    b'{"a":01}',
    b'{"a":"\xff"}',
    b'{"\xff":1}',
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\\ud800}',
    b'{"a":"\\ud8zz"}',
    b'{"a":"\\ud800"',
    b'{"a":' + b"[" * TOO_DEEP + b"]" * TOO_DEEP + b"}",
    b'{"\\ud800":' + b"[" * TOO_DEEP + b"]" * TOO_DEEP + b"}",
]


@pytest.mark.parametrize("text", NO_OBJECTS, ids=lambda text: repr(text[:20]))
def test_what_is_no_object_is_said_to_be_none(text: bytes) -> None:
    with pytest.raises(NotAnObject):
        split_object(text)
    with pytest.raises(NotAnObject):
        members(text)
    with pytest.raises(NotAnObject):
        with_members(text, {"a": b"1"})
    with pytest.raises(NotAnObject):
        without_members(text, ("a",))


@patient
@given(
    st.binary()
    | st.lists(st.sampled_from([b"{", b"}", b'"', b"\\", b"a", b":", b",", b"\xff", b"[", b"]"])).map(
        b"".join
    )
)
def test_any_bytes_are_an_object_or_are_not(text: bytes) -> None:
    try:
        expected = json.loads(
            text.decode(), parse_int=str, parse_float=str, parse_constant=lambda name: 1 / 0
        )
    except (ValueError, ZeroDivisionError):
        expected = None
    if isinstance(expected, dict):
        assert set(split_object(text)) == set(expected)
    else:
        with pytest.raises(NotAnObject):
            split_object(text)
    assert all(member.end <= len(text) for member in scan(text, {}))


@patient
@given(st.text(st.characters()))
@example("\ud800")
@example("\udfff\ud800 \U0010ffff\x00\x7f\u2028")
def test_unquote_undoes_quote(text: str) -> None:
    quoted = quote(text)
    assert unquote(quoted) == json.loads(quoted) == json.loads(json.dumps(text))
    assert b"\n" not in quoted
    quoted.decode()


@patient
@given(strings)
def test_unquote_reads_every_spelling(text: bytes) -> None:
    assert unquote(text) == json.loads(text)


@pytest.mark.parametrize("text", [b"", b'"', b"1", b"[]", b'"\\"', b'"\\x"', b'"\xff"', b"[" * TOO_DEEP])
def test_unquote_refuses_what_is_no_string(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        unquote(text)


@pytest.mark.parametrize(
    ("text", "answer"),
    [(b"1", True), (b'"\\ud800"', True), (b'"\\\\ud8"', True), (b"01", False), (b'"\\ud8"', False)],
)
def test_is_json(text: bytes, answer: bool) -> None:
    assert is_json(text) is answer


@patient
@given(objects | spread_objects, st.integers(6, 40))
def test_long_texts_are_read_in_stretches(text: bytes, stretch: int) -> None:
    whole, fields = without_surrogates(text), split_object(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_object, "_CHUNK", stretch)
        assert without_surrogates(text) == whole
        assert split_object(text) == fields
        check_utf8(text)


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98"])
def test_what_is_not_utf8_is_found_in_any_stretch(bad: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_object, "_CHUNK", 8)
        for at in range(20):
            text = "é".encode() * at + bad
            with pytest.raises(UnicodeDecodeError):
                check_utf8(text + b"x" * (20 - at))
            with pytest.raises(UnicodeDecodeError):
                check_utf8(text)
