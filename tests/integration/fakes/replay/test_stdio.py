"""Cassettes as stdio servers: real processes, byte by byte."""

import json
import os
import signal
from pathlib import Path

import pytest
from helpers.cassettes import call, greeted, handshake, line, modern, opened, reply, said, saved, send
from helpers.fake_stdio_client import Start, talk
from mcpzip_fakes.launch import FakeServer

from mcpzip.cassettes.cassette import CLOSE, Event, Exchange

INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
PROGRESS = b'{"method" : "notifications/progress","params":{"progressToken":"t", "progress":1.0}}'


def end(after: float, code: int | None, data: bytes = b"") -> Event:
    return Event(kind="end", after=after, code=code, data=data)


async def test_the_lines_are_the_recorded_ones(fake_mcp: Start, tmp_path: Path) -> None:
    odd = b'{"result":{"n":1.0, "s":"\\u00e9\\ud800"} , "id" :7,"jsonrpc":"2.0"}'
    file = saved(
        tmp_path,
        [
            Exchange(at=0, events=(send(0, b"banner \xff"), send(0.01, b""))),
            *handshake(),
            Exchange(
                at=1,
                request=call(7, token="t"),
                events=(send(0.1, PROGRESS), reply(0.2, odd), send(0.3, odd)),
            ),
        ],
    )
    async with talk(fake_mcp(file)) as client:
        assert [await client.line() for _ in range(2)] == [b"banner \xff\n", b"\n"]
        client.say(opened() + b"\n")
        assert await client.line() == greeted() + b"\n"
        client.say(INITIALIZED).say(call("x", token=9) + b"\n")
        assert await client.line() == PROGRESS.replace(b'"t"', b"9") + b"\n"
        for _ in range(2):
            assert await client.line() == odd.replace(b":7", b':"x"') + b"\n"
        assert await client.rest() == b""
        assert await client.ended() == 0


async def test_a_process_ends_as_it_did(fake_mcp: Start, tmp_path: Path) -> None:
    file = saved(
        tmp_path,
        [
            *handshake(),
            Exchange(
                at=1, request=call(1), events=(Event(kind="stderr", after=0.1, data=b"oh"), end(1, 9, b"{"))
            ),
        ],
    )
    async with talk(fake_mcp(file)) as client:
        await client.initialize()
        client.call(1, "pay")
        assert await client.rest() == b"{"
        assert await client.ended() == 9
        assert client.process.stderr
        assert await client.process.stderr.read() == b"oh\n"


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
async def test_a_process_ends_by_the_signal_that_ended_it(fake_mcp: Start, tmp_path: Path) -> None:
    file = saved(tmp_path, [*handshake(), Exchange(at=1, request=call(1), events=(end(1, -signal.SIGKILL),))])
    async with talk(fake_mcp(file)) as client:
        await client.initialize()
        client.call(1, "pay")
        assert await client.ended() == -signal.SIGKILL


async def test_an_exit_code_after_the_client_left(fake_mcp: Start, tmp_path: Path) -> None:
    file = saved(tmp_path, [*handshake(), Exchange(at=1, verb=CLOSE, events=(send(0.1, b"bye"), end(1, 3)))])
    server = fake_mcp(file)
    async with talk(server) as client:
        await client.initialize()
        assert await client.rest() == b"bye\n"
        assert await client.ended() == 3
    assert [event.detail["code"] for event in server.record.events("exit")] == [3]
    assert server.record.methods() == ["initialize", "notifications/initialized"]
    assert len(server.record.sent()) == 2


async def test_the_nth_process_plays_the_nth_session(fake_mcp: Start, tmp_path: Path) -> None:
    answers = [
        Exchange(session=n, at=1, request=call(1), events=(reply(0.1, said(1, f"session {n}")),))
        for n in (1, 2)
    ]
    server = fake_mcp(saved(tmp_path, [*handshake(1), *handshake(2), *answers]))
    for n in (1, 2, 2):
        async with talk(server) as client:
            await client.initialize()
            assert f"session {n}" in str(await client.call(1, "pay").hear())


async def test_an_unmatched_request_is_told_on_both_outputs(fake_mcp: Start, tmp_path: Path) -> None:
    file = saved(tmp_path, [*handshake(), Exchange(at=1, request=call(1, to="\x1b[31m"))])
    async with talk(fake_mcp(file)) as client:
        await client.initialize()
        error = (await client.call("c", "pay", to="b").hear())["error"]
        assert error["code"] == -32602
        assert 'params.arguments.to\n      - "' in error["message"]
        await client.rest()
        assert client.process.stderr
        told = (await client.process.stderr.read()).decode()
        assert "mcpzip-fake: tools/call “pay” is not in shop.toml" in told
        assert "\x1b" not in told


async def test_other_keys_of_a_scenario_work_on_top(fake_mcp: Start, tmp_path: Path) -> None:
    answered = [Exchange(at=n, request=call(n), events=(reply(0.1, said(n, "paid")),)) for n in (1, 2)]
    file = saved(
        tmp_path,
        [*handshake(), *answered],
        faults=[
            {"kind": "junk", "tool": "pay", "nth": 1},
            {"kind": "error", "tool": "pay", "nth": 2, "message": "No."},
            {"kind": "silence", "tool": "pay", "nth": 3},
            {"kind": "hostile-text", "tool": "pay", "nth": 4, "text": "<b>"},
            {"kind": "crash", "tool": "pay", "nth": 5, "when": "middle", "code": 8},
        ],
    )
    async with talk(fake_mcp(file)) as client:
        await client.initialize()
        client.call(1, "pay")
        assert [await client.line() for _ in range(2)] == [b"DEBUG: 200 OK\n", said(1, "paid") + b"\n"]
        assert (await client.call(2, "pay").hear())["error"]["message"] == "No."
        client.call(3, "pay")
        assert (await client.call(4, "pay").hear())["result"]["content"][0]["text"] == "paid<b>"
        half = await client.call(5, "pay").rest()
        assert half == said(5, "paid")[: len(half)]
        assert 0 < len(half) < len(said(5, "paid"))
        assert await client.ended() == 8


async def test_a_modern_session(fake_mcp: Start, tmp_path: Path) -> None:
    asked, answered = modern(1, "tools/list"), line(id=1, result={"tools": [], "resultType": "complete"})
    file = saved(tmp_path, [Exchange(at=0, request=asked, events=(reply(0.1, answered),))])
    async with talk(fake_mcp(file)) as client:
        assert await client.modern(5, "tools/list").line() == answered.replace(b'"id": 1', b'"id": 5') + b"\n"


async def test_a_probing_client_meets_the_recorded_refusal(fake_mcp: Start, tmp_path: Path) -> None:
    refused = line(id="p", error={"code": -32601, "message": "no"})
    probe = Exchange(at=0, request=modern("p", "server/discover"), events=(reply(0.01, refused),))
    async with talk(fake_mcp(saved(tmp_path, [probe, *handshake()]))) as client:
        assert (await client.modern("p", "server/discover").line()) == refused + b"\n"
        assert (await client.initialize())["serverInfo"]["version"] == "7"


async def test_recorded_times(tmp_path: Path, fake_mcp: Start) -> None:
    """The answer came after half an hour, or when the client leaves."""
    slow = Exchange(at=1, request=call(1), events=(send(0.01, PROGRESS), reply(1800, said(1, "paid"))))
    file = saved(tmp_path, [*handshake(), slow])
    async with talk(fake_mcp(file, replay={"cassette": str(file), "timing": 1.0})) as client:
        await client.initialize()
        client.say(call(1, token=1) + b"\n")
        assert json.loads(await client.line())["method"] == "notifications/progress"
        assert await client.rest() == said(1, "paid") + b"\n"


async def test_a_cassette_that_cannot_be_read_is_told(tmp_path: Path, fake_mcp: Start) -> None:
    file = saved(tmp_path, handshake())
    server: FakeServer = fake_mcp(file)
    file.unlink()
    async with talk(server) as client:
        assert await client.rest() == b""
        assert client.process.stderr
        assert b"it can't be read" in await client.process.stderr.read()
        assert await client.ended() == 2
