"""To which places a server may send us when it is signed in to."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from mcpzip.auth.discovery import find_server, send
from mcpzip.auth.url_policy import Zone, check_resolved_url, check_url, zone_of
from mcpzip.model.errors import LoginError

WORLD = "https://93.184.216.34/mcp"
NAMED = "https://mcp.example/mcp"
NETWORK = "https://10.1.2.3/mcp"


@pytest.mark.parametrize(
    ("address", "zone"),
    [
        ("93.184.216.34", Zone.PUBLIC),
        ("2606:2800:220:1::1", Zone.PUBLIC),
        ("127.0.0.1", Zone.LOOPBACK),
        ("127.1.2.3", Zone.LOOPBACK),
        ("0.0.0.0", Zone.LOOPBACK),
        ("::1", Zone.LOOPBACK),
        ("::", Zone.LOOPBACK),
        ("::ffff:127.0.0.1", Zone.LOOPBACK),
        ("64:ff9b::7f00:1", Zone.LOOPBACK),
        ("2002:7f00:1::", Zone.LOOPBACK),
        ("10.0.0.1", Zone.PRIVATE),
        ("172.16.0.1", Zone.PRIVATE),
        ("192.168.1.1", Zone.PRIVATE),
        ("100.64.0.1", Zone.PRIVATE),
        ("fd00::1", Zone.PRIVATE),
        ("::ffff:10.0.0.1", Zone.PRIVATE),
        ("224.0.0.1", Zone.PRIVATE),
        ("169.254.169.254", Zone.LINK_LOCAL),
        ("fe80::1%eth0", Zone.LINK_LOCAL),
    ],
)
def test_every_address_is_somewhere(address: str, zone: Zone) -> None:
    assert zone_of(address) is zone


@pytest.mark.parametrize(
    "url",
    [
        "https://10.0.0.1/admin",
        "https://[fd00::1]/",
        "https://192.168.1.1:8443/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::ffff:10.0.0.1]/",
        "https://localhost/",
        "https://127.0.0.1/",
    ],
)
async def test_a_server_out_in_the_world_sends_us_to_no_private_address(url: str) -> None:
    """Only this very machine was refused."""
    with pytest.raises(LoginError, match="a server elsewhere can't send us there"):
        check_url("its authorization server", url, (WORLD,))
    with pytest.raises(LoginError, match="can't send us there"):
        await find_server(url, WORLD)
    with pytest.raises(LoginError, match="can't send us there"):
        await check_resolved_url("the page to sign in on", url, (WORLD,))


@pytest.mark.parametrize(
    ("url", "server_urls"),
    [
        ("https://10.0.0.1/", (NETWORK,)),
        ("https://10.0.0.1/", (WORLD, "https://192.168.0.1/issuer")),
        ("https://10.0.0.1/", ("http://localhost:3000/mcp",)),
        ("http://127.0.0.1:9/", ("http://localhost:3000/mcp",)),
        ("https://10.1.2.3:9/", (NETWORK,)),
        ("https://169.254.1.1/", ("https://169.254.1.2/",)),
        ("https://as.example/", (WORLD,)),
        ("https://93.184.216.35/", (NETWORK,)),
    ],
)
def test_what_is_near_the_server_or_in_the_config_may_be_private(
    url: str, server_urls: tuple[str, ...]
) -> None:
    check_url("it", url, server_urls)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "https://169.254.169.254/"])
def test_a_server_in_a_private_network_may_name_its_neighbours_only(url: str) -> None:
    with pytest.raises(LoginError):
        check_url("it", url, (NETWORK,))


@asynccontextmanager
async def names(monkeypatch: pytest.MonkeyPatch, **known: str) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Names that lead to addresses, and a listener on this machine: its port, and what it was told."""
    said: list[bytes] = []

    async def came(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said.append(await reader.read(100))
        writer.close()

    loop = asyncio.get_running_loop()
    real = loop.getaddrinfo

    async def found(host: Any, port: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        address = known.get(name.replace(".", "_"))
        if address is None and name.replace(".", "").isdigit():
            return await real(host, port, **options)
        if address is None:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0))]

    monkeypatch.setattr(loop, "getaddrinfo", found)
    listening = await asyncio.start_server(came, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1], said
    finally:
        listening.close()


async def test_a_name_that_leads_to_a_private_address_is_sent_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is looked at what was connected to: a name may lead elsewhere from one moment to the next."""
    async with names(monkeypatch, inside_example="127.0.0.1", mcp_example="93.184.216.34") as (port, said):
        request = httpx.Request("POST", f"https://inside.example:{port}/token", content=b"secret")
        with pytest.raises(LoginError, match=r"inside\.example:.* is on this very machine"):
            await send(request, (NAMED,))
        while not said:  # noqa: ASYNC110 - the other end of a connection that was closed
            await asyncio.sleep(0)
        assert said == [b""]
        with pytest.raises(LoginError, match="can't send us there"):
            await check_resolved_url("the page", f"https://inside.example:{port}/", (NAMED,))


async def test_a_name_beside_the_server_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async with names(monkeypatch, inside_example="127.0.0.1", mcp_example="127.0.0.1") as (port, said):
        request = httpx.Request("GET", f"https://inside.example:{port}/meta")
        with pytest.raises(httpx.HTTPError):  # it speaks no TLS
            await send(request, (NAMED,))
        assert said[0].startswith(b"\x16")
        await check_resolved_url("the page", f"https://inside.example:{port}/", (NAMED,))
