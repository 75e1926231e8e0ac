"""Many clients on one site: each hears what is its own, and nothing crosses.

Sources: 2025-11-25 `basic/transports/streamable-http` ("Sending Messages", "Session Management"), 2026-07-28
the same page; `basic/patterns/cancellation`.
"""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest
from helpers.driver import comes_true
from helpers.raw_http_client import Json, Script, Web, asking, echo, message, modern_message, progress, site

from mcpzip.proxy.exchange import Exchange
from mcpzip.server.http.event_store import PLAIN_EVENTS
from mcpzip.server.http.response import HttpResponse
from mcpzip.wire import JsonRpcError, RpcError


async def forever(exchange: Exchange) -> bytes:
    await asyncio.Event().wait()
    raise AssertionError


# A session's life


async def test_a_session_from_beginning_to_end() -> None:
    script = Script(echo=echo)
    async with site(script) as web:
        session = await web.session()
        assert len(script.clients) == 1
        assert (await session.call("echo")).status == 200
        async with session.listening() as stream:
            assert (await session.ask("GET")).status == 409  # one stream is allowed
            assert (await session.ask("DELETE")).status == 200
            assert await stream.event() == {}
        await comes_true(lambda: script.clients == [])
        for verb, body in [("POST", message("ping", id=2)), ("GET", None), ("DELETE", None)]:
            reply = await session.ask(verb, body)
            assert (reply.status, reply.last["error"]["code"]) == (404, -32600)


@pytest.mark.parametrize("verb", ["GET", "POST", "DELETE"])
async def test_a_session_nobody_opened(verb: str) -> None:
    script = Script()
    async with site(script) as web:
        body = message("ping", id=1) if verb == "POST" else None
        assert (await web.ask(verb, body, Mcp_Session_Id="0" * 32)).status == 404
        assert (await web.ask(verb, body)).status == 400
        assert script.seen == []


async def test_an_initialize_that_fails_opens_nothing() -> None:
    async def broken(exchange: Exchange) -> bytes:
        raise JsonRpcError(RpcError(-32603, "broken"))

    script = Script()
    async with site(script) as web:
        reply = await web.ask("POST", message("initialize", {"capabilities": {}}, 1))
        assert (reply.status, reply.last["error"]["code"]) == (200, -32602)
        assert "mcp-session-id" not in reply.headers
        script.initialize = broken
        reply = await web.ask("POST", message("initialize", {"protocolVersion": "2025-11-25"}, 1))
        assert reply.last["error"]["message"] == "broken"
        assert script.clients == []
        assert "mcp-session-id" not in reply.headers


async def test_an_initialize_that_fails_late_opens_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream had begun by then, with the id of a session that was gone."""
    monkeypatch.setattr(PLAIN_EVENTS, "patience", 0.01)

    async def slow(exchange: Exchange) -> bytes:
        await asyncio.sleep(0.1)
        raise JsonRpcError(RpcError(-32603, "broken"))

    script = Script()
    async with site(script) as web:
        script.initialize = slow
        reply = await web.ask("POST", message("initialize", {"protocolVersion": "2025-06-18"}, 1))
        assert reply.last["error"]["message"] == "broken"
        assert "mcp-session-id" not in reply.headers
        assert script.clients == []


async def test_an_initialize_at_which_we_fail_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(HttpResponse, "deliver", broken)
    warned: list[str] = []
    async with site(Script(), warned=warned) as web:
        reply = await web.ask("POST", message("initialize", {"protocolVersion": "2025-11-25"}, 1))
        assert reply.status == 500
        assert "mcp-session-id" not in reply.headers
    assert warned == ["a request over HTTP failed: RuntimeError: no such luck"]


async def test_a_stream_is_opened_anew() -> None:
    script = Script()
    async with site(script) as web:
        session = await web.session()
        async with session.listening():
            pass
        async with session.listening_again(Last_Event_ID="7") as stream:  # nothing is told again
            script.clients[0].notify("notifications/tools/list_changed", None)
            assert (await stream.event())["method"] == "notifications/tools/list_changed"


async def test_a_session_begins_once() -> None:
    script = Script()
    async with site(script) as web:
        session = await web.session(capabilities={"sampling": {}})
        again = message("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}, 2)
        assert (await session.ask("POST", again)).last["error"]["code"] == -32600
        assert [method for _, method, _ in script.seen].count("initialize") == 1


async def test_a_session_that_seems_forgotten_makes_room() -> None:
    script = Script(echo=echo)
    async with site(script, sessions=2) as web:
        first, second = await web.session(), await web.session()
        async with first.listening():
            third = await web.session()
            statuses = [(await each.call("echo")).status for each in (first, second, third)]
            assert statuses == [200, 404, 200]


async def test_a_session_is_not_forgotten_over_a_call_whose_client_hung_up() -> None:
    go_on = asyncio.Event()

    async def waiting(exchange: Exchange) -> bytes:
        await go_on.wait()
        return b"{}"

    script = Script(waiting=waiting)
    async with site(script, session_idle=0.5) as web:
        session = await web.session()
        async with session.calling("waiting"):
            await comes_true(lambda: "tools/call" in [method for _, method, _ in script.seen])
        other = await web.session()
        await comes_true(lambda: len(script.clients) == 1)  # the one that does nothing has ended
        assert (await other.ask("POST", message("ping", id=1))).status == 404
        go_on.set()
        await comes_true(lambda: script.ended == ["waiting"])
        await comes_true(lambda: script.clients == [])


async def test_there_is_an_end_to_requests() -> None:
    go_on = asyncio.Event()

    async def waiting(exchange: Exchange) -> bytes:
        await go_on.wait()
        return b"{}"

    async with site(Script(waiting=waiting, echo=echo), calls=2) as web:
        session = await web.session()
        async with session.calling("waiting", 1) as one, session.calling("waiting", 2) as two:
            script_full = [session.call("echo", 3), web.modern("tools/call", {"name": "echo"})]
            for refused in [await reply for reply in script_full]:
                assert "too many" in refused.last["error"]["message"]
            go_on.set()
            assert [(await each.reply()).last["result"] for each in (one, two)] == [{}, {}]
        assert (await session.call("echo", 3)).status == 200


async def test_one_session_leaves_as_many_requests_for_all_others() -> None:
    """One that hung up on 4,000 calls had all there are: nobody else could begin, or call, for a day."""

    begun: list[bytes] = []

    async def waiting(exchange: Exchange) -> bytes:
        begun.append(exchange.id)
        return await forever(exchange)

    async with site(Script(waiting=waiting, echo=echo), calls=6) as web:
        greedy = await web.session()
        async with AsyncExitStack() as stack:
            for number in range(3):
                await stack.enter_async_context(greedy.calling("waiting", number))
            await comes_true(lambda: len(begun) == 3)
            assert (await greedy.call("echo", 4)).status == 200  # three are left
            await stack.enter_async_context(greedy.calling("waiting", 5))
            await comes_true(lambda: len(begun) == 4)
            assert "too many" in (await greedy.call("echo", 6)).last["error"]["message"]
            another = await web.session()
            assert "result" in (await another.call("echo", 7)).last
            assert "result" in (await web.modern("tools/call", {"name": "echo"})).last


async def test_what_a_client_asked_that_hung_up_ends_some_time() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def waiting(exchange: Exchange) -> bytes:
        begun.set()
        try:
            return await forever(exchange)
        finally:
            ended.set()

    async with site(Script(waiting=waiting, echo=echo), unheard=0.05) as web:
        session = await web.session()
        async with session.calling("waiting", 1):
            await comes_true(begun.is_set)
        await comes_true(ended.is_set)
        assert "result" in (await session.call("echo", 1)).last  # its id is free again


async def test_a_session_that_is_never_used_again_is_forgotten() -> None:
    script = Script(echo=echo)
    async with site(script, session_idle=0.5) as web:
        session = await web.session()
        await comes_true(lambda: script.clients == [])
        assert (await session.call("echo")).status == 404


async def test_an_open_stream_keeps_a_session() -> None:
    script = Script(echo=echo)
    async with site(script, session_idle=0.5) as web:
        kept, lost = await web.session(), await web.session()
        async with kept.listening():
            await comes_true(lambda: len(script.clients) == 1)
            assert (await kept.call("echo")).status == 200
            assert (await lost.call("echo")).status == 404


async def opening(web: Web) -> int:
    """The status of one more `initialize`."""
    return (await web.ask("POST", message("initialize", {"protocolVersion": "2025-11-25"}, 1))).status


async def test_there_is_an_end_to_sessions() -> None:
    async with site(Script(echo=echo), sessions=2) as web:
        first, second = await web.session(), await web.session()
        async with first.listening(), second.listening():
            assert await opening(web) == 503
            assert (await first.call("echo")).status == 200
        assert (await first.ask("DELETE")).status == 200
        await web.session()


async def test_a_flood_of_sessions_locks_nobody_out() -> None:
    """A thousand of them in a second did, for a minute: none had been idle for long enough to go."""
    script = Script(echo=echo)
    async with site(script, sessions=3) as web:
        used, listening = await web.session(), await web.session()
        assert (await used.call("echo")).status == 200
        async with listening.listening():
            assert [await opening(web) for _ in range(10)] == [200] * 10
            assert len(script.clients) <= 4
            for each in (used, listening, await web.session()):
                assert (await each.call("echo")).status == 200


async def test_the_end_of_a_session_cancels_its_calls() -> None:
    script = Script(forever=forever, echo=echo)
    async with site(script) as web:
        session, other = await web.session(), await web.session()
        async with session.calling("forever") as mine, other.calling("forever"):
            await comes_true(lambda: [method for _, method, _ in script.seen].count("tools/call") == 2)
            assert (await session.ask("DELETE")).status == 200
            await comes_true(lambda: script.cancelled == ["forever"])
            assert (await mine.reply()).last["error"]["message"] == "The session has ended."
            assert (await other.call("echo", 2)).status == 200
        assert script.cancelled == ["forever"]  # a legacy client that hangs up hasn't cancelled


# Cancellation


async def test_a_legacy_request_is_cancelled_by_a_notification() -> None:
    script = Script(forever=forever, echo=echo)
    async with site(script) as web:
        mine, other = await web.session(), await web.session()
        async with mine.calling("forever", 5) as call, other.calling("forever", 5):
            await comes_true(lambda: [method for _, method, _ in script.seen].count("tools/call") == 2)
            body = message("notifications/cancelled", {"requestId": 5, "reason": "enough"})
            assert (await mine.ask("POST", body)).status == 202
            await comes_true(lambda: script.cancelled == ["forever"])
            reply = await call.reply()
            assert (reply.status, reply.last["error"]["code"]) == (200, -32800)
            assert (
                await other.ask("POST", message("notifications/cancelled", {"requestId": 6}))
            ).status == 202
            assert (await other.call("echo", 6)).status == 200
            assert script.cancelled == ["forever"]


async def test_a_modern_request_is_cancelled_by_hanging_up() -> None:
    script = Script(forever=forever, echo=echo)
    async with site(script) as web:
        body, headers = modern_message("tools/call", {"name": "forever"})
        async with web.connected() as other:
            await other.write(web.request("POST", body, **headers))
            async with web.connected() as call:
                await call.write(web.request("POST", body, **headers))
                await comes_true(lambda: len(script.seen) == 2)
            await comes_true(lambda: script.cancelled == ["forever"])
            assert (await web.modern("tools/call", {"name": "echo"})).status == 200
        await comes_true(lambda: script.cancelled == ["forever", "forever"])


async def test_a_modern_client_cancels_nothing_by_an_id() -> None:
    script = Script(forever=forever, echo=echo)
    async with site(script) as web:
        body, headers = modern_message("tools/call", {"name": "forever"}, 5)
        async with web.connected() as call:
            await call.write(web.request("POST", body, **headers))
            await comes_true(lambda: len(script.seen) == 1)
            cancel, headers = modern_message("notifications/cancelled", {"requestId": 5}, None)
            assert (await web.ask("POST", cancel, **headers)).status == 202
            assert (await web.modern("tools/call", {"name": "echo"}, 6)).status == 200
            assert script.cancelled == []


async def test_an_id_is_used_for_one_request_at_a_time() -> None:
    script = Script(forever=forever, echo=echo)
    async with site(script) as web:
        session, other = await web.session(), await web.session()
        async with session.calling("forever", 7):
            await comes_true(lambda: "tools/call" in [method for _, method, _ in script.seen])
            reply = await session.call("echo", 7)
            assert (reply.status, reply.last["error"]["code"]) == (400, -32600)
            assert (await session.call("echo", "7")).status == 200  # another id (JSON-RPC 2.0, 4)
            assert (await other.call("echo", 7)).status == 200
            assert (await session.call("echo", 8)).status == 200


async def test_an_id_is_in_use_until_the_work_ends_though_nobody_waits_for_it() -> None:
    go_on = asyncio.Event()

    async def waiting(exchange: Exchange) -> bytes:
        await go_on.wait()
        return b'{"late":true}'

    script = Script(waiting=waiting, echo=echo)
    async with site(script) as web:
        session = await web.session()
        async with session.calling("waiting", 7):
            await comes_true(lambda: "tools/call" in [method for _, method, _ in script.seen])
        # Whether or not its hanging up was noticed by now.
        assert (await session.call("echo", 7)).status == 400
        go_on.set()
        await comes_true(lambda: script.ended == ["waiting"])
        assert (await session.call("echo", 7)).last["result"] == {"name": "echo"}


async def test_an_id_is_free_again_once_it_was_answered() -> None:
    async with site(Script(echo=echo)) as web:
        session = await web.session()
        async with session.connected() as connection:
            for number in range(20):
                params = {"name": "echo", "arguments": {"n": number}}
                await connection.write(session.request("POST", message("tools/call", params, 1)))
                assert (await connection.reply()).last["result"] == params


# Nothing crosses


async def test_sessions_side_by_side() -> None:
    """Each asks under the same ids and tokens, is told and asked at the same time, and hears its own."""

    async def busy(exchange: Exchange) -> bytes:
        arguments = exchange.fields["arguments"]
        assert exchange.request is not None
        for step in range(3):
            progress(exchange, step)
            await asyncio.sleep(0)
        exchange.client.notify("notifications/message", b'{"level":"info","data":%b}' % arguments)
        answer = await exchange.request("elicitation/create", arguments)
        return b'{"asked":%b,"answer":%b}' % (arguments, answer)

    async with site(Script(busy=busy)) as web, AsyncExitStack() as stack:
        sessions = [await web.session() for _ in range(12)]
        streams = [await stack.enter_async_context(session.listening()) for session in sessions]

        async def converse(number: int) -> None:
            session, mine = sessions[number], {"who": number}
            params: Json = {"arguments": mine, "_meta": {"progressToken": 1}}
            async with session.calling("busy", 1, **params) as call:
                assert (await call.head()).status == 200
                assert [(await call.event())["params"]["progress"] for _ in range(3)] == [0, 1, 2]
                question = await call.event()
                assert (question["method"], question["params"]) == ("elicitation/create", mine)
                body = {"jsonrpc": "2.0", "id": question["id"], "result": {"from": number}}
                assert (await session.ask("POST", json.dumps(body).encode())).status == 202
                assert (await call.event())["result"] == {"asked": mine, "answer": {"from": number}}
                assert await call.event() == {}
            assert (await streams[number].event())["params"]["data"] == mine

        await asyncio.gather(*map(converse, range(12)))


async def test_an_answer_from_another_session_is_nobodys() -> None:
    async with site(Script(asking=asking)) as web:
        mine, other = await web.session(), await web.session()
        async with mine.calling("asking", arguments={}) as call:
            assert (await call.head()).status == 200
            await call.event()
            question = await call.event()
            for session, said in ((other, b'"forged"'), (mine, b'"mine"')):
                await session.reply_to(question, b'{"who":%b}' % said)
            assert (await call.event())["result"] == {"said": {"who": "mine"}}
