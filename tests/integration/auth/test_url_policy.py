"""What a host name resolves to is checked on the connection itself (DNS rebinding)."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from helpers.loopback_server import accepting

from mcpzip.auth.discovery import send
from mcpzip.auth.url_policy import check_resolved_url
from mcpzip.model.errors import LoginError

NAMED = "https://mcp.example/mcp"


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
    async with accepting(came) as port:
        yield port, said


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
