"""What is odd in a config and costs no more than a warning, and what is right and draws none."""

import json

import pytest

from mcpzip.config import parse

FILE = "/home/me/config.json"


def one(**keys: object) -> dict[str, object]:
    return {"mcpServers": {"a": keys}}


GOOD = {"mcpServers": {"a": {"command": "x"}}}

# What stands in the file, and the warning that is all it costs.
WARNINGS = [
    ({}, "mcpServers: there are no servers, and so no tools; add one, such as {"),
    ({"mcpServers": {}}, "mcpServers: there are no servers, and so no tools; add one, such as {"),
    ({"mcpServers": {"a": None}}, "mcpServers: there are no servers, and so no tools; add one, such as {"),
    ({**GOOD, "serch": {}}, "serch: unknown key, ignored; 'search' may be meant."),
    ({**GOOD, "zzz": 1}, "zzz: unknown key, ignored; the keys here are access, audit, auth, call_timeout_"),
    ({**GOOD, "servers": {}}, "servers: unknown key, ignored; 'mcpServers' may be meant."),
    (
        {**GOOD, "search": {"limit": 3}},
        "search.limit: unknown key, ignored; 'default_limit' may be meant.",
    ),
    (one(command="x", comand="y"), "mcpServers.a.comand: unknown key, ignored; 'command' may be meant."),
    (
        one(command="x", excludeTools=[]),
        "mcpServers.a.excludeTools: unknown key, ignored; 'tools.deny' may be",
    ),
    (
        one(command="x", tools={"allowed": []}),
        "mcpServers.a.tools.allowed: unknown key, ignored; 'allow' may be",
    ),
    (
        one(command="x", expose="direct"),
        'mcpServers.a.expose: unknown key, ignored; write it beside "mcpServers"',
    ),
    (
        {**GOOD, "pin": ["t"]},
        "pin: unknown key, ignored; write it into a server, as mcpServers.NAME.pin.",
    ),
    (
        one(command="x", tools={"pin": ["t"]}),
        "mcpServers.a.tools.pin: unknown key, ignored; write it into",
    ),
    (one(command="x", deny=["t"]), "mcpServers.a.deny: unknown key, ignored; 'tools.deny' may be meant."),
    (
        one(command="x", pin=["ok", "a__t"]),
        "mcpServers.a.pin[1]: tools are named here without their server; 't' may be meant.",
    ),
    (
        one(command="x", tools={"deny": ["a__*"]}),
        "mcpServers.a.tools.deny[0]: tools are named here without their server; '*' may be meant.",
    ),
    (one(command="x", headers={}), "mcpServers.a.headers: not used by a server of type stdio; remove it."),
    (one(url="https://x", args=[]), "mcpServers.a.args: not used by a server of type http; remove it."),
    (
        one(command="x", args=["${env:T}"]),
        "mcpServers.a.args[0]: ${env:T} is not replaced; environment",
    ),
    (
        one(url="https://x", headers={"Authorization": "Bearer $TOK"}),
        "mcpServers.a.headers.Authorization: $NAME without braces is not replaced; environment",
    ),
    (
        one(command="x", args=["--token=$TOK"]),
        "mcpServers.a.args[0]: $NAME without braces is not replaced; environment",
    ),
    (
        {**GOOD, "search": {"default_limit": 51}},
        "search.default_limit: 50 tools are shown at most; write a number from 1 to 50.",
    ),
    (
        {**GOOD, "search": {"semantic": {"provider": "local", "model": "m"}}},
        'search.semantic.model: not used by the provider "local"; remove it, or name another provider.',
    ),
    (
        {**GOOD, "search": {"semantic": {"provider": "off", "url": "http://x"}}},
        'search.semantic.url: not used by the provider "off"; remove it, or name another provider.',
    ),
    (
        {**GOOD, "search": {"semantic": {"provider": "ollama", "key": "k"}}},
        "search.semantic.key: unknown key, ignored; 'api_key' may be meant.",
    ),
]


@pytest.mark.parametrize(("document", "warning"), WARNINGS)
def test_a_warning_costs_nothing_else(document, warning):
    config = parse(json.dumps(document).encode(), FILE, {})
    assert len(config.warnings) == 1
    assert config.warnings[0].startswith(f"{FILE}: {warning}")
    assert not [each for each in config.servers.values() if each.problem]


def test_a_server_in_the_wrong_place_is_told_where_to_go():
    config = parse(b'{"slack": {"command": "x"}}', FILE, {})
    assert (
        config.warnings[1]
        == f'{FILE}: mcpServers: there are no servers, and so no tools; move "slack" into it.'
    )


def test_a_variable_that_is_not_set_outside_of_a_server_is_done_without():
    config = parse(json.dumps({**GOOD, "gemini_api_key": "${NOPE}"}).encode(), FILE, {})
    assert config.gemini_api_key is None
    assert "gemini_api_key: the environment variable NOPE is not set" in config.warnings[-1]


@pytest.mark.parametrize(
    "document",
    [
        {**GOOD, "$schema": "https://x", "_comment": "mine", "//": "yours"},
        {**GOOD, "search": {"semantic": "off"}, "expose": "meta"},
        {**GOOD, "search": {"model": "m", "threshold": 0.5, "semantic": "http://[::1]:11434/v1"}},
        {**GOOD, "gemini_api_key": "k"},
        one(command="x", boost=2),
        {**GOOD, "expose": "direct"},
        {**GOOD, "expose": "transparent"},
        {**GOOD, "expose": {"split": True}},
        {**GOOD, "expose": {"mode": "direct", "split": False}},
        {**GOOD, "expose": {"mode": None, "split": None, "_note": "mine"}},
        one(command="x", pin=["y", "get_*"]),
        one(command="x", pin=True),
        one(command="x", pin=False),
        {**GOOD, "search": None, "expose": None, "idle_timeout_minutes": None, "call_timeout_seconds": None},
        one(
            command="x",
            url=None,
            headers=None,
            env={"A": None},
            tools=None,
            pin=None,
            timeout=None,
            disabled=None,
        ),
    ],
)
def test_what_is_right_draws_no_warning(document):
    config = parse(json.dumps(document).encode(), FILE, {})
    assert config.warnings == ()
    assert config.servers["a"].problem is None
