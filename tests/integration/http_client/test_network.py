"""The network under the HTTP client, on real sockets: who waits for whom, what fails how, what is left."""

import asyncio
import gc
import socket
import struct
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager

import httpx
import pytest
from helpers.loopback_server import MUCH, OK, Site, connections_to, got, request, site

from mcpzip.http.connections import Connections
from mcpzip.http.network import _READ_BUFFER, Stream, connect
from mcpzip.transport.http_errors import failure


async def stream_to(made: Site) -> Stream:
    return await connect("127.0.0.1", made.port, 20)


# ---- who waits for whom


async def test_what_is_written_waits_for_a_slow_reader() -> None:
    begun, gate, received = asyncio.Event(), asyncio.Event(), bytearray()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.readexactly(1 << 20))
        begun.set()
        await gate.wait()
        while data := await reader.read(1 << 20):
            received.extend(data)

    sent = bytes(range(256)) * (MUCH // 256)
    async with site(slow) as server:
        stream = await stream_to(server)
        writing = asyncio.create_task(stream.write(sent, timeout=60))
        await begun.wait()
        assert not writing.done()
        gate.set()
        await writing
        stream.close()
        await server.quiet()
    assert received == sent[: len(received)]
    assert len(received) > MUCH - (1 << 20)  # what was not taken by then is not waited for


async def test_a_reader_that_takes_nothing_is_given_up() -> None:
    async def takes_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.get_running_loop().create_future()

    async with site(takes_nothing) as server, connections_to(server.url) as connections:
        with pytest.raises(httpx.WriteTimeout):
            await connections.handle_async_request(request(server.url, b"x" * MUCH, write=0.05))
        stream = await stream_to(server)
        with pytest.raises(httpx.WriteTimeout):
            await stream.write(b"x" * MUCH, timeout=0.05)
        opened = stream._transport.get_extra_info("socket")
        stream.close()
        async with asyncio.timeout(20):
            while opened.fileno() >= 0:  # noqa: ASYNC110 - asyncio closes it in one of its next turns
                await asyncio.sleep(0)


async def test_a_short_request_goes_out_before_an_answer_is_awaited() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)

    async with site(echo) as server:
        stream = await stream_to(server)
        await stream.write(b"head ")
        await stream.write(b"body")
        assert await stream.read(100, timeout=20) == b"head body"
        stream.close()


async def test_a_socket_is_not_read_while_much_is_held_unread() -> None:
    sent = 0
    piece = bytes(range(256)) * 256

    async def talks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while sent < MUCH:
            writer.write(piece)
            sent += len(piece)
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with site(talks) as server:
        stream = await stream_to(server)
        assert await stream.read(1, timeout=20) == piece[:1]
        taken, still = -1, 0
        while still < 200:  # turns of the loop in which the server could send nothing
            still = still + 1 if sent == taken else 0
            taken = sent
            await asyncio.sleep(0)
        assert sent < MUCH
        assert len(stream._received) <= 2 * _READ_BUFFER
        got = bytearray(piece[:1])
        while data := await stream.read(1 << 16, timeout=20):
            got += data
            assert len(data) <= 1 << 16
            assert len(stream._received) <= 2 * _READ_BUFFER
        assert got == piece * (MUCH // len(piece))
        stream.close()


# ---- what fails, and how


@contextmanager
def nobody_listens() -> Iterator[str]:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"


async def test_a_refused_connection_is_a_connect_error() -> None:
    with nobody_listens() as url:
        async with connections_to(url) as connections:
            with pytest.raises(httpx.ConnectError) as caught:
                await connections.handle_async_request(request(url))
        told = failure(caught.value, httpx.URL(url))
    assert (told.reason, told.sent) == (f"nothing accepts connections at {url[:-1]}", False)


async def test_a_name_that_nobody_knows_is_a_connect_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    url = "http://nowhere.example/mcp"
    async with connections_to(url) as connections:
        with pytest.raises(httpx.ConnectError) as caught:
            await connections.handle_async_request(request(url))
    assert failure(caught.value, httpx.URL(url)).reason == "the host of http://nowhere.example can't be found"


async def test_a_connection_that_does_not_come_about_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", hangs)
    async with connections_to("http://127.0.0.1:9/") as connections:
        with pytest.raises(httpx.ConnectTimeout):
            await connections.handle_async_request(request("http://127.0.0.1:9/", connect=0.01))


async def test_an_answer_that_does_not_come_times_out() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.read()

    async with site(silent) as server, connections_to(server.url) as connections:
        with pytest.raises(httpx.ReadTimeout):
            await connections.handle_async_request(request(server.url, read=0.01))
        await server.quiet()


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200", OK[:-1], OK.replace(b": 2", b": 100")])
@pytest.mark.parametrize("rudely", [True, False], ids=["reset", "closed"])
async def test_a_connection_that_breaks_off_is_an_error(said: bytes, rudely: bool) -> None:
    async def breaks_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()
        if rudely:
            option = struct.pack("hh" if hasattr(socket, "SO_EXCLUSIVEADDRUSE") else "ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)

    async with site(breaks_off) as server, connections_to(server.url) as connections:
        with pytest.raises(httpx.ReadError if rudely else httpx.RemoteProtocolError):
            await got(connections, server.url)


async def test_an_early_answer_to_a_request_that_is_not_taken_whole_is_heard() -> None:
    async def refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK.replace(b"200 OK", b"413 No"))
        await writer.drain()
        writer.write_eof()
        while await reader.read(1 << 20):
            pass

    async with site(refuses) as server, connections_to(server.url) as connections:
        response = await connections.handle_async_request(request(server.url, b"x" * MUCH, write=20, read=20))
        assert (response.status_code, await response.aread()) == (413, b"ok")


# ---- connections that wait to be used again


async def test_a_connection_is_used_again() -> None:
    async def polite(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(OK)

    async with site(polite) as server, connections_to(server.url) as connections:
        for _ in range(3):
            assert await got(connections, server.url) == b"ok"
        assert server.met == 1


async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await writer.drain()

    async with site(once) as server, connections_to(server.url) as connections:
        for number in range(1, 4):
            assert await got(connections, server.url) == b"ok"
            await server.quiet()
            assert server.met == number


@pytest.mark.parametrize("turns", [0, 20], ids=["unread", "read"])
async def test_a_connection_on_which_bytes_came_unasked_is_not_used_again(turns: int) -> None:
    """They would be taken for the answer to the next request, whether asyncio has read them yet or not."""
    gate, sent = asyncio.Event(), asyncio.Event()

    async def smuggles(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = server.met == 1
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(OK)
            if first:
                await gate.wait()
                writer.write(OK.replace(b"ok", b"no"))
                await writer.drain()
                sent.set()

    async with site(smuggles) as server, connections_to(server.url) as connections:
        assert await got(connections, server.url) == b"ok"
        gate.set()
        await sent.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        assert await got(connections, server.url) == b"ok"
        assert server.met == 2


# ---- what a cancelled request leaves


async def silent_before_tls(reader: asyncio.StreamReader, reached: asyncio.Event) -> None:
    await reader.read(1)
    reached.set()


async def reads_little(reader: asyncio.StreamReader, reached: asyncio.Event) -> None:
    await reader.readexactly(1 << 20)
    reached.set()


async def hears_all(reader: asyncio.StreamReader, reached: asyncio.Event) -> None:
    await reader.readuntil(b"\r\n\r\n")
    reached.set()


@pytest.mark.parametrize(
    ("scheme", "content", "hears", "says"),
    [
        ("https", None, silent_before_tls, b""),
        ("http", b"x" * MUCH, reads_little, b""),
        ("http", None, hears_all, b""),
        ("http", None, hears_all, b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nx: "),
        ("http", None, hears_all, OK[:-1]),
        ("http", None, hears_all, b"HTTP/1.1 200 OK\r\n\r\nto the end"),
    ],
    ids=["TLS", "sending", "waiting", "in the head", "in the body", "in a body to the end"],
)
async def test_a_request_that_is_cancelled_leaves_no_connection(
    scheme: str,
    content: bytes | None,
    hears: Callable[[asyncio.StreamReader, asyncio.Event], Awaitable[None]],
    says: bytes,
) -> None:
    reached, gone = asyncio.Event(), asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(says)
            await hears(reader, reached)
            while await reader.read(1 << 20):
                pass
        finally:
            gone.set()

    async def asking(connections: Connections, url: str) -> None:
        response = await connections.handle_async_request(request(url, content))
        try:
            await response.aread()
        finally:
            await response.aclose()

    async def cancelled(server: Site) -> None:
        url = server.url.replace("http", scheme, 1)
        async with connections_to(url) as connections:
            asked = asyncio.create_task(asking(connections, url))
            await reached.wait()
            asked.cancel()
            async with asyncio.timeout(20):
                await asyncio.wait({asked})
                await gone.wait()  # the pool is still open
            assert asked.cancelled()
            assert not connections._busy
            assert not connections._idle

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        async with site(handler) as server:
            await cancelled(server)
        gc.collect()
    assert [str(warning.message) for warning in told] == []


async def test_a_request_that_is_cancelled_while_it_connects_leaves_no_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connecting: asyncio.Queue[socket.socket] = asyncio.Queue()

    async def hangs(opened: socket.socket, address: object) -> None:
        connecting.put_nowait(opened)
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", hangs)
    async with connections_to("http://127.0.0.1:9/") as connections:
        asked = asyncio.create_task(connections.handle_async_request(request("http://127.0.0.1:9/")))
        opened = await connecting.get()
        assert opened.fileno() >= 0
        asked.cancel()
        await asyncio.wait({asked})
        assert opened.fileno() == -1
        assert not connections._busy
        assert not connections._idle
