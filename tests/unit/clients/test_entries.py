"""Entries of clients, translated."""

from typing import Any

import pytest

from mcpzip.clients.entries import NotMovable, is_mcpzip, moved, own_entry
from mcpzip.clients.known import Dialect

CASES: list[tuple[Dialect, dict[str, Any], dict[str, Any]]] = [
    (
        "claude",
        {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"T": "${TOKEN:-none}"}},
        {"command": "npx", "args": ["-y", "x"], "env": {"T": "${TOKEN:-none}"}},
    ),
    ("claude", {"type": "sse", "url": "https://a/sse"}, {"type": "sse", "url": "https://a/sse"}),
    ("claude", {"type": "http", "url": "https://a/mcp"}, {"url": "https://a/mcp"}),
    ("plain", {"command": "x", "args": ["${HOME}"]}, {"command": "x", "args": ["$${HOME}"]}),
    (
        "cursor",
        {"command": "${userHome}/x", "env": {"T": "${env:TOKEN}"}, "disabled": True},
        {"disabled": True, "command": "~/x", "env": {"T": "${TOKEN}"}},
    ),
    ("cursor", {"serverUrl": "https://a/mcp"}, {"url": "https://a/mcp"}),
    ("gemini", {"httpUrl": "https://a/mcp", "timeout": 5000}, {"url": "https://a/mcp", "timeout": 5.0}),
    ("gemini", {"url": "https://a/sse"}, {"type": "sse", "url": "https://a/sse"}),
    (
        "gemini",
        {"command": "x", "args": ["$TOKEN", "${OTHER}"], "includeTools": ["a"], "excludeTools": ["b"]},
        {"command": "x", "args": ["${TOKEN}", "${OTHER}"], "tools": {"allow": ["a"], "deny": ["b"]}},
    ),
    (
        "opencode",
        {"type": "local", "command": ["npx", "x"], "environment": {"T": "{env:TOKEN}"}, "enabled": False},
        {"disabled": True, "command": "npx", "args": ["x"], "env": {"T": "${TOKEN}"}},
    ),
    ("zed", {"source": "custom", "command": {"path": "x", "args": ["a"]}}, {"command": "x", "args": ["a"]}),
    (
        "codex",
        {"url": "https://a/mcp", "bearer_token_env_var": "TOKEN", "env_http_headers": {"X": "Y"}},
        {"url": "https://a/mcp", "headers": {"X": "${Y}", "Authorization": "Bearer ${TOKEN}"}},
    ),
    (
        "codex",
        {"command": "x", "env_vars": ["TOKEN"], "tool_timeout_sec": 5, "startup_timeout_sec": 9},
        {"command": "x", "env": {"TOKEN": "${TOKEN}"}, "timeout": 5},
    ),
]


@pytest.mark.parametrize(("dialect", "theirs", "ours"), CASES)
def test_an_entry_means_the_same(dialect: Dialect, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    translated = moved(theirs, dialect)
    assert translated.entry == ours
    assert translated.left_out == ()


@pytest.mark.parametrize(
    ("dialect", "entry", "reason"),
    [
        ("vscode", {"command": "${workspaceFolder}/x"}, "only the client can replace ${workspaceFolder}"),
        ("vscode", {"url": "https://a", "headers": {"A": "${input:key}"}}, "only the client can replace"),
        ("vscode", {"command": "x", "envFile": ".env"}, "it reads variables from a file"),
        ("opencode", {"command": ["x"], "environment": {"A": "{file:~/key}"}}, "only opencode can replace"),
        ("plain", {}, "it has neither a command nor a URL"),
        ("plain", {"command": "x", "url": "https://a"}, "it has both a command and a URL"),
        ("plain", {"command": ["x"], "args": "y"}, ""),
        ("plain", {"command": []}, "the command is not a string"),
        ("plain", [], "it is not an object"),
    ],
)
def test_what_would_mean_something_else_is_not_moved(dialect: Dialect, entry: Any, reason: str) -> None:
    if not reason:
        assert moved(entry, dialect).entry == {"command": "x"}
        return
    with pytest.raises(NotMovable) as error:
        moved(entry, dialect)
    assert reason in str(error.value)


def test_what_has_no_meaning_here_is_named() -> None:
    assert moved({"command": "x", "autoApprove": ["a"], "trust": True}, "cursor").left_out == (
        "autoApprove",
        "trust",
    )


@pytest.mark.parametrize(
    "dialect", ["claude", "plain", "cursor", "vscode", "gemini", "opencode", "zed", "codex"]
)
def test_our_own_entry_is_known_as_such(dialect: Dialect) -> None:
    assert is_mcpzip(own_entry(dialect, "/opt/bin/mcpzip", ["serve"]))
    assert is_mcpzip(own_entry(dialect, "C:\\Tools\\mcpzip.exe", ["serve"]))
    assert is_mcpzip(own_entry(dialect, "/usr/bin/python3", ["-m", "mcpzip", "serve"]))
    assert is_mcpzip({"command": "uvx", "args": ["mcpzip@latest", "serve"]})
    assert not is_mcpzip({"command": "uvx", "args": ["mcp-server-time"]})
    assert not is_mcpzip("mcpzip")
