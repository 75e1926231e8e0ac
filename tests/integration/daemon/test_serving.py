"""One daemon for every agent: who shares it, and the processes of servers behind it."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from helpers.daemons import Home, daemon_home, said
from helpers.driver import INITIALIZE, alive, run, until


@pytest.fixture(params=["unix", "loopback"])
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Home]:
    """A home whose daemon listens at a Unix domain socket, or on loopback as on Windows."""
    with daemon_home(tmp_path, monkeypatch, loopback=request.param == "loopback") as home:
        yield home


def test_agents_share_one_daemon_and_the_processes_of_servers(home: Home) -> None:
    with ExitStack() as stack:
        agents = [stack.enter_context(home.serving()) for _ in range(4)]
        assert len({said(agent)["pid"] for agent in agents}) == 1
        assert home.starts() == 1
        pid = home.pid
        assert pid is not None
        assert pid not in [agent.process.pid for agent in agents]
        assert "up__say" in agents[0].search("say something")
    assert home.pid == pid  # it waits for others


def test_the_first_answers_are_those_of_a_process_of_its_own(home: Home) -> None:
    talks = []
    for words in ((), ("--no-daemon",)):
        for _ in range(2):
            with home.serving(words=words) as client:
                client.ask("tools/list")
                client.search("say")
                talks.append(client.heard[:3])
    assert talks[0] == talks[1] == talks[2] == talks[3]


def test_many_agents_at_once_start_one_daemon(home: Home) -> None:
    with ExitStack() as stack:
        agents = [stack.enter_context(home.serving(begin=False)) for _ in range(6)]
        for agent in agents:
            agent.begin()
        assert len({said(agent)["pid"] for agent in agents}) == 1

    def log() -> str:
        return "".join(path.read_text() for path in (home.folder / "logs").glob("*.log"))

    until(lambda: '"event":"serve"' in log())  # it gathers lines before it writes them
    assert log().count('"event":"serve"') == 1


def test_it_ends_when_nobody_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with daemon_home(tmp_path, monkeypatch, daemon={"idle_minutes": 0}) as home:
        with home.serving() as client:
            server = said(client)["pid"]
            with home.serving() as other:
                assert said(other)["pid"] == server
            assert said(client)["pid"] == server
        home.wait_for_end()
        until(lambda: not alive(server))
        assert not os.path.exists(home.socket)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_only_its_agent(home: Home, number: int) -> None:
    with home.serving() as one, home.serving() as other:
        server = said(other)["pid"]
        assert one.signal(number) == 0
        assert said(other)["pid"] == server


def test_requests_before_the_end_of_the_input_are_answered(home: Home) -> None:
    with home.serving() as client:
        said(client)  # a call has half a second then, in which a busy machine may not start the server
        number = client.send_call("up__say", {"x": 1})
        assert client.process.stdin
        client.process.stdin.close()
        assert not client.answer(number).failed
        assert client.process.wait(20) == 0


def test_an_agent_that_dies_takes_its_call_with_it_and_no_other(home: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with home.serving() as one, home.serving() as other:
        one.send_call("up__wait", {"until": str(gate)})
        number = other.send_call("up__wait", {"until": str(gate)})
        until(lambda: len(home.calls("wait")) == 2)
        one.process.kill()
        until(lambda: home.noted("cancelled"))
        assert len(home.noted("cancelled")) == 1
        gate.touch()
        assert not other.answer(number).failed


@pytest.mark.parametrize("how", ["word", "variable", "config"])
def test_a_daemon_can_be_declined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    keys = {"shared": False} if how == "config" else {}
    with daemon_home(tmp_path, monkeypatch, **keys) as home:
        variables = {"MCPZIP_DAEMON": "off"} if how == "variable" else {}
        words = ("--no-daemon",) if how == "word" else ()
        with home.serving(words=words, **variables) as client:
            assert said(client)
            assert home.pid is None


def test_what_is_wrong_with_the_config_is_said_as_without_a_daemon(home: Home) -> None:
    home.config.write_text('{"mcpServers": {}, "expose": 7}')
    found = [run("serve", "--config", str(home.config), MCPZIP_DAEMON=switch) for switch in ("", "off")]
    assert [each.returncode for each in found] == [2, 2]
    assert found[0].stderr == found[1].stderr
    assert b"expose" in found[0].stderr


def test_a_warning_reaches_the_agents_stderr(home: Home) -> None:
    config = home.config.read_text().replace('"mcpServers"', '"mcpServer": 1, "mcpServers"')
    home.config.write_text(config)
    with home.serving() as client:
        said(client)
    with home.serving() as client:
        said(client)
    assert (home.folder / "stderr.log").read_text().count("mcpServer:") == 2


def test_an_edit_of_the_config_reaches_every_agent(home: Home) -> None:
    with home.serving() as one, home.serving() as other:
        said(one), said(other)
        text = home.config.read_text()
        home.config.write_text(text.replace('"up"', '"down"'))
        for client in (one, other):
            until(lambda client=client: "down__say" in client.search("say"))
        home.config.write_text(text[:-2])
        until(lambda: "stays in use" in (home.folder / "stderr.log").read_text())
        assert "down__say" in one.search("say")


def test_environments_in_which_the_config_means_something_else_share_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        daemon_home(tmp_path, monkeypatch, up={"env": {"TOKEN": "${TOKEN}"}}) as home,
        home.serving(TOKEN="one") as one,
        home.serving(TOKEN="two") as two,
        home.serving(TOKEN="one", PWD="/elsewhere", TERM_SESSION_ID="7") as same,
    ):
        assert [said(client)["token"] for client in (one, two, same)] == ["one", "two", "one"]
        assert said(one)["pid"] == said(same)["pid"] != said(two)["pid"]
        assert home.pid is not None


def test_a_variable_that_only_one_agent_has_is_used_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        daemon_home(tmp_path, monkeypatch, up={"env": {"TOKEN": "${TOKEN}"}}) as home,
        home.serving() as without,
        home.serving(TOKEN="one") as one,
    ):
        assert said(one)["token"] == "one"
        assert "TOKEN is not set" in without.execute("up__say").text


def test_relative_paths_mean_a_process_for_each_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        (folder / "data.json").write_text("{}")
    with daemon_home(tmp_path, monkeypatch) as home:
        config = home.config.read_text().replace('server.log"', 'server.log", "./data.json"')
        home.config.write_text(config)
        with ExitStack() as stack:
            agents = [stack.enter_context(home.serving(cwd=folders[at])) for at in (0, 1, 0)]
            found = [said(agent) for agent in agents]
        assert [each["folder"] for each in found] == [str(folders[at]) for at in (0, 1, 0)]
        assert found[0]["pid"] == found[2]["pid"] != found[1]["pid"]


@pytest.mark.parametrize(("share", "processes"), [("auto", 1), ("always", 1), ("per-cwd", 2), ("never", 3)])
def test_the_config_says_who_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: str, processes: int
) -> None:
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "a"]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    with daemon_home(tmp_path, monkeypatch, up={"share": share}) as home, ExitStack() as stack:
        agents = [stack.enter_context(home.serving(cwd=folder, begin=False)) for folder in folders]
        for agent in agents:
            agent.ask("initialize", {**INITIALIZE, "capabilities": {"elicitation": {}}})
            agent.tell("notifications/initialized")
        assert len({said(agent)["pid"] for agent in agents}) == processes
