"""Whoever writes as fast as it can, and whoever doesn't read: neither holds up anybody else."""

import asyncio
import json
import os
import sys
from collections.abc import Callable

import pytest
from helpers.session_client import HELLO, Talk, Upstreams

from mcpzip.model import limits
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.notifier import Notifier
from mcpzip.server.endpoint import Endpoint
from mcpzip.server.session import Session
from mcpzip.server.stdio_output import StdioOutput
from mcpzip.system import pipes
from mcpzip.system.line_reader import read_lines_from
from mcpzip.system.pipes import read_from, write_to
from mcpzip.wire import JsonRpcError


async def until(look: Callable[[], bool]) -> None:
    while not look():  # noqa: ASYNC110 - what is looked at has no event
        await asyncio.sleep(0.001)


LINES = b"".join(b"%d\n" % number for number in range(1000))


@pytest.mark.parametrize("paused_at", [None, 1, 3])
async def test_a_flood_of_lines_comes_in_turns(paused_at: int | None) -> None:
    """One read of it was acted on at once: 256 KiB, tens of thousands of messages."""
    theirs, ours = os.pipe()
    os.write(ours, LINES[:-10] + LINES[-10:])
    os.close(ours)
    pieces: list[bytes] = []
    turns_of_others: list[int] = []
    ended = asyncio.Event()

    def take(data: bytes) -> None:
        pieces.append(data)
        loop.call_soon(lambda: turns_of_others.append(len(pieces)))
        if len(pieces) == paused_at:
            reader.pause()
            loop.call_soon(loop.call_soon, lambda: (pieces.append(b""), reader.resume()))

    loop = asyncio.get_running_loop()
    reader = read_lines_from(theirs, take, ended.set, at_once=10)
    async with asyncio.timeout(30):
        await ended.wait()
    os.close(theirs)
    assert b"".join(pieces) == LINES
    assert all(piece.count(b"\n") <= 10 for piece in pieces)
    assert len(set(turns_of_others)) >= 100  # others had a turn after each


@pytest.mark.parametrize("kind", ["selector", "thread"])
async def test_a_reader_that_is_paused_reads_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "thread":
        monkeypatch.setattr(pipes, "_watchable", lambda fd: False)
    elif sys.platform == "win32":
        pytest.skip("no selector takes pipes there")
    theirs, ours = os.pipe()
    came: list[bytes] = []
    ended, something = asyncio.Event(), asyncio.Event()

    def take(data: bytes) -> None:
        came.append(data)
        something.set()
        reader.pause()

    reader = read_from(theirs, take, ended.set)
    os.write(ours, b"one")
    async with asyncio.timeout(30):
        await something.wait()
        os.write(ours, b"two")
        os.close(ours)
        for _ in range(20):
            await asyncio.sleep(0)
        assert came == [b"one"]
        reader.resume()
        await until(lambda: b"".join(came) == b"onetwo")
        reader.resume()
        await ended.wait()
    os.close(theirs)


class Pen:
    """A reader that notes whether it reads."""

    def __init__(self) -> None:
        self.paused = self.gone = False

    def close(self) -> None: ...

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def hung_up(self) -> bool:
        return self.gone


@pytest.mark.parametrize("kind", ["selector", "thread"])
async def test_what_waits_for_a_client_that_does_not_read_has_an_end(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had none on stdio: 140 MB/s of progress. An answer is never dropped: the client isn't read."""
    if kind == "thread":
        monkeypatch.setattr(pipes, "_watchable", lambda fd: False)
    elif sys.platform == "win32":
        pytest.skip("no selector takes pipes there")
    theirs, ours = os.pipe()
    writer, pen = write_to(ours), Pen()
    output = StdioOutput(writer, 1 << 20)
    output.reader = pen
    told, answer = b"t" * 9_999 + b"\n", b"a" * 1_999_999 + b"\n"
    for _ in range(1000):
        output.send_if_room(told)
        assert writer.waiting <= 1 << 20
    assert not pen.paused
    output.send(answer)
    assert output.full
    assert pen.paused
    read = bytearray()

    def take(data: bytes) -> None:
        read.extend(data)

    reader = read_from(theirs, take, lambda: None)
    async with asyncio.timeout(30):
        await until(lambda: not (pen.paused))
        await until(lambda: bool(read.endswith(answer)))
    assert writer.waiting == 0
    assert 100 <= read.count(b"t\n") < 1000
    reader.close()
    writer.close()
    os.close(theirs)
    os.close(ours)


async def test_a_client_that_never_reads_again_is_let_go() -> None:
    theirs, ours = os.pipe()
    writer, pen = write_to(ours), Pen()
    output = StdioOutput(writer, 10)
    output.reader = pen
    output.send(b"x" * (1 << 20))
    pen.gone = True
    async with asyncio.timeout(30):
        await until(lambda: not (pen.paused))
    writer.close()
    os.close(theirs)
    os.close(ours)


async def test_requests_and_notices_of_a_client_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """On stdio there was none."""
    monkeypatch.setattr(limits, "CALLS", 3)

    async def waits(*_: object) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError

    talk = Talk(Upstreams(waits))
    talk.asks("initialize", HELLO, id=0)
    for id in range(1, 4):
        talk.calls(id, {"name": "t"})
    assert talk.asks("ping", id=9)["error"]["message"].startswith("There are too many requests")
    await talk.session.finish(0)


async def test_who_does_not_read_is_asked_nothing() -> None:
    lines: list[bytes] = []
    session = Session(Endpoint(Upstreams()), lines.append, lines.append, lambda: True)
    with pytest.raises(Exception, match="does not read"):
        await session._ask("roots/list", None)
    assert lines == []


def test_what_a_client_sends_is_repeated_in_small() -> None:
    """A method of megabytes came back whole, and so did an id."""
    talk = Talk()
    talk.asks("initialize", HELLO)
    assert len(talk.asks("x" * 100_000)["error"]["message"]) < 300
    line = json.dumps({"jsonrpc": "2.0", "id": "i" * 100_000, "method": "ping"}).encode()
    (answer,) = talk.says(line + b"\n")
    assert (answer["id"], answer["error"]["message"]) == (None, f"an id has up to {limits.ID} bytes")


async def test_a_client_is_subscribed_to_so_many_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    """To as many as it named, each of them kept, and compared with what every server tells."""
    monkeypatch.setattr(limits, "SUBSCRIPTIONS", 2)
    audience, client = Notifier(), Client()
    audience.add_client(client)
    for uri in ("a://1", "a://2"):
        assert audience.can_watch(client, ("s", uri))
        audience.watch(client, ("s", uri), uri, own=False)
    assert audience.can_watch(client, ("s", "a://1"))  # again
    assert not audience.can_watch(client, ("s", "a://3"))
    passthrough = Upstreams().passthrough
    listed = json.dumps({"notifications": {"resourceSubscriptions": ["a://1", "a://2", "a://3"]}})
    with pytest.raises(JsonRpcError, match="2 resources"):
        await passthrough.listen(Exchange(client, params=listed.encode()))
