"""``mcpzip-fake record --server NAME``, and ``mcpzip record``: servers of an mcpzip config."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcpzip_fakes.launch import Fakes, importable
from mcpzip_fakes.record import Record

from mcpzip.cassettes.cassette import Cassette
from mcpzip.cassettes.files import load

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
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(id: int, name: str, /, **arguments: object) -> dict[str, object]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


@pytest.fixture
def fakes(tmp_path: Path) -> Iterator[Fakes]:
    with Fakes(tmp_path / "fakes") as started:
        yield started


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of its own."""
    home = tmp_path / "home"
    home.mkdir()
    names = (
        "HOME",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
    )
    return {**os.environ, **importable(), **dict.fromkeys(names, str(home))}


def converse(
    command: list[str], messages: list[dict[str, object]], env: dict[str, str]
) -> tuple[list[object], str]:
    """The answers to the requests, one after the other, and what was said on stderr."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        answers = []
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            while "id" in message:
                answer = json.loads(process.stdout.readline())
                if answer.get("id") == message["id"]:
                    answers.append(answer)
                    break
        process.stdin.close()
        said = process.stderr.read().decode()
    assert process.returncode == 0
    return answers, said


def called(cassette: Cassette) -> list[str]:
    """The tools that were called, each with an answer."""
    requests = [(json.loads(each.request), each.reply) for each in cassette.exchanges if each.request]
    return [
        request["params"]["name"]
        for request, reply in requests
        if request.get("method") == "tools/call" and reply is not None
    ]


def test_a_server_of_the_config_is_recorded(
    tmp_path: Path, fakes: Fakes, environment: dict[str, str]
) -> None:
    slack = fakes.start("slack", era="legacy", record_env=["SLACK_TOKEN"])
    entry = {**slack.config, "env": {**slack.env, "SLACK_TOKEN": "${REAL_TOKEN}"}}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {"slack": entry}}))
    cassette = tmp_path / "c.toml"
    command = [sys.executable, "-m", "mcpzip_fakes", "record", str(cassette), "--server", "slack"]
    messages = [INITIALIZE, READY, call(2, "channels_list", said="t0ken-77-zq")]
    answers, said = converse(
        [*command, "--config", str(config)], messages, {**environment, "REAL_TOKEN": "t0ken-77-zq"}
    )
    assert len(answers) == 2
    record = Record.load(slack.record.path)
    assert record.events("start")[0].detail["env"] == {"SLACK_TOKEN": "t0ken-77-zq"}
    assert called(load(str(cassette))) == ["channels_list"]
    assert "t0ken-77-zq" not in cassette.read_text() + said


def test_a_server_that_is_not_in_the_config(tmp_path: Path, environment: dict[str, str]) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"mcpServers": {"time": {"command": "mcp-server-time"}}}')
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mcpzip_fakes",
            "record",
            "c.toml",
            "--server",
            "tine",
            "--config",
            str(config),
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "there is no server 'tine'" in done.stderr
    assert "time" in done.stderr
    assert not (tmp_path / "c.toml").exists()


def test_every_server_of_the_proxy_is_recorded(
    tmp_path: Path, fakes: Fakes, environment: dict[str, str]
) -> None:
    """On stdio, Streamable HTTP with a sign-in header, and legacy SSE; the agent sees no difference."""
    slack = fakes.start("slack")
    shop = fakes.start(name="shop", tools=["pay"], transport="http")
    todo = fakes.start(name="todo", tools=["add"], transport="sse")
    config = tmp_path / "config.json"
    servers = {fake.name: fake.config for fake in (slack, shop, todo)}
    servers["shop"] = {
        **shop.config,
        "headers": {"Authorization": "Bearer s3cret-of-shop-9", "X-Plain": "x-13-zq"},
    }
    config.write_text(json.dumps({"mcpServers": servers}))
    calls = [
        call(2, "execute_tool", name="slack__channels_list", arguments={}),
        call(
            3,
            "execute_tool",
            name="shop__pay",
            arguments={"id": 7, "password": "p4ss-of-me", "say": "s3cret-of-shop-9"},
        ),
        call(4, "execute_tool", name="todo__add", arguments={"id": 8}),
    ]
    out = tmp_path / "out"
    command = [sys.executable, "-m", "mcpzip", "record", "--config", str(config), "--out", str(out)]
    answers, said = converse(command, [INITIALIZE, READY, *calls], environment)
    assert [answer["result"].get("isError", False) for answer in answers[1:]] == [False] * 3  # type: ignore[index]
    read = {file.stem: load(str(file)) for file in out.glob("*.toml")}
    assert {name: (each.transport, called(each)) for name, each in read.items()} == {
        "slack": ("stdio", ["channels_list"]),
        "shop": ("http", ["pay"]),
        "todo": ("sse", ["add"]),
    }
    assert read["shop"].url == shop.url
    assert read["slack"].command == tuple(slack.command)
    assert all(each.response for each in read["shop"].exchanges if each.reply is not None)
    assert said.count("mcpzip: recorded into") == 3
    written = said + "".join(file.read_text() for file in out.rglob("*") if file.is_file())
    for secret in ("s3cret-of-shop-9", "p4ss-of-me", "x-13-zq"):
        assert secret not in written


def test_tokens_of_a_sign_in_are_not_recorded(
    tmp_path: Path, fakes: Fakes, environment: dict[str, str]
) -> None:
    """A server that requires OAuth, by client credentials: neither they nor the token are in the cassette."""
    client = {"id": "nightly", "secret": "cl13nt-s3cret-zq", "grants": ["client_credentials"]}
    shop = fakes.start(name="shop", tools=["pay"], transport="http", oauth={"clients": [client]})
    auth = {"grant": "client_credentials", "client_id": "nightly", "client_secret": "${REAL_SECRET}"}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {"shop": {**shop.config, "auth": auth}}}))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "mcpzip", "record", "--config", str(config), "--out", str(out)]
    asked = call(2, "execute_tool", name="shop__pay", arguments={})
    answers, said = converse(
        command, [INITIALIZE, READY, asked], {**environment, "REAL_SECRET": "cl13nt-s3cret-zq"}
    )
    assert "isError" not in answers[1]["result"]  # type: ignore[index]
    assert called(load(str(out / "shop.toml"))) == ["pay"]
    sent = {
        line.detail["headers"]["authorization"].partition(" ")[2]  # type: ignore[index]
        for line in shop.record.events("http")
        if "authorization" in line.detail["headers"]  # type: ignore[operator]
    }
    assert sent
    written = said + "".join(file.read_text() for file in out.rglob("*") if file.is_file())
    assert not [secret for secret in (*sent, "cl13nt-s3cret-zq") if secret in written]
