"""Requests made from tools, and the metrics of a search."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search.evaluation import (
    KINDS,
    Measures,
    Outcome,
    Request,
    alike,
    by_kind,
    missing_words,
    outcome,
    requests_of,
    says_little,
)


def entry(tool: str, description: str = "", server: str = "s") -> Entry:
    return Entry.parse(server, json.dumps({"name": tool, "description": description}).encode())


SEND = entry("send_message", "Send a Slack message to a channel or a person. Needs a token.")


def test_the_requests_of_a_tool() -> None:
    made = {request.kind: request.query for request in requests_of([SEND], 100)}
    assert made.pop("other verb").split()[0] not in ("send", "message")
    assert made == {
        "name": "send message",
        "misspelled": "send mesasge",
        "description": "a slack to a channel or a person",
    }
    assert all(request.tools == {"s__send_message"} for request in requests_of([SEND], 100))


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=20), st.text(max_size=60)), max_size=8),
    st.integers(1, 20),
)
def test_requests_are_the_same_for_the_same_tools_and_never_empty(
    tools: list[tuple[str, str]], at_most: int
) -> None:
    entries = [entry(name, description) for name, description in tools if name.isprintable()]
    made = requests_of(entries, at_most)
    assert made == requests_of(list(reversed(entries)), at_most) or len(set(entries)) < len(entries)
    assert len(made) < at_most + len(KINDS)
    assert all(request.query.strip() and request.kind in KINDS for request in made)


RANKS = st.lists(st.one_of(st.none(), st.integers(1, 50)), min_size=1, max_size=30)


@given(RANKS, st.integers(1, 50))
def test_measures_are_between_0_and_1_and_in_order(ranks: list[int | None], k: int) -> None:
    found = Measures.of([Outcome(Request("q", frozenset({"a"}), "name"), rank, ()) for rank in ranks], k)
    assert 0 <= found.first <= found.recall <= 1
    assert found.first <= found.mrr <= 1
    assert found.count == len(ranks)


def test_measures_of_known_ranks() -> None:
    request = Request("q", frozenset({"a"}), "name")
    found = Measures.of([Outcome(request, rank, ()) for rank in (1, 2, 4, None)], 3)
    assert (found.first, found.recall, found.mrr) == (0.25, 0.5, pytest.approx((1 + 0.5 + 0.25) / 4))


def test_the_rank_is_that_of_the_first_right_tool_under_any_of_its_names() -> None:
    request = Request("q", frozenset({"b", "z"}), "name")
    assert outcome(request, [("a",), ("c", "b"), ("z",)]) == Outcome(request, 2, ("a",))
    assert outcome(request, [("a",)]) == Outcome(request, None, ("a",))


def test_what_is_wrong_with_a_catalog() -> None:
    twin = entry("send_message", SEND.description, "t")
    other = entry("send_message", "Mail a letter", "u")
    assert [[each.server for each in group] for group in alike([SEND, other, twin])] == [["s", "t"]]
    assert says_little(entry("send_message", "Sends messages"))
    assert says_little(entry("send_message"))
    assert not says_little(SEND)
    assert missing_words(Request("ping my coworkers in the channel", frozenset(), "yours"), SEND) == (
        "ping",
        "coworkers",
    )


def test_kinds_are_in_their_order() -> None:
    outcomes = [Outcome(Request("q", frozenset({"a"}), kind), 1, ()) for kind in ("yours", *reversed(KINDS))]
    assert list(by_kind(outcomes)) == [*KINDS, "yours"]
