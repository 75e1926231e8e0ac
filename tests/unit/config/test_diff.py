"""Comparing the config in use with an edited one."""

import json
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from mcpzip.config import Config, SearchConfig, Secret, ServerConfig, parse
from mcpzip.config.diff import applicable, compare, same_connection
from mcpzip.config.schema import (
    AccessRule,
    AuditConfig,
    AuthConfig,
    CodeConfig,
    HttpConfig,
    PolicyConfig,
    RateLimit,
    ReplicasConfig,
    ResultsConfig,
    SemanticConfig,
    StoreConfig,
    TelemetryConfig,
)

NAMES = ["bank", "shop", "time"]


def servers() -> st.SearchStrategy[dict[str, ServerConfig]]:
    def server(name: str) -> st.SearchStrategy[ServerConfig]:
        return st.builds(
            ServerConfig,
            name=st.just(name),
            transport=st.just("stdio"),
            command=st.sampled_from(["a", "b"]),
            disabled=st.booleans(),
            timeout=st.sampled_from([None, 5.0]),
            pin=st.sampled_from([(), ("*",)]),
            withheld_env=st.sampled_from([frozenset[str](), frozenset({"TOKEN"})]),
            problem=st.sampled_from([None, "it is wrong"]),
        )

    each = st.fixed_dictionaries({}, optional={name: server(name) for name in NAMES})
    return each.map(dict)


CONFIGS = st.builds(
    Config,
    path=st.just("/config.json"),
    servers=servers(),
    search=st.builds(
        SearchConfig,
        default_limit=st.sampled_from([5, 7]),
        learn=st.booleans(),
        semantic=st.sampled_from([SemanticConfig(), SemanticConfig("off")]),
    ),
    expose=st.sampled_from(["meta", "direct", "transparent"]),
    split=st.booleans(),
    gemini_api_key=st.sampled_from([None, Secret("a-key-of-gemini")]),
    call_timeout=st.sampled_from([10.0, 20.0]),
)


@given(CONFIGS)
def test_the_same_config_changes_nothing(config: Config) -> None:
    diff = compare(config, config)
    assert (diff.summary, diff.notes, diff.disconnected) == ("", (), frozenset())
    assert applicable(config, config) == config


@given(CONFIGS, CONFIGS)
def test_each_server_changes_in_one_way_at_most(running: Config, edited: Config) -> None:
    diff = compare(running, edited)
    listed = [*diff.added, *diff.removed, *diff.reconnected, *diff.adjusted]
    assert len(listed) == len(set(listed))
    if diff.deferred:
        assert listed == []
        return
    for name in NAMES:
        before, now = running.servers.get(name), edited.servers.get(name)
        assert (name in listed) == (before != now)
        assert (name in diff.disconnected) == (
            before is not None and (now is None or not same_connection(before, now))
        )


@given(CONFIGS, CONFIGS)
def test_what_is_added_one_way_is_removed_the_other_way(one: Config, other: Config) -> None:
    there, back = compare(one, other), compare(other, one)
    assert there.added == back.removed
    assert there.reconnected == back.reconnected
    assert there.adjusted == back.adjusted
    assert there.settings == back.settings
    assert there.at_start == back.at_start


@given(CONFIGS, CONFIGS)
def test_after_an_edit_only_what_waits_for_a_start_is_left(running: Config, edited: Config) -> None:
    waiting = compare(running, edited).at_start
    now = applicable(running, edited)
    left = compare(now, edited)
    assert left.summary == ""
    assert left.at_start == waiting
    assert applicable(now, edited) == now


@given(CONFIGS, CONFIGS)
def test_an_edit_that_is_taken_back_leaves_nothing(running: Config, edited: Config) -> None:
    now = applicable(running, edited)
    assert applicable(now, running) == running
    assert compare(now, running).at_start == ()


OTHER_SERVER: dict[str, Any] = {
    "transport": "http",
    "command": "x",
    "args": ("x",),
    "env": {"X": "x"},
    "cwd": "/x",
    "url": "http://x/",
    "headers": {"X": "x"},
    "headers_command": ("x",),
    "auth": AuthConfig(),
    "disabled": True,
    "timeout": 1.0,
    "tools_allow": ("x",),
    "tools_deny": ("x",),
    "pin": ("x",),
    "boost": 2.0,
    "share": "never",
    "trust": "open",
    "policy": PolicyConfig("ask"),
    "risk": (("*", ("reads",)),),
    "inherit_env": ("X",),
    "withheld_env": frozenset("X"),
    "problem": "x",
    "unset": ("X",),
    "written": "{}",
}
KEEPS_ITS_CONNECTION = {
    "unset",
    "timeout",
    "tools_allow",
    "tools_deny",
    "pin",
    "boost",
    "share",
    "trust",
    "policy",
    "risk",
    "withheld_env",
}


@pytest.mark.parametrize("field", [f.name for f in msgspec.structs.fields(ServerConfig) if f.name != "name"])
def test_every_setting_of_a_server_is_known_to_change_its_connection_or_not(field: str) -> None:
    server = ServerConfig("shop", "stdio")
    other = msgspec.structs.replace(server, **{field: OTHER_SERVER[field]})
    assert other != server
    assert same_connection(server, other) == (field in KEEPS_ITS_CONNECTION)


OTHER_CONFIG: dict[str, Any] = {
    "http": HttpConfig("https://x/mcp"),
    "access": (AccessRule(True, ("x",)),),
    "rate_limits": (RateLimit(calls=1),),
    "idle_timeout": 1.0,
    "call_timeout": 1.0,
    "gemini_api_key": Secret("a-key-of-gemini"),
    "expose": "direct",
    "split": True,
    "shared": False,
    "policy": PolicyConfig("ask"),
    "audit": AuditConfig(),
    "results": ResultsConfig(500),
    "code": CodeConfig(enabled=True),
    "replicas": ReplicasConfig((Secret("k" * 43),)),
    "telemetry": TelemetryConfig(listen="9464"),
    "store": StoreConfig("redis://127.0.0.1", ()),
    "daemon_idle": 1.0,
    "daemon_http": "8931",
    "auth_store": "keyring",
    "log_level": "debug",
    "default_limit": 9,
    "max_tokens": 900,
    "learn": False,
    "model": None,
    "llm_deadline": 1.0,
    "semantic": SemanticConfig("off"),
    "threshold": 0.5,
    "details": True,
}


NOT_SETTINGS = {"path", "servers", "search", "warnings", "notes", "project", "project_servers", "variables"}


@pytest.mark.parametrize(
    "field",
    [f.name for f in msgspec.structs.fields(SearchConfig)]
    + [f.name for f in msgspec.structs.fields(Config) if f.name not in NOT_SETTINGS],
)
def test_every_other_setting_is_applied_or_named(field: str) -> None:
    running = Config("/config.json", {})
    if hasattr(running.search, field):
        search = msgspec.structs.replace(running.search, **{field: OTHER_CONFIG[field]})
        edited = msgspec.structs.replace(running, search=search)
    else:
        edited = msgspec.structs.replace(running, **{field: OTHER_CONFIG[field]})
    diff = compare(running, edited)
    assert len(diff.settings) + len(diff.at_start) == 1
    assert applicable(running, edited) == (edited if diff.settings else running)


def test_what_is_said_of_a_change() -> None:
    def config(**keys: object) -> Config:
        return parse(json.dumps(keys).encode(), "/config.json", {})

    running = config(mcpServers={"a": {"command": "a"}, "b": {"command": "b"}, "c": {"command": "c"}})
    edited = config(
        mcpServers={"a": {"command": "z"}, "b": {"command": "b", "timeout": 3}, "d": {"command": "d"}},
        search={"semantic": "off", "max_tokens": 900},
    )
    diff = compare(running, edited)
    assert diff.summary == "added d; removed c; changed a, b, search.max_tokens"
    assert diff.notes == ("search.semantic changed: takes effect when mcpzip is started again.",)


def test_transparent_begins_and_ends_at_a_start() -> None:
    server = {"a": ServerConfig("a", "stdio", "x")}
    meta, transparent = Config("/c", server), Config("/c", server, expose="transparent")
    for running, edited in ((meta, transparent), (transparent, meta)):
        assert applicable(running, edited) is running
        (note,) = compare(running, edited).notes
        assert "started again" in note


def test_an_edit_of_one_server_leaves_the_connections_of_the_others() -> None:
    """A server with inheritEnv is withheld what a new server refers to."""

    def config(**servers: object) -> Config:
        return parse(json.dumps({"mcpServers": servers}).encode(), "/config.json", {"TOKEN": "x"})

    one = {"command": "a", "inheritEnv": True}
    diff = compare(config(one=one), config(one=one, two={"command": "b", "env": {"T": "${TOKEN}"}}))
    assert diff.added == ("two",)
    assert diff.disconnected == frozenset()
