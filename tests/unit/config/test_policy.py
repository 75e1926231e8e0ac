"""The policy in a config: what it may say, and that nothing in it is ignored."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config import Config, parse
from mcpzip.config.diff import compare
from mcpzip.config.schema import AuditConfig, PolicyConfig
from mcpzip.model.errors import ConfigError


def read(general: Any = None, /, **keys: Any) -> Config:
    document = {"mcpServers": {"git": {"command": "x", **keys}}, "policy": general}
    return parse(json.dumps(document).encode(), "/c.json", {"MINE": "deny"})


def test_all_forms_are_read() -> None:
    assert read().policy == PolicyConfig()
    assert read("ask").policy == read({"default": "ask"}).policy == PolicyConfig("ask")
    assert read("${MINE}").policy == PolicyConfig("deny")
    found = read(
        {"destroys": "ask", "reads": "allow", "tools": {"git__*": "deny"}, "_why": 1, "//": 2}
    ).policy
    assert found.classes == (("reads", "allow"), ("destroys", "ask"))
    assert found.tools == (("git__*", "deny"),)
    server = read(policy={"tools": {"me*": "ask"}}, risk={"get_*": "reads", "x": ["writes", "reaches_out"]})
    assert server.servers["git"].policy.tools == (("me*", "ask"),)
    assert server.servers["git"].risk == (("get_*", ("reads",)), ("x", ("writes", "reaches_out")))
    assert server.warnings == ()


@pytest.mark.parametrize(
    ("policy", "place", "remedy"),
    [
        ("aks", "policy", 'write "allow", "ask" or "deny"'),
        (True, "policy", 'write "allow", "ask" or "deny"'),
        (["deny"], "policy", 'write "allow", "ask" or "deny"'),
        ({"write": "deny"}, "policy.write", "write 'writes'"),
        ({"destroy": None}, "policy.destroy", "write 'destroys'"),
        ({"flux": "deny"}, "policy.flux", "the keys here are default, reads, writes"),
        ({"writes": "Deny"}, "policy.writes", 'write "allow", "ask" or "deny"'),
        ({"writes": "${NOT_SET}"}, "policy.writes", 'write "allow", "ask" or "deny"'),
        ({"writes": 1}, "policy.writes", "write a string"),
        ({"tools": ["x"]}, "policy.tools", "write an object of decisions by tool"),
        ({"tools": {"git__a": "no"}}, "policy.tools.git__a", 'write "allow", "ask" or "deny"'),
        ({"tools": {"merge": "deny"}}, "policy.tools.merge", "with their server; write for example 'git"),
        ({"tools": {f"a__{n}": "ask" for n in range(1_001)}}, "policy.tools", "write 1,000 at most"),
    ],
)
def test_a_mistake_is_an_error_and_never_ignored(policy: Any, place: str, remedy: str) -> None:
    """A misspelt key was a warning: what it denied ran."""
    with pytest.raises(ConfigError) as raised:
        read(policy)
    assert raised.value.path == place
    assert remedy in str(raised.value)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"policy": "no"}, 'policy: found \'no\'; write "allow", "ask" or "deny"'),
        ({"policy": {"write": "deny"}}, "policy.write: there is no such key; write 'writes'"),
        ({"policy": {"tools": {"git__a": "deny"}}}, "tools are named here without their server; write 'a'"),
        ({"risk": "reads"}, "risk: found a string"),
        ({"risk": {"a": "harmless"}}, "risk.a: found 'harmless'"),
        ({"risk": {"a": []}}, "risk.a: found an empty list"),
        ({"risk": {"a": ["reads", "destroys"]}}, "found a tool that reads only, and writes"),
        ({"risk": {"a": 3}}, "risk.a: found a number"),
    ],
)
def test_a_mistake_of_a_server_makes_it_unusable(keys: Any, sentence: str) -> None:
    assert sentence in (read(**keys).servers["git"].problem or "")


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["ask", "deny"])


@given(st.recursive(VALUES, lambda inner: st.dictionaries(st.text(max_size=9), inner) | st.lists(inner)))
def test_a_policy_is_read_or_refused(policy: Any) -> None:
    try:
        found = read(policy)
    except ConfigError:
        return
    assert policy is None or isinstance(policy, (str, dict))
    if isinstance(policy, dict) and any(each in policy.values() for each in ("ask", "deny")):
        commented = all(
            key.startswith(("_", "//")) for key, each in policy.items() if each in ("ask", "deny")
        )
        assert found.has_policy or commented


@pytest.mark.parametrize(
    ("audit", "found"),
    [
        (None, None),
        (False, None),
        (True, AuditConfig()),
        ("calls.jsonl", AuditConfig("/home/me/calls.jsonl")),
        ("/var/calls.jsonl", AuditConfig("/var/calls.jsonl")),
        ({}, AuditConfig()),
        ({"arguments": "values"}, AuditConfig(values=True)),
        ({"path": "~/a.jsonl", "arguments": "names"}, AuditConfig("/home/me/a.jsonl")),
        ({"to": "file"}, AuditConfig()),
        ({"to": "stdout", "path": "/a.jsonl"}, AuditConfig("/a.jsonl", to="stdout")),
        ({"to": "postgresql://me@db/audit"}, AuditConfig(to="postgresql://me@db/audit")),
    ],
)
def test_the_audit_log_is_read(audit: Any, found: AuditConfig | None) -> None:
    data = json.dumps({"mcpServers": {}, "audit": audit}).encode()
    read = parse(data, "/home/me/c.json", {"HOME": "/home/me", "USERPROFILE": "/home/me"})
    assert read.audit == found


@pytest.mark.parametrize(
    ("audit", "sentence"),
    [
        (3, "write true, a path, or an object"),
        ("", "the path is empty"),
        ([], "found a list"),
        ({"arguments": "all"}, "found 'all'"),
        ({"to": "redis://db"}, "found no place for the audit log"),
        ({"to": "postgresql://db:0/x"}, "found no place for the audit log"),
        ({"to": "postgresql://db/x y"}, "found no place for the audit log"),
        ({"to": "postgresql://${NOT_SET}@db/x"}, "NOT_SET"),
        ({"to": "postgresql://db/x", "path": "a.jsonl"}, "leave out path, or to"),
    ],
)
def test_a_mistake_about_the_audit_log_is_an_error(audit: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse(json.dumps({"mcpServers": {}, "audit": audit}).encode(), "/c.json", {})


def test_an_edit_of_the_policy_keeps_connections() -> None:
    one, other = read("ask"), read({"writes": "deny"}, policy="ask", risk={"*": "reads"})
    found = compare(one, other)
    assert (found.settings, found.adjusted, found.disconnected) == (("policy",), ("git",), frozenset())
