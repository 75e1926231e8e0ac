"""`mcpzip logs`: the entries of all processes, by server and level, for people and programs."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from helpers.driver import command, ended, environment, run, until

from mcpzip.cli.commands import run as run_here
from mcpzip.system.log_files import LogEntry, encoded

ENTRIES = [
    LogEntry(1_795_489_500.0, "info", 11, "", "serve", "version 1 serves it"),
    LogEntry(1_795_489_501.0, "info", 11, "slack", "started", "started with process id 12"),
    LogEntry(1_795_489_503.0, "info", 11, "slack", "stderr", "  no token \x1b[31m"),
    LogEntry(1_795_489_504.0, "error", 11, "slack", "failed", "it exited with code 1"),
]
LATER = LogEntry(1_795_489_502.0, "warning", 22, "bank", "stdout", "hello")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config that can't be read, and the log of two processes with it."""
    config = tmp_path / "config.json"
    config.write_text("{")
    monkeypatch.setenv("MCPZIP_CONFIG", str(config))
    monkeypatch.setenv("TZ", "UTC")
    (tmp_path / "logs").mkdir()
    log_of(config, 11).write_bytes(b"".join(map(encoded, ENTRIES)) + b"{torn")
    log_of(config, 22).write_bytes(b"no entry\n" + encoded(LATER))
    return config


def log_of(config: Path, pid: int) -> Path:
    return config.parent / "logs" / f"{config.name}.20261124T030500Z.{pid}.0001.log"


Capture = pytest.CaptureFixture[str]


def shown(capsys: Capture, *words: str) -> list[str]:
    assert run_here(["logs", *words]) == 0
    return capsys.readouterr().out.splitlines()


def texts(capsys: Capture, *words: str) -> list[str]:
    return [line.partition("] ")[2] for line in shown(capsys, *words)]


@pytest.mark.usefixtures("config")
def test_the_entries_of_all_processes_are_shown_by_time(capsys: Capture) -> None:
    lines = shown(capsys)
    assert [line.partition("] ")[2] for line in lines] == [
        "mcpzip: version 1 serves it",
        "slack: started with process id 12",
        "bank: stdout| hello",
        "slack: |   no token \\x1b[31m",
        "slack: it exited with code 1",
    ]
    assert lines[0].startswith("2026-11-2")
    assert [line.partition("[")[2][:2] for line in lines] == ["11", "11", "22", "11", "11"]


@pytest.mark.usefixtures("config")
def test_what_is_shown_can_be_chosen(capsys: Capture) -> None:
    assert texts(capsys, "bank") == ["bank: stdout| hello"]
    assert texts(capsys, "slack", "-n", "1") == ["slack: it exited with code 1"]
    assert texts(capsys, "--level", "warning") == ["bank: stdout| hello", "slack: it exited with code 1"]
    assert texts(capsys, "slack", "-n", "0") == []
    (line,) = shown(capsys, "bank", "--json")
    assert json.loads(line) == {
        "at": LATER.at,
        "level": "warning",
        "pid": 22,
        "server": "bank",
        "event": "stdout",
        "text": "hello",
    }


def test_it_is_said_where_the_log_lies(config: Path, capsys: Capture) -> None:
    assert shown(capsys, "--path") == [str(config.parent / "logs")]
    assert shown(capsys, "--path", "--config", "/x/other.json") == [str(Path("/x/logs").absolute())]


def test_an_empty_log_is_told_as_that(tmp_path: Path, capsys: Capture) -> None:
    assert run_here(["logs", "--config", str(tmp_path / "config.json")]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert f"The log is empty: {tmp_path / 'logs'}" in told.err


@pytest.mark.usefixtures("config")
def test_a_server_that_the_log_does_not_have_is_an_error(capsys: Capture) -> None:
    assert run_here(["logs", "slackk"]) == 2
    assert "has nothing of 'slackk'. The nearest: slack." in capsys.readouterr().err
    assert run_here(["logs", "zzz"]) == 2
    assert "It has: bank, slack." in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="signals a process")
def test_new_entries_follow_until_ctrl_c(config: Path) -> None:
    process = subprocess.Popen(
        command("logs", "slack", "-f", "-n", "1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    with ended(process):
        assert process.stdout
        assert process.stdout.readline().endswith(b"slack: it exited with code 1\n")
        with log_of(config, 22).open("ab") as file:
            file.write(encoded(LATER))
        with log_of(config, 33).open("wb") as file:  # a client that has come since
            file.write(encoded(LogEntry(LATER.at, "info", 33, "slack", "connected", "connected")))
        assert process.stdout.readline().endswith(b"[33] slack: connected\n")
        process.send_signal(signal.SIGINT)
        assert until(lambda: process.poll() is not None)
        assert process.returncode == 0


def test_the_help_names_the_log() -> None:
    assert b'in the folder "logs"' in b" ".join(run("--help").stdout.split())
