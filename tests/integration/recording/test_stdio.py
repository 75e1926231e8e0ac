"""``mcpzip-fake record -- COMMAND``: the client sees no difference, and the cassette has everything."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from helpers.driver import until
from mcpzip_fakes.launch import Fakes, importable

from mcpzip.cassettes.cassette import CLOSE, Exchange
from mcpzip.cassettes.files import load

RECORD = (sys.executable, "-m", "mcpzip_fakes", "record")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups are POSIX's")

ECHO = r"""
import os, sys
sys.stderr.write("started\n"); sys.stderr.flush()
while data := os.read(0, 65536):
    os.write(1, data)
sys.exit(int(sys.argv[1]))
"""
"""A server that sends back what it gets, and exits with a code."""


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **importable(), **more}


@pytest.fixture
def fakes(tmp_path: Path) -> Iterator[Fakes]:
    with Fakes(tmp_path / "fakes") as started:
        yield started


def start(cassette: Path, *words: str, **more: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*RECORD, str(cassette), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**more),
        bufsize=0,
    )


def script(text: str, *arguments: str) -> list[str]:
    return ["--", sys.executable, "-c", text, *arguments]


def conversation(command: Sequence[str], messages: Sequence[object], env: dict[str, str]) -> list[bytes]:
    """What a server answers to each message, one after the other."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    ) as process:
        assert process.stdin
        assert process.stdout
        answers = []
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            if isinstance(message, dict) and "id" in message:
                answers.append(process.stdout.readline())
        process.stdin.close()
        answers.append(process.stdout.read())
    return answers


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


def call(id: object, name: str, **arguments: object) -> dict[str, object]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def sounds(exchanges: Sequence[Exchange], *kinds: str) -> list[bytes]:
    """The data of the events of these kinds, by time."""
    heard = [(each.at + event.after, event) for each in exchanges for event in each.events]
    return [event.data for _, event in sorted(heard, key=lambda pair: pair[0]) if event.kind in kinds]


def test_the_client_hears_the_same_and_the_cassette_has_every_line(tmp_path: Path, fakes: Fakes) -> None:
    slack = fakes.start("slack", era="legacy")
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    messages = [INITIALIZE, ready, {"jsonrpc": "2.0", "id": "l", "method": "tools/list"}]
    messages += [call(7, "channels_list"), call(8, "no_such_tool")]
    direct = conversation(slack.command, messages, environment(**slack.env))
    cassette = tmp_path / "slack.toml"
    recorded = conversation(
        [*RECORD, str(cassette), "--", *slack.command], messages, environment(**slack.env)
    )
    assert recorded == direct
    read = load(str(cassette))
    assert (read.name, read.transport, read.command) == ("slack", "stdio", tuple(slack.command))
    assert [line + b"\n" for line in sounds(read.exchanges, "reply", "send")] == direct[:-1]
    assert [json.loads(each.request) for each in read.exchanges if each.request] == messages
    *_, last = read.exchanges
    assert (last.verb, [(event.kind, event.code) for event in last.events]) == (CLOSE, [("end", 0)])
    assert read.masked == ()


def test_half_lines_pass_at_once_in_both_directions(tmp_path: Path) -> None:
    with start(tmp_path / "c.toml", *script(ECHO, "0")) as process:
        assert process.stdin
        assert process.stdout
        for part in (b'{"half', b" \xff\r\n\n", b"last"):
            process.stdin.write(part)
            assert os.read(process.stdout.fileno(), 99) == part
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait() == 0
    read = load(str(tmp_path / "c.toml"))
    assert sounds(read.exchanges, "send", "reply") == [b'{"half \xff\r', b""]
    assert sounds(read.exchanges, "end") == [b"last"]
    assert sounds(read.exchanges, "stderr") == [b"started"]


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_that_of_the_server(tmp_path: Path, code: int) -> None:
    with start(tmp_path / "c.toml", *script(ECHO, str(code))) as process:
        assert process.communicate()[0] == b""
        assert process.returncode == code


@POSIX
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV"])
def test_a_server_that_a_signal_ended(tmp_path: Path, name: str) -> None:
    text = f"import os, signal; os.kill(os.getpid(), signal.{name})"
    with start(tmp_path / "c.toml", *script(text)) as process:
        process.communicate()
        assert process.returncode == -getattr(signal, name)
    (exchange,) = load(str(tmp_path / "c.toml")).exchanges
    assert [event.code for event in exchange.events if event.kind == "end"] == [-getattr(signal, name)]


@POSIX
def test_signals_reach_the_server(tmp_path: Path) -> None:
    text = """
import signal, sys
signal.signal(signal.SIGTERM, lambda number, frame: (print("caught", flush=True), sys.exit(5)))
print("ready", flush=True)
sys.stdin.read()
"""
    with start(tmp_path / "c.toml", *script(text)) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == b"caught\n"
        assert process.wait() == 5


@POSIX
def test_what_the_server_started_ends_with_it(tmp_path: Path) -> None:
    text = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
"""
    with start(tmp_path / "c.toml", *script(text)) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        process.communicate()
    deadline = time.monotonic() + 30
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not runs(pid)


def runs(pid: int) -> bool:
    """Whether a process runs; one that was killed and not collected yet doesn't."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return sys.platform != "linux"


def test_a_client_that_reads_nothing_holds_up_only_the_server(tmp_path: Path) -> None:
    """As without a recorder: the server's writes wait, and its input still arrives."""
    text = """
import os, sys, threading
threading.Thread(target=lambda: os.write(1, b"x" * 3_000_000 + b"\\n")).start()
sys.stderr.write(sys.stdin.readline()); sys.stderr.flush()
"""
    with start(tmp_path / "c.toml", *script(text)) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(b"heard\n")
        assert process.stderr.readline() == b"heard\n"
        assert len(process.stdout.readline()) == 3_000_001
    assert [len(line) for line in sounds(load(str(tmp_path / "c.toml")).exchanges, "send")] == [3_000_000]


def test_a_cassette_gets_another_session_or_is_replaced(tmp_path: Path) -> None:
    cassette = tmp_path / "c.toml"
    for session in (1, 2):
        with start(cassette, *script(ECHO, "0")) as process:
            process.communicate(b"x\n")
        assert [each.number for each in load(str(cassette)).sessions] == list(range(1, session + 1))
    with start(cassette, "--overwrite", *script(ECHO, "0")) as process:
        process.communicate(b"y\n")
    read = load(str(cassette))
    assert [each.number for each in read.sessions] == [1]
    assert b"y" in [each.request for each in read.exchanges]


def is_replaced_by_a_file(folder: Path) -> bool:
    """Tries to put a file in the place of ``folder``, which the recorder may just be making again."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.write_text("")
    except OSError:
        return False
    return True


def test_the_conversation_goes_on_if_nothing_can_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    with start(folder / "c.toml", *script(ECHO, "0")) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        for number in range(3):
            process.stdin.write(b"%d\n" % number)
            assert process.stdout.readline() == b"%d\n" % number
            until(lambda: is_replaced_by_a_file(folder))
        said = process.communicate()[1].decode()
    assert process.returncode == 0
    assert said.count("nothing more is recorded") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["c.toml", "--", "no-such-command-here"], "the command 'no-such-command-here' was not found"),
        (["c.toml"], "say after -- which server to run"),
        (["c.toml", "--secret", "NO_SUCH_VARIABLE", "--", "x"], "there is no such variable"),
        (["other.toml", "--", "x"], "it is no cassette"),
        (["http.toml", "--", "x"], "it was recorded over http, and this is stdio"),
    ],
)
def test_what_can_not_be_recorded_is_said_and_nothing_is_written(
    tmp_path: Path, words: list[str], said: str
) -> None:
    (tmp_path / "other.toml").write_text("name = 'x'")
    (tmp_path / "http.toml").write_text("cassette = 1\n[recorded]\ntransport = 'http'\n")
    before = sorted(tmp_path.iterdir())
    done = subprocess.run(
        [*RECORD, *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_a_client_that_kills_the_recorder_loses_only_what_was_open(tmp_path: Path) -> None:
    cassette = tmp_path / "c.toml"
    with start(cassette, "--", "mcp-server-time") as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        answer = process.stdout.readline()
        deadline = time.monotonic() + 30
        while not load(str(cassette)).exchanges and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    (exchange,) = load(str(cassette)).exchanges
    assert json.loads(exchange.request) == INITIALIZE
    assert exchange.reply == answer.rstrip(b"\n")
