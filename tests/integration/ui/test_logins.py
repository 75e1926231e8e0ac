"""Logins that were begun on the page: each ends, and not many are remembered."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import write_config
from mcpzip_fakes.launch import FakeServer

from mcpzip.config import Config, load
from mcpzip.model.errors import LoginError, McpzipError
from mcpzip.ui import logins as module
from mcpzip.ui.logins import LoginReport, Logins

Fake = Callable[..., FakeServer]


@pytest.fixture
def config(tmp_path: Path, fake_mcp: Fake) -> Config:
    """Of a server that wants a login."""
    shop = fake_mcp(name="shop", tools=["pay"], transport="http", oauth={"approve": "page"})
    return load(str(write_config(tmp_path, shop)), {})


async def nothing(server: str) -> None:
    """Lists no tools."""


async def ended(logins: Logins, server: str) -> LoginReport:
    """How the login ended."""
    found = logins.report(server)
    async with asyncio.timeout(20):
        while found is None or found.is_under_way:
            await asyncio.sleep(0.01)
            found = logins.report(server)
    return found


async def test_nobody_signs_in(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOGIN_TIME", 0.1)
    monkeypatch.setattr(module, "LOGIN_BEGIN", 20)
    logins = Logins(pytest.fail, nothing)
    await logins.begin(config, "shop")
    found = await ended(logins, "shop")
    assert found.state == "failed"
    assert found.reason in (
        "Nobody signed in to shop within 0.1 s. Begin again on the page.",
        "It took longer than 0.2 s.",
    )
    await logins.close()


async def test_a_login_is_cancelled_and_begun_again(config: Config) -> None:
    logins = Logins(pytest.fail, nothing)
    await logins.begin(config, "shop")
    waiting = logins.report("shop")
    assert waiting is not None
    assert (waiting.state, waiting.link) == ("waiting", waiting.url)
    assert waiting.host in waiting.url
    with pytest.raises(LoginError, match="under way already"):
        await logins.begin(config, "shop")
    other = Logins(pytest.fail, nothing)  # of another process
    await other.begin(config, "shop")
    found = await ended(other, "shop")
    assert "Another login to shop is under way" in found.reason
    await logins.cancel("shop")
    assert (await ended(logins, "shop")).state == "cancelled"
    logins.forget("shop")
    assert logins.report("shop") is None
    await logins.begin(config, "shop")
    await logins.close()
    assert (await ended(logins, "shop")).state == "cancelled"
    await other.close()


async def test_a_server_without_a_login_begins_none(tmp_path: Path) -> None:
    config = load(str(write_config(tmp_path, others={"local": {"command": "x"}})), {})
    logins = Logins(pytest.fail, nothing)
    with pytest.raises(McpzipError, match="runs on this machine"):
        await logins.begin(config, "local")
    assert logins.reports() == []


async def test_the_oldest_ends_are_forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "LOGINS_KEPT", 2)
    servers = {f"s{number}": {"url": "http://127.0.0.1:9/mcp"} for number in range(4)}
    config = load(str(write_config(tmp_path, others=servers)), {})
    logins = Logins(pytest.fail, nothing)
    for name in servers:
        await logins.begin(config, name)
        assert "can't be reached" in (await ended(logins, name)).reason
    assert [one.server for one in logins.reports()] == ["s2", "s3"]
    await logins.close()
