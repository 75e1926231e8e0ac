"""Many clients on one site: each hears what is its own, and nothing crosses.

Sources: 2025-11-25 `basic/transports/streamable-http` ("Sending Messages", "Session Management"), 2026-07-28
the same page; `basic/patterns/cancellation`.
"""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest
from driver import comes_true
from web import Json, Script, message, modern_message, site

from mcpzip.proxy.exchange import Exchange
from mcpzip.server import verbatim
from mcpzip.server.endpoint import FaultError
from mcpzip.transport.base import RpcFaultError

# Letters and numbers that a JSON library would write in another way, and one line break too many.
ODD = (
    b'{ "content":[],"n":1.50,"e":1e400,"i":12345678901234567890,"x":null,\n"s":"\\ud800\\u0041\\/","a" : {}}'
)
ODD_LINE = ODD.replace(b"\n", b" ")


async def odd(exchange: Exchange) -> bytes:
    return ODD


async def echo(exchange: Exchange) -> bytes:
    return exchange.params or b"{}"


async def forever(exchange: Exchange) -> bytes:
    await asyncio.Event().wait()
    raise AssertionError


def progress(exchange: Exchange, step: int) -> None:
    token = exchange.progress_token or b"null"
    exchange.tell("notifications/progress", b'{"progressToken":%b,"progress":%d.0}' % (token, step))


async def counting(exchange: Exchange) -> bytes:
    for step in range(100):
        progress(exchange, step)
    return b'{"content":[]}'


async def asking(exchange: Exchange) -> bytes:
    progress(exchange, 1)
    assert exchange.ask is not None
    return b'{"said":%b}' % await exchange.ask("sampling/createMessage", exchange.fields["arguments"])


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


async def test_a_session_that_is_never_used_again_is_forgotten() -> None:
    script = Script(echo=echo)
    async with site(script, session_idle=0.1) as web:
        session = await web.session()
        await comes_true(lambda: script.clients == [])
        assert (await session.call("echo")).status == 404


async def test_an_open_stream_keeps_a_session() -> None:
    script = Script(echo=echo)
    async with site(script, session_idle=0.05) as web:
        kept, lost = await web.session(), await web.session()
        async with kept.listening():
            await comes_true(lambda: len(script.clients) == 1)
            assert (await kept.call("echo")).status == 200
            assert (await lost.call("echo")).status == 404


async def test_there_is_an_end_to_sessions() -> None:
    async with site(Script(echo=echo), sessions=2) as web:
        first, _ = await web.session(), await web.session()
        assert (
            await web.ask("POST", message("initialize", {"protocolVersion": "2025-11-25"}, 1))
        ).status == 503
        assert (await first.call("echo")).status == 200
        assert (await first.ask("DELETE")).status == 200
        await web.session()


async def test_the_end_of_a_session_cancels_its_calls() -> None:
    script = Script(forever=forever, echo=echo)
    async with site(script) as web:
        session, other = await web.session(), await web.session()
        async with session.calling("forever") as mine, other.calling("forever"):
            await comes_true(lambda: [method for _, method, _ in script.seen].count("tools/call") == 2)
            assert (await session.ask("DELETE")).status == 200
            await comes_true(lambda: script.cancelled == ["forever"])
            assert (await mine.head()).status == 200
            assert await mine.event() == {}
            assert (await other.call("echo", 2)).status == 200
        assert script.cancelled == ["forever"]  # a legacy client that hangs up hasn't cancelled


# What passes


@pytest.mark.parametrize("size", [0, 900_000, 3_000_000])
async def test_results_are_the_bytes_they_were(size: int) -> None:
    pad = b'{"pad":"%b","n":1.0}' % ("é\\\\\\" + '"').encode().ljust(size, b"x")

    async def large(exchange: Exchange) -> bytes:
        return pad

    async def large_after_progress(exchange: Exchange) -> bytes:
        progress(exchange, 1)
        return pad

    async with site(Script(odd=odd, large=large, told=large_after_progress)) as web:
        session = await web.session()
        assert (await session.call("odd")).raw_result == ODD_LINE
        assert (await web.modern("tools/call", {"name": "odd"})).raw_result == ODD_LINE
        for name, kind in [
            ("large", "text/event-stream" if size < 1_000_000 else "application/json"),
            ("told", "text/event-stream"),
        ]:
            reply = await session.call(name, 2)
            assert reply.raw_result == pad
            assert reply.headers["content-type"] == kind
            reply = await web.modern("tools/call", {"name": name})
            assert reply.raw_result == pad
            assert reply.headers["content-type"] == (
                "application/json" if name == "large" else "text/event-stream"
            )


async def test_what_clients_take_for_line_ends_is_escaped_in_events() -> None:
    async def ends(exchange: Exchange) -> bytes:
        return '{"text":"a\u2028b\u2029c\u0085d"}'.encode()

    async with site(Script(ends=ends)) as web:
        reply = await (await web.session()).call("ends")
        assert reply.raw_result == rb'{"text":"a\u2028b\u2029c\u0085d"}'
        reply = await web.modern("tools/call", {"name": "ends"})
        assert reply.raw_result == '{"text":"a\u2028b\u2029c\u0085d"}'.encode()


async def test_params_are_the_bytes_they_were() -> None:
    script = Script(echo=echo)
    params = b'{"name":"echo" , "n":1.50, "e":1e400, "s":"\\ud800\\/", "s":null}'
    async with site(script) as web:
        session = await web.session()
        reply = await session.ask(
            "POST", b'{"jsonrpc":"2.0","id":"a\\u0062","method":"tools/call","params":%b}' % params
        )
        assert reply.raw_result == params
        assert b'"id":"a\\u0062"' in reply.body
        told = b'{"progressToken":1,"progress":2.0}'
        body = b'{"jsonrpc":"2.0","method":"notifications/progress","params":%b}' % told
        assert (await session.ask("POST", body)).status == 202
        await comes_true(lambda: ("notifications/progress", told) in [seen[1:] for seen in script.seen])
        body, headers = modern_message("tools/call", {"name": "echo"})
        stamped = json.dumps(json.loads(body)["params"]["_meta"]).encode()
        odd = params[:-1] + b',"_meta":%b}' % stamped
        body = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":%b}' % odd
        assert (await web.ask("POST", body, **headers)).raw_result == odd


async def test_errors_are_as_they_were() -> None:
    async def refusing(exchange: Exchange) -> bytes:
        raise FaultError(-32099, "no \ud800é", b'{"x":1.0,"y":null}')

    async def plain(exchange: Exchange) -> bytes:
        raise FaultError(-32602, "no")

    async with site(Script(refusing=refusing, plain=plain)) as web:
        session = await web.session()
        for reply in (await session.call("refusing"), await web.modern("tools/call", {"name": "refusing"})):
            assert reply.status == 200
            assert (
                b'"error":{"code":-32099,"message":"no \\ud800\\u00e9","data":{"x":1.0,"y":null}}'
                in reply.body
            )
        for reply, status in [
            (await session.call("plain"), 200),
            (await web.modern("tools/call", {"name": "plain"}), 400),
        ]:
            assert (reply.status, reply.last["error"]) == (status, {"code": -32602, "message": "no"})


async def test_what_is_told_comes_in_order_and_before_the_answer() -> None:
    async with site(Script(counting=counting)) as web:
        session = await web.session()
        meta: Json = {"_meta": {"progressToken": "t"}}
        for reply in (
            await session.call("counting", **meta),
            await web.modern("tools/call", {"name": "counting", **meta}),
        ):
            *told, answer = map(json.loads, reply.messages)
            assert [each["params"]["progress"] for each in told] == list(range(100))
            assert {each["params"]["progressToken"] for each in told} == {"t"}
            assert b'"progress":7.0' in reply.messages[7]
            assert answer["result"] == {"content": []}


async def test_a_client_is_asked_and_its_answer_is_what_it_was() -> None:
    async with site(Script(asking=asking)) as web:
        session = await web.session()
        async with session.calling("asking", arguments={"messages": [], "maxTokens": 5}) as call:
            assert (await call.head()).status == 200
            assert (await call.event())["method"] == "notifications/progress"
            asked = await call.event()
            assert asked["method"] == "sampling/createMessage"
            assert asked["params"] == {"messages": [], "maxTokens": 5}
            body = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (asked["id"], ODD)
            assert (await session.ask("POST", body)).status == 202
            assert (await call.piece()).partition(b'"result":')[2].rstrip() == b'{"said":%b}}' % ODD_LINE


async def test_a_client_that_answers_with_an_error() -> None:
    async def asked(exchange: Exchange) -> bytes:
        assert exchange.ask is not None
        try:
            return await exchange.ask("roots/list", None)
        except RpcFaultError as fault:
            told = verbatim.error(b"0", fault.error)
            return told.partition(b'"error":')[2][:-1]

    async with site(Script(asked=asked)) as web:
        session = await web.session()
        async with session.calling("asked") as call:
            assert (await call.head()).status == 200
            question = await call.event()
            assert "params" not in question
            error = b'{"code":-1,"message":"user said no \\ud800","data":{"n":2.0}}'
            await session.ask("POST", b'{"jsonrpc":"2.0","id":%d,"error":%b}' % (question["id"], error))
            assert b'"result":' + error in await call.piece()


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
            assert (await call.head()).status == 200
            assert (await call.event())["error"]["code"] == -32800
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
            for id in (7, "7"):
                reply = await session.call("echo", id)
                assert (reply.status, reply.last["error"]["code"]) == (400, -32600)
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
        assert exchange.ask is not None
        for step in range(3):
            progress(exchange, step)
            await asyncio.sleep(0)
        exchange.client.tell("notifications/message", b'{"level":"info","data":%b}' % arguments)
        answer = await exchange.ask("elicitation/create", arguments)
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
                body = b'{"jsonrpc":"2.0","id":%d,"result":{"who":%b}}' % (question["id"], said)
                assert (await session.ask("POST", body)).status == 202
            assert (await call.event())["result"] == {"said": {"who": "mine"}}


# What is said outside any request


async def test_what_is_told_before_the_stream_is_there_is_kept_for_it() -> None:
    script = Script()
    async with site(script) as web:
        session = await web.session()
        script.clients[0].tell("notifications/tools/list_changed", None)
        script.clients[0].tell("notifications/message", b'{"data":1.0,"level":"info"}')
        async with session.listening() as stream:
            assert (await stream.event())["method"] == "notifications/tools/list_changed"
            assert (await stream.event())["params"] == {"data": 1.0, "level": "info"}


async def test_a_client_can_be_asked_on_its_stream() -> None:
    script = Script()
    async with site(script) as web:
        session = await web.session()
        client = script.clients[0]
        assert client.ask is not None
        asking = asyncio.ensure_future(client.ask("roots/list", None))
        async with session.listening() as stream:
            question = await stream.event()
            assert question["method"] == "roots/list"
            body = b'{"jsonrpc":"2.0","id":%d,"result":{"roots":[]}}' % question["id"]
            assert (await session.ask("POST", body)).status == 202
            assert await asking == b'{"roots":[]}'


async def test_a_client_without_a_stream_is_told_no_more_than_a_limit() -> None:
    script = Script()
    async with site(script, untold=1000) as web:
        session = await web.session()
        for number in range(1000):
            script.clients[0].tell("notifications/message", b'{"n":%d}' % number)
        async with session.listening() as stream:
            heard = [(await stream.event())["params"]["n"] for _ in range(30)]
            assert heard == list(range(30))
            script.clients[0].tell("notifications/message", b'{"n":-1}')
            while heard[-1] != -1:
                heard.append((await stream.event())["params"]["n"])
            assert len(heard) < 40
