"""Streamable HTTP: streams that break off and go on, sessions, and answers that come where they will."""

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from helpers.http_channel import NEW, STREAM, Held, answered, connected, soon, told
from helpers.raw_http_server import OPENING, PAID, Asked, Say, Turn, event, head, polite, raw_server, reply

from mcpzip.transport import http as module
from mcpzip.transport.base import ChannelClosedError, Dialect
from mcpzip.transport.http_errors import LOST, NEITHER, NOT_OURS
from mcpzip.wire import JsonRpcError

LISTS_CHANGED = "notifications/tools/list_changed"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited before a stream was opened again; it takes no time."""
    found: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        found.append(seconds)
        await sleep(0)

    monkeypatch.setattr(module, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": noted}))
    return found


class BreaksOff:
    """A turn that says ``said`` as an event stream, and whose connection then breaks off."""

    def __init__(self, *said: bytes) -> None:
        self._said = said

    async def __call__(self, asked: Asked, say: Say) -> None:
        await say(STREAM + b"".join(self._said))
        raise ConnectionError


class InTurn:
    """What is asked for again and again: each of ``turns`` is taken once, the last for good."""

    def __init__(self, *turns: Turn) -> None:
        self._turns = list(turns)

    async def __call__(self, asked: Asked, say: Say) -> None:
        await (self._turns.pop(0) if len(self._turns) > 1 else self._turns[0])(asked, say)


async def vanishes(asked: Asked, say: Say) -> None:
    raise ConnectionError


def refuses(status: int) -> Turn:
    async def turn(asked: Asked, say: Say) -> None:
        await say(head(status, "content-length: 0"))

    return turn


# ---- a response that breaks off


async def test_a_response_that_breaks_off_is_resumed_after_its_last_event(waits: list[float]) -> None:
    async def rest(asked: Asked, say: Say) -> None:
        assert asked.headers["accept"] == "text/event-stream"
        if asked.headers["last-event-id"] == "e-7":
            await BreaksOff(told("notifications/message", half=2), b"id: e-8\nretry: 900\n\n")(asked, say)
        answer = event({"jsonrpc": "2.0", "id": server.asked[0].message["id"], "result": PAID})
        await say(STREAM + b"id: e-9\n" + answer)

    begun = BreaksOff(b"id: e-7\nretry: 300\n" + told("notifications/message", half=1))
    async with raw_server(pay=begun, GET=rest) as server, connected(server) as stage:
        assert await stage.call() == PAID
        assert [one.headers.get("last-event-id") for one in server.asked] == [None, "e-7", "e-8"]
        assert [one.headers["mcp-protocol-version"] for one in server.asked] == ["2025-11-25"] * 3
        assert [(await stage.listener.notices.get())[1] for _ in range(2)] == [{"half": 1}, {"half": 2}]
    assert waits == [0.3, 0.9]


async def test_a_response_that_ends_without_an_answer_is_resumed_too(waits: list[float]) -> None:
    """So a server makes us ask again later (spec 2025-11-25: "Listening for Messages")."""

    async def ends(asked: Asked, say: Say) -> None:
        await say(head(200, "content-type: text/event-stream", "content-length: 7") + b"id: 1\n\n")

    async def rest(asked: Asked, say: Say) -> None:
        await say(STREAM + event({"jsonrpc": "2.0", "id": 1, "result": PAID}))

    async with raw_server(pay=ends, GET=rest) as server, connected(server) as stage:
        assert await stage.call() == PAID
    assert waits == [module._RETRY]


@pytest.mark.parametrize("vain", [refuses(500), refuses(404), refuses(202), vanishes])
async def test_what_can_not_be_resumed_is_given_up_after_two_attempts(waits: list[float], vain: Turn) -> None:
    begun = BreaksOff(b"id: 7\n\n")
    async with raw_server(pay=begun, GET=vain) as server, connected(server) as stage:
        failure = await stage.failure()
        assert (failure.reason, failure.sent, failure.fatal) == (LOST, True, False)
        assert server.count("GET") == 2
        await stage.list_tools()
        assert server.count("pay") == 1
    assert len(waits) == 2


async def test_an_attempt_that_brings_something_lets_it_have_two_more(waits: list[float]) -> None:
    no, more = refuses(503), BreaksOff(b"id: 8\n\n")
    turns = InTurn(no, more, no, more, no, no)
    async with raw_server(pay=BreaksOff(b"id: 7\n\n"), GET=turns) as server, connected(server) as stage:
        assert (await stage.failure()).reason == LOST
        assert server.count("GET") == 6


@pytest.mark.parametrize(
    ("said", "dialect"),
    [(b"id: 7\n\n", NEW), (told("notifications/message"), None), (b"id: a\x00b\n\n", None), (b"", None)],
    ids=["modern", "no id", "an id that fits no header", "nothing"],
)
async def test_what_has_no_id_or_is_modern_is_not_resumed(
    waits: list[float], said: bytes, dialect: Dialect | None
) -> None:
    turns: dict[str, Turn] = {"pay": BreaksOff(said), "GET": refuses(405)}
    async with raw_server(**turns) as server, connected(server, dialect) as stage:
        failure = await stage.failure()
        assert (failure.reason, failure.sent, failure.fatal) == (LOST, True, False)
        await stage.list_tools()
        assert not any("last-event-id" in one.headers for one in server.asked)
        assert server.count("GET") == (dialect is None)  # its own stream


# ---- the stream that belongs to no request


async def test_it_is_opened_when_the_server_has_taken_that_we_are_ready() -> None:
    ready = Held(then=head(202, "content-length: 0"))
    listening = Held(STREAM, told(LISTS_CHANGED, a=1))
    turns: dict[str, Turn] = {"notifications/initialized": ready, "GET": listening}
    async with raw_server(**turns) as server, connected(server) as stage:
        beginning = asyncio.create_task(stage.begin_session())
        await soon(ready.begun)
        await stage.list_tools(3)
        assert server.count("GET") == 0
        assert not beginning.done()
        ready.gate.set()
        await beginning
        assert await stage.listener.notices.get() == (LISTS_CHANGED, {"a": 1})
        assert server.asked[-1].headers["mcp-session-id"] == "s1"
        assert "last-event-id" not in server.asked[-1].headers


async def test_it_is_not_opened_without_a_session() -> None:
    async def stateless(asked: Asked, say: Say) -> None:
        await say(reply(OPENING, asked.message["id"]))

    async with raw_server(initialize=stateless) as server, connected(server, None) as stage:
        await stage.list_tools(3)
        assert server.count("GET") == 0
    assert server.count("DELETE") == 0


async def test_it_is_opened_again_after_its_last_event_when_the_server_wants_it(waits: list[float]) -> None:
    first = BreaksOff(b"retry: 700\nid: 5\n" + told(LISTS_CHANGED, a=1))
    listening = Held(STREAM, told(LISTS_CHANGED, a=2))
    async with raw_server(GET=InTurn(first, first, listening)) as server, connected(server, None) as stage:
        heard = [(await stage.listener.notices.get())[1]["a"] for _ in range(3)]
        assert heard == [1, 1, 2]
        opened = [one for one in server.asked if one.call == "GET"]
        assert [one.headers.get("last-event-id") for one in opened] == [None, "5", "5"]
    assert waits == [0.7, 0.7]


@pytest.mark.parametrize("status", [400, 404, 405, 406, 401, 429, 500, 503])
async def test_a_server_is_asked_for_it_again_unless_it_has_none(waits: list[float], status: int) -> None:
    lasts = status < 500 and status not in (401, 429)
    asked_again = asyncio.Event()

    async def listened(asked: Asked, say: Say) -> None:
        if server.count("GET") > 3:
            asked_again.set()
        await refuses(status)(asked, say)

    async with raw_server(GET=listened) as server, connected(server, None) as stage:
        if lasts:
            await stage.list_tools(10)
            assert (server.count("GET"), waits) == (1, [])
        else:
            await soon(asked_again)
            assert waits[:3] == [2.0, 4.0, 8.0]


async def test_a_server_that_is_away_for_days_is_still_asked_for_it(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a thousand failures the next pause was too large for a float, and nothing was heard again."""
    days = asyncio.Event()

    async def away(*_: object) -> int:
        if len(waits) > 1_100:
            days.set()
        return 0

    monkeypatch.setattr(module.StreamableHttpChannel, "_open_stream", away)
    async with raw_server() as server, connected(server, None):
        await soon(days)
    assert waits[:3] == [2.0, 4.0, 8.0]
    assert set(waits[10:]) == {300.0}


async def test_an_answer_that_was_put_off_comes_on_that_stream() -> None:
    listening = Held(STREAM)
    accepted = asyncio.Event()

    async def pay(asked: Asked, say: Say) -> None:
        listening._then = answered(asked, PAID)
        await say(head(202, "content-length: 0"))
        accepted.set()

    async with raw_server(GET=listening, pay=pay) as server, connected(server, None) as stage:
        await soon(listening.begun)
        paying = asyncio.create_task(stage.call())
        await soon(accepted)
        await stage.list_tools()
        assert not paying.done()
        listening.gate.set()
        assert await paying == PAID


async def test_an_answer_that_is_put_off_without_such_a_stream_is_none() -> None:
    async with raw_server(pay=refuses(202)) as server, connected(server) as stage:
        failure = await stage.failure()
        assert (failure.reason, failure.sent) == (NEITHER, True)


async def test_an_answer_that_was_put_off_is_lost_when_there_is_no_such_stream_after_all() -> None:
    """Nobody but the clock ended the call."""
    refusing = Held(then=head(405, "content-length: 0"))

    async with raw_server(GET=refusing, pay=refuses(202)) as server, connected(server, None) as stage:
        await soon(refusing.begun)
        paying = asyncio.create_task(stage.failure())
        while not server.count("pay"):
            await stage.list_tools()
        await stage.list_tools()
        refusing.gate.set()
        async with asyncio.timeout(5):
            assert (await paying).sent


# ---- the session


async def test_a_session_is_named_in_every_request_and_ends_with_a_good_bye() -> None:
    async with raw_server() as server:
        async with connected(server, None) as stage:
            assert await stage.call() == PAID
        first, *others = [(one.call, one.headers.get("mcp-session-id")) for one in server.asked]
    assert first == ("initialize", None)
    assert {session for _, session in others} == {"s1"}
    assert others[-1][0] == "DELETE"
    assert server.asked[-1].headers["mcp-protocol-version"] == "2025-11-25"


async def test_a_failed_handshake_leaves_no_session() -> None:
    async def refused(asked: Asked, say: Say) -> None:
        error = {"jsonrpc": "2.0", "id": asked.message["id"], "error": {"code": -1, "message": "no"}}
        body = json.dumps(error).encode()
        fields = ("content-type: application/json", "mcp-session-id: bad", f"content-length: {len(body)}")
        await say(head(200, *fields) + body)

    async with raw_server(initialize=refused) as server:
        async with connected(server) as stage:
            with pytest.raises(JsonRpcError):
                await stage.channel.request("initialize", b"{}", cancellable=False)
            await stage.channel.notify("notifications/initialized")
            await stage.list_tools()
        assert server.count("notifications/initialized") == 1
        assert not any("mcp-session-id" in one.headers for one in server.asked)
        assert server.count("GET") == server.count("DELETE") == 0


async def test_a_session_that_the_server_forgot_is_at_its_end() -> None:
    turns: dict[str, Turn] = {"pay": refuses(404), "odd": Held()}
    async with raw_server(**turns) as server, connected(server, None) as stage:
        other = asyncio.create_task(stage.failure("odd"))
        failure = await stage.failure()
        assert (failure.reason, failure.sent, failure.status) == ("the server forgot our session", False, 404)
        assert (await other).sent
        assert stage.listener.reasons == ["the server forgot our session"]
        with pytest.raises(ChannelClosedError, match="the server forgot our session"):
            await stage.list_tools()


async def test_a_404_without_a_session_is_a_refusal_like_others() -> None:
    async with raw_server(pay=refuses(404)) as server, connected(server) as stage:
        failure = await stage.failure()
        assert (failure.reason, failure.sent) == ("it answered HTTP 404 “So”", False)
        await stage.list_tools()
        assert stage.listener.reasons == []


# ---- answers


def in_json(message: object) -> bytes:
    body = json.dumps(message).encode()
    return head(200, "content-type: application/json", f"content-length: {len(body)}") + body


def in_stream(message: object) -> bytes:
    body = event(message)
    return head(200, "content-type: text/event-stream", f"content-length: {len(body)}") + body


@pytest.mark.parametrize("spoken", [in_json, in_stream])
@pytest.mark.parametrize("dialect", [NEW, None], ids=["modern", "legacy"])
async def test_an_answer_is_to_what_it_came_for_whatever_its_id(
    spoken: Callable[[object], bytes], dialect: Dialect | None
) -> None:
    async def pay(asked: Asked, say: Say) -> None:
        await say(spoken({"jsonrpc": "2.0", "id": 4711, "result": PAID}))

    async def odd(asked: Asked, say: Say) -> None:
        error = {"code": -32600, "message": "what?"}
        await say(spoken({"jsonrpc": "2.0", "id": None, "error": error}))

    async with raw_server(pay=pay, odd=odd) as server, connected(server, dialect) as stage:
        assert await stage.call() == PAID
        with pytest.raises(JsonRpcError, match="what"):
            await stage.call("odd")


async def test_an_answer_to_another_request_goes_to_that_one() -> None:
    first = Held()

    async def pay(asked: Asked, say: Say) -> None:
        await soon(first.begun)
        other = next(one for one in server.asked if one.call == "odd")
        await say(STREAM + answered(other, {"odd": 1}) + answered(asked, PAID))
        raise ConnectionError

    async with raw_server(odd=first, pay=pay) as server, connected(server) as stage:
        odd, paid = await asyncio.gather(stage.call("odd"), stage.call())
        assert (odd, paid) == ({"odd": 1}, PAID)


@pytest.mark.parametrize(
    "bad", [b"data: hello\n\n", b"data: []\n\n", b'data: {"jsonrpc":"2.0","id":1,"res\n\n']
)
async def test_a_bad_event_keeps_no_answer_from_coming(bad: bytes) -> None:
    async def pay(asked: Asked, say: Say) -> None:
        await say(STREAM + bad + b"event: other\ndata: x\n\n" + answered(asked, PAID))
        raise ConnectionError

    async with raw_server(pay=pay, odd=BreaksOff(bad)) as server, connected(server) as stage:
        assert await stage.call() == PAID
        failure = await stage.failure("odd")
        assert (failure.reason, failure.sent, failure.fatal) == (NOT_OURS, True, False)


async def test_what_a_server_asks_on_a_stream_is_answered_by_a_post() -> None:
    answers: asyncio.Queue[Asked] = asyncio.Queue()

    async def posted(asked: Asked, say: Say) -> None:
        answers.put_nowait(asked)
        await polite(asked, say)

    async def pay(asked: Asked, say: Say) -> None:
        await say(STREAM + event({"jsonrpc": "2.0", "id": "q1", "method": "roots/list"}))
        answer = await answers.get()
        assert answer.headers["mcp-session-id"] == "s1"
        await say(answered(asked, answer.message))
        raise ConnectionError

    async with raw_server(pay=pay, POST=posted) as server, connected(server, None) as stage:
        assert await stage.call() == {"jsonrpc": "2.0", "id": "q1", "result": {}}
        assert stage.listener.questions == ["roots/list"]
