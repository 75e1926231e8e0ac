"""The HTTP connections to a server: through a proxy, refused, cut, and answered late."""

import asyncio

import httpx
import pytest
from helpers.loopback_server import accepting
from helpers.raw_http_server import Asked, Say, head, raw_server

from mcpzip.http.connection import HeadTooLongError
from mcpzip.http.connections import Connections
from mcpzip.model import limits

BODY = b"x" * 100_000
INTERIM = b"HTTP/1.1 103 Early Hints\r\n\r\n"


async def found(asked: Asked, say: Say) -> None:
    await say(head(200, f"content-length: {len(BODY)}") + BODY)


def get(url: str) -> httpx.Request:
    return httpx.Request("GET", url)


async def test_an_answer_comes_whole_and_its_connection_is_used_again() -> None:
    async with raw_server(GET=found) as server:
        connections = Connections(server.url)
        for _ in range(2):
            response = await connections.handle_async_request(get(server.url))
            assert await response.aread() == BODY
        await connections.aclose()
        assert len({one.headers["host"] for one in server.asked}) == 1
        assert server.count("GET") == 2


async def test_interim_answers_are_passed_over_up_to_a_limit() -> None:
    async def few(asked: Asked, say: Say) -> None:
        await say(INTERIM * 1_000)
        await found(asked, say)

    async def endless(asked: Asked, say: Say) -> None:
        while True:
            await say(INTERIM * 1_000)

    async with raw_server(GET=few) as server:
        connections = Connections(server.url)
        response = await connections.handle_async_request(get(server.url))
        assert (response.status_code, await response.aread()) == (200, BODY)
        await connections.aclose()
    async with raw_server(GET=endless) as server:
        connections = Connections(server.url)
        with pytest.raises(HeadTooLongError, match=f"{limits.HEAD:,} bytes"):
            await connections.handle_async_request(get(server.url))
        await connections.aclose()


async def test_the_proxy_that_the_environment_names_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_server(GET=found) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("http://", "http://someone:secret@"))
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        connections = Connections("http://mcp.example/mcp")
        response = await connections.handle_async_request(get("http://mcp.example/mcp"))
        assert await response.aread() == BODY
        await connections.aclose()
        [asked] = proxy.asked
        assert asked.path == "http://mcp.example/mcp"
        assert asked.headers["proxy-authorization"].startswith("Basic ")


async def test_what_goes_wrong_has_the_names_of_httpx() -> None:
    async def cut(asked: Asked, say: Say) -> None:
        await say(head(200, "content-length: 10") + b"x")
        raise ConnectionError

    async with raw_server(GET=cut) as server:
        connections = Connections(server.url)
        response = await connections.handle_async_request(get(server.url))
        with pytest.raises(httpx.TransportError):
            await response.aread()
    with pytest.raises(httpx.ConnectError):
        await connections.handle_async_request(get(server.url))
    await connections.aclose()


async def test_what_a_proxy_says_before_tls_is_not_what_the_server_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was read as the first thing that had come under TLS, of a server whose certificate was right."""
    begun = b"HTTP/1.1 200 Connection established\r\nx-pad: "
    forged = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"
    head_of_one_read = begun + b"x" * (4096 - len(begun) - 4) + b"\r\n\r\n"

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head_of_one_read + forged)
        try:
            await reader.read()  # to its end
            writer.close()
            await writer.wait_closed()
        except ConnectionError:
            pass
        ended.set()

    ended = asyncio.Event()
    async with accepting(proxy) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        connections = Connections("https://mcp.example/mcp")
        with pytest.raises(httpx.ConnectError, match="before TLS"):
            await connections.handle_async_request(get("https://mcp.example/mcp"))
        await connections.aclose()
        await ended.wait()


async def test_others_have_their_turn_between_interim_answers() -> None:
    """Sixteen thousand that came at once were read in one turn of the event loop."""
    shortest = b"HTTP/1.1 100 \r\n\r\n"

    async def many(asked: Asked, say: Say) -> None:
        await say(shortest * (200_000 // len(shortest)))
        await found(asked, say)

    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with raw_server(GET=many) as server:
        connections = Connections(server.url)
        stream = await connections.handle_async_request(get(server.url))  # one answer, to be connected
        await stream.aread()
        counting = asyncio.create_task(count())
        response = await connections.handle_async_request(get(server.url))
        before = turns
        counting.cancel()
        assert await response.aread() == BODY
        await connections.aclose()
    assert before >= 200_000 // 4096
