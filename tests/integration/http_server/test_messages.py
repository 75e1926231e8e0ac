"""What passes between a client over HTTP and what serves it: every byte of it, in order, both ways.

Sources: 2025-11-25 and 2026-07-28 `basic/transports/streamable-http` ("Sending Messages", "Listening for
Messages").
"""

import asyncio
import json

import pytest
from helpers.driver import comes_true
from helpers.raw_http_client import Json, Script, asking, echo, modern_message, progress, site

from mcpzip.proxy.exchange import Exchange
from mcpzip.server.http.response import error_message
from mcpzip.wire import JsonRpcError, RpcError

# Letters and numbers that a JSON library would write in another way, and one line break too many.
ODD = (
    b'{ "content":[],"n":1.50,"e":1e400,"i":12345678901234567890,"x":null,\n"s":"\\ud800\\u0041\\/","a" : {}}'
)
ODD_LINE = ODD.replace(b"\n", b" ")


async def odd(exchange: Exchange) -> bytes:
    return ODD


async def counting(exchange: Exchange) -> bytes:
    for step in range(100):
        progress(exchange, step)
    return b'{"content":[]}'


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
        stream, plain = "text/event-stream", "application/json"
        for name, legacy, modern in [
            ("large", stream if size < 1_000_000 else plain, plain),
            ("told", stream, stream),
        ]:
            replies = (await session.call(name, 2), await web.modern("tools/call", {"name": name}))
            assert [reply.raw_result for reply in replies] == [pad, pad]
            assert [reply.headers["content-type"] for reply in replies] == [legacy, modern]


async def test_what_clients_take_for_line_ends_is_escaped_in_events() -> None:
    async def ends(exchange: Exchange) -> bytes:
        if exchange.progress_token:
            progress(exchange, 1)
        return plain

    plain, escaped = '{"text":"a\u2028b\u2029c\u0085d"}'.encode(), rb'{"text":"a\u2028b\u2029c\u0085d"}'
    async with site(Script(ends=ends)) as web:
        session = await web.session()
        for told, result in (({}, plain), ({"_meta": {"progressToken": 1}}, escaped)):
            assert (await session.call("ends", **told)).raw_result == escaped
            assert (await web.modern("tools/call", {"name": "ends", **told})).raw_result == result


async def test_params_are_the_bytes_they_were() -> None:
    script = Script(echo=echo)
    params = b'{"name":"echo" , "n":1.50, "e":1e400, "s":"\\ud800\\/", "s":null}'
    async with site(script) as web:
        session = await web.session()
        reply = await session.ask(
            "POST", b'{"jsonrpc":"2.0",\n"id":"a\\u0062","method":"tools/call","params":%b}' % params
        )
        assert reply.raw_result == params
        assert b'"id":"a\\u0062"' in reply.body
        told = b'{"progressToken":1,"progress":2.0}'
        body = b'{"jsonrpc":"2.0","method":"notifications/odd","params":%b}' % told
        assert (await session.ask("POST", body)).status == 202
        await comes_true(lambda: ("notifications/odd", told) in [seen[1:] for seen in script.seen])
        body, headers = modern_message("tools/call", {"name": "echo"})
        stamped = json.dumps(json.loads(body)["params"]["_meta"]).encode()
        odd = params[:-1] + b',"_meta":%b}' % stamped
        body = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":%b}' % odd
        assert (await web.ask("POST", body, **headers)).raw_result == odd


async def test_errors_are_as_they_were() -> None:
    async def refusing(exchange: Exchange) -> bytes:
        raise JsonRpcError(RpcError(-32099, "no \ud800é", b'{"x":1.0,"y":null}'))

    async def plain(exchange: Exchange) -> bytes:
        raise JsonRpcError(RpcError(-32602, "no"))

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
            await session.reply_to(asked, ODD)
            assert (await call.raw_event()).partition(b'"result":')[2].rstrip() == b'{"said":%b}}' % ODD_LINE


async def test_a_client_that_answers_with_an_error() -> None:
    async def asked(exchange: Exchange) -> bytes:
        assert exchange.request is not None
        try:
            return await exchange.request("roots/list", None)
        except JsonRpcError as fault:
            told = error_message(fault.error)
            return told.partition(b'"error":')[2][:-1]

    async with site(Script(asked=asked)) as web:
        session = await web.session()
        async with session.calling("asked") as call:
            assert (await call.head()).status == 200
            question = await call.event()
            assert "params" not in question
            error = b'{"code":-1,"message":"user said no \\ud800","data":{"n":2.0}}'
            await session.ask("POST", b'{"jsonrpc":"2.0","id":%d,"error":%b}' % (question["id"], error))
            assert b'"result":' + error in await call.raw_event()


async def test_a_client_that_hung_up_is_asked_nothing_more() -> None:
    """What it was being asked fails, and so does what it would be asked; the work goes on."""
    asked, go_on = asyncio.Event(), asyncio.Event()
    told: list[str] = []

    async def persistent(exchange: Exchange) -> bytes:
        assert exchange.request is not None
        asked.set()
        for _ in range(2):
            try:
                await exchange.request("roots/list", None)
            except JsonRpcError as fault:
                told.append(fault.error.message)
        await go_on.wait()
        return b"{}"

    script = Script(persistent=persistent, echo=echo)
    async with site(script, away=0.05) as web:
        session = await web.session()
        async with session.calling("persistent", 1) as call:
            await asked.wait()
            assert (await call.head()).status == 200
        await comes_true(lambda: len(told) == 2)
        assert told == ["The client has gone.", "The client has no stream open on which it could be asked."]
        go_on.set()
        await comes_true(lambda: script.ended == ["persistent"])
        assert (await session.call("echo")).status == 200


async def test_what_was_asked_on_a_stream_that_broke_is_asked_on_the_next() -> None:
    script = Script()
    async with site(script) as web:
        session = await web.session()
        client = script.clients[0]
        assert client.request is not None
        async with session.listening() as stream:
            asking = [asyncio.ensure_future(client.request("roots/list", b'{"n":%d}' % n)) for n in range(2)]
            first = [await stream.event() for _ in asking]
            await session.reply_to(first[0], b'{"roots":[]}')
            assert await asking[0] == b'{"roots":[]}'
        async with session.listening_again() as stream:
            assert await stream.event() == first[1]
            await session.reply_to(first[1], b'{"roots":[1]}')
            assert await asking[1] == b'{"roots":[1]}'


# What is said outside any request


async def test_what_is_told_before_the_stream_is_there_is_kept_for_it() -> None:
    script = Script()
    async with site(script) as web:
        session = await web.session()
        script.clients[0].notify("notifications/tools/list_changed", None)
        script.clients[0].notify("notifications/message", b'{"data":1.0,"level":"info"}')
        async with session.listening() as stream:
            assert (await stream.event())["method"] == "notifications/tools/list_changed"
            assert (await stream.event())["params"] == {"data": 1.0, "level": "info"}


async def test_a_client_can_be_asked_on_its_stream() -> None:
    script = Script()
    async with site(script) as web:
        session = await web.session()
        client = script.clients[0]
        assert client.request is not None
        asking = asyncio.ensure_future(client.request("roots/list", None))
        async with session.listening() as stream:
            question = await stream.event()
            assert question["method"] == "roots/list"
            await session.reply_to(question, b'{"roots":[]}')
            assert await asking == b'{"roots":[]}'


async def test_a_client_without_a_stream_is_told_no_more_than_a_limit() -> None:
    script = Script()
    async with site(script, untold=2500) as web:
        session = await web.session()
        for number in range(1000):
            script.clients[0].notify("notifications/message", b'{"n":%d}' % number)
        async with session.listening() as stream:
            heard = [(await stream.event())["params"]["n"] for _ in range(30)]
            assert heard == list(range(30))
            script.clients[0].notify("notifications/message", b'{"n":-1}')
            while heard[-1] != -1:
                heard.append((await stream.event())["params"]["n"])
            assert len(heard) < 40
