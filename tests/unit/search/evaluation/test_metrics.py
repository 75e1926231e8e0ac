"""Recall@k and reciprocal ranks, against the definition; which tools look alike."""

import pytest
from helpers.search_tools import tool
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.search.evaluation.lookalikes import (
    missing_words,
    resemblance,
    short_descriptions,
    twins,
    with_description,
)
from mcpzip.search.evaluation.metrics import DEPTH, by_kind, by_server, outcome, scores
from mcpzip.search.evaluation.requests import Request

TOOLS = tuple("abcdefgh")
needs = st.lists(st.frozensets(st.sampled_from(TOOLS), min_size=1, max_size=2), min_size=1, max_size=3).map(
    tuple
)
replies = st.permutations(TOOLS).flatmap(
    lambda order: st.integers(0, len(order)).map(lambda n: [[name] for name in order[:n]])
)


@given(needs, replies, st.integers(1, 10))
def test_recall_is_the_share_of_needs_met_by_the_first_lines(
    wanted: tuple[frozenset[str], ...], lines: list[list[str]], k: int
) -> None:
    one = outcome(Request("q", wanted), lines)
    first = {name for line in lines[:k] for name in line}
    assert one.recall(k) == sum(bool(need & first) for need in wanted) / len(wanted)
    right = frozenset().union(*wanted)
    place = next((number for number, (name,) in enumerate(lines, 1) if name in right), None)
    assert one.rank == place
    assert right.isdisjoint(one.before)
    assert one.recall(k) <= one.recall(k + 1)


def test_the_figures_of_a_worked_example() -> None:
    lines = [["x"], ["a", "twin"], ["y"], ["b"]]
    found = [
        outcome(Request("1", (frozenset({"a"}), frozenset({"b"}))), lines),
        outcome(Request("2", (frozenset({"twin"}),)), lines),
        outcome(Request("3", (frozenset({"none"}),)), lines),
    ]
    assert [one.rank for one in found] == [2, 2, None]
    assert [one.before for one in found] == [("x", "y"), ("x",), ("x", "a", "y")]
    means = scores(found, (1, 2, 4))
    assert means.recall == pytest.approx({1: 0, 2: (0.5 + 1) / 3, 4: 2 / 3})
    assert means.mrr == pytest.approx(1 / 3)
    weighted = scores(found, (2,), [0, 3, 1])
    assert weighted.recall[2] == pytest.approx(0.75)
    assert scores([], (1,)).recall == {1: 0}


def test_nothing_counts_below_the_depth() -> None:
    lines = [[str(number)] for number in range(DEPTH)] + [["a"]]
    assert outcome(Request("q", (frozenset({"a"}),)), lines).rank is None


def test_a_request_for_two_servers_counts_for_each_with_its_own_need() -> None:
    request = Request("q", (frozenset({"s__a"}), frozenset({"t__b"})), "chat")
    one = outcome(request, [["s__a"]])
    servers = by_server([one])
    assert list(servers) == ["s", "t"]
    assert [each.recall(1) for (each,) in servers.values()] == [1, 0]
    assert by_kind([one]) == {"chat": [one]}


# --- tools that look alike ----------------------------------------------------------------------------------


def test_twins_differ_in_their_parameters_only() -> None:
    schema = {"inputSchema": {"properties": {"to": {"type": "string"}}}}
    one, same = (tool(server, "sendMail", "Send a mail") for server in ("a", "b"))
    other = tool("c", "send-mail", "Send  a mail", **schema)
    assert twins([one, same]) == []
    assert twins([other, one, same]) == [(one, same, other)]
    assert twins([tool("a", "x"), tool("b", "x", **schema)]) == []


def test_a_description_of_two_words_is_short() -> None:
    tools = [tool("s", "c", "Send mail"), tool("s", "a"), tool("s", "b", "Send a mail")]
    assert [one.tool for one in short_descriptions(tools)] == ["a", "c"]
    assert short_descriptions([tool("s", "a", title="Sends any mail")]) == []


def test_resemblance_is_the_share_of_common_words() -> None:
    one, other = tool("s", "a", "delete the memory"), tool("s", "b", "deletes a memory now")
    assert resemblance(one, other) == pytest.approx(2 / 3)
    assert resemblance(one, one) == 1
    assert resemblance(tool("s", "a"), tool("s", "b")) == 0


def test_missing_words_are_those_that_no_text_of_the_tool_has() -> None:
    schema = {"properties": {"channel": {"type": "string", "description": "Where to post"}}}
    send = tool("slack", "send_message", "Tell people", inputSchema=schema)
    request = Request("posting to the slack chanels, telling messages loudly", (frozenset({send.name}),))
    assert missing_words(request, send) == ["chanels", "loudly"]
    assert missing_words(Request("x", request.needs, "typo", "send message"), send) == []


def test_a_changed_description_changes_nothing_else() -> None:
    before = tool("slack", "send", "old", annotations={"readOnlyHint": True}, more={"a": 1})
    after = with_description(before, "new")
    assert after.definition() == before.definition() | {"description": "new"}
    assert (after.name, after.read_only, after.description) == (before.name, True, "new")
