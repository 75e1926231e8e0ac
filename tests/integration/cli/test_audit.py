"""`mcpzip audit`: what the daemon wrote, filtered and verified."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.daemons import Home, daemon_home
from helpers.driver import run_here, until


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    policy = {"tools": {"up__where": "deny"}}
    with daemon_home(tmp_path, monkeypatch, policy=policy, audit=True) as home:
        with home.serving() as one, home.serving() as other:
            one.execute("up__say", {"secret": "hush"})
            other.execute("up__where")
            one.execute("up__say", {"n": 2})
        until(lambda: len(shown(home)) == 3)
        yield home


def audit(home: Home, *words: str) -> tuple[int, str]:
    done = run_here("audit", *words, "--config", str(home.config))
    return done.returncode, (done.stdout + done.stderr).decode()


def shown(home: Home, *words: str) -> list[dict[str, object]]:
    code, text = audit(home, "--json", *words)
    assert code == 0, text
    return [json.loads(line) for line in text.splitlines()]


def test_it_shows_who_called_what(home: Home) -> None:
    tools = [(line["tool"], line["decision"], line["outcome"]) for line in shown(home)]
    assert tools == [("say", "allow", "result"), ("where", "deny", "denied"), ("say", "allow", "result")]
    numbers = [line["client"]["number"] for line in shown(home)]  # type: ignore[index]
    assert numbers[0] == numbers[2] != numbers[1]
    code, text = audit(home)
    assert code == 0
    assert text.count("up__say") == 2
    assert "denied" in text
    assert "hush" not in text + json.dumps(shown(home))
    (path,) = audit(home, "--path")[1].splitlines()
    assert "hush" not in Path(path).read_text()


def test_it_is_filtered(home: Home) -> None:
    assert len(shown(home, "--tool", "up__s*")) == 2
    assert len(shown(home, "--tool", "w*", "--server", "up")) == 1
    assert len(shown(home, "--decision", "deny")) == 1
    assert len(shown(home, "--server", "down")) == 0
    assert len(shown(home, "--since", "1h", "-n", "2")) == 2
    assert len(shown(home, "--since", "2100-01-01")) == 0
    assert len(shown(home, "--since", "2001-01-01T00:00:00+00:00")) == 3
    code, text = audit(home, "--since", "yesterday")
    assert (code, "'yesterday' is no time" in text) == (2, True)
    assert "There are no such calls" in audit(home, "--server", "down")[1]


def test_a_change_is_found(home: Home) -> None:
    code, text = audit(home, "--verify")
    assert (code, "3 calls, and nothing was changed" in text) == (0, True)
    path = Path(audit(home, "--path")[1].strip())
    path.write_text(path.read_text().replace('"denied"', '"result"'))
    code, text = audit(home, "--verify")
    assert code == 1
    assert "line 3: the line before it is not the one" in text
    code, text = audit(home, "--verify", "--json")
    assert (code, len(json.loads(text)["problems"])) == (1, 1)


def test_without_a_log_it_says_how_to_have_one(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"mcpServers": {}}')
    done = run_here("audit", "--config", str(config))
    assert b'"audit": true in the config' in done.stdout
    assert run_here("audit", "--verify", "--config", str(config)).returncode == 0


def test_what_is_on_the_standard_output_is_not_looked_for_here(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {}, "audit": {"to": "stdout"}}))
    done = run_here("audit", "--config", str(config))
    assert b"Those over HTTP are in the standard output" in done.stdout
