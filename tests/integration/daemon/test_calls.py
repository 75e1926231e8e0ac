"""`mcpzip calls`: what the daemon remembers of the calls of all agents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.daemons import Home, daemon_home, said, say_often
from helpers.driver import INITIALIZE, run, until


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with daemon_home(tmp_path, monkeypatch) as home:
        yield home


def told(home: Home, *words: str, code: int = 0) -> str:
    done = run("calls", *words, "--config", str(home.config))
    assert done.returncode == code, done.stderr
    return (done.stdout + done.stderr).decode()


def found(home: Home, *words: str) -> list[Any]:
    return [json.loads(line) for line in told(home, "--json", *words).splitlines()]


def test_the_calls_of_all_agents_are_shown(home: Home) -> None:
    assert "No daemon runs now" in told(home)
    assert found(home) == []
    with home.serving() as one, home.serving(begin=False) as other:
        other.ask("initialize", {**INITIALIZE, "clientInfo": {"name": "\x1b[31mred", "version": "7"}})
        assert "no such calls" in told(home)
        said(one)
        said(other, "where")
        one.execute("up__nothing")
        calls = found(home)
        assert [(call["client"].lstrip(), call["tool"], call["outcome"]) for call in calls] == [
            ("test", "say", "result"),
            ("[31mred", "where", "result"),
        ]
        assert [event["what"] for event in calls[0]["events"]] == ["connecting", "sent", "answered"]
        text = told(home)
        assert "up__say" in text
        assert "\x1b" not in text
        number = one.send_call("up__wait", {"until": "/never"})
        until(lambda: "under way" in told(home))
        assert found(home, "--tool", "wait")[0]["seconds"] is None
        one.tell("notifications/cancelled", {"requestId": number})
        until(lambda: "cancelled" in told(home, "--failed"))


def test_calls_are_chosen(home: Home) -> None:
    with home.serving() as client:
        for word in ("say", "where", "say", "say"):
            said(client, word)
        assert len(found(home, "--limit", "3")) == 3
        assert len(found(home, "--tool", "s*")) == 3
        assert len(found(home, "--tool", "up__where")) == 1
        assert len(found(home, "--server", "up")) == 4
        assert found(home, "--server", "other") == []
        assert len(found(home, "--client", "te*")) == 4
        assert found(home, "--client", "x*") == []
        assert found(home, "--failed") == []


def test_calls_that_are_remembered_elsewhere_are_said_to_be(home: Home) -> None:
    with home.serving() as client, home.serving(words=("--no-daemon",)) as alone:
        said(client)
        said(alone, "where")
        until(lambda: "1 process serves agents without the daemon" in told(home))
        assert [call["tool"] for call in found(home)] == ["say"]


def test_more_calls_than_one_answer_has(home: Home) -> None:
    with home.serving() as client:
        say_often(client, 300)
        calls = found(home, "--limit", "1000")
        assert [call["number"] for call in calls] == list(range(1, 301))
        assert home.ask("calls")["more"]
        assert home.ask("calls", since="x", before=[])["calls"]
