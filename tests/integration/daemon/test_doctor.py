"""`mcpzip doctor` names what keeps agents from sharing a daemon."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from helpers.daemons import Home, daemon_home, said
from helpers.driver import run


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with TemporaryDirectory(prefix="d-") as folder, daemon_home(Path(folder), monkeypatch) as home:
        yield home


def found(home: Home) -> list[Any]:
    """The findings about the daemon."""
    done = run("doctor", "--json", "--config", str(home.config))
    return [each for each in json.loads(done.stdout)["findings"] if "daemon" in each["check"]]


def test_a_daemon_that_answers_is_fine(home: Home) -> None:
    assert found(home) == []
    with home.serving() as client:
        said(client)
        assert found(home) == []


def test_a_suspended_daemon_is_named(home: Home) -> None:
    with home.serving() as client:
        said(client)
        pid = home.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            (finding,) = found(home)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert finding["check"] == "processes.daemon-silent"
        assert finding["level"] == "error"


def test_a_folder_that_others_can_enter_is_named_and_closed(home: Home) -> None:
    folder = os.path.dirname(home.socket)
    os.makedirs(folder)
    os.chmod(folder, 0o777)
    (finding,) = found(home)
    assert finding["check"] == "processes.no-daemon"
    subprocess.run(finding["command"], shell=True, check=True)
    assert found(home) == []


def test_a_file_in_its_place_is_named_and_moved(home: Home) -> None:
    folder = os.path.dirname(home.socket)
    Path(folder).write_text("x")
    (finding,) = found(home)
    assert finding["check"] == "processes.no-daemon"
    subprocess.run(finding["command"], shell=True, check=True)
    assert found(home) == []
    assert Path(f"{folder}.old").read_text() == "x"
    shutil.rmtree(folder, ignore_errors=True)
