"""Requests through proxies of every kind, to a server on loopback."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from helpers.loopback_server import OK, connections_to, got, site

from mcpzip.http.proxies import Proxy

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
Begin = Callable[[Reader, Writer], Awaitable[tuple[str, int] | None]]
USER, PASSWORD = b"someone", b"a:secret"


async def answer(reader: Reader, writer: Writer) -> None:
    while await reader.readuntil(b"\r\n\r\n"):
        writer.write(OK)


async def copy(source: Reader, target: Writer) -> None:
    while data := await source.read(1 << 16):
        target.write(data)
        await target.drain()


@asynccontextmanager
async def proxied(begin: Begin, url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[bytes]]:
    """A proxy that ``begin`` speaks for, set for all requests. Yields what was sent through it first."""
    passed: list[bytes] = []

    async def handler(reader: Reader, writer: Writer) -> None:
        if (target := await begin(reader, writer)) is None:
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target[1])
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            passed.append(target[0].encode() + b" " + head)
            far_writer.write(head)
            async with asyncio.TaskGroup() as group:
                group.create_task(copy(reader, far_writer))
                group.create_task(copy(far_reader, writer))
        finally:
            far_writer.close()

    async with site(handler) as server:
        monkeypatch.setenv("HTTP_PROXY", url.format(port=server.port))
        for name in ("NO_PROXY", "no_proxy", "http_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield passed


def socks(reply: int = 0, signs_in: bool = False, kind: int = 1) -> Begin:
    """A SOCKS5 proxy that resolves every host to loopback. kind: of the address that it answers with."""

    async def begin(reader: Reader, writer: Writer) -> tuple[str, int] | None:
        version, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        wanted = 2 if signs_in else 0
        if version != 5 or wanted not in methods:
            writer.write(b"\x05\xff")
            return None
        writer.write(bytes((5, wanted)))
        if signs_in:
            _, length = await reader.readexactly(2)
            user = await reader.readexactly(length)
            (length,) = await reader.readexactly(1)
            right = (user, await reader.readexactly(length)) == (USER, PASSWORD)
            writer.write(b"\x01\x00" if right else b"\x01\x01")
            if not right:
                return None
        assert await reader.readexactly(4) == b"\x05\x01\x00\x03"
        (length,) = await reader.readexactly(1)
        host = (await reader.readexactly(length)).decode()
        port = int.from_bytes(await reader.readexactly(2), "big")
        address = {1: b"\x7f\0\0\1", 3: b"\x09localhost", 4: bytes(16)}[kind]
        writer.write(bytes((5, reply, 0, kind)) + address + b"\0\0")
        return None if reply else (host, port)

    return begin


@pytest.mark.parametrize("kind", [1, 3, 4])
async def test_a_socks_proxy_connects_to_the_host_by_its_name(
    kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(answer) as server:
        url = f"http://mcp.example:{server.port}/mcp"
        async with (
            proxied(socks(kind=kind), "socks5h://127.0.0.1:{port}", monkeypatch) as passed,
            connections_to(url) as connections,
        ):
            for _ in range(2):
                assert await got(connections, url) == b"ok"
            assert [one.partition(b"\r\n")[0] for one in passed] == [b"mcp.example GET /mcp HTTP/1.1"]


async def test_a_socks_proxy_gets_user_and_password(monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(answer) as server:
        url = f"http://mcp.example:{server.port}/"
        asks = socks(signs_in=True)
        async with (
            proxied(asks, "socks5://someone:a%3Asecret@127.0.0.1:{port}", monkeypatch),
            connections_to(url) as connections,
        ):
            assert await got(connections, url) == b"ok"
        async with (
            proxied(asks, "socks5://someone:wrong@127.0.0.1:{port}", monkeypatch),
            connections_to(url) as connections,
        ):
            with pytest.raises(httpx.ProxyError, match="user and password"):
                await got(connections, url)
        async with (
            proxied(asks, "socks5://127.0.0.1:{port}", monkeypatch),
            connections_to(url) as connections,
        ):
            with pytest.raises(httpx.ProxyError, match="sign in"):
                await got(connections, url)


async def hangs_up(reader: Reader, writer: Writer) -> None:
    await reader.readexactly(1)


@pytest.mark.parametrize(
    ("begin", "reason"),
    [
        (socks(reply=5), "could not connect to mcp.example: the connection was refused"),
        (socks(reply=99), "could not connect to mcp.example: code 99"),
        (hangs_up, "the proxy closed the connection"),
    ],
)
async def test_what_a_socks_proxy_refuses_is_named(
    begin: Begin, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        proxied(begin, "socks5://127.0.0.1:{port}", monkeypatch),
        connections_to("http://mcp.example/") as connections,
    ):
        with pytest.raises(httpx.TransportError, match=reason):
            await got(connections, "http://mcp.example/")
        assert not connections._busy


@pytest.mark.parametrize("status", [b"407 Proxy Authentication Required", b"502 Bad Gateway"])
async def test_a_tunnel_that_is_refused_is_an_error_of_the_proxy(
    status: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    async def refuses(reader: Reader, writer: Writer) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with site(refuses) as server:
        monkeypatch.setenv("HTTPS_PROXY", f"http://someone:secret@127.0.0.1:{server.port}")
        async with connections_to("https://mcp.example/") as connections:
            with pytest.raises(httpx.ProxyError, match=status.decode()):
                await got(connections, "https://mcp.example/")
        await server.quiet()
    assert asked[0].startswith(b"CONNECT mcp.example:443 HTTP/1.1\r\nHost: mcp.example:443\r\n")
    credentials = base64.b64encode(b"someone:secret")
    assert b"Proxy-Authorization: Basic " + credentials in asked[0]


async def test_the_target_of_a_tunnel_to_an_ipv6_address_is_in_brackets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bytes] = []

    async def refuses(reader: Reader, writer: Writer) -> None:
        asked.append(await reader.readuntil(b"\r\n"))

    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with site(refuses) as server:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.port}")
        async with connections_to("https://[2001:db8::1]/") as connections:
            with pytest.raises(httpx.TransportError):
                await got(connections, "https://[2001:db8::1]/")
    assert asked == [b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\n"]


def test_a_proxy_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="ftp"):
        Proxy("ftp://127.0.0.1:1")
