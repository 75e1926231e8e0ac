"""A server in whatever form a person has it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.clients.pasted import PasteError, name_of, read_pasted
from mcpzip.clients.well_known import WELL_KNOWN
from mcpzip.config import parse
from mcpzip.model.names import server_name_problem

TIME = {"command": "uvx", "args": ["mcp-server-time"]}


@pytest.mark.parametrize(
    ("text", "name", "entry"),
    [
        ("uvx mcp-server-time", "time", TIME),
        ("  npx -y @modelcontextprotocol/server-memory\n", "memory",
         {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}),
        ("npx -y @playwright/mcp@latest", "mcp",
         {"command": "npx", "args": ["-y", "@playwright/mcp@latest"]}),
        ("npx some-mcp-server", "some", {"command": "npx", "args": ["some-mcp-server"]}),
        ("python -m mcp_server_git --repository 'my repo'", "git",
         {"command": "python", "args": ["-m", "mcp_server_git", "--repository", "my repo"]}),
        ("node /srv/tools/weather.js", "weather", {"command": "node", "args": ["/srv/tools/weather.js"]}),
        ("docker run -i --rm mcp/postgres", "postgres",
         {"command": "docker", "args": ["run", "-i", "--rm", "mcp/postgres"]}),
        ("TOKEN=abc LEVEL=2 uvx mcp-server-time", "time", {**TIME, "env": {"TOKEN": "abc", "LEVEL": "2"}}),
        ("https://mcp.linear.app/mcp", "linear", {"url": "https://mcp.linear.app/mcp"}),
        ("https://api.githubcopilot.com/mcp/", "githubcopilot", {"url": "https://api.githubcopilot.com/mcp/"}),
        ("http://127.0.0.1:8080/mcp", "0", {"url": "http://127.0.0.1:8080/mcp"}),
        ("claude mcp add time -- uvx mcp-server-time", "time", TIME),
        ("claude mcp add time uvx mcp-server-time", "time", TIME),
        ("claude mcp add --scope user --transport http linear https://mcp.linear.app/mcp", "linear",
         {"type": "http", "url": "https://mcp.linear.app/mcp"}),
        ("claude mcp add -e KEY=v -s project time -- uvx mcp-server-time --x", "time",
         {"command": "uvx", "args": ["mcp-server-time", "--x"], "env": {"KEY": "v"}}),
        ("claude mcp add -t sse old https://old.example/sse -H 'X-Key: a b'", "old",
         {"type": "sse", "url": "https://old.example/sse", "headers": {"X-Key": "a b"}}),
        ('claude mcp add-json time \'{"type":"stdio","command":"uvx","args":["mcp-server-time"]}\'', "time",
         {"type": "stdio", **TIME}),
        ("codex mcp add my_time -- uvx mcp-server-time", "my-time", TIME),
        ("codex mcp add linear --url https://mcp.linear.app/mcp", "linear", {"url": "https://mcp.linear.app/mcp"}),
        ("gemini mcp add time uvx mcp-server-time", "time", TIME),
        ("mcpzip add time -- uvx mcp-server-time", "time", TIME),
        (json.dumps(TIME), "time", TIME),
        (json.dumps({"clock": TIME}), "clock", TIME),
        (json.dumps({"mcpServers": {"clock": {"type": "stdio", **TIME}}}), "clock", TIME),
        (json.dumps({"servers": {"clock": TIME}, "inputs": []}), "clock", TIME),
        ('"clock": ' + json.dumps(TIME) + ",", "clock", TIME),
        (json.dumps({"mcp": {"clock": {"type": "local", "command": ["uvx", "mcp-server-time"]}}}), "clock",
         TIME),
        (json.dumps({"web": {"serverUrl": "https://e.example/mcp"}}), "web", {"url": "https://e.example/mcp"}),
        (json.dumps({"command": "x", "env": {"A": "${env:B}"}}), "x", {"command": "x", "env": {"A": "${B}"}}),
    ],
)  # fmt: skip
def test_one_server_in_each_form(text, name, entry):
    if text.startswith("http://127"):
        name = next(iter(read_pasted(text)))  # any name will do
    assert read_pasted(text) == {name: entry}


def test_several_servers_in_one_object():
    found = read_pasted(json.dumps({"mcpServers": {"a b": TIME, "c": {"url": "https://c.example/mcp"}}}))
    assert found == {"a-b": TIME, "c": {"url": "https://c.example/mcp"}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "paste a command"),
        ("   ", "paste a command"),
        ("{", "no JSON"),
        ("[1]x 'y", "no command"),
        ("{}", "no server"),
        ('{"mcpServers": {}}', "no server"),
        ('{"a": 1}', "no server"),
        ("TOKEN=abc", "no command after the variables"),
        ("claude mcp add time", "needs a name"),
        ("claude mcp add --wrong x time -- y", "--wrong"),
        ('{"command": "x", "args": ["${workspaceFolder}"]}', "${workspaceFolder}"),
        ('{"a": {"command": "x", "url": "https://x/"}}', "both"),
        ("https://a.example/mcp extra", "follow a URL"),
    ],
)
def test_what_is_no_server_is_told_what_would_be(text, says):
    with pytest.raises(PasteError, match=says.replace("$", r"\$").replace("{", r"\{")):
        read_pasted(text)


@given(st.text(max_size=60))
def test_any_text_is_a_valid_server_or_a_sentence(text):
    try:
        found = read_pasted(text)
    except PasteError:
        return
    assert found
    for name, entry in found.items():
        assert not server_name_problem(name)
        assert entry.get("command") or entry.get("url")


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4))
def test_a_name_is_always_valid(words):
    assert not server_name_problem(name_of(words))


@pytest.mark.parametrize("known", WELL_KNOWN, ids=lambda known: known.name)
def test_well_known_servers_are_valid_entries(known):
    env = dict.fromkeys(known.variables, "x")
    config = parse(json.dumps({"mcpServers": {known.name: known.entry}}).encode(), "c.json", env, strict=True)
    assert config.warnings == ()
    assert config.servers[known.name].problem is None
    assert not (known.needs_folder and known.variables)
