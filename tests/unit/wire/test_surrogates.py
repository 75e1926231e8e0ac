"""JSON with lone surrogates is read at memory speed, and comes out as it went in.

A message with very many keys and one lone surrogate once cost 0.33 s a MB on the event loop.
"""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpzip.model.limits import MEMBERS
from mcpzip.wire import envelope, json_object
from mcpzip.wire.envelope import UnreadableError, read
from mcpzip.wire.json_object import NotAnObject, members, split_object
from mcpzip.wire.surrogates import SurrogateMask

LETTERS = st.sampled_from(
    [
        "a",
        "u",
        "\\",
        '"',
        "e",
        "0",
        "\ud800",
        "\ude00",
        "\ud83d",
        "\ud7ff",
        "\ue000",
        "\uf8ff",
        "😀",
        "가",
        "ￜ",
        "\ua000",
    ]
)
TEXTS = st.lists(LETTERS, max_size=6).map("".join)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
EVERY_BLOCK = "\ue000\uf000\uc000\ub000\ua000"


def spelt(value: object, ascii_only: bool) -> bytes:
    text = json.dumps(value, ensure_ascii=ascii_only)
    return "".join(f"\\u{ord(c):04X}" if "\ud800" <= c <= "\udfff" else c for c in text).encode()


def one_by_one(raw: bytes) -> dict[str, bytes]:
    return {member.key: raw[member.value : member.end] for member in members(raw)}


@given(st.dictionaries(TEXTS, VALUES, max_size=5), st.booleans())
@example({"\\ud800": "\ud800"}, True)
@example({"\ud83d\ude00": 1, "x": "\\ue800\ud800"}, False)
@example({"\ue000": "\ud800", "\ud800": EVERY_BLOCK}, True)
def test_an_object_with_surrogates_is_split_as_one_member_after_the_other_would_be(given_members, ascii_only):
    raw = spelt(given_members, ascii_only)
    assert split_object(raw) == one_by_one(raw)


@given(st.text('abc\\u"ud8e0 ', max_size=30), st.booleans())
def test_a_veil_changes_no_length_and_comes_off(text, upper):
    raw = json.dumps(text + "\ud800").encode()
    raw = raw.replace(b"\\ud", b"\\uD") if upper else raw
    veil = SurrogateMask.over(raw)
    assert veil is not None
    assert len(veil.text) == len(raw)
    assert b"\\ud8" not in veil.text
    assert veil.unmask(veil.text) == raw


MANY = b",".join(b'"k%d":1' % number for number in range(50_000))


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many members were read one by one."""
    read_one_by_one: list[int] = []
    original = json_object.scan

    def scan(*given):
        for member in original(*given):
            read_one_by_one.append(1)
            yield member

    monkeypatch.setattr(json_object, "scan", scan)
    monkeypatch.setattr(envelope, "scan", scan)
    return read_one_by_one


def test_very_many_keys_and_one_lone_surrogate_are_not_read_one_by_one(patience):
    raw = b'{"text":"\\ud800",%b}' % MANY
    with pytest.raises(NotAnObject, match="more than 1,024 members"):
        split_object(raw)
    found = read(b'{"jsonrpc":"2.0","id":1,"method":"m","params":%b,%b}' % (raw, MANY))
    assert bytes(found.params) == raw
    assert bytes(found.id) == b"1"
    assert patience == []


def test_where_every_block_of_letters_is_in_use_so_many_are_read_and_no_more(patience):
    few = b'{"text":"\\ud800%b"}' % EVERY_BLOCK.encode()
    assert split_object(few)["text"] == few[8:-1]
    assert bytes(read(b'{"id":1,"method":"m","params":%b}' % few).params) == few
    patience.clear()
    many = b'{"text":"\\ud800%b",%b}' % (EVERY_BLOCK.encode(), MANY)
    with pytest.raises(NotAnObject, match="more than 1,024 members"):
        split_object(many)
    with pytest.raises(UnreadableError, match="too many members"):
        read(many)
    assert len(patience) <= 2 * (MEMBERS + 1)
