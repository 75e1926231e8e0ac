"""At a start, only servers that were never listed, or long ago, are started; a call renews an old list."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json, comes_true, executed, family, proxy_of, snapshot_of
from mcpzip_fakes.launch import FakeServer

from mcpzip.proxy.list_renewal import MAX_AGE
from mcpzip.proxy.refresh import RENEWED_AT_ONCE
from mcpzip.proxy.tool_caller import MAX_AGE_IN_USE

Fake = Callable[..., FakeServer]

DELAY = 0.2
PAY: Json = {"name": "pay_invoice", "description": "Pay an invoice"}


def listings(server: FakeServer) -> int:
    return len(server.record.received("tools/list"))


def change_record(folder: Path, **changes: object) -> None:
    """Writes ``changes`` into the record of each server in the snapshot."""
    file = folder / "cache" / "tools.json"
    snapshot = json.loads(file.read_bytes())
    for record in snapshot["servers"].values():
        record.update(changes)
    file.write_text(json.dumps(snapshot))


def age(folder: Path, seconds: float) -> None:
    """Makes every list in the snapshot ``seconds`` old."""
    change_record(folder, fetched_at=time.time() - seconds)


async def test_a_server_whose_tools_are_known_starts_when_it_is_called(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    shop, new = fake_mcp(name="shop", tools=[PAY]), fake_mcp(name="new", tools=[PAY])
    async with proxy_of(tmp_path, shop):
        pass
    started = len(family(shop))
    async with proxy_of(tmp_path, shop, new, listed=False) as proxy:
        proxy.start()
        await comes_true(lambda: listings(new))  # the one that was never listed
        assert len(family(shop)) == started
        await executed(proxy, "shop__pay_invoice")
        assert len(family(shop)) == started + 1
    assert listings(shop) == 1


async def test_an_old_list_is_renewed_at_a_start(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    async with proxy_of(tmp_path, shop):
        pass
    age(tmp_path, MAX_AGE + 60)
    async with proxy_of(tmp_path, shop, listed=False) as proxy:
        proxy.start()
        await comes_true(lambda: listings(shop) == 2)
        await comes_true(
            lambda: snapshot_of(tmp_path / "config.json")["shop"]["fetched_at"] > time.time() - 60
        )


async def test_a_server_that_failed_is_asked_again_at_a_start(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], faults=[{"kind": "error", "method": "tools/list", "nth": 2}])
    async with proxy_of(tmp_path, shop) as proxy:
        await proxy.refresh()
        assert proxy.status()[0].state == "failing"
    async with proxy_of(tmp_path, shop, listed=False) as proxy:
        proxy.start()
        await comes_true(lambda: proxy.status()[0].state == "connected")


async def test_old_lists_are_renewed_a_few_at_a_time(fake_mcp: Fake, tmp_path: Path) -> None:
    """The third starts, which takes DELAY, when one of the first two has answered."""
    slow = [{"kind": "slow-start", "seconds": DELAY}]
    many = [fake_mcp(name=f"shop{number}", tools=[PAY], faults=slow) for number in range(5)]
    async with proxy_of(tmp_path, *many):
        pass
    age(tmp_path, MAX_AGE + 60)
    async with proxy_of(tmp_path, *many, listed=False) as proxy:
        proxy.start()
        await comes_true(lambda: all(listings(one) == 2 for one in many))
    asked = sorted(one.record.received("tools/list")[1].time for one in many)
    assert RENEWED_AT_ONCE == 2
    assert all(third - first >= DELAY for first, third in zip(asked, asked[2:], strict=False))


@pytest.mark.parametrize(("seconds", "again"), [(MAX_AGE_IN_USE + 60, 1), (MAX_AGE_IN_USE - 60, 0)])
async def test_a_call_renews_the_list_of_its_server_when_it_is_old(
    fake_mcp: Fake, tmp_path: Path, seconds: float, again: int
) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    async with proxy_of(tmp_path, shop):
        pass
    age(tmp_path, seconds)
    async with proxy_of(tmp_path, shop, listed=False) as proxy:
        proxy.start()
        assert listings(shop) == 1
        await executed(proxy, "shop__pay_invoice")
        await comes_true(lambda: listings(shop) == 1 + again)
        await executed(proxy, "shop__pay_invoice")  # now it is new
        assert listings(shop) == 1 + again
