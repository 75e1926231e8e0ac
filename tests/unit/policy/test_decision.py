"""What the config decides: the most specific wins, and of several classes the strictest."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config import Config, parse
from mcpzip.config.schema import DECISIONS
from mcpzip.model.entry import Entry
from mcpzip.policy.decision import Decisions, stricter

READS = {"readOnlyHint": True, "openWorldHint": False}
WRITES = {"destructiveHint": False, "openWorldHint": False}
CALM = {"openWorldHint": False}


def config(policy: Any = None, own: Any = None, **keys: Any) -> Config:
    document = {"mcpServers": {"git": {"command": "x", "policy": own, **keys}, "mail": {"command": "x"}}}
    return parse(json.dumps({**document, "policy": policy}).encode(), "/c.json", {}, strict=True)


def entry(tool: str, annotations: Any = None, server: str = "git") -> Entry:
    return Entry.parse(server, json.dumps({"name": tool, "annotations": annotations or {}}).encode())


def decided(found: Config, tool: str, annotations: Any = None, server: str = "git") -> tuple[str, str]:
    verdict = Decisions(found).of(entry(tool, annotations, server))
    return verdict.decision, verdict.rule


def test_without_a_policy_everything_is_allowed() -> None:
    assert decided(config(), "merge") == ("allow", "")
    assert not config().has_policy
    assert config("allow").has_policy
    assert config(own={"reads": "ask"}).has_policy


@pytest.mark.parametrize(
    ("policy", "own", "annotations", "decision", "rule"),
    [
        ("ask", None, {}, "ask", "policy.default"),
        ({"destroys": "ask"}, None, {}, "ask", "policy.destroys"),
        ({"destroys": "ask"}, None, WRITES, "allow", ""),
        ({"writes": "ask"}, None, {}, "ask", "policy.writes"),
        ({"writes": "ask", "destroys": "deny"}, None, CALM, "deny", "policy.destroys"),
        ({"writes": "deny", "destroys": "allow"}, None, CALM, "deny", "policy.writes"),
        ({"reaches_out": "ask"}, None, {"readOnlyHint": True}, "ask", "policy.reaches_out"),
        ({"reaches_out": "ask"}, None, READS, "allow", ""),
        ({"default": "ask", "reads": "allow"}, None, {"readOnlyHint": True}, "allow", "policy.reads"),
        ({"default": "deny", "writes": "allow"}, None, CALM, "deny", "policy.default"),
        ("deny", "allow", {}, "allow", "mcpServers.git.policy.default"),
        ({"reaches_out": "deny"}, "allow", {}, "allow", "mcpServers.git.policy.default"),
        ({"destroys": "ask"}, {"writes": "allow"}, CALM, "ask", "policy.destroys"),
        ({"writes": "deny"}, {"writes": "ask"}, WRITES, "ask", "mcpServers.git.policy.writes"),
        ({"tools": {"git__*": "deny"}}, "allow", {}, "deny", 'policy.tools."git__*"'),
        (
            {"tools": {"git__*": "deny"}},
            {"tools": {"me*": "ask"}},
            {},
            "ask",
            'mcpServers.git.policy.tools."me*"',
        ),
        ({"tools": {"git__merge": "ask"}}, {"tools": {"m*": "deny"}}, {}, "ask", "policy.tools.git__merge"),
        ({"tools": {"*merge": "allow", "git__m*": "ask"}}, None, {}, "ask", 'policy.tools."git__m*"'),
        ({"tools": {"git__*e": "allow", "git__m*": "deny"}}, "ask", {}, "deny", 'policy.tools."git__m*"'),
        (
            {"tools": {"git__[m]erge": "allow", "git__merge": "ask"}},
            None,
            {},
            "ask",
            "policy.tools.git__merge",
        ),
        ({"tools": {"mail__*": "deny"}}, None, {}, "allow", ""),
    ],
)
def test_which_rule_wins(policy: Any, own: Any, annotations: Any, decision: str, rule: str) -> None:
    assert decided(config(policy, own), "merge", annotations) == (decision, rule)


def test_the_policy_of_a_server_is_no_other_servers() -> None:
    assert decided(config(own="deny"), "send", server="mail") == ("allow", "")


def test_a_person_says_of_which_class_a_tool_is() -> None:
    found = config({"destroys": "deny"}, risk={"get_*": "reads", "*": ["writes", "reaches_out"]})
    assert decided(found, "get_all") == ("allow", "")
    assert Decisions(found).risk(entry("get_all")).classes == ("reads",)
    assert Decisions(found).risk(entry("set", READS)).classes == ("writes", "reaches_out")


def test_a_changed_definition_is_decided_anew() -> None:
    decisions = Decisions(config({"destroys": "deny"}))
    assert decisions.of(entry("a", READS)).decision == "allow"
    assert decisions.of(entry("a")).decision == "deny"
    same = entry("a")
    assert decisions.of(same) is decisions.of(same)


DECISION = st.sampled_from(DECISIONS)
POLICY = st.fixed_dictionaries(
    {},
    optional={
        "default": DECISION,
        **dict.fromkeys(("reads", "writes", "destroys", "reaches_out"), DECISION),
        "tools": st.dictionaries(st.sampled_from(["*", "*e", "git__*", "git__merge", "*__m*"]), DECISION),
    },
)
ANNOTATIONS = st.dictionaries(
    st.sampled_from(["readOnlyHint", "destructiveHint", "openWorldHint"]), st.booleans()
)


@given(POLICY, ANNOTATIONS, DECISION)
def test_a_whole_name_overrides_everything(policy: dict[str, Any], annotations: Any, said: str) -> None:
    policy = {**policy, "tools": {**policy.get("tools", {}), "git__merge": said}}
    assert decided(config(policy), "merge", annotations) == (said, "policy.tools.git__merge")


@given(POLICY, ANNOTATIONS)
def test_a_milder_hint_never_makes_a_decision_stricter_if_worse_classes_are_stricter(
    policy: dict[str, Any], annotations: dict[str, bool]
) -> None:
    """A server that leaves hints out can't get more than one that gives them."""
    order = [policy.get(each, policy.get("default", "allow")) for each in ("reads", "writes", "destroys")]
    if order != sorted(order, key=DECISIONS.index):
        return
    mild, bare = (decided(config(policy), "merge", each)[0] for each in (annotations, {}))
    assert stricter(mild, bare) == bare  # type: ignore[arg-type]


@given(POLICY, ANNOTATIONS)
def test_a_decision_names_the_rule_that_makes_it(policy: dict[str, Any], annotations: Any) -> None:
    decision, rule = decided(config(policy), "merge", annotations)
    if not rule:
        assert decision == "allow"
        return
    place: Any = {"policy": policy}
    for key in rule.replace('"', "").split(".", 2):
        place = place[key]
    assert place == decision
