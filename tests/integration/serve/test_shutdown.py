"""However it ends, nothing is left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import (
    INITIALIZE,
    Client,
    Json,
    alive,
    command,
    encoded,
    ended,
    environment,
    family,
    left_of,
    serving,
    until,
    write_config,
)
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and process groups are POSIX's")

STUBBORN = ("ignore-eof", "ignore-sigterm", "fork")
WAIT: Json = {"name": "wait", "result": {"delay": 60}}


@pytest.fixture
def stubborn(fake_mcp: Fake) -> list[FakeServer]:
    """Servers that mind nothing, at every stage of their lives."""
    return [
        fake_mcp(name="ready", tools=[WAIT], faults=STUBBORN),
        fake_mcp(name="silent", faults=[*STUBBORN, "silence"]),
        fake_mcp(name="starting", faults=[*STUBBORN, {"kind": "slow-start", "seconds": 60}]),
    ]


def all_there(fakes: list[FakeServer]) -> list[int]:
    """Their processes and what they forked, once all are there."""
    until(lambda: len(family(*fakes)) == 2 * len(fakes))
    until(lambda: fakes[0].record.received("tools/list"))
    pids = family(*fakes)
    assert all(map(alive, pids))
    return pids


def busy(client: Client, fakes: list[FakeServer]) -> list[int]:
    pids = all_there(fakes)
    until(lambda: "ready: connected, 1 tools" in client.status())
    client.send_call("ready__wait", {})
    until(lambda: fakes[0].record.calls("wait"))
    return pids


def test_at_the_end_of_input(stubborn: list[FakeServer], tmp_path: Path) -> None:
    with serving(tmp_path, *stubborn) as client:
        pids = busy(client, stubborn)
        assert client.process.stdin
        client.process.stdin.close()
        assert left_of([client.process.pid, *pids]) == []
        assert client.process.wait() == 0


@pytest.mark.parametrize("numbers", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT, signal.SIGTERM]])
def test_when_told_to_end(stubborn: list[FakeServer], tmp_path: Path, numbers: list[int]) -> None:
    """Once, or by somebody impatient."""
    with serving(tmp_path, *stubborn) as client:
        pids = busy(client, stubborn)
        for number in numbers:
            client.process.send_signal(number)
        assert left_of([client.process.pid, *pids]) == []
        assert client.process.wait() == 0


def test_when_killed(stubborn: list[FakeServer], tmp_path: Path) -> None:
    with serving(tmp_path, *stubborn) as client:
        pids = busy(client, stubborn)
        client.process.kill()
        assert left_of(pids) == []


CLIENT = """
import subprocess, sys, time
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(server.pid, flush=True)
time.sleep(600)
"""


def test_when_its_client_is_killed(stubborn: list[FakeServer], tmp_path: Path) -> None:
    config = write_config(tmp_path, *stubborn)
    words = command("serve", "--config", str(config))
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, *words], stdout=subprocess.PIPE, env=environment()
    )
    with ended(client):
        assert client.stdout
        mcpzip = int(client.stdout.readline())
        pids = all_there(stubborn)
        client.kill()
        assert left_of([mcpzip, *pids]) == []


def test_a_client_that_stops_reading_does_not_keep_it(fake_mcp: Fake, tmp_path: Path) -> None:
    big = {"name": "big", "result": {"size": 3_000_000}}
    shop = fake_mcp(name="shop", tools=[big], faults=STUBBORN)
    config = write_config(tmp_path, shop)
    process = subprocess.Popen(
        command("serve", "--config", str(config)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    with ended(process):
        assert process.stdin
        process.stdin.write(
            encoded({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE})
        )
        process.stdin.flush()
        shop.record.wait_for(lambda record: record.received("tools/list"))
        call = {"name": "execute_tool", "arguments": {"name": "shop__big"}}
        for number in range(1, 4):
            process.stdin.write(
                encoded({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call})
            )
        process.stdin.flush()
        shop.record.wait_for(lambda record: len(record.calls("big")) == 3)
        pids = family(shop)
        process.stdin.close()
        assert left_of([process.pid, *pids]) == []


def test_a_client_that_is_gone_at_once_leaves_nothing(stubborn: list[FakeServer], tmp_path: Path) -> None:
    with serving(tmp_path, *stubborn, begin=False) as client:
        assert client.leave() == 0
    assert left_of(family(*stubborn)) == []


# The other commands


@pytest.mark.parametrize("words", [["servers"], ["call", "ready__wait"], ["refresh", "silent"]])
def test_a_command_that_is_interrupted(stubborn: list[FakeServer], tmp_path: Path, words: list[str]) -> None:
    fakes = stubborn[:1] if words[0] == "call" else stubborn[:2]
    config = write_config(tmp_path, *fakes)
    process = subprocess.Popen(
        command(*words, "--config", str(config)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    with ended(process):
        waiting = fakes[-1]
        wanted = "tools/call" if words[0] == "call" else "server/discover"
        waiting.record.wait_for(lambda record: record.received(wanted))
        until(lambda: len(family(waiting)) == 2)
        pids = family(*fakes)
        process.send_signal(signal.SIGINT)
        assert left_of([process.pid, *pids]) == []
        _, errors = process.communicate(timeout=10)
        assert process.returncode == 1
        assert b"Traceback" not in errors
