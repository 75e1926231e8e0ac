"""Streamable HTTP: what is posted and asks for no answer, and what is taken back."""

import asyncio
import gc
import json

import httpx
import pytest
from helpers.http_channel import NEW, OLD, STREAM, Held, Pinging, answered, connected, soon
from helpers.raw_http_server import PAID, Asked, Say, Turn, event, head, raw_server

from mcpzip.http.connections import Connections
from mcpzip.model import limits
from mcpzip.transport import http, http_channel
from mcpzip.transport.base import Dialect
from mcpzip.wire import JsonRpcError

TAKEN = head(202, "content-length: 0")
NOTICE = "notifications/roots/list_changed"
CANCELLED = "notifications/cancelled"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is given up by the clock."""
    monkeypatch.setattr(http_channel, "_SEND_DELAY", 600.0)
    for module in (http, http_channel):
        monkeypatch.setattr(module, "LINGER", 600.0)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given up by the clock is given up soon."""
    monkeypatch.setattr(http_channel, "_SEND_DELAY", 0.02)
    for module in (http, http_channel):
        monkeypatch.setattr(module, "LINGER", 0.05)


class Taken:
    """A turn that takes what is posted. texts: what that was; so_far: how many it had answered by then."""

    def __init__(self) -> None:
        self.texts: list[object] = []
        self.so_far: list[int] = []
        self.heard = asyncio.Event()
        self.answered = 0

    async def __call__(self, asked: Asked, say: Say) -> None:
        self.texts.append(asked.message.get("params"))
        self.so_far.append(self.answered)
        self.heard.set()
        for _ in range(20):
            await asyncio.sleep(0)
        self.answered += 1
        await say(TAKEN)


# ---- what is taken back


async def test_a_legacy_call_that_is_cancelled_is_told_and_its_response_closed(hasty: None) -> None:
    pay, told = Pinging(), Taken()
    turns: dict[str, Turn] = {"pay": pay, CANCELLED: told}
    async with raw_server(**turns) as server, connected(server) as stage:
        paying = asyncio.create_task(stage.call())
        await soon(pay.begun)
        paying.cancel()
        await asyncio.wait({paying})
        assert paying.cancelled()
        await soon(told.heard)
        await soon(pay.closed)
        assert told.texts == [{"requestId": server.asked[0].message["id"]}]
        await stage.list_tools()


async def test_a_legacy_response_stays_open_for_a_moment_so_that_its_end_may_come(patient: None) -> None:
    """A connection whose response is read to its end is used again."""
    begun = asyncio.Event()

    async def pay(asked: Asked, say: Say) -> None:
        chunk = answered(asked, PAID)
        await say(head(200, "content-type: text/event-stream", f"content-length: {len(chunk)}"))
        begun.set()
        await soon(told.heard)
        await say(chunk)  # too late for whoever asked

    told = Taken()
    turns: dict[str, Turn] = {"pay": pay, CANCELLED: told}
    async with raw_server(**turns) as server, connected(server) as stage:
        paying = asyncio.create_task(stage.call())
        await soon(begun)
        paying.cancel()
        await asyncio.wait({paying})
        await soon(told.heard)
        while stage.channel._tasks:
            await asyncio.wait(set(stage.channel._tasks))
        await stage.list_tools()
        assert server.connections == 2  # connections: that of the call was not closed


async def test_a_modern_call_is_cancelled_by_closing_its_response(patient: None) -> None:
    pay = Pinging()
    async with raw_server(pay=pay) as server, connected(server, NEW) as stage:
        paying = asyncio.create_task(stage.call())
        await soon(pay.begun)
        paying.cancel()
        await soon(pay.closed)
        await stage.list_tools()
        assert server.count(CANCELLED) == 0
        assert paying.cancelled()


async def test_what_can_not_be_cancelled_is_closed_without_a_word(patient: None) -> None:
    """MCP forbids to cancel `initialize`."""
    begin = Pinging()
    async with raw_server(initialize=begin) as server, connected(server) as stage:
        asking = asyncio.create_task(stage.channel.request("initialize", b"{}", cancellable=False))
        await soon(begin.begun)
        asking.cancel()
        await soon(begin.closed)
        await stage.list_tools()
        assert server.count(CANCELLED) == 0


@pytest.mark.parametrize("dialect", [OLD, NEW], ids=["legacy", "modern"])
async def test_a_response_that_goes_on_after_its_answer_is_closed(hasty: None, dialect: Dialect) -> None:
    class AnswersAndGoesOn(Pinging):
        async def __call__(self, asked: Asked, say: Say) -> None:
            try:
                await say(STREAM + answered(asked, PAID))
                while True:
                    await say(b": ping\n")
            finally:
                self.closed.set()

    pay = AnswersAndGoesOn()
    async with raw_server(pay=pay) as server, connected(server, dialect) as stage:
        assert await stage.call() == PAID
        await soon(pay.closed)
        assert server.count(CANCELLED) == 0


async def test_what_is_under_way_fails_when_the_channel_closes(patient: None) -> None:
    pay = Held(STREAM)
    async with raw_server(pay=pay) as server:
        async with connected(server) as stage:
            paying = asyncio.create_task(stage.failure())
            await soon(pay.begun)
        failure = await paying
        assert (failure.reason, failure.sent) == ("the connection was closed", True)
        assert stage.listener.reasons == ["the connection was closed"]


# ---- what asks for no answer


async def test_what_asks_for_no_answer_is_sent_in_order_one_after_another(patient: None) -> None:
    taken = Taken()
    turns: dict[str, Turn] = {NOTICE: taken}
    async with raw_server(**turns) as server, connected(server) as stage:
        for number in range(20):
            await stage.channel.notify(NOTICE, json.dumps({"n": number}).encode())
        await stage.list_tools()  # which waits for them
        assert taken.texts == [{"n": number} for number in range(20)]
        assert taken.so_far == list(range(20))
        assert server.asked[-1].call == "tools/list"


async def test_a_notification_that_is_never_answered_holds_up_the_next_for_a_moment_only(hasty: None) -> None:
    held = Held()
    turns: dict[str, Turn] = {NOTICE: held}
    async with raw_server(**turns) as server, connected(server) as stage:
        for _ in range(2):
            await stage.channel.notify(NOTICE)
        async with asyncio.timeout(20):
            await stage.list_tools()
            assert await stage.call() == PAID
        assert server.asked[0].call == NOTICE
        assert not held.gate.is_set()


async def test_a_server_that_takes_nothing_is_told_no_more_until_it_does(
    hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its requests are not heard either: it would not take the answers."""
    monkeypatch.setattr(limits, "ASKED", 5)
    held = Held(then=TAKEN)
    question = event({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})

    async def pay(asked: Asked, say: Say) -> None:
        await say(STREAM + question + answered(asked, PAID))
        raise ConnectionError

    turns: dict[str, Turn] = {NOTICE: held, "pay": pay}
    async with raw_server(**turns) as server, connected(server) as stage:
        for _ in range(9):
            await stage.channel.notify(NOTICE)
        while server.count(NOTICE) < 5:
            await stage.list_tools()
        assert await stage.call() == PAID
        await stage.list_tools(3)
        assert server.count(NOTICE) == 5
        assert stage.listener.questions == []
        assert server.count("POST") == 0
        held.gate.set()
        while stage.channel._posting:
            await asyncio.wait(set(stage.channel._posting))
        await stage.channel.notify(NOTICE)
        await stage.call()
        await stage.list_tools()
        assert server.count(NOTICE) == 6
        assert stage.listener.questions == ["roots/list"]


async def test_a_server_that_leaves_much_untaken_is_told_no_more(
    hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WAITING", 1000)
    turns: dict[str, Turn] = {NOTICE: Held()}
    async with raw_server(**turns) as server, connected(server) as stage:
        for _ in range(4):
            await stage.channel.notify(NOTICE, json.dumps({"text": "x" * 600}).encode())
        await stage.list_tools(3)
        assert server.count(NOTICE) == 2


async def test_a_notification_on_a_closed_channel_is_no_error() -> None:
    async with raw_server() as server:
        async with connected(server) as stage:
            pass
        await stage.channel.notify(NOTICE)
        assert server.asked == []


# ---- a failure that nobody waits for


@pytest.mark.parametrize("first", [True, False])
async def test_a_failure_that_nobody_waits_for_is_no_news(
    first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller may leave in the very moment in which its request fails, or just before."""
    heard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: heard.append(context))
    asked, gate = asyncio.Event(), asyncio.Event()

    async def failing(connections: Connections, request: httpx.Request) -> httpx.Response:
        asked.set()
        try:
            await gate.wait()
        except asyncio.CancelledError:
            pass
        raise httpx.ReadError("gone")

    async with raw_server() as server, connected(server, NEW) as stage:
        monkeypatch.setattr(Connections, "handle_async_request", failing)
        paying = asyncio.create_task(stage.call())
        await soon(asked)
        if first:
            gate.set()
            await asyncio.sleep(0)
        paying.cancel()
        await asyncio.wait({paying})
        while stage.channel._tasks:
            await asyncio.wait(set(stage.channel._tasks))
        assert paying.done()
        if not first:
            assert paying.cancelled()
        del paying
    gc.collect()
    assert heard == []


async def test_an_error_may_be_long_and_is_whole() -> None:
    """What a server says as JSON may be the answer, even with an HTTP error."""

    async def pay(asked: Asked, say: Say) -> None:
        error = {"code": -7, "message": "no", "data": "x" * 2 * limits.REFUSAL}
        body = json.dumps({"jsonrpc": "2.0", "id": asked.message["id"], "error": error}).encode()
        await say(head(500, "content-type: application/json", f"content-length: {len(body)}") + body)

    async with raw_server(pay=pay) as server, connected(server) as stage:
        with pytest.raises(JsonRpcError) as caught:
            await stage.call()
        assert len(caught.value.error.data or b"") == 2 * limits.REFUSAL + 2
