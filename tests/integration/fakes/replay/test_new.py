"""``--new``: what isn't in a cassette is answered by the real server, once."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.cassettes import KEY
from mcpzip_fakes.drift.server import check_command
from mcpzip_fakes.drift.settings import Settings
from mcpzip_fakes.launch import FakeServer, importable

from mcpzip.cassettes import files

FORM = '{"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}'
TOOLS = [
    {"name": "pay", "result": {"text": "paid {id}", "fill": True}},
    {"name": "ask", "result": {"ask": {"method": "elicitation/create", "params": FORM}, "text": "asked"}},
    {"name": "slow", "result": {"text": "done", "progress": 2, "delay": 0.01}},
]
Start = Callable[..., FakeServer]


def pay(number: object, id: object) -> dict[str, Any]:
    return {"id": number, "method": "tools/call", "params": {"name": "pay", "arguments": {"id": id}}}


def call(number: object, name: str) -> dict[str, Any]:
    meta = {"progressToken": "t"}
    return {"id": number, "method": "tools/call", "params": {"name": name, "arguments": {}, "_meta": meta}}


class Talk:
    """A client of one process; it answers questions."""

    def __init__(self, *words: str) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "mcpzip_fakes", *words]
        env = {**os.environ, **importable()}
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env)

    def say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, message: dict[str, Any]) -> list[Any]:
        """All that comes until the answer."""
        assert self._process.stdout
        self.say(message)
        heard: list[Any] = []
        while not heard or heard[-1].get("id") != message["id"] or "method" in heard[-1]:
            heard.append(json.loads(self._process.stdout.readline()))
            if heard[-1].get("method") == "elicitation/create":
                self.say({"id": heard[-1]["id"], "result": {"action": "decline"}})
        return heard

    def open(self) -> Any:
        opening = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}
        params = {**opening, "clientInfo": {"name": "c", "version": "1"}}
        (greeting,) = self.ask({"id": 0, "method": "initialize", "params": params})
        self.say({"method": "notifications/initialized"})
        return greeting["result"]

    def end(self) -> tuple[int, str]:
        """The exit code, and standard error."""
        _, errors = self._process.communicate(timeout=30)
        return self._process.returncode, errors.decode()


def test_the_first_run_records_everything_and_later_ones_what_is_new(fake_mcp: Start, tmp_path: Path) -> None:
    real, cassette = fake_mcp(tools=TOOLS), str(tmp_path / "shop.toml")
    first = Talk(cassette, "--new", "--", *real.command)
    greeting = first.open()
    told = [first.ask(pay(1, 7)), first.ask(call(2, "ask")), first.ask(call(3, "slow"))]
    assert first.end() == (0, "")
    assert [len(each) for each in told] == [1, 2, 3]
    assert [line.method for line in real.record.received("tools/call")] == ["tools/call"] * 3

    second = Talk(cassette, "--new", "--", *real.command)
    assert second.open() == greeting
    assert second.ask(pay(1, 7)) == told[0]
    assert len(real.record.events("start")) == 1
    (new,) = second.ask(pay(2, 8))
    assert new["result"]["content"][0]["text"] == "paid 8"
    assert second.ask(pay(3, 8))[0]["result"] == new["result"]
    assert second.end() == (0, "")
    assert len(real.record.events("start")) == 2
    assert real.record.methods()[-4:] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
        "tools/call",
    ]

    third = Talk(cassette)
    assert third.open() == greeting
    assert third.ask(pay(1, 7)) == told[0]
    assert third.ask(call(2, "ask")) == told[1]
    assert third.ask(call(3, "slow")) == told[2]
    assert third.ask(pay("x", 8)) == [{**new, "id": "x"}]
    assert third.ask(pay(5, 9))[0]["error"]["code"] == -32602
    assert third.end()[0] == 0
    assert len(real.record.events("start")) == len(real.record.events("exit")) == 2
    report = check_command(cassette, real.command, Settings(call_all=True), env=real.env)
    assert (report.drifts, report.not_sent) == ([], [])


def test_a_modern_client(fake_mcp: Start, tmp_path: Path) -> None:
    real, cassette = fake_mcp(tools=TOOLS), str(tmp_path / "shop.toml")
    asked = {"id": 1, "method": "tools/list", "params": {"_meta": {f"{KEY}protocolVersion": "2026-07-28"}}}
    asked["params"]["_meta"][f"{KEY}clientCapabilities"] = {}  # type: ignore[index]
    heard = []
    for words in (["--new", "--", *real.command], []):
        client = Talk(cassette, *words)
        heard.append(client.ask(asked))
        assert client.end() == (0, "")
    assert heard[0] == heard[1]
    assert len(heard[0][0]["result"]["tools"]) == 3


def test_secrets_are_masked_in_what_is_new(fake_mcp: Start, tmp_path: Path) -> None:
    real, cassette = fake_mcp(tools=TOOLS), tmp_path / "shop.toml"
    client = Talk(str(cassette), "--new", "--mask", "params.arguments.id", "--", *real.command)
    client.open()
    client.ask(pay(1, "card-71077"))
    assert client.end()[0] == 0
    assert [each["arguments"] for each in real.record.calls("pay")] == [{"id": "card-71077"}]
    assert b"71077" not in cassette.read_bytes()


def test_a_real_server_that_fails_is_told(tmp_path: Path) -> None:
    cassette = str(tmp_path / "shop.toml")
    for words, why in (
        ([str(tmp_path / "nothing")], "can't be started"),
        ([sys.executable, "-c", "import sys; sys.exit(3)"], "ended (exit code 3) before it answered"),
    ):
        client = Talk(cassette, "--new", "--", *words)
        (told,) = client.ask(pay(1, 1))
        assert why in told["error"]["message"]
        code, errors = client.end()
        assert code == 0
        assert f"mcpzip-fake: the real server {why}" in errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["echo", "--new", "--", "x"], "--new is for cassettes, and this is a scenario"),
        (["echo", "x"], "nothing can follow 'echo' but a command after --, with --new"),
        (["{}", "--new", "--transport", "http"], "was recorded over stdio: add --transport stdio"),
        (["{}", "--new"], "the command of the real server is not in the cassette: say it after --"),
    ],
)
def test_what_goes_with_new(tmp_path: Path, words: list[str], message: str) -> None:
    cassette = tmp_path / "shop.toml"
    cassette.write_text('cassette = 1\n[recorded]\ncommand = ["x", "[masked 1]"]\n', "utf-8")
    assert files.load(str(cassette)).command
    client = Talk(*(word.replace("{}", str(cassette)) for word in words))
    code, errors = client.end()
    assert code == 2
    assert message in errors
