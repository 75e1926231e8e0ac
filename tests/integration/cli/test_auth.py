"""`mcpzip auth`: the commands as processes, against a fake authorization server. The test is the browser."""

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.driver import command, environment, until, write_config
from helpers.grants import grant_of, kept_at
from helpers.login_process import BROWSERLESS, PATIENCE, Login, go, login, signed_in
from mcpzip_fakes.launch import FakeServer

from mcpzip.auth.store import PersonStore
from mcpzip.cli.commands import run as run_here
from mcpzip.model.principal import API_KEYS

Fake = Callable[..., FakeServer]
Json = dict[str, Any]

GREET: Json = {"name": "greet", "description": "Say hello", "result": {"text": "hello"}}


@pytest.fixture
def tracker(fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    """A protected server in the config that $MCPZIP_CONFIG names."""
    server = fake_mcp(
        name="tracker", tools=[GREET], transport="http", oauth={"access_seconds": 3600, "scopes": ["read"]}
    )
    monkeypatch.setenv("MCPZIP_CONFIG", str(write_config(tmp_path, server)))
    monkeypatch.setenv("COLUMNS", "250")
    return server


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "auth").glob("*.json"))


def secrets_of(server: FakeServer) -> list[str]:
    assert server.auth
    return [token.value for token in server.auth.tokens()]


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


Say = Callable[..., Said]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs a command line in this process, which is faster where nobody is asked."""

    def run(*words: str) -> Said:
        code = run_here(list(words))
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


def status(say: Say) -> list[Json]:
    return json.loads(say("auth", "status", "--json").out)


# ---- login


def test_login_from_nothing_to_a_call(tracker: FakeServer, tmp_path: Path, say: Say) -> None:
    assert tracker.auth
    (before,) = status(say)
    assert (before["name"], before["state"], before["issuer"]) == ("tracker", "unknown", "")
    with login("tracker") as trying:
        assert "response_type=code" in trying.page
        page = tracker.auth.browse(trying.page)
        code, said = trying.end()
    assert code == 0, trying.said
    assert "Signed in to tracker" in page
    assert "You can close this window" in page
    assert said.startswith("Signed in to tracker (scope: read; until 20")
    assert "renewed by itself" in said
    assert "It lists 1 tool." in said
    assert "No browser is opened from here (there is no display here)." in trying.said
    done = say("call", "tracker__greet")
    assert (done.code, done.out) == (0, "hello\n")
    (after,) = status(say)
    assert (after["state"], after["issuer"], after["scope"]) == ("signed in", tracker.auth.issuer, "read")
    assert after["refreshable"] is True
    assert 3000 < after["expires_in"] <= 3600
    assert kept(tmp_path)
    if os.name != "nt":
        assert {stat.S_IMODE(path.stat().st_mode) for path in kept(tmp_path)} == {0o600}


def test_the_browser_is_opened_with_the_address(tracker: FakeServer, tmp_path: Path) -> None:
    assert tracker.auth
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\nprintf %s "$1" > {shlex.quote(str(seen))}.part && mv {seen}.part {seen}\n'
    )
    browser.chmod(0o755)
    with login("tracker", BROWSER=str(browser)) as trying:
        until(seen.exists, PATIENCE)
        assert seen.read_text() == trying.page
        tracker.auth.browse(trying.page)
        assert trying.end()[0] == 0
    assert "No browser" not in trying.said


@pytest.mark.parametrize(
    ("env", "why"),
    [
        ({"BROWSER": "/nowhere/browser"}, "No browser could be opened: open the page above yourself."),
        ({"DISPLAY": ":99", "SSH_CONNECTION": "a b c d"}, "from here (this session came over SSH)"),
    ],
)
def test_without_a_browser_it_says_so_and_waits(tracker: FakeServer, env: dict[str, str], why: str) -> None:
    assert tracker.auth
    with login("tracker", **env) as trying:
        trying.hears(why)
        tracker.auth.browse(trying.page)
        assert trying.end()[0] == 0


def test_over_ssh_the_address_is_pasted_back(tracker: FakeServer) -> None:
    assert tracker.auth
    with login("tracker", "--no-browser", BROWSER="/bin/false") as trying:
        back = tracker.auth.leads_to(trying.page)
        trying.paste("yes?")
        trying.hears("That is not the address the browser ended up at")
        trying.paste(back.replace("state=", "state=guessed"))
        trying.hears("state of another login")
        trying.paste(back)
        code, said = trying.end()
    assert code == 0, trying.said
    assert "No browser is opened from here (--no-browser)." in trying.said
    assert said.startswith("Signed in to tracker")


@pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals")
def test_a_terminal_takes_an_address_of_any_length_and_is_left_as_it_was(tracker: FakeServer) -> None:
    import pty
    import termios

    assert tracker.auth
    outside, inside = pty.openpty()
    try:
        before = termios.tcgetattr(inside)
        script = "import os, sys; os.setsid(); import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        script += "os.execv(sys.argv[1], sys.argv[1:])"
        process = subprocess.Popen(
            [sys.executable, "-c", script, *command("auth", "login", "tracker")],
            stdin=inside,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment(), **BROWSERLESS},
        )
        with process:
            trying = Login(process)
            back = tracker.auth.leads_to(trying.page)
            trying.hears("paste it here")
            trying.hears("Waiting for you")
            os.write(outside, f"oops\x15{back}{'&more=' + 'x' * 6000}y\x7f\n".encode())
            code, said = trying.end()
        assert code == 0, trying.said
        assert said.startswith("Signed in to tracker")
        assert termios.tcgetattr(inside) == before
    finally:
        os.close(outside)
        os.close(inside)


def test_what_is_refused_is_said_and_the_login_goes_on(tracker: FakeServer) -> None:
    assert tracker.auth
    with login("tracker") as trying:
        back = tracker.auth.leads_to(trying.page)
        forged = back.replace("code=", "code=evil").replace("state=", "state=x")
        assert "state of another login" in go(forged)
        trying.hears("the answer has the state of another login")
        assert "Signed in to tracker" in go(back)
        assert trying.end()[0] == 0


def test_a_no_is_said(tracker: FakeServer, tmp_path: Path, say: Say) -> None:
    assert tracker.auth
    tracker.auth.configure(approve="deny")
    with login("tracker") as trying:
        assert "access_denied" in go(tracker.auth.leads_to(trying.page))
        code, said = trying.end()
    assert (code, said) == (1, "")
    assert (
        "mcpzip: The authorization server of tracker refused: you, or it, said no (access_denied)"
        in trying.said
    )
    (one,) = status(say)
    assert one["state"] != "signed in"


def test_nobody_comes(tracker: FakeServer) -> None:
    with login("tracker", "--timeout", "0.05") as trying:
        code, said = trying.end()
    assert (code, said) == (1, "")
    assert "Nobody signed in to tracker within 0.05 s. Begin again; --timeout gives more time." in trying.said


@pytest.mark.skipif(os.name == "nt", reason="a console's Ctrl-C can't be sent to one process")
def test_ctrl_c_ends_it_at_once_and_it_can_begin_again(tracker: FakeServer) -> None:
    with login("tracker") as trying:
        trying.hears("Waiting for you")
        trying.process.send_signal(signal.SIGINT)
        code, said = trying.end()
    assert (code, said) == (1, "")
    assert "Traceback" not in trying.said
    signed_in(tracker)


def test_one_login_at_a_time(tracker: FakeServer) -> None:
    assert tracker.auth
    with login("tracker") as first:
        page = first.page
        with login("tracker") as second:
            code, _ = second.end()
        assert code == 1
        assert "Another login to tracker is under way. Finish that one, or end it with Ctrl-C." in second.said
        assert "http" not in second.said
        tracker.auth.browse(page)
        assert first.end()[0] == 0


def test_signed_in_already(tracker: FakeServer, say: Say) -> None:
    assert tracker.auth
    signed_in(tracker)
    tokens = len(tracker.auth.tokens())
    done = say("auth", "login", "tracker")
    assert done.code == 0
    assert done.out.startswith("Already signed in to tracker (scope: read; until ")
    assert done.err == ""
    assert len(tracker.auth.tokens()) == tokens
    for _ in range(3):  # another program may have got the port meanwhile
        registered = len(tracker.auth.requests("register"))
        with login("tracker", "--force") as trying:
            tracker.auth.browse(trying.page)
            code, said = trying.end()
        assert code == 0
        assert said.startswith("Signed in to tracker")
        assert len(tracker.auth.tokens()) > tokens
        if len(tracker.auth.requests("register")) == registered:
            return
    pytest.fail("the browser never came back to the same port")


def test_a_server_that_wants_no_login(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say: Say
) -> None:
    server = fake_mcp(name="open", tools=[GREET], transport="http")
    monkeypatch.setenv("MCPZIP_CONFIG", str(write_config(tmp_path, server)))
    done = say("auth", "login", "open")
    assert (done.code, done.out) == (0, "open needs no login: it can be used as it is.\n")
    assert say("refresh").code == 0
    (one,) = status(say)
    assert (one["state"], one["command"]) == ("not signed in", None)


def test_a_machine_signs_in_by_itself(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say: Say
) -> None:
    secret = "s3cret-of-the-machine"
    client = {"id": "nightly", "secret": secret, "grants": ["client_credentials"]}
    server = fake_mcp(name="tracker", tools=[GREET], transport="http", oauth={"clients": [client]})
    auth = {"grant": "client_credentials", "client_id": "nightly", "client_secret": "${SECRET}"}
    config = write_config(tmp_path, others={"tracker": {**server.config, "auth": auth}})
    monkeypatch.setenv("MCPZIP_CONFIG", str(config))
    monkeypatch.setenv("SECRET", secret)
    (one,) = status(say)
    assert (one["state"], one["command"]) == ("credentials", None)
    done = say("auth", "login", "tracker")
    assert done.code == 0, done.err
    assert done.out.startswith("Signed in to tracker (")
    assert done.err == ""
    (one,) = status(say)
    assert (one["state"], one["refreshable"]) == ("signed in", True)
    assert secret not in done.out + say("auth", "status").out


# ---- wrong requests


def test_servers_that_are_not_signed_in_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say: Say) -> None:
    url = "http://127.0.0.1:9/mcp"
    others: dict[str, Json] = {
        "github": {"url": url},
        "files": {"command": "never-run"},
        "off": {"url": url, "disabled": True},
        "header": {"url": url, "headers": {"authorization": "Bearer very-secret"}},
        "program": {"url": url, "headersCommand": ["never-run"]},
        "never": {"url": url, "auth": False},
        "unset": {"url": "${NOT_SET}"},
    }
    monkeypatch.setenv("MCPZIP_CONFIG", str(write_config(tmp_path, others=others)))
    for name, sentence in {
        "gihub": "There is no server 'gihub' in ",
        "files": 'files runs on this machine and is not signed in to; what it needs goes into its "env"',
        "off": 'off is disabled; remove "disabled" from it',
        "header": "header is signed in to with the Authorization header",
        "program": 'program is signed in to by its "headersCommand"',
        "never": 'never has "auth": false in ',
        "unset": "NOT_SET",
    }.items():
        done = say("auth", "login", name)
        assert (done.code, done.out) == (2, "")
        assert sentence in done.err
        assert "very-secret" not in done.err
    assert "The nearest: github." in say("auth", "login", "gihub").err
    assert say("auth", "logout", "files").code == 2
    assert say("auth", "logout", "gihub").code == 2
    done = say("auth", "login", "github")
    assert done.code == 1
    assert f"mcpzip: github: {url} can't be reached: " in done.err
    states = {one["name"]: one["state"] for one in status(say)}
    assert states == {
        "github": "unknown",
        "header": "header",
        "never": "off",
        "off": "unknown",
        "program": "headers command",
        "unset": "unknown",
    }


def test_nothing_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say: Say) -> None:
    monkeypatch.setenv("MCPZIP_CONFIG", str(write_config(tmp_path, others={"files": {"command": "x"}})))
    done = say("auth", "status")
    assert done.code == 0
    assert "is reached over HTTP" in done.out
    assert status(say) == []


# ---- status and logout


def test_status_says_who_needs_a_login_and_the_command(tracker: FakeServer, say: Say) -> None:
    assert say("refresh").code == 1
    done = say("auth", "status")
    assert done.code == 1
    assert "needs login" in done.out
    assert "Run: mcpzip auth login" in " ".join(done.out.split())
    (one,) = status(say)
    assert one["state"] == "needs login"
    assert one["command"].startswith("mcpzip auth login tracker --config ")
    signed_in(tracker)
    assert say("auth", "status").code == 0


def test_logout_revokes_and_forgets(tracker: FakeServer, tmp_path: Path, say: Say) -> None:
    assert tracker.auth
    signed_in(tracker)
    done = say("auth", "logout", "tracker")
    assert done.code == 0, done.err
    told = f"Signed out of tracker: what it granted is revoked at {tracker.auth.issuer}, and removed here.\n"
    assert done.out == told
    assert kept(tmp_path) == []
    assert all(token.ended for token in tracker.auth.tokens())
    done = say("auth", "logout", "tracker")
    assert (done.code, done.out) == (0, "You are not signed in to tracker: nothing is kept.\n")


def test_logout_says_what_could_not_be_revoked(tracker: FakeServer, tmp_path: Path, say: Say) -> None:
    assert tracker.auth
    tracker.auth.configure(revocation=False)
    signed_in(tracker)
    done = say("auth", "logout", "tracker")
    assert (done.code, done.out) == (0, "Signed out of tracker: what it granted is removed here.\n")
    assert "stays good there until it expires" in done.err
    assert kept(tmp_path) == []


def test_what_is_kept_for_a_server_that_was_taken_out_can_be_forgotten(
    tracker: FakeServer, tmp_path: Path, say: Say
) -> None:
    assert tracker.auth
    signed_in(tracker)
    write_config(tmp_path, others={"files": {"command": "x"}})
    (one,) = status(say)
    assert (one["name"], one["state"]) == (tracker.url, "not in this config")
    assert one["command"].startswith(f"mcpzip auth logout {tracker.url} --config ")
    assert say("auth", "status").code == 0
    assert say("auth", "logout", "http://127.0.0.1:9/other").code == 2
    assert say("auth", "logout", tracker.url).code == 0
    assert kept(tmp_path) == []
    assert all(token.ended for token in tracker.auth.tokens())


def test_what_people_signed_in_to_is_counted_and_can_be_ended(
    tracker: FakeServer, tmp_path: Path, say: Say
) -> None:
    config = tmp_path / "config.json"
    settings = json.loads(config.read_text())
    settings["mcpServers"]["tracker"]["auth"] = {"per_user": True}
    config.write_text(json.dumps({**settings, "http": {"api_keys": "keys.json", "page": "127.0.0.1:8932"}}))
    store = kept_at(tmp_path)
    for name in ("ann", "bob", "cleo"):
        grant = grant_of(tracker.auth, tracker.url, person=(API_KEYS, name))
        PersonStore(store, (API_KEYS, name)).save(grant)
    shown = say("auth", "status")
    assert (shown.code, "each person, 3 signed in" in shown.out) == (0, True)
    people = json.loads(say("auth", "status", "--json").out)[0]["people"]
    assert [one["subject"] for one in people] == ["ann", "bob", "cleo"]
    assert "You are not signed in" in say("auth", "logout", "tracker").out  # which is about who asks
    assert "for bob: what it granted is revoked" in say("auth", "logout", "tracker", "--person", "bob").out
    assert "bob has not signed in" in say("auth", "logout", "tracker", "--person", "bob").out
    ended = [bool(token.ended) for token in tracker.auth.tokens("refresh")]
    assert ended == [False, True, False]
    config.write_text('{"mcpServers": {}}')  # the server was taken out
    shown = say("auth", "status")
    assert "--everybody" in shown.out
    assert "for cleo" in say("auth", "logout", tracker.url, "--everybody").out
    assert store.all() == []


def test_no_secret_is_ever_said(tracker: FakeServer, say: Say) -> None:
    assert tracker.auth
    with login("tracker") as trying:
        tracker.auth.browse(trying.page)
        code, said = trying.end()
    assert code == 0
    shown = [said, trying.said]
    for words in (["status"], ["status", "--json"], ["login", "tracker"], ["logout", "tracker"]):
        done = say("auth", *words)
        shown += [done.out, done.err]
    values = secrets_of(tracker)
    assert len(values) >= 2
    assert [value for value in values if any(value in each for each in shown)] == []
