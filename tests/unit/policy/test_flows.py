"""Flows between servers: what a session has seen makes later calls stricter, never milder."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config import parse
from mcpzip.config.schema import DECISIONS, FlowConfig
from mcpzip.model.entry import Entry
from mcpzip.model.errors import ConfigError
from mcpzip.model.risk import WORST, Risk
from mcpzip.policy.flows import Flows, is_stricter

MAIL = FlowConfig("mail", "web__*", "ask")


def entry(server: str, tool: str) -> Entry:
    return Entry.parse(server, json.dumps({"name": tool}).encode())


def flows_of(found: Any) -> tuple[FlowConfig, ...]:
    return parse(
        json.dumps({"mcpServers": {}, "policy": {"flows": found}}).encode(), "/c.json", {}
    ).policy.flows


def test_flows_are_read() -> None:
    assert flows_of([{"from": "mail", "to": "web__*", "do": "ask", "_why": "x"}]) == (MAIL,)
    assert flows_of([]) == ()


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ({}, "write a list of flows"),
        ([3], "write a list of flows"),
        ([{"from": "a", "to": "b"}], 'write "from", "to" and "do"'),
        ([{"from": "a", "to": "b", "do": "ask", "when": 1}], 'write "from", "to" and "do"'),
        ([{"from": "", "to": "b", "do": "ask"}], "an empty name"),
        ([{"from": "a", "to": "b", "do": "block"}], "found 'block'"),
    ],
)
def test_a_mistake_in_a_flow_is_an_error(found: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        flows_of(found)


def test_a_flow_is_not_one_servers() -> None:
    document = {"mcpServers": {"a": {"command": "x", "policy": {"flows": []}}}}
    problem = parse(json.dumps(document).encode(), "/c.json", {}).servers["a"].problem
    assert problem is not None
    assert 'write it into the "policy" beside "mcpServers"' in problem


@pytest.mark.parametrize(
    ("source", "server", "name", "begins"),
    [
        ("mail", "mail", "mail__read", True),
        ("mail", "mail", "", True),
        ("m*", "mail", "", True),
        ("mail", "mail2", "mail2__read", False),
        ("mail__read", "mail", "mail__read", True),
        ("mail__read", "mail", "mail__list", False),
        ("mail__*", "mail", "", False),
    ],
)
def test_what_begins_a_flow(source: str, server: str, name: str, begins: bool) -> None:
    flow = FlowConfig(source, "web", "ask")
    assert (flow in Flows([flow]).begun_by(server, name)) == begins


def test_a_flow_decides_only_after_it_has_begun_and_only_about_its_targets() -> None:
    flows = Flows([MAIL])
    assert flows.decision(entry("web", "post"), WORST, ()) is None
    found = flows.decision(entry("web", "post"), WORST, {MAIL})
    assert found is not None
    assert (found.decision, found.path, found.source) == ("ask", "policy.flows[0]", "mail")
    assert flows.decision(entry("db", "post"), WORST, {MAIL}) is None
    assert flows.decision(entry("web", "look"), Risk("reads", reaches_out=False), {MAIL}) is None
    assert flows.decision(entry("web", "fetch"), Risk("reads", reaches_out=True), {MAIL}) is not None
    assert flows.may_ask(entry("web", "post"), WORST)
    assert not flows.may_ask(entry("db", "post"), WORST)


GLOBS = st.sampled_from(["*", "mail", "web", "web__*", "*__post", "db"])
FLOWS = st.lists(st.builds(FlowConfig, GLOBS, GLOBS, st.sampled_from(DECISIONS)), max_size=4)


@given(FLOWS, st.lists(st.sampled_from(["mail", "web", "db"])))
def test_the_first_that_counts_decides(found: list[FlowConfig], seen: list[str]) -> None:
    flows = Flows(found)
    begun = {each for server in seen for each in flows.begun_by(server, f"{server}__post")}
    decided = flows.decision(entry("web", "post"), WORST, begun)
    counting = [
        each
        for each in found
        if each in begun and Flows([each]).decision(entry("web", "post"), WORST, {each})
    ]
    assert (decided is None) == (not counting)
    if decided is not None:
        assert decided.decision == counting[0].decision
        assert is_stricter(decided, "deny") is False
        assert is_stricter(decided, "allow") == (decided.decision != "allow")
