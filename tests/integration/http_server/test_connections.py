"""What a connection may take of `serve --http`, and what may come on it (RFC 9112)."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import h11
import pytest
from helpers.driver import PATIENCE, comes_true
from helpers.raw_http_client import LOCAL, Connection, Script, Web, echo, message, modern_message, site

from mcpzip.proxy.exchange import Exchange
from mcpzip.server.http import connections
from mcpzip.server.http.access import access_to, read_address, take
from mcpzip.server.http.connection import PIECE
from mcpzip.server.http.response import PING
from mcpzip.server.http.server import HttpServer

OPENING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}
INITIALIZE = message("initialize", OPENING, 1)
TOKEN = "a-token-of-some-length"
PAGE = "https://app.example.org"


async def forever(exchange: Exchange) -> bytes:
    await asyncio.Event().wait()
    return b"{}"


LARGE = 16_000_000


def answer(size: int) -> Callable[[Exchange], Awaitable[bytes]]:
    """A tool whose answer has so many bytes, and some more."""

    async def tool(exchange: Exchange) -> bytes:
        return b'{"content":[{"type":"text","text":"%b"}]}' % (b"x" * size)

    return tool


large = answer(LARGE)


async def test_there_is_an_end_to_connections_which_those_that_are_there_do_not_feel() -> None:
    async with (
        site(Script(), connections=2, linger=0.01) as web,
        web.connected() as first,
        web.connected() as second,
    ):
        for connection in (first, second):  # what is let in stays
            await connection.write(web.request("POST", INITIALIZE))
            assert (await connection.reply()).status == 200
        reply = await web.ask("POST", INITIALIZE)
        assert reply.status == 503
        assert reply.last["error"]["message"] == "There are too many connections; try again later."
        await first.write(web.request("POST", INITIALIZE))
        assert (await first.reply()).status == 200


async def test_connections_far_beyond_the_limit_are_closed() -> None:
    async with (
        site(Script(), connections=1, turned_away=0) as web,
        web.connected() as first,
        web.connected() as second,
    ):
        assert await first.ended()  # nothing had come on it
        await second.write(web.request("POST", INITIALIZE))
        assert (await second.reply()).status == 200
        async with web.connected() as third:
            assert await third.ended()


async def test_connections_without_a_token_make_room_for_others() -> None:
    """Whoever opened 2,000 and said nothing, or nothing right, kept everybody else out."""
    access = access_to(read_address("0"), TOKEN.encode(), (), ())
    async with (
        site(Script(), access, connections=2, turned_away=0) as web,
        web.connected() as silent,
        web.connected() as refused,
    ):
        await refused.write(web.request("GET"))
        assert (await refused.reply()).status == 401
        async with web.connected() as right, web.connected() as another:
            assert await silent.ended()
            assert await refused.ended()
            for connection in (right, another):
                await connection.write(web.request("POST", INITIALIZE, Authorization=f"Bearer {TOKEN}"))
                assert (await connection.reply()).status == 200


def in_chunks(body: bytes) -> bytes:
    """``body``, each byte of it in a chunk of its own."""
    return b"".join(b"1\r\n%c\r\n" % byte for byte in body)


IN_CHUNKS: dict[str, str | None] = {"Content_Length": None, "Transfer_Encoding": "chunked"}


async def test_tiny_chunks_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 KiB of chunks of a byte each take a third of a second to read, in which nobody else was heard."""
    at_once: list[int] = []
    read = h11.Connection.receive_data

    def noted(connection: h11.Connection, data: bytes) -> None:
        at_once.append(len(data))
        read(connection, data)

    monkeypatch.setattr(h11.Connection, "receive_data", noted)
    body = message("initialize", OPENING | {"padding": "x" * 20_000}, 1)
    async with site(Script()) as web, web.connected() as connection:
        await connection.write(web.request("POST", b"", **IN_CHUNKS) + in_chunks(body) + b"0\r\n\r\n")
        assert (await connection.reply()).status == 200
        assert max(at_once) <= PIECE
        await connection.write(web.request("POST", message("ping", id=2)))  # it goes on as any other
        assert (await connection.reply()).status == 400  # without a session


async def test_what_frames_chunks_counts_as_part_of_a_body() -> None:
    async with site(Script(), body=1_000, linger=0.05) as web, web.connected() as connection:
        await connection.write(web.request("POST", b"", **IN_CHUNKS))
        await connection.write(in_chunks(b" " * 600))
        assert (await connection.reply()).status == 413
        assert await connection.ended()


async def test_of_a_body_in_chunks_that_is_refused_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    access = access_to(read_address("0"), TOKEN.encode(), (), ())
    async with site(Script(), access) as web, web.connected() as connection:
        await connection.write(web.request("POST", b"", **IN_CHUNKS))
        assert (await connection.reply()).status == 401
        read: list[bytes] = []
        monkeypatch.setattr(h11.Connection, "receive_data", lambda _, data: read.append(data))
        await connection.write(in_chunks(b"x" * 50_000))
        await connection.write(b"0\r\n\r\n")
        assert await connection.ended()
        assert read == []


async def test_what_is_sent_ahead_of_an_answer_has_a_limit() -> None:
    """It was all kept: each request that was begun read on."""
    script = Script(forever=forever)
    body, headers = modern_message("tools/call", {"name": "forever"})
    async with site(script, head=10_000) as web, web.connected() as connection:
        await connection.write(web.request("POST", body, **headers))
        await comes_true(lambda: script.seen)
        await connection.write(web.request("POST", body, **headers) * 100)
        assert await connection.ended()
        await comes_true(lambda: script.cancelled)


@pytest.mark.parametrize("together", [False, True])
async def test_a_line_behind_a_body_hides_no_hang_up(together: bool) -> None:
    """Nothing was read any more, so nobody heard that the client had left."""
    script = Script(forever=forever)
    body, headers = modern_message("tools/call", {"name": "forever"})
    async with site(script) as web, web.connected() as connection:
        await connection.write(web.request("POST", body, **headers) + b"\r\n" * together)
        await comes_true(lambda: script.seen)
        await connection.write(b"\r\n")
        connection.close()
        await comes_true(lambda: script.cancelled, PING / 2)  # a ping that nobody takes tells as well


async def test_a_line_behind_the_last_request_of_a_connection_ends_no_call() -> None:
    go_on = asyncio.Event()

    async def waiting(exchange: Exchange) -> bytes:
        await go_on.wait()
        return b'{"content":[]}'

    script = Script(waiting=waiting)
    body, headers = modern_message("tools/call", {"name": "waiting"})
    async with site(script) as web, web.connected() as connection:
        await connection.write(web.request("POST", body, Connection="close", **headers))
        await comes_true(lambda: script.seen)
        await connection.write(b"\r\n")
        go_on.set()
        assert (await connection.reply()).status == 200


async def test_who_does_not_read_is_let_go() -> None:
    """What it left unread was kept for ever, and its connection with it."""
    async with site(Script(large=large), unread=0.2) as web:
        session = await web.session()
        async with session.calling("large") as connection:
            assert await is_gone(connection)


async def test_what_nobody_reads_has_a_limit_over_all_connections() -> None:
    """Sixty answers of 20 MB that nobody read were a gigabyte, for ten minutes.

    The buffers of the sockets hold 2 to 6 MB of each answer. Of answers of 32 MB three always
    fit into the limit and four never do. The answer that is read is smaller, so that it isn't closed.
    """
    size, less = 2 * LARGE, 7 * LARGE // 4
    script = Script(large=answer(size), less=answer(less))
    async with AsyncExitStack() as open, site(script, unread_by_all=3 * size) as web:
        session = await web.session()
        deaf = [await open.enter_async_context(session.calling("large", id)) for id in range(8)]
        looking = [asyncio.ensure_future(is_gone(each)) for each in deaf]
        await comes_true(lambda: sum(each.done() for each in looking) == 5)
        async with session.calling("less", 8) as reading:
            assert len((await reading.reply()).body) > less
        await comes_true(lambda: sum(each.done() for each in looking) == 6)
        for each in looking:
            each.cancel()


async def test_what_waits_behind_an_unread_answer_counts_too() -> None:
    """A second answer waited where nobody counted: in the coroutine that was to send it."""
    async with site(Script(large=large), unread_by_all=3 * LARGE // 2) as web:
        session = await web.session()
        async with session.calling("large", 1) as deaf:
            await deaf.write(session.request("POST", message("tools/call", {"name": "large"}, 2)))
            assert await is_gone(deaf)


async def is_gone(connection: Connection) -> bool:
    """Whether the system says that the other end is, once it does; nothing is read for it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await connection.write(b"\r\n")
            except ConnectionError:
                return True
            await asyncio.sleep(0.01)


async def test_a_page_asks_without_a_body() -> None:
    """One that sent a byte of the body it had announced had its connection for ever, without a token."""
    access = access_to(read_address("0"), None, (), (PAGE,))
    asked = {"Origin": PAGE, "Access_Control_Request_Method": "POST", "Content_Length": "99"}
    async with site(Script(), access, linger=0.1) as web, web.connected() as connection:
        await connection.write(web.request("OPTIONS", **asked))
        reply = await connection.reply()
        assert (reply.status, reply.headers["connection"]) == (405, "close")
        await connection.write(b"x")
        assert await connection.ended()


async def test_a_body_has_one_length() -> None:
    """A proxy that goes by the other takes what is inside for part of this request, and checks none of it."""
    async with site(Script(), linger=0.1) as web, web.connected() as connection:
        await connection.write(web.request("POST", INITIALIZE, Transfer_Encoding="chunked"))
        reply = await connection.reply()
        assert (reply.status, reply.headers["connection"]) == (400, "close")
        assert reply.last["error"]["message"].endswith("not both.")
        assert await connection.ended()


async def test_an_answer_is_as_long_as_the_event_that_carries_it() -> None:
    async def line_ends(exchange: Exchange) -> bytes:
        return b'{"text":"%b"}' % ("\u2028" * 200).encode()  # 600 bytes, and 1,200 once they are escaped

    async with site(Script(echo=echo, line_ends=line_ends), event=1_000) as web:
        session = await web.session()
        assert (await session.call("echo", text="x" * 600)).headers["content-type"] == "text/event-stream"
        reply = await session.call("line_ends")
        assert reply.headers["content-type"] == "application/json"
        assert reply.last["result"] == {"text": "\u2028" * 200}


@pytest.mark.parametrize("sent", ["nothing", "half a head", "a head"])
async def test_what_has_begun_to_ask_is_answered_when_the_server_ends(
    sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client whose connection was taken can't know that nobody has read its request."""
    monkeypatch.setattr(connections, "_FIRST_REQUEST", PATIENCE)
    listening, done, ready = take(read_address("127.0.0.1:0")), asyncio.Event(), asyncio.Event()
    served = HttpServer(Script(echo=echo), LOCAL, [].append)  # type: ignore[arg-type]
    serving = asyncio.create_task(served.serve(listening, done, ready.set, lambda: None))
    await ready.wait()
    web = Web(listening.getsockname()[1])
    body, headers = modern_message("tools/call", {"name": "echo", "arguments": {"text": "late"}})
    request = web.request("POST", body, **headers)
    at = {"nothing": 0, "half a head": 40, "a head": request.index(b"\r\n\r\n") + 4}[sent]
    async with web.connected() as connection:
        await connection.write(request[:at])
        done.set()
        await comes_true(lambda: listening.fileno() == -1)
        await connection.write(request[at:])
        reply = await connection.reply()
        assert (reply.status, reply.headers.get("connection")) == (200, None)
        assert b"late" in reply.body
        assert await connection.ended()
    await serving
