"""Which era an upstream speaks is found out quickly, remembered, and doubted only when it fails."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json, pool_of, proxy_of, scripted, snapshot_of
from mcpzip_fakes.launch import FakeServer

from mcpzip.model.errors import UpstreamUnavailableError
from mcpzip.transport.handshake import PROBE_TIMEOUT

Fake = Callable[..., FakeServer]

PAY: Json = {"name": "pay", "result": {"text": "paid"}}
DISCOVER, INITIALIZE, INITIALIZED = "server/discover", "initialize", "notifications/initialized"


@pytest.mark.parametrize(
    ("transport", "era", "protocol", "opening"),
    [
        ("stdio", "both", "2026-07-28", [DISCOVER]),
        ("stdio", "modern", "2026-07-28", [DISCOVER]),
        ("stdio", "legacy", "2025-11-25", [DISCOVER, INITIALIZE, INITIALIZED]),
        ("http", "both", "2026-07-28", [DISCOVER]),
        ("http", "modern", "2026-07-28", [DISCOVER]),
        ("http", "legacy", "2025-11-25", [DISCOVER, INITIALIZE, INITIALIZED]),
        ("sse", "legacy", "2025-11-25", [DISCOVER, INITIALIZE, INITIALIZED]),
    ],
)
async def test_the_era_is_found(
    fake_mcp: Fake, tmp_path: Path, transport: str, era: str, protocol: str, opening: list[str]
) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], transport=transport, era=era)
    async with pool_of(tmp_path, shop) as pool:
        listing = await pool.list_tools("shop")
        assert listing.protocol == protocol
        assert shop.record.methods()[: len(opening)] == opening
        assert b"paid" in await pool.request("shop", "tools/call", b'{"name":"pay"}', timeout=10)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_an_old_version_is_taken_as_the_server_offers_it(
    fake_mcp: Fake, tmp_path: Path, version: str
) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], era="legacy", versions=[version])
    async with pool_of(tmp_path, shop) as pool:
        assert (await pool.list_tools("shop")).protocol == version


async def test_one_that_is_silent_on_discover_is_initialized(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(
        name="shop", tools=[PAY], era="legacy", faults=[{"kind": "silence", "method": "server/discover"}]
    )
    async with pool_of(tmp_path, shop) as pool:
        assert (await pool.list_tools("shop")).protocol == "2025-11-25"
    seen = {line.method: line.time for line in shop.record.received()}
    assert seen[INITIALIZE] - seen[DISCOVER] < PROBE_TIMEOUT + 5  # s: machines are shared


async def test_one_that_is_only_slow_is_taken_as_what_it_answers_first(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    """It is asked both ways; a modern server answers the first question."""
    shop = fake_mcp(name="shop", tools=[PAY], faults=[{"kind": "slow-start", "seconds": 2.3}])
    async with pool_of(tmp_path, shop) as pool:
        assert (await pool.list_tools("shop")).protocol == "2026-07-28"
        assert b"paid" in await pool.request("shop", "tools/call", b'{"name":"pay"}', timeout=10)


@pytest.mark.parametrize("slow", [False, True])
async def test_one_that_dies_on_discover_is_started_again_once(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    """The end of the first process closed the second one's connection: its listing failed. And one that was
    slow to start, and so asked both ways, was given up."""
    starts: list[Json] = [{"kind": "slow-start", "seconds": 0.6}] if slow else []
    monkeypatch.setattr("mcpzip.transport.handshake.PROBE_TIMEOUT", 0.1 if slow else 60.0)
    shop = fake_mcp(name="shop", tools=[PAY], era="legacy", faults=["strict-handshake", *starts])
    async with pool_of(tmp_path, shop) as pool:
        assert (await pool.list_tools("shop")).protocol == "2025-11-25"
        assert b"paid" in await pool.request("shop", "tools/call", b'{"name":"pay"}', timeout=10)
        assert pool.health("shop").state == "connected"
    assert len(shop.record.events("start")) == 2


@pytest.mark.parametrize(
    ("each", "said"),
    [
        (
            'answer({"supportedVersions": ["2099-01-01"], "capabilities": {}})',
            "only protocol versions 2099-01-01",
        ),
        ('answer({"capabilities": {}})', "only protocol versions we do not know"),
        (
            'refuse() if method == "server/discover" else answer({"protocolVersion": "1999-01-01"})',
            "1999-01-01",
        ),
        ("answer([])", "makes no sense"),
        ("answer(5)", "makes no sense"),
        ("refuse()", "it refused the handshake: “no”"),
        ('answer({"protocolVersion": 5, "supportedVersions": 5})', "makes no sense"),
        ("sys.exit(3)", "it exited with code 3"),
        ('sys.exit("no token, giving up")', "no token, giving up"),
        ("os.close(1)", "it closed its output"),
    ],
)
async def test_a_handshake_that_comes_to_nothing_is_explained(tmp_path: Path, each: str, said: str) -> None:
    async with pool_of(tmp_path, others={"odd": scripted(each)}) as pool:
        with pytest.raises(UpstreamUnavailableError, match=said):
            await pool.list_tools("odd")
        assert said in pool.health("odd").reason
        assert pool.health("odd").state == "failing"


# Remembered


async def test_the_era_is_remembered_on_disk(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], era="legacy")
    async with proxy_of(tmp_path, shop):
        pass
    assert snapshot_of(tmp_path / "config.json")["shop"]["protocol"] == "2025-11-25"
    assert shop.record.methods().count(DISCOVER) == 1
    async with proxy_of(tmp_path, shop):
        pass
    assert shop.record.methods().count(DISCOVER) == 1
    assert shop.record.methods().count(INITIALIZE) == 2


async def test_another_config_of_the_server_forgets_its_era(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], era="legacy")
    async with proxy_of(tmp_path, shop):
        pass
    shop.env["UNRELATED"] = "1"
    async with proxy_of(tmp_path, shop):
        pass
    assert shop.record.methods().count(DISCOVER) == 2


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_server_that_was_updated_is_asked_anew(
    fake_mcp: Fake, tmp_path: Path, transport: str
) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], era="modern", transport=transport)
    async with pool_of(tmp_path, shop, protocols={"shop": "2025-11-25"}) as pool:
        assert (await pool.list_tools("shop")).protocol == "2026-07-28"


async def test_a_server_that_was_set_back_is_initialized(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], era="legacy")
    async with pool_of(tmp_path, shop, protocols={"shop": "2026-07-28"}) as pool:
        assert (await pool.list_tools("shop")).protocol == "2025-11-25"


async def test_what_is_remembered_is_doubted_when_it_fails(fake_mcp: Fake, tmp_path: Path) -> None:
    """A server that ends on `initialize`, remembered as legacy, could never be reached again."""
    shop = fake_mcp(
        name="shop", tools=[PAY], era="modern", faults=[{"kind": "crash", "method": "initialize"}]
    )
    async with pool_of(tmp_path, shop, protocols={"shop": "2025-11-25"}) as pool:
        with pytest.raises(UpstreamUnavailableError):
            await pool.list_tools("shop")
        assert (await pool.list_tools("shop")).protocol == "2026-07-28"


# HTTP


@pytest.mark.parametrize("status", [400, 404, 405, 406, 500, 501])
async def test_any_refusal_of_discover_means_initialize(fake_mcp: Fake, tmp_path: Path, status: int) -> None:
    """A server that answers 500 to what it doesn't know was given up."""
    fault = {"kind": "status", "method": "server/discover", "status": status}
    shop = fake_mcp(name="shop", tools=[PAY], transport="http", era="legacy", faults=[fault])
    async with pool_of(tmp_path, shop) as pool:
        assert (await pool.list_tools("shop")).protocol == "2025-11-25"


async def test_a_sign_in_is_no_question_of_era(fake_mcp: Fake, tmp_path: Path) -> None:
    fault = {"kind": "status", "status": 401}
    shop = fake_mcp(name="shop", tools=[PAY], transport="http", faults=[fault])
    async with pool_of(tmp_path, shop) as pool:
        with pytest.raises(UpstreamUnavailableError, match="401"):
            await pool.list_tools("shop")
    assert shop.record.methods()[0] == DISCOVER
