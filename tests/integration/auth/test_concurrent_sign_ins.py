"""Signing in where several are at it: processes that share a store, connections that share a server."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from helpers.grants import AS_ROBOT, ROBOT, caller, grant_of, kept_at, server_at
from helpers.grants import auth as auth
from helpers.grants import shop as shop
from helpers.grants import store as store
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.oauth.controls import AuthControls
from mcpzip_fakes.oauth.server import FakeAuth
from mcpzip_fakes.pytest_plugin import fake_auth as fake_auth
from msgspec.structs import replace

from mcpzip.auth.login import sign_out
from mcpzip.auth.sign_ins import SignIns
from mcpzip.auth.store import Store
from mcpzip.config.schema import Config
from mcpzip.model.errors import LoginNeededError, UpstreamUnavailableError
from mcpzip.transport.pool import Pool

Start = Callable[..., FakeServer]


@asynccontextmanager
async def pooled(tmp_path: Path, shop: FakeServer, **options: object) -> AsyncIterator[Pool]:
    server = server_at(shop.url)
    sign_ins = SignIns(Config(path=str(tmp_path / "config.json"), servers={"shop": server}))
    pool = Pool([server], sign_ins=sign_ins, **{"idle_timeout": 60.0, **options})  # type: ignore[arg-type]
    try:
        yield pool
    finally:
        await pool.close()


async def call(pool: Pool, tool: str) -> bytes:
    return await pool.request("shop", "tools/call", b'{"name":"%s"}' % tool.encode(), timeout=20)


def too_late(store: Store, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """The first who wants the lock of ``store`` waits in vain; ``meanwhile`` is what its holder does."""
    locked, asked = store.locked, []

    @asynccontextmanager
    async def busy(url: str, timeout: float = 30.0) -> AsyncIterator[None]:
        asked.append(url)
        if len(asked) == 1:
            await meanwhile()  # type: ignore[misc]
            raise TimeoutError
        async with locked(url, timeout):
            yield

    monkeypatch.setattr(store, "locked", busy)


async def test_who_waited_in_vain_overwrites_nothing(
    store: Store, shop: FakeServer, auth: AuthControls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(grant_of(auth, shop.url))
    async with caller(store, shop, auth) as one, caller(kept_at(tmp_path), shop, auth) as other:
        auth.advance(601)
        too_late(store, monkeypatch, other.status)
        await one.status()
        kept = store.load(shop.url)
        assert kept is not None
        assert [kept.refresh_token] == [token.value for token in auth.tokens("refresh") if not token.ended]
        assert await one.status() == 200
    assert len(auth.refreshes()) == 1


async def test_who_waited_in_vain_brings_back_nothing(
    store: Store, shop: FakeServer, auth: AuthControls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(grant_of(auth, shop.url))
    async with caller(store, shop, auth) as one:
        assert await one.status() == 200
        auth.advance(601)
        too_late(store, monkeypatch, lambda: sign_out(one.server, kept_at(tmp_path)))
        assert await one.status() == 401
    assert store.load(shop.url) is None


async def test_processes_do_not_refresh_in_turns_for_a_server_that_refuses_every_token(
    store: Store, shop: FakeServer, auth: AuthControls, tmp_path: Path, fake_auth: Callable[..., FakeAuth]
) -> None:
    store.save(grant_of(auth, shop.url))
    async with caller(store, shop, auth) as one, caller(kept_at(tmp_path), shop, auth) as other:
        assert await one.status() == 200
        shop.trust(fake_auth())
        for _ in range(10):
            assert await one.status() == await other.status() == 401
    assert len(auth.refreshes()) <= 2


async def test_a_refresh_token_is_sent_to_no_other_issuer(
    store: Store, shop: FakeServer, auth: AuthControls, fake_auth: Callable[..., FakeAuth]
) -> None:
    grant = replace(grant_of(auth, shop.url), server_metadata=None, resource_metadata=None)
    store.save(grant)
    elsewhere = fake_auth()
    shop.trust(elsewhere)
    async with caller(store, shop, auth) as client:
        assert await client.status() == 401
        assert client.oauth.failure is not None
        assert client.oauth.failure.needs_login
    assert elsewhere.requests("token") == []


@pytest.mark.parametrize(
    ("status", "error", "over"),
    [(403, "invalid_grant", True), (400, "invalid_client", True), (400, "slow_down", False)],
)
async def test_what_a_refusal_says_decides_and_not_its_status(
    store: Store, shop: FakeServer, auth: AuthControls, status: int, error: str, over: bool
) -> None:
    store.save(grant_of(auth, shop.url))
    auth.advance(601)
    auth.configure(faults=[{"kind": "error", "status": status, "error": error}])
    async with caller(store, shop, auth) as client:
        assert await client.status() == 401
        kept = store.load(shop.url)
        assert kept is not None
        assert (kept.ended, bool(kept.refresh_token)) == (over, not over)


async def test_an_end_after_a_passing_failure_is_an_end(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    store.save(grant_of(auth, shop.url))
    auth.advance(601)
    auth.configure(faults=[{"kind": "status", "status": 503}])
    async with caller(store, shop, auth) as client:
        assert await client.status() == 401
        auth.configure(faults=[])
        auth.revoke_refresh()
        auth.advance(120)
        assert await client.status() == 401
    kept = store.load(shop.url)
    assert kept is not None
    assert kept.ended


async def test_a_machine_asks_once_for_a_scope_that_it_is_not_given(store: Store, fake_mcp: Start) -> None:
    shop = fake_mcp(
        tools=["pay"],
        transport="http",
        oauth={
            "clients": [ROBOT],
            "scopes": ["read", "write"],
            "granted_scopes": ["read"],
            "required_scopes": ["read"],
            "tool_scopes": {"pay": ["write"]},
        },
    )
    assert shop.auth is not None
    async with caller(store, shop, shop.auth, **AS_ROBOT) as machine:
        assert [await machine.status("tools/call", name="pay") for _ in range(8)] == [403] * 8
        assert machine.oauth.failure is not None
        assert "scope" in machine.oauth.failure.reason
    assert len(shop.auth.requests("token")) == 2


async def test_a_scope_that_one_tool_lacks_keeps_nobody_from_the_others(
    store: Store, fake_mcp: Start, tmp_path: Path
) -> None:
    shop = fake_mcp(
        tools=["echo", "pay"],
        transport="http",
        oauth={"scopes": ["read", "write"], "required_scopes": ["read"], "tool_scopes": {"pay": ["write"]}},
    )
    assert shop.auth is not None
    minted = shop.auth.mint(resource=shop.url, scope="read")
    told = {key: minted[key] for key in ("access_token", "refresh_token", "client", "scope")}
    store.save(grant_of(shop.auth, shop.url, **told))
    async with pooled(tmp_path, shop) as pool:
        with pytest.raises(LoginNeededError, match="the scope"):
            await call(pool, "pay")
        assert pool.health("shop").state == "connected"
        for connection in pool._states["shop"].connections():
            await connection.close()
        assert await call(pool, "echo")


async def test_a_login_that_an_open_handshake_hid_is_noticed(
    store: Store, fake_mcp: Start, tmp_path: Path
) -> None:
    opened = ["initialize", "notifications/initialized", "server/discover", "ping"]
    shop = fake_mcp(tools=["echo"], transport="http", oauth={"open_methods": opened})
    assert shop.auth is not None
    signed_in = asyncio.Event()
    async with pooled(tmp_path, shop, on_list_changed=lambda *_: signed_in.set()) as pool:
        with pytest.raises(LoginNeededError):
            await pool.list_tools("shop")
        assert pool.health("shop").state == "needs login"
        store.save(grant_of(shop.auth, shop.url))
        await asyncio.wait_for(signed_in.wait(), 20)
        assert len((await pool.list_tools("shop")).tools) == 1
        assert pool.health("shop").state == "connected"


async def test_a_login_ends_the_wait_for_a_server_that_failed(
    store: Store, shop: FakeServer, auth: AuthControls, tmp_path: Path
) -> None:
    store.save(grant_of(auth, shop.url, expires_at=time.time() - 5))
    auth.configure(faults=[{"kind": "status", "status": 503}])
    auth.advance(700)
    async with pooled(tmp_path, shop) as pool:
        with pytest.raises(UpstreamUnavailableError):
            await call(pool, "echo")
        pool._states["shop"].circuit.retry_at = time.monotonic() + 60
        with pytest.raises(UpstreamUnavailableError, match="tried again in"):
            await call(pool, "echo")
        auth.configure(faults=[])
        store.save(grant_of(auth, shop.url, expires_at=time.time() + 600))
        assert await call(pool, "echo")


async def test_a_good_bye_renews_nothing(store: Store, fake_mcp: Start, tmp_path: Path) -> None:
    shop = fake_mcp(tools=["echo"], transport="http", era="legacy", oauth={"access_seconds": 600})
    assert shop.auth is not None
    store.save(grant_of(shop.auth, shop.url, expires_at=None))
    async with pooled(tmp_path, shop) as pool:
        assert await call(pool, "echo")
        shop.auth.advance(700)
    assert shop.auth.refreshes() == []
