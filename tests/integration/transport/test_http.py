"""What HTTP does to requests, and what we make of it."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.driver import Json, comes_true, executed, pool_of, proxy_of, text_of
from mcpzip_fakes.launch import FakeServer

from mcpzip.model.errors import UpstreamUnavailableError

Fake = Callable[..., FakeServer]
HTTP = pytest.mark.parametrize("transport", ["http", "sse"])

PAY: Json = {"name": "pay", "result": {"text": "paid"}}
STUCK: Json = {"name": "stuck", "result": {"text": "never"}}


@contextmanager
def nobody_listens() -> Iterator[int]:
    """A port of this machine at which nothing accepts connections, and that nobody else gets."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])


@HTTP
async def test_one_request_that_hangs_holds_up_no_other(
    fake_mcp: Fake, tmp_path: Path, transport: str
) -> None:
    """Over SSE each POST waited for the one before: a server that answered late served one call at a time."""
    shop = fake_mcp(
        name="shop", transport=transport, tools=[PAY, STUCK], faults=[{"kind": "hang", "tool": "stuck"}]
    )
    async with proxy_of(tmp_path, shop) as proxy:
        stuck = asyncio.create_task(executed(proxy, "shop__stuck", timeout=60))
        await shop.record.until(lambda record: record.calls("stuck"))
        assert text_of(await executed(proxy, "shop__pay", timeout=20)) == "paid"
        assert not stuck.done()
        stuck.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stuck


@HTTP
async def test_a_hanging_server_does_not_keep_us(fake_mcp: Fake, tmp_path: Path, transport: str) -> None:
    """The farewell of a session (DELETE) was waited for as long as the server liked."""
    faults = [{"kind": "hang", "method": "http/DELETE"}, {"kind": "hang", "tool": "stuck"}]
    shop = fake_mcp(name="shop", transport=transport, era="legacy", tools=[PAY, STUCK], faults=faults)
    async with proxy_of(tmp_path, shop) as proxy:
        stuck = asyncio.create_task(executed(proxy, "shop__stuck", timeout=60))
        await shop.record.until(lambda record: record.calls("stuck"))
        await asyncio.wait_for(proxy.close(), 15)
        assert await comes_true(stuck.done)


@HTTP
async def test_a_refused_connection_is_told_with_its_address(tmp_path: Path, transport: str) -> None:
    with nobody_listens() as port:
        others = {"shop": {"type": transport, "url": f"http://127.0.0.1:{port}/mcp"}}
        async with pool_of(tmp_path, others=others) as pool:
            with pytest.raises(UpstreamUnavailableError) as caught:
                await pool.list_tools("shop")
    assert f"nothing accepts connections at http://127.0.0.1:{port}" in caught.value.reason
    assert "'url'" in caught.value.remedy


@HTTP
@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, "Authorization"),
        (403, "headers"),
        (404, "'url'"),
        (405, '"type"'),
        (429, "wait"),
        (500, "log"),
        (503, "log"),
    ],
)
async def test_a_status_is_told_with_what_to_do(
    fake_mcp: Fake, tmp_path: Path, transport: str, status: int, remedy: str
) -> None:
    """Over SSE it was told without; of 5xx, nothing was told."""
    shop = fake_mcp(
        name="shop", transport=transport, tools=[PAY], faults=[{"kind": "status", "status": status}]
    )
    async with pool_of(tmp_path, shop) as pool:
        with pytest.raises(UpstreamUnavailableError) as caught:
            await pool.list_tools("shop")
    assert f"HTTP {status}" in caught.value.reason
    assert remedy in caught.value.remedy


@HTTP
async def test_headers_of_the_config_go_along(fake_mcp: Fake, tmp_path: Path, transport: str) -> None:
    shop = fake_mcp(name="shop", transport=transport, tools=[PAY])
    others = {"shop": {**shop.config, "headers": {"Authorization": "Bearer s3cret", "X-Team": "a b"}}}
    async with proxy_of(tmp_path, shop, others=others) as proxy:
        await executed(proxy, "shop__pay")
    posts = [line.detail["headers"] for line in shop.record.received()]
    assert posts
    assert all((sent["authorization"], sent["x-team"]) == ("Bearer s3cret", "a b") for sent in posts)


async def test_a_listing_of_more_than_a_mebibyte_comes_whole(fake_mcp: Fake, tmp_path: Path) -> None:
    for transport in ("http", "sse"):
        (tmp_path / transport).mkdir()
        shop = fake_mcp(name="shop", transport=transport, generate={"count": 2000, "description": 500})
        async with pool_of(tmp_path / transport, shop) as pool:
            assert len((await pool.list_tools("shop")).tools) == 2000


@pytest.mark.parametrize("options", [{"stateless": True}, {"json_response": True}])
async def test_a_server_without_sessions_or_streams_is_served(
    fake_mcp: Fake, tmp_path: Path, options: dict[str, bool]
) -> None:
    for era in ("legacy", "modern"):
        (tmp_path / era).mkdir()
        shop = fake_mcp(name="shop", transport="http", era=era, tools=[PAY], **options)
        async with proxy_of(tmp_path / era, shop) as proxy:
            assert text_of(await executed(proxy, "shop__pay")) == "paid"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_that_went_away_is_told_so_and_found_again(
    fake_mcp: Fake, tmp_path: Path, transport: str
) -> None:
    shop = fake_mcp(name="shop", transport=transport, era="legacy", tools=[PAY])
    async with proxy_of(tmp_path, shop) as proxy:
        assert text_of(await executed(proxy, "shop__pay")) == "paid"
        shop.stop()
        result = await executed(proxy, "shop__pay", timeout=5)
        assert result["isError"]
        assert "nothing accepts connections" in text_of(result) or "closed" in text_of(result), result
        assert text_of(await executed(proxy, "shop__pay", timeout=5)).count("shop") >= 1
