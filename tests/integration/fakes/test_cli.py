"""``mcpzip-fake`` from a shell, and the pytest plugin as pytest loads it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from mcpzip_fakes.launch import importable
from mcpzip_fakes.record import Record
from mcpzip_fakes.scenario import SHIPPED, names

INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize",'
    '"params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
)
CALL = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"channels_list","arguments":{}}}\n'


def run(
    *arguments: str, said: str = "", module: str = "mcpzip_fakes", **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        input=said,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        env={**os.environ, **importable(), **environment},
    )


@pytest.mark.parametrize(
    ("module", "more"),
    [("mcpzip_fakes", []), ("mcpzip_fakes", ["--transport", "stdio"]), ("mcpzip_fakes.stdio", [])],
)
def test_a_shipped_scenario_over_stdio(module: str, more: list[str], tmp_path: Path) -> None:
    record = tmp_path / "seen.jsonl"
    words = ("slack", "--era", "legacy", "--record", str(record), *more)
    done = run(*words, said=INITIALIZE + CALL, module=module)
    assert (done.returncode, done.stderr) == (0, "")
    greeting, channels = map(json.loads, done.stdout.splitlines())
    assert greeting["result"]["serverInfo"]["title"] == "Slack"
    listed = json.loads(channels["result"]["content"][0]["text"])["channels"]
    assert [channel["name"] for channel in listed] == ["general", "deploys", "support"]
    assert Record.load(record).methods() == ["initialize", "tools/call"]


def test_a_scenario_alone_is_played_without_the_command_line() -> None:
    code = (
        "import sys; from mcpzip_fakes import start, stdio\n"
        "stdio.leave = lambda code: print(code, 'click' in sys.modules)\n"
        "start.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "slack"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=60,
        env={**os.environ, **importable()},
    )
    assert done.stdout.split() == [b"0", b"False"]


@pytest.mark.parametrize(("transport", "path"), [("http", "/mcp"), ("sse", "/sse")])
def test_http_prints_where_it_listens(transport: str, path: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpzip_fakes", "echo", "--transport", transport, "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **importable()},
    )
    with process:
        assert process.stdout
        said, url = process.stdout.readline().split()
        assert said == "listening"
        assert url.startswith("http://127.0.0.1:")
        assert url.endswith(path)
        with httpx.stream("GET", url, headers={"accept": "text/event-stream"}, timeout=10) as answer:
            assert answer.status_code == (200 if transport == "sse" else 400)
        process.terminate()
        assert process.wait(timeout=30) != 0


def test_a_port_that_cant_be_had_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("echo", "--transport", "http", "--port", port)
    assert done.returncode == 1
    assert f"port {port} of 127.0.0.1 is in use; choose another, or 0 for a free one" in done.stderr
    without = run("echo", "--port", port)
    assert without.returncode == 2
    assert "--port is for http and sse" in without.stderr


def test_list_and_show() -> None:
    listed = run("--list").stdout
    assert all(name in listed for name in names())
    assert "silent-on-discover" in listed
    assert run("--show", "todoist").stdout == Path(SHIPPED, "todoist.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["no-such"], 1, "Error: no-such: there is no scenario of this name; give a path, or one of "),
        (["--show", "no-such"], 1, "Error: no-such: there is no scenario of this name; "),
        (["banner", "--transport", "http"], 1, "the fault 'banner' can't be played over http; use stdio."),
        ([], 2, "Error: name a scenario, or see --list"),
        (["echo", "--era", "old"], 2, "Invalid value for '--era'"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(arguments: list[str], code: int, sentence: str) -> None:
    done = run(*arguments)
    assert done.returncode == code
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no-such"], "no-such: there is no scenario of this name; "),
        (["echo", "--era", "old"], "echo: era: 'old' was asked for; ask for legacy, modern, both."),
        (["echo", "--colour", "red"], "usage: python -m mcpzip_fakes.stdio SCENARIO"),
        ([], "usage: python -m mcpzip_fakes.stdio SCENARIO"),
    ],
)
def test_the_quick_door_too(arguments: list[str], sentence: str) -> None:
    done = run(*arguments, module="mcpzip_fakes.stdio")
    assert done.returncode == 2
    assert done.stderr.startswith(sentence)
    assert len(done.stderr.splitlines()) == 1


def test_the_pytest_plugin_costs_a_foreign_run_nothing() -> None:
    code = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport mcpzip_fakes.pytest_plugin\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **importable()}
    )
    assert done.stdout.strip() == "['mcpzip_fakes', 'mcpzip_fakes.pytest_plugin']"


def test_a_stranger_uses_the_fixture(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "import subprocess\n"
        "def test_mine(fake_mcp):\n"
        "    server = fake_mcp(tools=['pay'])\n"
        '    said = b\'{"jsonrpc":"2.0","id":1,"method":"ping"}\'\n'
        "    subprocess.run(server.command, input=said, check=True, env=server.env)\n"
        "    assert server.record.methods() == ['ping']\n",
        encoding="utf-8",
    )
    plugins = ["-p", "mcpzip_fakes.pytest_plugin", "-p", "no:cacheprovider"]
    done = run("-q", *plugins, str(tmp_path), module="pytest", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "1 passed" in done.stdout, done.stdout
