"""Canonical JSON: what is the same, what isn't, and whose digests can't be taken for another's."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.surface import Item
from mcpzip.pins.digests import item_digest, raw_digest, server_digest
from mcpzip.wire.canonical_json import canonical

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text()
values = st.recursive(scalars, lambda of: st.lists(of) | st.dictionaries(st.text(), of), max_leaves=20)


def shuffled(value: Any, order: random.Random) -> Any:
    """``value`` with the members of its objects in another order."""
    if isinstance(value, dict):
        members = list(value.items())
        order.shuffle(members)
        return {key: shuffled(member, order) for key, member in members}
    return [shuffled(each, order) for each in value] if isinstance(value, list) else value


def text(value: Any, **how: Any) -> bytes:
    return json.dumps(value, **how).encode("utf-8", "surrogatepass")


@given(values, st.randoms(use_true_random=False), st.booleans())
def test_order_whitespace_and_escapes_make_no_difference(
    value: Any, order: random.Random, plain: bool
) -> None:
    compact = text(value, separators=(",", ":"), ensure_ascii=False)
    other = text(shuffled(value, order), indent=2, ensure_ascii=plain)
    assert canonical(compact) == canonical(other)
    assert canonical(canonical(compact)) == canonical(compact)
    assert json.loads(canonical(compact)) == value


@given(values, values)
def test_other_values_have_other_forms(one: Any, other: Any) -> None:
    equal = text(one, sort_keys=True) == text(other, sort_keys=True)
    assert (canonical(text(one)) == canonical(text(other))) == equal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"1", b"1.0"),
        (b"1", b"1e0"),
        (b"1.0", b"1e0"),
        (b"-0", b"0"),
        (b'"1"', b"1"),
        (b"100000000000000000000", b"1e20"),
        (b"18446744073709551616", b"18446744073709551617"),
        (b'{"a":1,"a":2}', b'{"a":2}'),
        (b'{"a":1,"a":2}', b'{"a":2,"a":1}'),
        (b'{"a":1, "a":1}', b'{"a":1}'),
        (b"[]", b"{}"),
        (b"null", b'"null"'),
        ('"é"'.encode(), '"e\u0301"'.encode()),
        (b'"\\ud800"', b'"\\ud801"'),
    ],
)
def test_what_a_reader_may_take_for_something_else_differs(one: bytes, other: bytes) -> None:
    assert canonical(one) != canonical(other)


def test_keys_are_in_the_order_of_utf_16() -> None:
    """RFC 8785, 3.2.3: a key beyond U+FFFF begins with a surrogate, which comes before U+E000."""
    assert canonical('{"\ufb33":1,"\U0001f600":2,"\\r":3,"1":4}'.encode()) == (
        '{"\\r":3,"1":4,"\U0001f600":2,"\ufb33":1}'.encode()
    )


@pytest.mark.parametrize("broken", [b"", b"{", b"\xff", b'{"a":}', b"[" * 100_000])
def test_what_is_no_json_is_its_own_form(broken: bytes) -> None:
    assert canonical(broken) == broken


def test_digests_of_different_things_differ() -> None:
    body = b'{"name":"a"}'
    items = [
        Item("tool", "a", body),
        Item("prompt", "a", body),
        Item("tool", "b", body),
        Item("tool", "a" + "\0", body),
        Item("tool", "", b"a" + body),
        Item("tool", "a", body + b"1"),
    ]
    digests = [item_digest(item) for item in items]
    all_of_them = server_digest("a", digests)
    assert len({*digests, all_of_them, server_digest("b", digests), raw_digest(body)}) == len(items) + 3
    assert server_digest("a", digests[::-1]) == all_of_them
