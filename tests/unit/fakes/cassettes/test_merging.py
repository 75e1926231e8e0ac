"""Several cassettes as one."""

import pytest
from helpers.cassette_maker import asked, cassette, opened, shop
from mcpzip_fakes.cassettes.merging import Part, merge

from mcpzip.cassettes.cassette import Check, Masked, Match
from mcpzip.cassettes.files import CassetteError


def secret(number: int) -> Masked:
    return Masked(mask=f"[masked {number}]", where="request 1: params.token", why="by name")


def test_sessions_are_numbered_anew() -> None:
    one, two = cassette(*shop(1), *shop(4)), cassette(*shop(4))
    whole, _, left_out = merge([Part("a", one, {}), Part("b", two, {})])
    assert [each.number for each in whole.sessions] == [1, 2, 3]
    assert [each.session for each in whole.exchanges] == [1] * 5 + [2] * 5 + [3] * 5
    assert left_out == 0


def test_masks_are_numbered_anew() -> None:
    one = cassette(asked(1, "ping", {"token": "[masked 2]"}, result={}), masked=(secret(2),))
    two = cassette(
        asked(1, "ping", {"token": "[masked 2]", "other": "[masked 5] [masked 9]"}, result={}),
        masked=(secret(5), secret(2)),
    )
    whole, _, _ = merge([Part("a", one, {}), Part("b", two, {})])
    assert [each.mask for each in whole.masked] == ["[masked 1]", "[masked 3]", "[masked 2]"]
    assert b'"token":"[masked 1]"' in whole.exchanges[0].request
    assert b'{"token":"[masked 2]","other":"[masked 3] [masked 9]"}' in whole.exchanges[1].request


def test_what_was_answered_the_same_way_is_there_once() -> None:
    again = asked(9, "tools/call", {"arguments": {}, "name": "look"}, result={"content": []})
    one = cassette(*shop())
    other = cassette(*shop(1), *opened({"protocolVersion": "2025-11-25"}, 2), asked(9, "ping", session=2))
    whole, _, left_out = merge([Part("a", one, {}), Part("b", one, {})], once=True)
    assert (len(whole.exchanges), left_out) == (5, 5)
    assert [each.number for each in whole.sessions] == [1]
    whole, _, left_out = merge([Part("a", one, {}), Part("b", other, {})], once=True)
    assert [each.session for each in whole.exchanges] == [1] * 5 + [3] * 3
    whole, _, left_out = merge([Part("a", one, {}), Part("b", cassette(again), {})], once=True)
    assert (len(whole.exchanges), left_out) == (6, 0)


def test_settings_are_those_of_all() -> None:
    one = cassette(match=Match(ignore=("a",)), check=Check(call=("pay",)))
    two = cassette(match=Match(ignore=("b", "a"), repeat=False), check=Check(shape=True))
    whole, more, _ = merge([Part("a", one, {"era": "legacy"}), Part("b", two, {"faults": ["crash"]})])
    assert whole.match == Match(ignore=("a", "b"), repeat=False)
    assert whole.check == Check(call=("pay",), shape=True)
    assert more == {"era": "legacy", "faults": ["crash"]}


def test_cassettes_that_dont_fit_together_are_refused() -> None:
    with pytest.raises(CassetteError, match="merge cassettes of one transport"):
        merge([Part("a", cassette(), {}), Part("b", cassette(transport="http"), {})])
    with pytest.raises(CassetteError, match="b: era: it differs from that of a; make both the same"):
        merge([Part("a", cassette(), {"era": "legacy"}), Part("b", cassette(), {"era": "modern"})])
