"""Whole conversations over real pipes: client, mcpzip, server."""

import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import (
    INITIALIZE,
    Client,
    Json,
    command,
    encoded,
    ended,
    environment,
    serving,
    until,
    write_config,
)
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]

ODD_RESULT = (
    '{"z":1,"content":[{"type":"text","text":"\\u00e4 ä \U0001f600"},{"type":"new-kind","x":1.0,"y":1e5}],'
    '"structuredContent":{"b":12345678901234567890,"a":0.10,"n":null,"e":-0},"isError":false,'
    '"unknown":{"k":[ 1 , 2 ]},"_meta":{"com.example/x":1.50}}'
)
TOOLS: list[Json] = [
    {"name": "odd", "result": {"raw": ODD_RESULT}},
    {"name": "echo", "result": {"echo": True}},
    {"name": "big", "result": {"size": 5_000_000}},
    {"name": "wait", "result": {"delay": 60}},
    {"name": "work", "result": {"text": "done", "progress": 20}},
    {"name": "fail", "result": {"error": {"code": -31999, "message": "no “money”", "data": '{"a":1.0}'}}},
    *({"name": f"t{n}", "result": {"echo": True, "delay": 0.03 * n}} for n in range(8)),
]


def ready(client: Client) -> Client:
    """Once the server's tools are known."""
    until(lambda: f"{len(TOOLS)} tools, listed" in client.status())
    return client


@pytest.mark.parametrize("upstream", ["legacy", "modern"])
@pytest.mark.parametrize("downstream", ["legacy", "modern"])
def test_a_conversation_in_every_pair_of_eras(
    fake_mcp: Fake, tmp_path: Path, downstream: str, upstream: str
) -> None:
    shop = fake_mcp(name="shop", era=upstream, tools=TOOLS)
    with serving(tmp_path, shop, begin=False) as client:
        ready(client.begin() if downstream == "legacy" else client.begin_modern())
        assert "shop__echo" in client.search("echo")
        assert '"name":"shop__echo"' in client.use("describe_tool", name="shop__echo").text

        # The result: what the server sent, and nothing but what the client's era needs on top
        answer = client.execute("shop__odd")
        sent = json.loads(ODD_RESULT)
        if (downstream, upstream) == ("legacy", "legacy"):
            assert answer.raw_result.decode() == ODD_RESULT
        else:
            result = answer.result
            assert {key: result[key] for key in sent if key != "_meta"} == {
                key: value for key, value in sent.items() if key != "_meta"
            }
            assert sent["_meta"].items() <= result["_meta"].items()
            assert b'"b":12345678901234567890,"a":0.10,"n":null,"e":-0' in answer.line
        if downstream == "modern":
            assert answer.result["resultType"] == "complete"
            assert answer.result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "mcpzip"

        error = client.execute("shop__fail").error
        assert error == {"code": -31999, "message": "no “money”", "data": {"a": 1.0}}
        assert client.execute("shop__echo", {"x": "ü", "n": 1.5}).text == '{"x":"ü","n":1.5}'


def test_progress_comes_in_order_under_the_clients_token_and_before_the_result(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    with serving(tmp_path, shop) as client:
        ready(client)
        number = client.send_call("shop__work", {}, progressToken="mine")
        other = client.send_call("shop__work", {}, progressToken=5)
        client.answer(number)
        client.answer(other)
        told = [message["params"] for message in client.notices("notifications/progress")]
        for token in ("mine", 5):
            assert [each["progress"] for each in told if each["progressToken"] == token] == list(range(1, 21))
        heard = [json.loads(line) for line in client.heard]
        last = max(place for place, message in enumerate(heard) if message.get("method"))
        assert last < max(
            place for place, message in enumerate(heard) if message.get("id") in (number, other)
        )


def test_a_cancelled_call_reaches_the_server_and_is_not_answered(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    with serving(tmp_path, shop) as client:
        ready(client)
        number = client.send_call("shop__wait", {})
        until(lambda: shop.record.calls("wait"))
        client.tell("notifications/cancelled", {"requestId": number, "reason": "changed my mind"})
        until(lambda: shop.record.events("cancelled"))
        assert client.execute("shop__echo").text == "{}"
    assert not [line for line in client.all_heard() if json.loads(line).get("id") == number]


def test_64_calls_at_a_time_over_one_pipe(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    with serving(tmp_path, shop) as client:
        ready(client)
        wanted = [(f"shop__t{n % 8}", {"n": n}) for n in range(64)]
        random.Random(3).shuffle(wanted)
        numbers = [client.send_call(name, arguments) for name, arguments in wanted]
        answers = [json.loads(client.answer(number).text) for number in numbers]
    assert answers == [arguments for _, arguments in wanted]


def test_megabytes_both_ways(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    with serving(tmp_path, shop, results="off") as client:
        ready(client)
        assert client.execute("shop__big").text == "x" * 5_000_000
        text = "ä" * 2_000_000
        assert json.loads(client.execute("shop__echo", {"text": text}).text) == {"text": text}
        # 65 MiB in one line are too much, and no more than that
        client.write(
            b'{"jsonrpc":"2.0","id":"long","method":"ping","params":{"x":"' + b"y" * (65 << 20) + b'"}}\n'
        )
        assert "too long" in client.answer("long").error["message"]
        assert client.ask("ping").result == {}


def test_what_is_wrong_is_answered_and_the_talk_goes_on(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    with serving(tmp_path, shop, begin=False) as client:
        assert client.ask("tools/list").error["code"] == -32600
        client.write(b"hello\n[]\n\xff\xfe\n{\n")
        until(lambda: len(client.heard) == 5)
        assert [json.loads(line)["id"] for line in client.heard[1:]] == [None] * 4
        client.begin()
        assert client.ask("no/such/method").error["code"] == -32601
        assert client.ask("tools/call", {"name": "nobody"}).error["code"] == -32602
        assert client.ask("initialize", INITIALIZE).result["protocolVersion"] == "2025-11-25"
        client.write(
            b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n{"jsonrpc":"2.0","id":"","method":"ping"}\n'
        )
        assert client.answer("").result == {}
        assert client.answer(1.5).error["code"] == -32600
        ready(client)


# The ends of the pipe


@pytest.mark.parametrize("times", [1, 2])
def test_what_is_asked_last_is_answered_though_unterminated(tmp_path: Path, times: int) -> None:
    """The last line without its newline was lost."""
    config = write_config(tmp_path)
    asked = encoded({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
    for _ in range(times):  # the second time the early handshake answers
        done = served(config, asked + b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}')
        assert done.returncode == 0
        assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]


def served(config: Path, stdin: bytes) -> "subprocess.CompletedProcess[bytes]":
    words = command("serve", "--config", str(config))
    return subprocess.run(words, input=stdin, capture_output=True, env=environment(), timeout=30, check=False)


@pytest.mark.parametrize("times", [1, 2])
def test_no_input_at_all_is_the_end_of_it(tmp_path: Path, times: int) -> None:
    """/dev/null can't be watched by an event loop: it ended in a traceback."""
    config = write_config(tmp_path)
    words = command("serve", "--config", str(config))
    for _ in range(times):
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, env=environment(), timeout=30, check=False
        )
        assert (done.returncode, done.stdout) == (0, b"")
        assert b"Traceback" not in done.stderr


def test_input_and_output_may_be_files(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    (tmp_path / "in").write_bytes(
        encoded({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
        + encoded({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    )
    for _ in range(2):
        with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
            words = command("serve", "--config", str(config))
            done = subprocess.run(
                words,
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.PIPE,
                env=environment(),
                timeout=30,
                check=False,
            )
        assert (done.returncode, done.stderr.count(b"Traceback")) == (0, 0)
        lines = (tmp_path / "out").read_bytes().splitlines()
        assert [json.loads(line)["id"] for line in lines] == [1, 2]


@pytest.mark.skipif(os.name == "nt", reason="closes descriptors with a shell")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "2>&-"])
def test_a_missing_descriptor_ends_it_without_a_traceback(tmp_path: Path, closed: str) -> None:
    config = write_config(tmp_path)
    script = f'"$@" {closed} </dev/null' if "<" not in closed else f'"$@" {closed}'
    for _ in range(2):
        done = subprocess.run(
            ["/bin/sh", "-c", script, "sh", *command("serve", "--config", str(config))],
            capture_output=True, env=environment(), timeout=30, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, b"")  # no warning lands in the protocol
        assert b"Traceback" not in done.stderr, done.stderr.decode()


def test_a_client_that_hangs_up_on_our_output_is_no_error(fake_mcp: Fake, tmp_path: Path) -> None:
    config = write_config(tmp_path, fake_mcp(name="shop", tools=TOOLS))
    process = subprocess.Popen(
        command("serve", "--config", str(config)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    with ended(process):
        assert process.stdin
        assert process.stdout
        process.stdout.close()
        process.stdin.write(
            encoded({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
        )
        process.stdin.close()
        assert process.wait(20) == 0
        assert process.stderr
        assert process.stderr.read() == b""
