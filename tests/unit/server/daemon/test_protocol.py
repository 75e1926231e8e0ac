"""What `mcpzip serve` and the daemon say to each other."""

import json
import os
from pathlib import Path

import pytest

from mcpzip.server.daemon import protocol
from mcpzip.system.local_socket import LONGEST_PATH


@pytest.mark.parametrize("value", [None, 7, "x\ny", {"read": 3}])
def test_a_notice_is_read_as_it_was_written(value: object) -> None:
    line = protocol.notice(protocol.HANDOVER, value)
    assert line.startswith(protocol.MARK)
    assert line.count(b"\n") == 1
    assert protocol.read_notice(line) == (protocol.HANDOVER, value)


@pytest.mark.parametrize("line", [b"", b"!", b"!ok", b"!ok {", b"\xff\n"])
def test_anything_else_is_no_notice(line: bytes) -> None:
    assert protocol.read_notice(line) == (b"", None)


def test_a_greeting_is_one_line_before_what_is_replayed() -> None:
    environment = {"A": "x\ny", "B": os.fsdecode(b"\xff")}
    line, _, rest = protocol.client_greeting(b"replayed\n", environment, "/f", continued=True).partition(
        b"\n"
    )
    said = json.loads(line)
    assert rest == b"replayed\n"
    assert said["replay"] == len(rest)
    assert said["environment"] == environment
    assert (said["kind"], said["folder"], said["continued"], said["pid"]) == (
        "client",
        "/f",
        True,
        os.getpid(),
    )


@pytest.mark.parametrize(
    ("version", "newer"),
    [
        ("0.0.9", False),
        ("0.1.0", False),
        ("0.1.1", True),
        ("1", True),
        ("", False),
        ("²", False),
        ("9" * 40, False),
    ],
)
def test_a_newer_version_has_higher_numbers(
    monkeypatch: pytest.MonkeyPatch, version: str, newer: bool
) -> None:
    monkeypatch.setattr(protocol, "__version__", "0.1.0")
    assert protocol.is_newer(version) == newer


def test_two_configs_have_two_daemons_and_every_path_fits_a_socket(tmp_path: Path) -> None:
    config = str(tmp_path / "config.json")
    found = protocol.socket_and_lock(config, "")
    assert found == protocol.socket_and_lock(config, "")
    others = [protocol.socket_and_lock(f"{config}x", ""), protocol.socket_and_lock(config, "/p/.mcpzip.json")]
    assert len({lock for _, lock in (found, *others)}) == 3
    deep = protocol.socket_and_lock("/" + "deep/" * 100 + "config.json", "")
    assert all(len(os.fsencode(path)) <= LONGEST_PATH for path, _ in (found, *others, deep))
