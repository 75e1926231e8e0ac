"""The HTTP connections to a server: through a proxy, refused, cut, and answered late."""

import httpx
import pytest
from raw_server import Asked, Say, head, raw_server

from mcpzip.http.connections import Connections
from mcpzip.http.network import HeadTooLongError
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
