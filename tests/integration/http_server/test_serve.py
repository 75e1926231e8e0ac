"""`mcpzip serve --http` as a process: how it begins and ends, what passes through it, and for whom."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import mcp_types as t
import pytest
from helpers.driver import (
    PATIENCE,
    comes_true,
    command,
    ended,
    environment,
    family,
    left_of,
    run,
    until,
    write_config,
)
from helpers.raw_http_client import Json, Reply, Web, message, modern_message
from mcp import Client
from mcpzip_fakes.launch import FakeServer

from mcpzip.server.http.server import SHUTDOWN_TIME

Fake = Callable[..., FakeServer]
TOKEN = "correct-horse-battery-staple"
posix = pytest.mark.skipif(os.name == "nt", reason="signals and process groups are POSIX's")


class Served(Web):
    """A site in a process of its own."""

    process: "subprocess.Popen[bytes]"
    errors: Path

    def said(self) -> str:
        """What it wrote to stderr."""
        return self.errors.read_text("utf-8")


@contextmanager
def serving(
    folder: Path, *fakes: FakeServer, words: tuple[str, ...] = (), at: str = "0", **keys: Any
) -> Iterator[Served]:
    """`mcpzip serve --http` with these fakes behind it, from the moment it listens."""
    config = write_config(folder, *fakes, **keys)
    errors = folder / "stderr.log"
    with errors.open("wb") as file:
        process = subprocess.Popen(
            command("serve", "--http", at, "--config", str(config), *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            env=environment(),
        )
    with ended(process):

        def heard() -> str:
            assert process.poll() is None, errors.read_text("utf-8")
            return next((line for line in errors.read_text("utf-8").splitlines() if "listening" in line), "")

        line = until(heard)
        assert line.startswith("listening http://"), errors.read_text("utf-8")
        assert line.endswith("/mcp")
        host, _, port = line.removeprefix("listening http://").removesuffix("/mcp").rpartition(":")
        served = Served(int(port), host.strip("[]"))
        served.process, served.errors = process, errors
        yield served


async def execute(
    web: Web, tool: str, arguments: Json | None = None, id: object = 1, **meta: object
) -> Reply:
    """`execute_tool` in a legacy session."""
    params: Json = {"name": "execute_tool", "arguments": {"name": tool, "arguments": arguments or {}}}
    return await web.ask("POST", message("tools/call", {**params, "_meta": meta} if meta else params, id))


@asynccontextmanager
async def connected(web: Web, mode: str, **options: Any) -> AsyncIterator[Client]:
    """The SDK's client."""
    async with asyncio.timeout(PATIENCE), Client(web.url, mode=mode, **options) as client:
        yield client


MODES = ["legacy", "auto", "2026-07-28"]


async def test_the_sdk_client_is_served_in_every_mode(fake_mcp: Fake, tmp_path: Path) -> None:
    told = [{"progress": step, "total": 5, "message": f"step {step}"} for step in range(1, 6)]
    build = {"name": "build", "result": {"text": "built", "progress": told}}
    large = {"name": "large", "result": {"size": 3_000_000}}  # the SDK takes 2**20 in an event
    fakes = [fake_mcp("echo"), fake_mcp("questions"), fake_mcp(name="ci", tools=[build, large])]

    async def sampled(context: object, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        text = t.TextContent(type="text", text="All well.")
        return t.CreateMessageResult(role="assistant", content=text, model="none")

    with serving(tmp_path, *fakes) as web:
        for mode in MODES:
            heard: list[tuple[float, float | None, str | None]] = []

            async def hear(*progress: Any, heard: list[Any] = heard) -> None:
                heard.append(progress)

            async with connected(web, mode, sampling_callback=sampled) as client:
                tools = (await client.list_tools()).tools
                assert [tool.name for tool in tools] == ["search_tools", "describe_tool", "execute_tool"]

                async def text_of(tool: str, client: Client = client, **arguments: Any) -> str:
                    result = await client.call_tool(tool, arguments, progress_callback=hear)
                    return result.content[0].text

                assert "echo__greet" in await text_of("search_tools", query="greet somebody")
                said = await text_of("execute_tool", name="echo__greet", arguments={"name": "Ada"})
                assert "Hello, Ada!" in said
                assert "All well." in await text_of("execute_tool", name="questions__summarize")
                kept = (
                    (await text_of("execute_tool", name="ci__large")).split(":")[0].removeprefix("Kept as ")
                )
                assert len(await text_of("execute_tool", name=kept)) == 3_000_000
                heard.clear()
                assert await text_of("execute_tool", name="ci__build") == "built"
                await comes_true(lambda heard=heard: len(heard) == 5)
                assert sorted(heard) == [(step, 5, f"step {step}") for step in range(1, 6)]


RAW = (
    '{"content":[{"type":"strange","n":1.50,"big":123456789012345678901234567890}],"x":null,"é" : "\\u0041"}'
)


async def test_results_are_the_bytes_the_server_sent(fake_mcp: Fake, tmp_path: Path) -> None:
    odd = {"name": "odd", "result": {"raw": RAW}}
    with serving(tmp_path, fake_mcp(name="s", tools=[odd], era="legacy")) as web:
        session = await web.session()
        assert (await execute(session, "s__odd")).raw_result == RAW.encode()
        arguments = {"name": "execute_tool", "arguments": {"name": "s__odd"}}
        result = (await web.modern("tools/call", arguments)).raw_result
        assert result.startswith(RAW.encode()[:-1])  # and after it, the stamp of the era
        assert set(json.loads(result)) - set(json.loads(RAW)) == {"resultType", "_meta"}


async def test_many_clients_share_one_server(fake_mcp: Fake, tmp_path: Path) -> None:
    fake = fake_mcp("echo")
    with serving(tmp_path, fake) as web:

        async def converse(number: int) -> None:
            session = await web.session()
            for step in range(5):
                reply = await execute(session, "echo__greet", {"name": f"{number}-{step}"}, id=step)
                assert f"Hello, {number}-{step}!" in reply.last["result"]["content"][0]["text"]
            assert (await session.ask("DELETE")).status == 200

        await asyncio.gather(*map(converse, range(10)))
        assert len(fake.record.calls("greet")) == 50
        assert len(fake.record.events("start")) <= 2  # one of each era


# Beginning


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
async def test_over_ipv6(tmp_path: Path) -> None:
    with serving(tmp_path, at="[::1]:0") as web:
        assert web.url == f"http://[::1]:{web.port}/mcp"
        assert (await web.session()).id


def refused(tmp_path: Path, *words: str, **environ: str) -> str:
    """The one sentence of a command line that is not served."""
    config = write_config(tmp_path)
    done = run("serve", "--config", str(config), *words, **environ)
    assert done.returncode == 2, done
    assert done.stdout == b""
    said = done.stderr.decode()
    assert "Traceback" not in said
    return said


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(tmp_path, "--http", str(port))
    assert said.count("\n") == 1
    assert f"port {port} of 127.0.0.1 is in use" in said


def test_what_is_open_to_others_needs_a_token_and_names(tmp_path: Path) -> None:
    assert "MCPZIP_TOKEN" in refused(tmp_path, "--http", "0.0.0.0:0")
    assert "--allow-host" in refused(tmp_path, "--http", "0.0.0.0:0", MCPZIP_TOKEN=TOKEN)
    assert "--http" in refused(tmp_path, "--allow-host", "example.org")
    assert "short" not in refused(tmp_path, "--http", "0", MCPZIP_TOKEN="short")


async def test_a_token_from_the_environment_goes_nowhere_else(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPZIP_TOKEN", TOKEN)
    local, remote = (
        fake_mcp(name="local", tools=["look"], record_env=["MCPZIP_TOKEN"]),
        fake_mcp("echo", transport="http"),
    )
    with serving(tmp_path, local, remote) as web:
        assert (await web.ask("POST", message("ping", id=1))).status == 401
        web.headers["Authorization"] = f"Bearer {TOKEN}"
        session = await web.session()
        assert (await execute(session, "echo__greet", {"name": "Ada"}, 2)).status == 200
        assert (await execute(session, "local__look", {}, 3)).status == 200
        assert TOKEN not in web.said()
    for fake in (local, remote):
        assert TOKEN not in fake.record.path.read_text("utf-8")


async def test_who_is_let_in_besides(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\r\n")
    file.chmod(0o644)
    words = ("--allow-host", "mcp.example.org", "--allow-origin", "https://app.example.org")
    with serving(tmp_path, words=(*words, "--token-file", str(file))) as web:
        assert ("can be read by others" in web.said()) == (os.name != "nt")
        web.headers["Authorization"] = f"Bearer {TOKEN}"
        body = message("initialize", {"protocolVersion": "2025-11-25"}, 1)
        for changed, status in [
            ({"Host": "mcp.example.org"}, 200),
            ({"Host": "MCP.example.org:443"}, 200),
            ({"Host": "www.example.org"}, 421),
            ({"Origin": "https://app.example.org"}, 200),
            ({"Origin": "https://www.example.org"}, 403),
            ({"Authorization": None}, 401),
        ]:
            assert (changed, (await web.ask("POST", body, **changed)).status) == (changed, status)


# Ending


WAIT: Json = {"name": "wait", "result": {"delay": 60}}


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_ends_when_told_and_leaves_nothing(fake_mcp: Fake, tmp_path: Path, number: int) -> None:
    fakes = [
        fake_mcp(name="polite", tools=[WAIT]),
        fake_mcp(name="stubborn", tools=[WAIT], faults=["ignore-eof", "ignore-sigterm", "fork"]),
    ]
    with serving(tmp_path, *fakes) as web:
        session = await web.session()
        body = {"arguments": {"name": "polite__wait"}}
        wanted, headers = modern_message(
            "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 9
        )
        async with (
            session.listening() as stream,
            session.calling("execute_tool", 2, **body) as call,
            web.connected() as listener,
        ):
            await listener.write(web.request("POST", wanted, **headers))
            assert (await listener.head()).status == 200
            assert (await listener.event())["method"] == "notifications/subscriptions/acknowledged"
            await comes_true(lambda: fakes[0].record.calls("wait"))
            pids = family(*fakes)
            web.process.send_signal(number)
            assert left_of([web.process.pid, *pids], PATIENCE) == []
            assert web.process.wait() == 0
            assert await stream.event() == {}
            assert (await listener.event())["id"] == 9  # a server that goes away ends it so
            assert (await call.reply()).last["error"]["message"].startswith("mcpzip was told to stop")
        assert fakes[0].record.received("notifications/cancelled")
        assert web.said().count("\n") == 1, web.said()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((web.host, web.port))


@posix
async def test_a_call_that_is_nearly_done_is_finished(fake_mcp: Fake, tmp_path: Path) -> None:
    soon: Json = {"name": "soon", "result": {"delay": 0.1, "text": "done"}}
    fake = fake_mcp(name="s", tools=[soon])
    with serving(tmp_path, fake) as web:
        session = await web.session()
        async with session.calling("execute_tool", 2, arguments={"name": "s__soon"}) as call:
            await comes_true(lambda: fake.record.calls("soon"))
            told = time.monotonic()
            web.process.send_signal(signal.SIGTERM)
            answer = (await call.reply()).last
            if "error" in answer:  # then it took longer than it is given, as on a machine that stood still
                assert time.monotonic() - told >= SHUTDOWN_TIME
            else:
                assert answer["result"]["content"][0]["text"] == "done"
        assert web.process.wait(PATIENCE) == 0


def test_help_tells_of_it() -> None:
    said = run("serve", "--help").stdout.decode()
    for option in ("--http", "--token-file", "--allow-host", "--allow-origin"):
        assert option in said
