"""Streams on sockets without watching descriptors: order, ends, pauses, and readers that have left."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcpzip.system.socket_streams import SocketReader, SocketWriter

LONG = bytes(range(256)) * 20_000


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)
    with ours, theirs:
        yield ours, theirs


class Heard:
    """What a reader delivered. ended: set at the end of the input."""

    def __init__(self) -> None:
        self.data, self.news, self.ended = b"", asyncio.Event(), asyncio.Event()

    def take(self, data: bytes) -> None:
        self.data += data
        self.news.set()


async def test_what_one_writes_the_other_reads_in_order() -> None:
    async with pair() as (ours, theirs), asyncio.timeout(20):
        heard, writer = Heard(), SocketWriter(ours)
        reader = SocketReader(theirs, heard.take, heard.ended.set)
        writer.write(b"")
        writer.write(b"first ")
        writer.write(LONG)
        assert writer.waiting > 0
        writer.write(b" last")
        await writer.drain()
        assert writer.waiting == 0
        ours.shutdown(socket.SHUT_WR)
        await heard.ended.wait()
        assert heard.data == b"first " + LONG + b" last"
        assert not reader.hung_up()
        writer.close()
        reader.close()


async def test_a_paused_reader_reads_no_more_than_was_under_way() -> None:
    async with pair() as (ours, theirs), asyncio.timeout(20):
        heard = Heard()
        reader = SocketReader(theirs, heard.take, heard.ended.set)
        await asyncio.sleep(0)
        reader.pause()
        ours.send(b"one")
        await heard.news.wait()
        ours.send(b"two")
        heard.news.clear()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not heard.news.is_set()
        reader.resume()
        await heard.news.wait()
        assert heard.data == b"onetwo"
        reader.close()
        ours.send(b"three")
        for _ in range(10):
            await asyncio.sleep(0)
        assert heard.data == b"onetwo"


async def test_a_writer_whose_reader_has_left_drops_what_is_left() -> None:
    async with pair() as (ours, theirs), asyncio.timeout(20):
        writer = SocketWriter(ours)
        writer.write(LONG)
        theirs.close()
        await writer.drain()
        assert writer.waiting == 0
        writer.write(b"more")
        await writer.drain()


async def test_a_closed_writer_lets_those_go_on_that_wait() -> None:
    async with pair() as (ours, _), asyncio.timeout(20):
        writer = SocketWriter(ours)
        writer.write(LONG)
        waiting = asyncio.create_task(writer.drain())
        await asyncio.sleep(0)
        assert not waiting.done()
        writer.close()
        await waiting
        assert writer.waiting == 0
