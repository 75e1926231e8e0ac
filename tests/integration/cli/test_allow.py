"""`mcpzip allow`: a person allows calls, an agent can't; a daemon that runs takes it up at once."""

import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.bridging import META
from helpers.command_answers import answered
from helpers.daemons import Home, daemon_home
from helpers.driver import MODERN, run_here, until
from helpers.serve_http import listening, mcpzip_command

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals")
QUESTION = b"May every agent call it?"
ONCE = b"May this call run once?"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    policy = {"default": "ask", "tools": {"up__where": "deny"}}
    with daemon_home(tmp_path, monkeypatch, policy=policy) as home:
        yield home


def listed(home: Home) -> list[dict[str, object]]:
    done = run_here("allow", "--list", "--json", "--config", str(home.config))
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def test_the_command_that_a_refused_call_names_works_and_can_be_taken_back(home: Home) -> None:
    with home.serving() as agent:
        refused = agent.execute("up__say", {"n": 1})
        assert refused.failed
        found = re.search(r"every call for an hour: mcpzip (allow .*?) – or", refused.text)
        assert found
        shown = answered(tuple(shlex.split(found[1])), QUESTION, b"y\n")
        assert "up__say: writes, may destroy, reaches out" in shown
        assert "for 1 h, with any arguments" in shown
        assert not agent.execute("up__say", {"n": 1}).failed
        assert [each["name"] for each in listed(home)] == ["up__say"]
        assert (
            b"is allowed no longer"
            in run_here("allow", "--revoke", "up__say", "--config", str(home.config)).stdout
        )
        assert agent.execute("up__say", {"n": 1}).failed
    assert len(home.calls("say")) == 1


@pytest.mark.parametrize("daemon", [True, False], ids=["daemon", "alone"])
def test_one_call_is_allowed_once_by_the_command_that_its_answer_names(home: Home, daemon: bool) -> None:
    arguments = {"n": 1, "to": "a\u202eb"}
    with home.serving(words=() if daemon else ("--no-daemon",)) as agent:
        agent.search("say")
        shown = answered(once(agent.execute("up__say", arguments).text), ONCE, b"y\n")
        assert "up__say: writes, may destroy, reaches out" in shown
        assert '"n": 1' in shown
        assert "\\u202e" in shown
        assert [each["once"] for each in listed(home)] == [True]
        assert agent.execute("up__say", {**arguments, "n": 2}).failed
        assert not agent.execute("up__say", dict(reversed(arguments.items()))).failed
        assert listed(home) == []
        assert agent.execute("up__say", arguments).failed
    assert len(home.calls("say")) == 1


def once(refusal: str) -> tuple[str, ...]:
    """The command, without `mcpzip`, that allows the refused call once."""
    found = re.search(r"only this call, once: mcpzip (allow .*?), or", refusal)
    assert found, refusal
    return tuple(shlex.split(found[1]))


def test_one_call_over_http(home: Home) -> None:
    name = {"name": "up__say", "arguments": {"n": 1}}
    meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
    params = {"name": "execute_tool", "arguments": name, "_meta": meta}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/call",
        "mcp-name": "execute_tool",
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    with listening(mcpzip_command(home.folder), home.config) as url, httpx.Client() as http:

        def call() -> dict[str, Any]:
            said = http.post(url, json=message, headers=headers, timeout=20).text
            lines = [line.removeprefix("data:").strip() for line in said.splitlines()]
            result: dict[str, Any] = json.loads(next(line for line in lines if '"id"' in line))["result"]
            return result

        answered(once(call()["content"][0]["text"]), ONCE, b"y\n")
        assert not call().get("isError")
        assert call()["isError"]
    assert len(home.calls("say")) == 1


def test_a_call_is_allowed_by_nobody_but_a_person_who_sees_it(home: Home) -> None:
    with home.serving() as agent:
        agent.search("say")
        words = once(agent.execute("up__say", {"n": 1}).text)
        done = run_here(*words, stdin=b"y\n")
        assert done.returncode == 1
        assert b"Only a person at a terminal can allow it" in done.stderr
        for more, sentence in (
            (("up__where",), "was refused within the last hour"),
            (("--args", "{}"), "--call has its arguments already"),
            (("--call", "ffffffffffff"), "No call 'ffffffffffff' was refused"),
        ):
            assert sentence in " ".join(run_here(*words, *more).stderr.decode().split())
        assert "Nothing was changed" in answered(words, ONCE, b"n\n")
        assert listed(home) == []
        assert agent.execute("up__say", {"n": 1}).failed
        long = agent.execute("up__say", {"text": "x" * 15_000}).text
        assert "only this call" not in long, "a terminal would not show all of it"
        assert "every call for an hour" in long


def test_only_certain_arguments_are_allowed(home: Home) -> None:
    with home.serving() as agent:
        agent.search("say")
        words = ("allow", "up__say", "--args", '{"n": 1}', "--for", "30m", "--config", str(home.config))
        assert 'only with {"n": 1}' in answered(words, QUESTION, b"y\n")
        assert not agent.execute("up__say", {"n": 1}).failed
        assert agent.execute("up__say", {"n": 2}).failed
    (found,) = listed(home)
    assert found["until"] - found["at"] == 1_800  # type: ignore[operator]
    assert "sha256" in run_here("allow", "--list", "--config", str(home.config)).stdout.decode()


def test_an_agent_cannot_allow(home: Home) -> None:
    with home.serving() as agent:
        agent.search("say")
    for stdin in (b"", b"y\n", b"yes\n"):
        done = run_here("allow", "up__say", "--config", str(home.config), stdin=stdin)
        assert done.returncode == 1
        assert b"Only a person at a terminal can allow it" in done.stderr
    shown = answered(("allow", "up__say", "--config", str(home.config)), QUESTION, b"n\n")
    assert "Nothing was changed" in shown
    assert listed(home) == []
    assert b"Nothing is allowed" in run_here("allow", "--list", "--config", str(home.config)).stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("up__where",), 'up__where is denied by policy: policy.tools.up__where is "deny" in'),
        (("up__sya",), "There is no tool 'up__sya'. The nearest: up__say"),
        (("up__say", "--for", "soon"), "'soon' is no time: write for example 90s, 30m, 1h or 2d"),
        (("up__say", "--for", "31d"), "'31d' is too long: 30d at most"),
        (("up__say", "--for", "0"), "'0' is too long"),
        (("up__say", "--args", "[1]"), "--args is not a JSON object"),
        ((), "Name a tool"),
    ],
)
def test_what_cannot_be_allowed_is_said(home: Home, words: tuple[str, ...], sentence: str) -> None:
    with home.serving() as agent:
        agent.search("say")
    done = run_here("allow", *words, "--config", str(home.config))
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.decode().split())
    assert run_here("allow", "--revoke", "up__say", "--config", str(home.config)).returncode == 1


def test_the_daemon_uses_an_edited_policy(home: Home) -> None:
    with home.serving() as agent:
        assert agent.execute("up__where").failed
        document = json.loads(home.config.read_text())
        home.config.write_text(
            json.dumps({**document, "policy": {"default": "ask", "tools": {"up__where": "allow"}}})
        )
        until(lambda: not agent.execute("up__where").failed)
        home.config.write_text(json.dumps({**document, "policy": "aks"}))
        until(lambda: "found 'aks'" in agent.status())
        assert not agent.execute("up__where").failed
        assert agent.execute("up__say").failed


def test_the_person_at_the_command_line_needs_permission_too(home: Home) -> None:
    done = run_here("call", "up__say", "--config", str(home.config))
    assert done.returncode == 2
    assert b"mcpzip allow" in done.stderr
    assert home.calls("say") == []
