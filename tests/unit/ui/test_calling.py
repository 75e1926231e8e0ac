"""Calls from the page: by the daemon while one runs, in a session that ends when it isn't used."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from helpers.driver import comes_true

from mcpzip.config import Config
from mcpzip.config.schema import PolicyConfig
from mcpzip.model.entry import Entry
from mcpzip.model.errors import McpzipError
from mcpzip.server.daemon import protocol
from mcpzip.ui import calling
from mcpzip.ui.calling import Calling
from mcpzip.ui.daemon_session import DaemonSession
from mcpzip.wire import JsonRpcError

ENTRY = Entry.parse("shop", b'{"name":"pay"}')


class FakeDaemon:
    """The other end of a session: says what it is told to say."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def hears(self) -> Any:
        return json.loads(await self.reader.readline())

    def says(self, line: bytes | dict[str, Any]) -> None:
        self.writer.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")

    async def accepts(self) -> Any:
        """Takes the page as a client; what it has said of itself."""
        greeting = await self.hears()
        self.says(protocol.notice(protocol.ACCEPTED, {"pid": 1}))
        asked = await self.hears()
        assert asked["method"] == "initialize"
        assert asked["params"]["capabilities"] == {}
        assert asked["params"]["clientInfo"]["name"] == "mcpzip ui"
        self.says({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
        assert (await self.hears())["method"] == "notifications/initialized"
        return greeting


@asynccontextmanager
async def daemon() -> AsyncIterator[tuple[FakeDaemon, socket.socket]]:
    """A daemon, and the page's end of the connection."""
    theirs, ours = socket.socketpair()
    ours.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=theirs)
    try:
        yield FakeDaemon(reader, writer), ours
    finally:
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def session() -> AsyncIterator[tuple[FakeDaemon, DaemonSession]]:
    async with daemon() as (fake, ours):
        made, _ = await asyncio.gather(DaemonSession._begun(ours), fake.accepts())
        assert made is not None
        try:
            yield fake, made
        finally:
            await made.close()
            assert not made.is_open


async def test_the_page_is_a_client_that_replaces_no_daemon() -> None:
    async with daemon() as (fake, ours):
        made, greeting = await asyncio.gather(DaemonSession._begun(ours), fake.accepts())
        assert (greeting["kind"], greeting["continued"], greeting["replay"]) == ("client", True, 0)
        assert made is not None
        await made.close()


@pytest.mark.parametrize("line", [protocol.notice(protocol.REFUSED), b"!what\n", b"\n", b"{}\n"])
async def test_a_daemon_that_does_not_take_it(line: bytes) -> None:
    async with daemon() as (fake, ours):
        begun = asyncio.create_task(DaemonSession._begun(ours))
        await fake.hears()
        fake.says(line)
        assert await begun is None


async def test_answers_and_errors() -> None:
    async with session() as (fake, made):
        first = asyncio.create_task(made.request("tools/call", b'{"name":"a"}'))
        second = asyncio.create_task(made.request("tools/call", b'{"name":"b"}'))
        asked = [await fake.hears(), await fake.hears()]
        fake.says(b"no message at all\n" + protocol.notice(protocol.WARNING, "careful"))
        fake.says({"jsonrpc": "2.0", "id": asked[1]["id"], "error": {"code": -32000, "message": "no"}})
        fake.says({"jsonrpc": "2.0", "id": asked[0]["id"], "result": {"n": 1.50}})
        assert json.loads(await first) == {"n": 1.5}
        with pytest.raises(JsonRpcError, match="no"):
            await second


async def test_nobody_is_asked() -> None:
    async with session() as (fake, _):
        fake.says({"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": {}})
        answer = await fake.hears()
        assert (answer["id"], answer["error"]["code"]) == (9, -32601)


async def test_a_call_that_nobody_waits_for_is_cancelled() -> None:
    async with session() as (fake, made):
        call = asyncio.create_task(made.request("tools/call", b"{}"))
        asked = await fake.hears()
        call.cancel()
        cancelled = await fake.hears()
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == asked["id"]


@pytest.mark.parametrize("line", [protocol.notice(protocol.HANDOVER, {"read": 0, "to": ""}), b""])
async def test_what_a_daemon_that_ends_has_not_answered_may_have_run(line: bytes) -> None:
    async with session() as (fake, made):
        call = asyncio.create_task(made.request("tools/call", b"{}"))
        await fake.hears()
        if line:
            fake.says(line)
        else:
            fake.writer.close()
        with pytest.raises(McpzipError, match="may have run"):
            await call
        assert not made.is_open
        with pytest.raises(McpzipError):
            await made.request("tools/call", b"{}")


# --- sessions


class FakeSession:
    def __init__(self) -> None:
        self.is_open, self.asked = True, list[Any]()
        self.answer: asyncio.Future[bytes] | None = None

    async def request(self, method: str, params: bytes) -> bytes:
        self.asked.append(json.loads(params))
        return b"{}" if self.answer is None else await self.answer

    async def close(self) -> None:
        self.is_open = False


class FakeProxy:
    def __init__(self, expose: str) -> None:
        self.config = Config("c.json", {}, policy=PolicyConfig(), expose=expose)  # type: ignore[arg-type]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[FakeSession]:
    """The sessions that were opened."""
    found: list[FakeSession] = []

    async def open(config: str, project: str) -> FakeSession:
        found.append(FakeSession())
        return found[-1]

    monkeypatch.setattr(DaemonSession, "open", open)
    return found


@pytest.mark.parametrize(
    ("expose", "asked"),
    [
        ("meta", {"name": "execute_tool", "arguments": {"name": "shop__pay", "arguments": {"n": 1}}}),
        ("direct", {"name": "shop__pay", "arguments": {"n": 1}}),
        ("transparent", {"name": "pay", "arguments": {"n": 1}}),
    ],
)
async def test_a_tool_has_the_name_that_clients_know(
    opened: list[FakeSession], expose: str, asked: object
) -> None:
    calls = Calling("c", "")
    await calls.call(FakeProxy(expose), ENTRY, b'{"n":1}')  # type: ignore[arg-type]
    await calls.call(FakeProxy(expose), ENTRY, b'{"n":1}')  # type: ignore[arg-type]
    (session,) = opened
    assert session.asked == [asked, asked]
    session.is_open = False
    await calls.call(FakeProxy(expose), ENTRY, b'{"n":1}')  # type: ignore[arg-type]
    assert len(opened) == 2
    await calls.close()
    assert not opened[1].is_open


async def test_a_session_ends_when_it_is_not_used(
    opened: list[FakeSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, proxy = Calling("c", ""), FakeProxy("meta")
    await calls.call(proxy, ENTRY, b"{}")  # type: ignore[arg-type]
    (session,) = opened
    session.answer = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(calls.call(proxy, ENTRY, b"{}"))  # type: ignore[arg-type]
    await comes_true(lambda: len(session.asked) == 2)
    calls._end_if_unused()
    await asyncio.sleep(0)
    assert session.is_open, "a call is under way"
    monkeypatch.setattr(calling, "IDLE", 0.0)
    session.answer.set_result(b"{}")
    await waiting
    await comes_true(lambda: not session.is_open)
    with pytest.raises(McpzipError, match="kept no more"):
        await calls.kept("r1-madnawbx2cwm5gkt", b"{}")
    await calls.close()
