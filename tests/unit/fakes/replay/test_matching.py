"""Which recorded request a new one is, and what distinguishes two."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_fakes.replay.differences import MOST, differences, fits, told
from mcpzip_fakes.replay.matching import Matcher, recorded
from mcpzip_fakes.replay.messages import read

from mcpzip.cassettes.cassette import Exchange, Match
from mcpzip.wire.canonical_json import decoded

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def request(params: object, method: str = "tools/call") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def found(
    present: object, *were: object, ignore: tuple[str, ...] = (), method: str = "tools/call"
) -> list[int]:
    """The numbers of the recorded requests that ``present`` is."""
    every = recorded([Exchange(request=request(params, method)) for params in were])
    return [
        each.number for each in Matcher(every, Match(ignore=ignore)).found(read(request(present, method)))
    ]


def reordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(each) for each in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=3), st.data())
def test_the_order_of_keys_whitespace_and_meta_do_not_count(
    params: dict[str, Any], data: st.DataObject
) -> None:
    spaced = json.dumps(
        {"id": "x", "params": reordered({**params, "_meta": {"progressToken": 5}}), "method": "tools/call"},
        indent=data.draw(st.integers(0, 3)),
    )
    every = recorded([Exchange(request=request({**params, "_meta": 1}))])
    assert Matcher(every, Match()).found(read(spaced.encode())) == every


@given(JSON, JSON)
def test_values_fit_if_they_are_equal(one: object, other: object) -> None:
    pair = [decoded(json.dumps(each).encode()) for each in (one, other)]
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert fits(*pair) == same
    assert bool(differences(pair[0], pair[1], "params")) != same


@pytest.mark.parametrize(
    ("ignore", "same"),
    [
        ((), False),
        (("arguments.now",), True),
        (("arguments.*",), True),
        (("pay:arguments.now",), True),
        (("other:arguments.now",), False),
        (("arguments.now.deeper",), False),
        (("arguments",), True),
    ],
)
def test_ignored_paths(ignore: tuple[str, ...], same: bool) -> None:
    one, other = ({"name": "pay", "arguments": {"now": now}} for now in (1, 2))
    assert found(one, other, ignore=ignore) == ([1] if same else [])


def test_ignored_paths_go_through_lists() -> None:
    one, other = ({"arguments": {"rows": [{"id": n, "x": 1}, {"id": n + 1}]}} for n in (1, 7))
    assert found(one, other, ignore=("arguments.rows.*.id",)) == [1]
    assert found(one, other, ignore=("arguments.rows.0.id",)) == []


def test_a_missing_value_is_ignored_too() -> None:
    assert found({"arguments": {}}, {"arguments": {"now": 1}}, ignore=("arguments.now",)) == [1]


@pytest.mark.parametrize(
    ("mask", "present", "same"),
    [
        ("[masked 1]", "anything", True),
        ("[masked 1]", 7, True),
        ("Bearer [masked 12]", "Bearer abc", True),
        ("Bearer [masked 1]", "Basic abc", False),
        ("a[masked 1]b[masked 2]c", "a-b-c", True),
        ("a[masked 1]b[masked 2]c", "a-c-b", False),
        ("ab[masked 1]bc", "abc", False),
        ("[masked x]", "anything", False),
        ("[masked 1", "anything", False),
    ],
)
def test_a_masked_secret_stands_for_any(mask: str, present: object, same: bool) -> None:
    assert found({"arguments": {"token": present}}, {"arguments": {"token": mask}}) == ([1] if same else [])


def test_a_missing_value_is_no_secret() -> None:
    assert found({"arguments": {}}, {"arguments": {"token": "[masked 1]"}}) == []


def test_the_exact_request_is_nearer_than_a_masked_one() -> None:
    assert found({"token": "abc"}, {"token": "[masked 1]"}, {"token": "abc"}) == [2]


def test_greetings_match_by_method_and_prefer_the_version() -> None:
    were = [{"protocolVersion": version} for version in ("2025-06-18", "2025-11-25")]
    assert found({"protocolVersion": "2025-11-25", "x": 1}, *were, method="initialize") == [2]
    assert found({"protocolVersion": "2024-11-05"}, *were, method="initialize") == [1, 2]


def test_numbers_and_texts_differ() -> None:
    assert found({"arguments": {"id": "7"}}, {"arguments": {"id": 7}}) == []


def test_differences_are_bounded_and_never_a_control_sequence() -> None:
    one, other = (
        decoded(json.dumps({f"\x1b[{n}m": mark * 9999 for n in range(50)}).encode()) for mark in "ab"
    )
    text = told(differences(one, other, "params"))
    assert len(text) < 400 * MOST
    assert text.endswith(f"and {50 - MOST} differences more")
    assert "\x1b" not in text


def test_what_is_missing_is_told() -> None:
    one, other = decoded(b'{"a":1,"l":[1,2]}'), decoded(b'{"b":null,"l":[1]}')
    assert told(differences(one, other, "params")) == (
        "    params.a\n      - 1\n      + nothing\n"
        "    params.l[1]\n      - 2\n      + nothing\n"
        "    params.b\n      - nothing\n      + null"
    )
