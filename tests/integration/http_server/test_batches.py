"""Batches of clients of 2025-03-26 over HTTP (its `basic/transports`, "Sending Messages to the Server")."""

import asyncio
import json

import pytest
from helpers.driver import comes_true
from helpers.raw_http_client import Json, Script, asking, echo, site

from mcpzip.proxy.exchange import Exchange


def call(name: str, id: object, **more: object) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, **more}}


def batch(*messages: object) -> bytes:
    return json.dumps(list(messages)).encode()


NOTICE = {"jsonrpc": "2.0", "method": "notifications/odd"}


async def test_an_array_is_answered_by_an_array() -> None:
    script = Script(echo=echo)
    async with site(script) as web:
        session = await web.session(protocolVersion="2025-03-26")
        session.headers.pop("MCP-Protocol-Version")  # which this version has not
        opening = {"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": {}}
        reply = await session.ask("POST", batch(call("echo", 1), NOTICE, call("echo", "b"), opening, 7))
        assert reply.status == 200
        answers = {each["id"]: each for each in json.loads(reply.messages[-1])}
        assert [answers[id]["result"]["name"] for id in (1, "b")] == ["echo", "echo"]
        assert [answers[id]["error"]["code"] for id in (9, None)] == [-32600, -32600]
        assert len(answers) == 4
        assert "notifications/odd" in [method for _, method, _ in script.seen]
        assert (await session.call("echo", 1)).status == 200


async def test_nothing_asked_nothing_answered() -> None:
    async with site(Script()) as web:
        session = await web.session(protocolVersion="2025-03-26")
        reply = await session.ask("POST", batch(NOTICE, {"jsonrpc": "2.0", "id": 7, "result": {}}))
        assert (reply.status, reply.body) == (202, b"")


@pytest.mark.parametrize("body", [b"[]", b'[{"jsonrpc":"2.0"', batch(*[NOTICE] * 101)])
async def test_what_is_no_batch_is_refused(body: bytes) -> None:
    async with site(Script(echo=echo)) as web:
        session = await web.session(protocolVersion="2025-03-26")
        reply = await session.ask("POST", body)
        assert (reply.status, reply.last["id"]) == (400, None)
        assert (await session.call("echo")).status == 200


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_later_versions_have_none(version: str) -> None:
    async with site(Script(echo=echo)) as web:
        session = await web.session(protocolVersion=version)
        reply = await session.ask("POST", batch(call("echo", 1)))
        assert (reply.status, reply.last["error"]["code"]) == (400, -32600)


async def test_no_session_begins_in_a_batch() -> None:
    script = Script()
    async with site(script) as web:
        opening = {"protocolVersion": "2025-03-26", "capabilities": {}}
        body = batch({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening})
        reply = await web.ask("POST", body)
        assert (reply.status, script.clients) == (400, [])


async def test_a_client_is_asked_and_told_in_a_batch() -> None:
    async with site(Script(asking=asking, echo=echo)) as web:
        session = await web.session(protocolVersion="2025-03-26")
        async with session.connected() as connection:
            await connection.write(
                session.request("POST", batch(call("asking", 1, arguments={"n": 1}), call("echo", 2)))
            )
            assert (await connection.head()).status == 200
            assert (await connection.event())["method"] == "notifications/progress"
            question = await connection.event()
            await session.reply_to(question, b'{"n":2}')
            answers = json.loads(await connection.raw_event())
            assert {each["id"] for each in answers} == {1, 2}
            assert await connection.event() == {}


async def test_one_of_a_batch_is_cancelled() -> None:
    async def forever(exchange: Exchange) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError

    script = Script(forever=forever, echo=echo)
    async with site(script) as web:
        session = await web.session(protocolVersion="2025-03-26")
        async with session.connected() as connection:
            await connection.write(session.request("POST", batch(call("forever", 1), call("echo", 2))))
            await comes_true(lambda: script.ended == ["echo"])
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
            assert (await session.ask("POST", batch(cancel))).status == 202
            answers = {each["id"]: each for each in json.loads((await connection.reply()).messages[-1])}
            assert answers[1]["error"]["code"] == -32800
            assert answers[2]["result"]["name"] == "echo"


async def test_a_client_that_hangs_up_on_a_batch_has_cancelled_nothing() -> None:
    go_on = asyncio.Event()

    async def waiting(exchange: Exchange) -> bytes:
        await go_on.wait()
        return b"{}"

    script = Script(waiting=waiting, echo=echo)
    async with site(script) as web:
        session = await web.session(protocolVersion="2025-03-26")
        async with session.connected() as connection:
            await connection.write(session.request("POST", batch(call("waiting", 1), call("waiting", 2))))
            await comes_true(lambda: [method for _, method, _ in script.seen].count("tools/call") == 2)
        go_on.set()
        await comes_true(lambda: script.ended == ["waiting", "waiting"])
        assert (await session.call("echo", 1)).status == 200
