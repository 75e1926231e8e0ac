"""Streams of legacy requests that break off, and clients that come back for them.

Source: 2025-11-25 `basic/transports/streamable-http` ("Sending Messages to the Server", "Resumability and
Redelivery").
"""

import asyncio
import json

import pytest
from helpers.driver import comes_true
from helpers.raw_http_client import Connection, Json, Script, SessionOf, asking, echo, message, progress, site

from mcpzip.proxy.exchange import Exchange
from mcpzip.wire import JsonRpcError


class Gate:
    """A tool that tells of the progress in ``told``, and answers once it is ``open``."""

    def __init__(self, result: bytes = b'{"done":true}') -> None:
        self.open = asyncio.Event()
        self.told = asyncio.Queue[int]()
        self._result = result

    async def __call__(self, exchange: Exchange) -> bytes:
        while not self.open.is_set():
            waits = [asyncio.ensure_future(self.open.wait()), asyncio.ensure_future(self.told.get())]
            try:
                done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in waits:
                    each.cancel()
            if waits[1] in done:
                progress(exchange, waits[1].result())
        return self._result


class Stream:
    """An event stream, event by event: its fields, as they came."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._rest = connection, b""

    async def next(self) -> dict[str, str]:
        """The next event; {} at the end of the stream. Comments are none."""
        while True:
            while b"\r\n\r\n" not in self._rest:
                piece = await self._connection.piece()
                if not piece:
                    assert self._rest == b""
                    return {}
                self._rest += piece
            told, _, self._rest = self._rest.partition(b"\r\n\r\n")
            fields = [line.partition(":") for line in told.decode().split("\r\n") if not line.startswith(":")]
            if fields:
                return {name: value.removeprefix(" ") for name, _, value in fields}

    async def rest(self) -> list[dict[str, str]]:
        """The events up to its end."""
        events = []
        while event := await self.next():
            events.append(event)
        return events


def said(event: dict[str, str]) -> Json:
    """The message of an event."""
    read: Json = json.loads(event["data"])
    return read


async def resumed(session: SessionOf, connection: Connection, last: str) -> Stream:
    await connection.write(session.request("GET", Last_Event_ID=last))
    reply = await connection.head()
    assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
    return Stream(connection)


async def begun(session: SessionOf, connection: Connection, name: str = "gate") -> Stream:
    """The stream of a call with progress, begun."""
    params: Json = {"name": name, "_meta": {"progressToken": "t"}}
    await connection.write(session.request("POST", message("tools/call", params, 7)))
    assert (await connection.head()).status == 200
    return Stream(connection)


async def test_an_answer_nobody_was_there_for_is_had_by_who_comes_back() -> None:
    gate = Gate()
    script = Script(gate=gate, echo=echo)
    async with site(script, silence=0.05) as web:
        session = await web.session()
        async with session.connected() as connection:
            stream = await begun(session, connection)
            primed = await stream.next()
            assert (primed["data"], int(primed["retry"]) > 0) == ("", True)
            gate.told.put_nowait(1)
            first = await stream.next()
            assert said(first)["params"]["progress"] == 1.0
        gate.told.put_nowait(2)
        gate.open.set()
        await comes_true(lambda: script.ended == ["gate"])
        for last, heard in ((primed["id"], [1, 2]), (first["id"], [2])):  # and again, as often as it likes
            async with session.connected() as connection:
                again = await resumed(session, connection, last)
                assert (await again.next())["data"] == ""
                *told, answer = map(said, await again.rest())
                assert [each["params"]["progress"] for each in told] == heard
                assert (answer["id"], answer["result"]) == (7, {"done": True})
        assert script.cancelled == []
        assert (await session.call("echo", 7)).status == 200  # the id is free again


async def test_ids_are_each_events_own_and_the_same_when_it_is_said_again() -> None:
    gate = Gate()
    async with site(Script(gate=gate), silence=0.05) as web:
        session = await web.session()
        async with session.connected() as one, session.connected() as other:
            streams = [await begun(session, one)]
            await other.write(session.request("POST", message("tools/call", {"name": "gate"}, 8)))
            assert (await other.head()).status == 200
            streams.append(Stream(other))
            gate.told.put_nowait(1)
            gate.open.set()
            events = [event for stream in streams for event in await stream.rest()]
        ids = [event["id"] for event in events]
        assert len(ids) == len(set(ids)) >= 4
        async with session.connected() as connection:
            again = await (await resumed(session, connection, events[0]["id"])).rest()
        sent = {event["id"]: event["data"] for event in events}
        assert all(sent[event["id"]] == event["data"] for event in again)


async def test_a_stream_goes_on_live_where_it_is_resumed() -> None:
    gate = Gate()
    async with site(Script(gate=gate), silence=0.05) as web:
        session = await web.session()
        async with session.connected() as connection:
            primed = await (await begun(session, connection)).next()
        async with session.connected() as connection:
            stream = await resumed(session, connection, primed["id"])
            assert (await stream.next())["data"] == ""
            for step in (1, 2):
                gate.told.put_nowait(step)
                assert said(await stream.next())["params"]["progress"] == step
            gate.open.set()
            assert said(await stream.next())["result"] == {"done": True}
            assert await stream.next() == {}


async def test_whoever_comes_last_has_the_stream() -> None:
    """A connection that is half open isn't known to be lost: its client comes back before that."""
    gate = Gate()
    async with site(Script(gate=gate), silence=0.05) as web:
        session = await web.session()
        async with session.connected() as old, session.connected() as new:
            before = await begun(session, old)
            primed = await before.next()
            after = await resumed(session, new, primed["id"])
            assert (await after.next())["id"] == primed["id"]
            assert await before.next() == {}
            gate.open.set()
            assert said(await after.next())["result"] == {"done": True}


async def test_what_is_asked_while_nobody_is_there_waits_some_time() -> None:
    script = Script(asking=asking)
    async with site(script) as web:
        session = await web.session()
        async with session.calling("asking", 1, arguments={"n": 1}) as call:
            assert (await call.head()).status == 200
            stream = Stream(call)
            told = [await stream.next() for _ in range(2)]  # the first, and progress; the question is lost
            assert said(told[1])["method"] == "notifications/progress"
        async with session.connected() as connection:
            again = await resumed(session, connection, told[1]["id"])
            await again.next()
            question = said(await again.next())
            assert question["method"] == "sampling/createMessage"
            await session.reply_to(question, b'{"n":2}')
            assert said(await again.next())["result"] == {"said": {"n": 2}}


async def test_a_question_is_not_waited_for_long() -> None:
    asked: list[str] = []

    async def lonely(exchange: Exchange) -> bytes:
        assert exchange.request is not None
        for _ in range(2):
            try:
                await exchange.request("roots/list", None)
            except JsonRpcError as fault:
                asked.append(fault.error.message)
        return b"{}"

    script = Script(lonely=lonely)
    async with site(script, away=0.05) as web:
        session = await web.session()
        async with session.calling("lonely") as call:
            assert (await call.head()).status == 200
            last = (await Stream(call).next())["id"]
        await comes_true(lambda: script.ended == ["lonely"])
        assert len(asked) == 2
        async with session.connected() as connection:
            assert said((await (await resumed(session, connection, last)).rest())[-1])["result"] == {}


async def test_what_nobody_comes_back_for_ends_some_time_and_says_so() -> None:
    script = Script(gate=Gate())
    async with site(script, silence=0.02, unheard=0.1) as web:
        session = await web.session()
        async with session.connected() as connection:
            last = (await (await begun(session, connection)).next())["id"]
        await comes_true(lambda: script.cancelled == ["gate"])
        async with session.connected() as connection:
            assert said((await (await resumed(session, connection, last)).rest())[-1])["error"] == {
                "code": -32800,
                "message": "The client hung up long ago.",
            }


async def test_a_client_that_is_back_is_waited_for_no_more() -> None:
    gate = Gate()
    script = Script(gate=gate)
    async with site(script, silence=0.02, unheard=0.2) as web:
        session = await web.session()
        async with session.connected() as connection:
            last = (await (await begun(session, connection)).next())["id"]
        async with session.connected() as connection:
            stream = await resumed(session, connection, last)
            await asyncio.sleep(0.4)
            assert script.cancelled == []
            gate.open.set()
            assert said((await stream.rest())[-1])["result"] == {"done": True}


async def test_what_a_resumed_stream_asks_to_be_cancelled_is() -> None:
    script = Script(gate=Gate())
    async with site(script, silence=0.02) as web:
        session = await web.session()
        async with session.connected() as connection:
            last = (await (await begun(session, connection)).next())["id"]
        async with session.connected() as connection:
            stream = await resumed(session, connection, last)
            cancel = message("notifications/cancelled", {"requestId": 7})
            assert (await session.ask("POST", cancel)).status == 202
            assert said((await stream.rest())[-1])["error"]["code"] == -32800
        assert script.cancelled == ["gate"]


@pytest.mark.parametrize("size", [3_000, 30_000])
async def test_an_answer_that_was_not_kept_is_told_of(size: int) -> None:
    gate = Gate(b'{"pad":"%b"}' % (b"x" * size))
    script = Script(gate=gate)
    async with site(script, silence=0.02, replayed=20_000) as web:
        session = await web.session()
        async with session.connected() as connection:
            last = (await (await begun(session, connection)).next())["id"]
        gate.open.set()
        await comes_true(lambda: script.ended == ["gate"])
        async with session.connected() as connection:
            answer = said((await (await resumed(session, connection, last)).rest())[-1])
            assert answer["id"] == 7
            if size < 20_000:
                assert len(answer["result"]["pad"]) == size
            else:
                assert "too long to be kept" in answer["error"]["message"]


async def test_the_oldest_stream_is_forgotten_first() -> None:
    async def talkative(exchange: Exchange) -> bytes:
        progress(exchange, 1)
        return b'{"pad":"%b"}' % (b"x" * 3_000)

    async with site(Script(talkative=talkative), replayed=12_000, replayed_by_all=20_000) as web:
        sessions = [await web.session(), await web.session()]
        firsts: list[list[str]] = [[], []]
        for number in range(6):
            for session, known in zip(sessions, firsts, strict=True):
                async with session.calling("talkative", number) as call:
                    await call.head()
                    known.append((await Stream(call).rest())[0]["id"])
        for session, known in zip(sessions, firsts, strict=True):
            statuses = []
            for last in known:
                async with session.connected() as connection:
                    await connection.write(session.request("GET", Last_Event_ID=last))
                    statuses.append((await connection.head()).status)
            assert statuses == sorted(statuses, reverse=True)  # 400, ..., 200
            assert statuses[0] == 400
            assert statuses[-1] == 200


@pytest.mark.parametrize("last", ["1-99", "99-1", "2-0"])
async def test_an_event_there_never_was_is_refused(last: str) -> None:
    async with site(Script(gate=Gate()), silence=0.02) as web:
        session, other = await web.session(), await web.session()
        async with session.connected() as connection:
            known = (await (await begun(session, connection)).next())["id"]
            for whose, id in ((session, last), (other, known)):
                reply = await whose.ask("GET", Last_Event_ID=id)
                assert (reply.status, reply.last["error"]["code"]) == (400, -32600)


async def test_clients_of_older_versions_get_no_ids() -> None:
    """They don't know what an event without a message is for."""
    gate = Gate()
    async with site(Script(gate=gate), silence=0.02) as web:
        session = await web.session(protocolVersion="2025-06-18")
        async with session.connected() as connection:
            params: Json = {"name": "gate", "_meta": {"progressToken": "t"}}
            await connection.write(session.request("POST", message("tools/call", params, 7)))
            gate.told.put_nowait(1)
            assert (await connection.head()).status == 200
            gate.open.set()
            events = await Stream(connection).rest()
            assert [set(event) for event in events] == [{"event", "data"}] * 2


async def test_the_end_of_a_session_ends_what_is_kept_of_it() -> None:
    gate = Gate()
    async with site(Script(gate=gate), silence=0.02) as web:
        session = await web.session()
        async with session.connected() as connection:
            last = (await (await begun(session, connection)).next())["id"]
        assert (await session.ask("DELETE")).status == 200
        assert (await session.ask("GET", Last_Event_ID=last)).status == 404
