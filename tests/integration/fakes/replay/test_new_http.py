"""``--new`` over Streamable HTTP: what isn't in a cassette is answered by the real server, once."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.cassettes import KEY
from helpers.driver import comes_true
from helpers.fake_stdio_client import Start
from mcpzip_fakes.drift.server import check_url
from mcpzip_fakes.drift.settings import Settings
from mcpzip_fakes.launch import FakeServer, importable
from mcpzip_fakes.scenario import Replay

from mcpzip.cassettes import files
from mcpzip.cassettes.cassette import Cassette
from mcpzip.wire.event_stream import EventReader

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
FORM = '{"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}'
TOOLS = [
    {"name": "pay", "result": {"text": "paid {id}", "fill": True}},
    {"name": "ask", "result": {"ask": {"method": "elicitation/create", "params": FORM}, "text": "asked"}},
    {"name": "slow", "result": {"text": "done", "progress": 2, "delay": 0.01}},
    {"name": "wait", "result": {"text": "late", "hold": True}},
]
OPENING: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "c", "version": "1"},
}


def pay(number: object, id: int) -> dict[str, Any]:
    return {"id": number, "method": "tools/call", "params": {"name": "pay", "arguments": {"id": id}}}


def call(number: object, name: str) -> dict[str, Any]:
    meta = {"progressToken": "t"}
    return {"id": number, "method": "tools/call", "params": {"name": name, "arguments": {}, "_meta": meta}}


class Talk:
    """A client that answers questions."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client, self.headers = client, dict(ACCEPT)

    async def say(self, message: dict[str, Any]) -> httpx.Response:
        text = json.dumps({"jsonrpc": "2.0", **message})
        return await self.client.post("", content=text, headers=self.headers)

    async def ask(self, message: dict[str, Any]) -> list[Any]:
        """All that comes until the answer."""
        text, heard = json.dumps({"jsonrpc": "2.0", **message}), []
        async with self.client.stream("POST", "", content=text, headers=self.headers) as response:
            if not response.headers["content-type"].startswith("text/event-stream"):
                return [json.loads(await response.aread())]
            async for one in events(response):
                heard.append(one)
                if one.get("method") == "elicitation/create":
                    told = await self.say({"id": one["id"], "result": {"action": "decline"}})
                    assert told.status_code == 202
        return heard

    async def open(self) -> Any:
        response = await self.say({"id": 0, "method": "initialize", "params": OPENING})
        self.headers["mcp-session-id"] = response.headers["mcp-session-id"]
        self.headers["mcp-protocol-version"] = "2025-11-25"
        assert (await self.say({"method": "notifications/initialized"})).status_code == 202
        async for greeting in events(response):
            return greeting["result"]
        return response.json()["result"]


async def events(response: httpx.Response) -> AsyncIterator[Any]:
    reader = EventReader(1 << 20)
    async for part in response.aiter_bytes():
        for event in reader.feed(part):
            if event.data:
                yield json.loads(event.data)


def before(start: Start, cassette: Path, real: FakeServer, **keys: Any) -> FakeServer:
    """A player with the real server behind it; the cassette needs not be there."""
    if not cassette.exists():
        files.save(str(cassette), Cassette(name="shop", transport="http", url=real.url))
    replay = Replay(cassette=str(cassette), new=True, **keys)
    return start({"name": "shop", "replay": replay}, transport="http")


@contextlib.asynccontextmanager
async def talk(player: FakeServer) -> AsyncIterator[Talk]:
    """Ends the player, so that the cassette is complete."""
    async with httpx.AsyncClient(base_url=player.url, timeout=20) as client:
        yield Talk(client)
    player.stop()


async def test_the_first_run_records_everything_and_later_ones_what_is_new(
    fake_mcp: Start, tmp_path: Path
) -> None:
    real, cassette = fake_mcp(tools=TOOLS, transport="http"), tmp_path / "shop.toml"
    async with talk(before(fake_mcp, cassette, real)) as first:
        greeting = await first.open()
        told = [await first.ask(each) for each in (pay(1, 7), call(2, "ask"), call(3, "slow"))]
    assert [len(each) for each in told] == [1, 2, 3]
    assert [line.method for line in real.record.received("tools/call")] == ["tools/call"] * 3

    async with talk(before(fake_mcp, cassette, real)) as second:
        assert await second.open() == greeting
        assert await second.ask(pay(1, 7)) == told[0]
        asked = len(real.record.methods())
        (new,) = await second.ask(pay(2, 8))
        assert new["result"]["content"][0]["text"] == "paid 8"
        assert (await second.ask(pay(3, 8)))[0]["result"] == new["result"]
        assert await second.ask({**call(4, "ask"), "params": {"name": "ask", "arguments": {"n": 1}}}) != []
        assert (await second.client.delete("", headers=second.headers)).status_code == 200
    assert real.record.methods()[asked:] == [
        "initialize",
        "notifications/initialized",
        *("tools/call",) * 3,
    ]
    played = [each for each in files.load(str(cassette)).exchanges if each.session == 2]
    assert [json.loads(each.request)["id"] for each in played if each.request] == [2, 3, 4]

    async with talk(fake_mcp(str(cassette), transport="http")) as third:
        assert await third.open() == greeting
        assert await third.ask(pay(1, 7)) == told[0]
        assert await third.ask(call(2, "ask")) == told[1]
        assert await third.ask(call(3, "slow")) == told[2]
        assert await third.ask(pay("x", 8)) == [{**new, "id": "x"}]
        assert (await third.ask(pay(5, 9)))[0]["error"]["code"] == -32602
    report = await asyncio.to_thread(check_url, str(cassette), real.url, Settings(call_all=True))
    assert (report.drifts, report.not_sent) == ([], [])


async def test_sessions_keep_apart_and_a_call_is_cancelled_where_it_runs(
    fake_mcp: Start, tmp_path: Path
) -> None:
    real, cassette = fake_mcp(tools=TOOLS, transport="http"), tmp_path / "shop.toml"
    async with talk(before(fake_mcp, cassette, real)) as one:
        await one.open()
    player = before(fake_mcp, cassette, real)
    async with talk(player) as one:
        other = Talk(one.client)
        await one.open()
        await other.open()
        assert one.headers["mcp-session-id"] != other.headers["mcp-session-id"]
        assert (await one.ask(pay(1, 1)))[0]["result"]["content"][0]["text"] == "paid 1"
        assert (await other.ask(pay(1, 2)))[0]["result"]["content"][0]["text"] == "paid 2"
        told = [line.detail["headers"] for line in real.record.received("tools/call")]  # type: ignore[index]
        theirs = {dict(each)["mcp-session-id"] for each in told}  # type: ignore[call-overload]
        assert len(theirs) == 2
        assert not theirs & {one.headers["mcp-session-id"], other.headers["mcp-session-id"]}
        text = json.dumps({"jsonrpc": "2.0", **call(2, "wait")})
        async with one.client.stream("POST", "", content=text, headers=one.headers):
            await comes_true(lambda: real.record.calls("wait"))
            cancelled = {"method": "notifications/cancelled", "params": {"requestId": 2}}
            assert (await one.say(cancelled)).status_code == 202
            await comes_true(lambda: real.record.received("notifications/cancelled"))


async def test_what_the_server_sends_by_itself_reaches_the_stream_of_the_client(
    fake_mcp: Start, tmp_path: Path
) -> None:
    """Whether the stream is played by the cassette or is new."""
    changes = {"kind": "list-changed", "tool": "pay"}
    real = fake_mcp(tools=TOOLS, transport="http", faults=[changes], changed_tools=TOOLS)
    cassette = tmp_path / "shop.toml"
    for turn in range(2):
        async with talk(before(fake_mcp, cassette, real)) as client:
            await client.open()
            headers = {**client.headers, "accept": "text/event-stream"}
            async with client.client.stream("GET", "", headers=headers) as stream:
                assert stream.status_code == 200
                await client.ask(pay(1, turn))
                async for event in events(stream):
                    assert event["method"] == "notifications/tools/list_changed"
                    break


async def test_a_modern_client(fake_mcp: Start, tmp_path: Path) -> None:
    real, cassette = fake_mcp(tools=TOOLS, transport="http"), tmp_path / "shop.toml"
    meta = {f"{KEY}protocolVersion": "2026-07-28", f"{KEY}clientCapabilities": {}}
    asked = {"id": 1, "method": "tools/list", "params": {"_meta": meta}}
    heard = []
    for turn in range(2):
        player = fake_mcp(str(cassette), transport="http") if turn else before(fake_mcp, cassette, real)
        async with talk(player) as client:
            client.headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
            heard.append(await client.ask(asked))
    assert heard[0] == heard[1]
    assert len(heard[0][0]["result"]["tools"]) == len(TOOLS)


async def test_secrets_are_masked_and_the_server_gets_its_headers(fake_mcp: Start, tmp_path: Path) -> None:
    real, cassette = fake_mcp(tools=TOOLS, transport="http"), tmp_path / "shop.toml"
    headers = {"x-api-key": "sesame-1234567"}
    player = before(fake_mcp, cassette, real, headers=headers, mask=("params.arguments.id",))
    async with talk(player) as client:
        await client.open()
        await client.ask({**pay(1, 7), "params": {"name": "pay", "arguments": {"id": "card-77"}}})
    told = real.record.received("tools/call")[0].detail["headers"]
    assert dict(told)["x-api-key"] == "sesame-1234567"  # type: ignore[call-overload]
    written = cassette.read_text("utf-8")
    assert "sesame" not in written
    assert "card-77" not in written


async def test_a_response_that_breaks_off_breaks_off_for_the_client(fake_mcp: Start, tmp_path: Path) -> None:
    faults = [{"kind": "cut", "tool": "slow"}]
    real, cassette = fake_mcp(tools=TOOLS, transport="http", faults=faults), tmp_path / "shop.toml"
    async with talk(before(fake_mcp, cassette, real)) as client:
        await client.open()
        with pytest.raises(httpx.RemoteProtocolError):
            await client.ask(call(1, "slow"))
        assert (await client.ask(pay(2, 7)))[0]["result"]["content"][0]["text"] == "paid 7"


async def test_a_real_server_that_fails_is_told(
    fake_mcp: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cassette = tmp_path / "shop.toml"
    good = fake_mcp(tools=TOOLS, transport="http")
    async with talk(before(fake_mcp, cassette, good)) as client:
        await client.open()
    refusing = fake_mcp(
        transport="http", faults=[{"kind": "status", "method": "initialize", "status": 503, "text": "no"}]
    )
    async with talk(before(fake_mcp, cassette, good, url=refusing.url)) as client:
        await client.open()
        (told,) = await client.ask(pay(1, 1))
        why = "the real server can't be used: it refused the handshake (HTTP status 503)"
        assert told["error"]["message"] == why
        assert f"mcpzip-fake: {why}" in capfd.readouterr().err
    good.stop()
    async with talk(before(fake_mcp, cassette, good)) as client:
        await client.open()
        (told,) = await client.ask(pay(1, 1))
        assert "the real server can't be used: " in told["error"]["message"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without a signal")
def test_the_command_writes_the_cassette_when_it_is_ended(fake_mcp: Start, tmp_path: Path) -> None:
    real, cassette = fake_mcp(tools=TOOLS, transport="http"), tmp_path / "shop.toml"
    command = [sys.executable, "-m", "mcpzip_fakes", str(cassette), "--new", "--url", real.url]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, **importable()}, text=True
    ) as process:
        assert process.stdout
        url = process.stdout.readline().split()[1]
        opening = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": OPENING})
        assert httpx.post(url, content=opening, headers=ACCEPT).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM
    assert files.load(str(cassette)).url == real.url
    assert [json.loads(each.request)["id"] for each in files.load(str(cassette)).exchanges] == [0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--new", "--transport", "sse"], "--new is for cassettes on stdio and http"),
        (["--new", "--url", "http://127.0.0.1/mcp", "--transport", "stdio"], "are for --transport http"),
        (["--new", "--transport", "http", "--", "x"], "a command is for --transport stdio"),
        (["--url", "http://127.0.0.1/mcp"], "--url, --header, --mask and --secret are for --new"),
        (["--new", "--url", "shop"], "it is no URL of a server over HTTP"),
        (["--new", "--transport", "stdio", "--", "x"], "was recorded over http: add --transport http"),
        (["--new", "--transport", "http"], "the URL of the real server is not in the cassette"),
    ],
)
def test_what_goes_with_new(tmp_path: Path, words: list[str], message: str) -> None:
    cassette = tmp_path / "shop.toml"
    files.save(str(cassette), Cassette(name="shop", transport="http", url="http://h/[masked 1]"))
    command = [sys.executable, "-m", "mcpzip_fakes", str(cassette), *words]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **importable()})
    assert ended.returncode != 0
    assert message in " ".join(ended.stderr.split())
