"""Equal arguments have equal hashes, and no others."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.policy.hashes import arguments_hash, call_hash
from mcpzip.wire.canonical_json import canonical

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def entry(raw: bytes = b'{"name":"t"}', server: str = "s") -> Entry:
    return Entry.parse(server, raw)


@given(st.dictionaries(st.text(), VALUES), st.randoms())
def test_order_spaces_and_escapes_do_not_count(value: dict[str, Any], random: Any) -> None:
    members = list(value.items())
    random.shuffle(members)
    one = json.dumps(value).encode()
    other = json.dumps(dict(members), indent=2, ensure_ascii=True).encode()
    assert arguments_hash(one) == arguments_hash(other)
    assert json.loads(canonical(one)) == value
    assert canonical(canonical(one)) == canonical(one)


@given(VALUES, VALUES)
def test_different_values_have_different_forms(one: Any, other: Any) -> None:
    texts = [json.dumps(each, sort_keys=True) for each in (one, other)]
    forms = [canonical(text.encode()) for text in texts]
    assert (forms[0] == forms[1]) == (texts[0] == texts[1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":1}', b'{"a":1.0}'),
        (b'{"a":100000000000000000000000001}', b'{"a":100000000000000000000000002}'),
        (b'{"a":0.10000000000000000001}', b'{"a":0.1}'),
        (b'{"a":1,"a":2}', b'{"a":2}'),
        (b'{"a":1,"a":2}', b'{"a":2,"a":1}'),
        (b'{"a":"1"}', b'{"a":1}'),
        (b'{"a":null}', b"{}"),
        (b'{"a":"\\ud800"}', b'{"a":"?"}'),
    ],
)
def test_what_a_server_could_tell_apart_is_not_equal(one: bytes, other: bytes) -> None:
    assert arguments_hash(one) != arguments_hash(other)


def test_what_cannot_be_read_is_compared_as_it_is() -> None:
    deep = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert arguments_hash(deep) == arguments_hash(deep)
    assert arguments_hash(deep) != arguments_hash(deep + b" ")


def test_the_hash_of_a_call_has_all_its_parts() -> None:
    hashes = {
        call_hash(entry(), b"{}"),
        call_hash(entry(), b'{"a":1}'),
        call_hash(entry(b'{"name":"t" }'), b"{}"),
        call_hash(entry(b'{"name":"u"}'), b"{}"),
        call_hash(entry(server="s2"), b"{}"),
    }
    assert len(hashes) == 5
    assert call_hash(entry(), b"{ }") in hashes
