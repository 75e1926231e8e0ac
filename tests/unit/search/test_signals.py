"""Signals move what fits about as well, and nothing else."""

import pytest
from helpers.search_tools import found, names, searcher, tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search.signals import FAILING_FACTOR, MAX_USAGE_BONUS, NO_SIGNALS, STALE_FACTOR, Signals

ALIKE = searcher(
    *(tool(server, "send_note", f"Send a note ({server})") for server in ("alpha", "beta", "gamma"))
)


def first(**signals: object) -> list[str]:
    return names(ALIKE.search("a note to send off", 3, signals=Signals(**signals)))


def test_without_signals_ties_go_by_name() -> None:
    assert found(ALIKE, "a note to send off") == ["alpha__send_note", "beta__send_note", "gamma__send_note"]


def test_what_was_used_rises() -> None:
    assert first(uses={"gamma__send_note": 2.0})[0] == "gamma__send_note"
    assert first(uses={"gamma__send_note": 2.0, "beta__send_note": 9.0})[:2] == [
        "beta__send_note",
        "gamma__send_note",
    ]


def test_a_boost_is_what_the_config_says() -> None:
    assert first(boosts={"beta": 1.5})[0] == "beta__send_note"
    assert first(boosts={"alpha": 0.5})[-1] == "alpha__send_note"


def test_a_server_in_trouble_sinks() -> None:
    assert first(failing=frozenset({"alpha"}))[-1] == "alpha__send_note"
    assert first(stale=frozenset({"alpha"}))[-1] == "alpha__send_note"
    assert first(failing=frozenset({"alpha"}), stale=frozenset({"beta"})) == [
        "gamma__send_note",
        "beta__send_note",
        "alpha__send_note",
    ]


def test_use_does_not_put_a_tool_before_one_that_fits_better() -> None:
    made = searcher(tool("s", "delete_note", "Delete a note"), tool("s", "send_note", "Send a note"))
    much = Signals(uses={"s__delete_note": 1e9})
    for query in ("send a note", "send_note", "send the note to her"):
        assert names(made.search(query, 1, signals=much)) == ["s__send_note"]


def test_no_signal_puts_a_tool_before_one_called_what_is_asked() -> None:
    made = searcher(tool("a", "send_note"), tool("b", "post", "Send a note, send a note"))
    moved = Signals({"b": 100.0, "a": 0.01}, {"b__post": 1e9}, frozenset({"a"}), frozenset({"a"}))
    for query in ("a__send_note", "send_note", "send note", "a send"):
        hits = made.search(query, 2, signals=moved).hits
        assert hits[0].entry.name == "a__send_note", query
        assert all(0 <= hit.score <= 1 for hit in hits)


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_more_use_is_never_less_and_ends_somewhere(one: float, other: float) -> None:
    low, high = sorted((one, other))
    factors = [Signals(uses={"s__t": uses}).factor("s", "s__t") for uses in (low, high)]
    assert 1 <= factors[0] <= factors[1] <= 1 + MAX_USAGE_BONUS


def test_a_factor_is_the_product_of_its_parts() -> None:
    signals = Signals({"s": 2.0}, {"s__t": 3.0}, frozenset({"s"}), frozenset({"s", "r"}))
    parts = signals.factors("s", "s__t")
    assert [reason for reason, _ in parts] == ["boost", "used before", "failing"]
    assert signals.factor("s", "s__t") == pytest.approx(2.0 * (1 + MAX_USAGE_BONUS / 2) * FAILING_FACTOR)
    assert signals.factor("r", "r__t") == STALE_FACTOR
    assert NO_SIGNALS.factor("s", "s__t") == 1.0


def test_a_hit_says_what_moved_it() -> None:
    results = ALIKE.search("note", 3, signals=Signals(boosts={"beta": 1.5}, stale=frozenset({"beta"})))
    moved = {hit.entry.server: hit.moved for hit in results.hits}
    assert moved == {"alpha": (), "gamma": (), "beta": (("boost", 1.5), ("stale", STALE_FACTOR))}
