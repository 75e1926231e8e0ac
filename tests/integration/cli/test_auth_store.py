"""`mcpzip auth` with a store: signed in on one machine, used on another."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.driver import serving, until, write_config
from helpers.login_process import login
from helpers.store_servers import PASSWORD, SERVERS, StoreServer, running
from mcpzip_fakes.launch import FakeServer

from mcpzip.cli.commands import run as run_here

KEY = "k" * 43 + "="
GREET: dict[str, Any] = {"name": "greet", "description": "Say hello", "result": {"text": "hello"}}
Say = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module", params=[*SERVERS])
def server(request: pytest.FixtureRequest) -> Iterator[StoreServer]:
    with running(SERVERS[request.param]()) as server:
        yield server


@pytest.fixture
def tracker(fake_mcp: Callable[..., FakeServer]) -> FakeServer:
    return fake_mcp(name="tracker", tools=[GREET], transport="http", oauth={"scopes": ["read"]})


@pytest.fixture
def machine(
    server: StoreServer, tracker: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Path]:
    """The folder of a machine's config, which is the one that commands use from now on."""
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setenv("STORE_URL", server.url)
    monkeypatch.setenv("STORE_KEY", KEY)

    def use(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        store = {"url": "${STORE_URL}", "keys": ["${STORE_KEY}"], "namespace": tmp_path.name}
        monkeypatch.setenv("MCPZIP_CONFIG", str(write_config(folder, tracker, store=store)))
        return folder

    return use


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    def run(*words: str) -> tuple[int, str, str]:
        code = run_here(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_signed_in_on_one_machine_and_out_on_another(
    machine: Callable[[str], Path], tracker: FakeServer, say: Say
) -> None:
    assert tracker.auth
    first = machine("first")
    with login("tracker") as trying:
        tracker.auth.browse(trying.page)
        code, said = trying.end()
    assert code == 0, trying.said
    assert said.startswith("Signed in to tracker (scope: read; until 20")
    assert not (first / "auth").exists()
    second = machine("second")
    code, out, err = say("auth", "status", "--json")
    assert [each["state"] for each in json.loads(out)] == ["signed in"], err
    assert say("call", "tracker__greet")[:2] == (0, "hello\n")
    assert len(tracker.auth.requests("authorize")) == 1
    code, out, err = say("auth", "logout", "tracker")
    assert (code, err) == (0, "")
    assert "Signed out of tracker" in out
    machine("first")
    assert json.loads(say("auth", "status", "--json")[1])[0]["state"] != "signed in"
    assert not (second / "auth").exists()


def test_a_server_that_runs_notices_that_somebody_signed_in_elsewhere(
    machine: Callable[[str], Path], tracker: FakeServer
) -> None:
    assert tracker.auth
    second = machine("second")
    with serving(second) as client:
        until(lambda: "needs a login" in client.status())
        machine("first")
        with login("tracker") as trying:
            tracker.auth.browse(trying.page)
            assert trying.end()[0] == 0
        until(lambda: client.execute("tracker__greet").text == "hello")


def test_a_store_that_is_away_is_said_without_its_password(
    machine: Callable[[str], Path], say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("first")
    url = os.environ["STORE_URL"]
    scheme, _, rest = url.partition("://")
    monkeypatch.setenv("STORE_URL", f"{scheme}://{rest.partition('@')[0]}@127.0.0.1:1/0")
    for command in (("auth", "status"), ("auth", "login", "tracker"), ("auth", "logout", "tracker")):
        code, out, err = say(*command)
        assert (code, out) == (2, "")
        assert f"The store {scheme}://127.0.0.1:1/0: it can't be used" in err
        assert 'correct "store" in the config' in err
        assert PASSWORD not in err
