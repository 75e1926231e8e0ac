"""A token that is no longer any good, and what becomes of it without a person."""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from helpers.driver import until
from helpers.grants import AS_ROBOT, ROBOT, caller, grant_of, kept_at
from helpers.grants import auth as auth
from helpers.grants import shop as shop
from helpers.grants import store as store
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.oauth.controls import AuthControls
from mcpzip_fakes.pytest_plugin import fake_auth as fake_auth

from mcpzip.auth.store import Store

Start = Callable[..., FakeServer]


async def test_an_expired_token_costs_one_refresh_and_no_refusal(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    store.save(grant_of(auth, shop.url))
    auth.advance(601)
    async with caller(store, shop, auth) as client:
        assert [await client.status() for _ in range(3)] == [200, 200, 200]
        assert client.oauth.failure is None
    assert len(auth.refreshes()) == 1
    assert auth.requests("authorize") == []
    assert all(not event.detail["refused"] for event in shop.record.events("bearer"))


async def test_five_calls_on_a_revoked_token_cost_one_refresh(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    store.save(grant_of(auth, shop.url))
    async with caller(store, shop, auth) as client:
        assert await client.status() == 200
        auth.revoke_access()
        assert await asyncio.gather(*(client.status() for _ in range(5))) == [200] * 5
        auth.revoke_access()  # a second time: what was renewed had been accepted
        assert await client.status() == 200
    assert len(auth.refreshes()) == 2


async def test_two_processes_refresh_once(shop: FakeServer, auth: AuthControls, tmp_path: Path) -> None:
    first, second = kept_at(tmp_path), kept_at(tmp_path)
    first.save(grant_of(auth, shop.url))
    async with caller(first, shop, auth) as one, caller(second, shop, auth) as other:
        assert [await one.status(), await other.status()] == [200, 200]
        auth.revoke_access()
        assert await asyncio.gather(one.status(), other.status(), one.status()) == [200] * 3
    assert len(auth.refreshes()) == 1
    assert [token for token in auth.tokens("refresh") if not token.ended]


async def test_a_refusal_for_good_is_told_once(store: Store, shop: FakeServer, auth: AuthControls) -> None:
    store.save(grant_of(auth, shop.url))
    auth.advance(601)
    auth.revoke_refresh()
    async with caller(store, shop, auth) as client:
        for _ in range(60):
            assert await client.status() == 401
            auth.advance(5)
        assert client.oauth.failure is not None
        assert client.oauth.failure.needs_login
        assert "the sign-in has ended" in client.oauth.failure.reason
    assert len(auth.requests("token")) == 1
    assert auth.requests("authorize") == []
    kept = store.load(shop.url)
    assert kept is not None
    assert kept.ended
    assert not kept.refresh_token


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "status", "status": 503},
        {"kind": "status", "status": 429},
        {"kind": "error", "error": "temporarily_unavailable"},
        {"kind": "garbage"},
    ],
    ids=lambda fault: str(fault.get("status") or fault.get("error") or fault["kind"]),
)
async def test_a_failing_token_endpoint_is_asked_once_a_minute_at_most(
    store: Store, shop: FakeServer, auth: AuthControls, fault: dict[str, object]
) -> None:
    store.save(grant_of(auth, shop.url))
    auth.advance(601)
    auth.configure(faults=[fault])
    async with caller(store, shop, auth) as client:
        for _ in range(60):
            assert await client.status() == 401
            auth.advance(5)
        assert client.oauth.failure is not None
        assert not client.oauth.failure.needs_login
        asked = [request.clock for request in auth.requests("token")]
        assert 2 <= len(asked) <= 5
        assert all(later - earlier >= 60 for earlier, later in pairwise(asked))
        auth.configure(faults=[])
        auth.advance(901)
        assert await client.status() == 200  # it was never given up


async def test_what_a_server_asks_to_wait_is_waited_by_everybody(
    shop: FakeServer, auth: AuthControls, tmp_path: Path
) -> None:
    kept_at(tmp_path).save(grant_of(auth, shop.url))
    auth.advance(601)
    auth.configure(faults=[{"kind": "status", "status": 429, "retry_after": 200, "times": 1}])
    async with caller(kept_at(tmp_path), shop, auth) as one, caller(kept_at(tmp_path), shop, auth) as other:
        assert await one.status() == 401
        auth.advance(150)
        assert await other.status() == 401
        assert other.oauth.failure is not None
        assert re.search(r"tried again in (4\d|50) s", other.oauth.failure.reason)
        auth.advance(51)
        assert await other.status() == 200
        assert await one.status() == 200
    assert len(auth.requests("token")) == 2


async def test_a_caller_who_gives_up_takes_no_token_with_him(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    store.save(grant_of(auth, shop.url))
    auth.advance(601)
    auth.configure(faults=[{"kind": "slow", "seconds": 0.5}])
    async with caller(store, shop, auth) as client:
        waiting = asyncio.create_task(client.status())
        await asyncio.to_thread(until, lambda: auth.requests("token"))
        waiting.cancel()
        assert await client.status() == 200
    assert len(auth.refreshes()) == 1


async def test_whoever_signs_in_meanwhile_is_noticed(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    async with caller(store, shop, auth) as client:
        assert await client.status() == 401
        assert client.oauth.failure is not None
        assert client.oauth.failure.needs_login
        store.save(grant_of(auth, shop.url))
        assert await client.status() == 200
        store.remove(shop.url)
        assert await client.status() == 401
    assert auth.requests("token") == auth.requests("register") == auth.requests("authorize") == []


async def test_a_token_without_a_refresh_token_ends(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    store.save(grant_of(auth, shop.url, refresh_token=""))
    auth.revoke_access()
    async with caller(store, shop, auth) as client:
        assert await client.status() == 401
        assert client.oauth.failure is not None
        assert "no refresh token" in client.oauth.failure.reason
    assert auth.requests("token") == []


async def test_a_server_that_refuses_whatever_it_is_shown_is_not_asked_for_ever(
    store: Store, shop: FakeServer, auth: AuthControls, fake_mcp: Start
) -> None:
    store.save(grant_of(auth, shop.url))
    auth.configure(required_scopes=["what nobody grants"])
    async with caller(store, shop, auth) as client:
        for _ in range(5):
            await client.status()
    assert len(auth.requests("token")) <= 1


async def test_a_machine_signs_in_by_itself(store: Store, fake_mcp: Start) -> None:
    shop = fake_mcp(
        tools=["echo"],
        transport="http",
        oauth={"clients": [ROBOT], "access_seconds": 600},
    )
    assert shop.auth is not None
    async with caller(store, shop, shop.auth, **AS_ROBOT) as machine:
        assert await asyncio.gather(*(machine.status() for _ in range(4))) == [200] * 4
        assert len(shop.auth.requests("token")) == 1
        shop.auth.advance(601)
        assert await asyncio.gather(*(machine.status() for _ in range(4))) == [200] * 4
    assert len(shop.auth.requests("token")) == 2


async def test_a_call_that_takes_long_holds_up_no_other(store: Store, fake_mcp: Start) -> None:
    shop = fake_mcp(
        tools=["echo"],
        transport="http",
        oauth={"access_seconds": 600},
        faults=[{"kind": "hang", "method": "tools/list", "times": 1}],
    )
    assert shop.auth is not None
    store.save(grant_of(shop.auth, shop.url))
    async with caller(store, shop, shop.auth) as client:
        hanging = asyncio.create_task(client.status())
        await asyncio.to_thread(until, lambda: shop.record.methods())
        assert await client.status() == 200
        assert not hanging.done()
        hanging.cancel()


async def test_what_mcp_remote_holds_is_renewed_under_our_own_store(
    store: Store, shop: FakeServer, auth: AuthControls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_REMOTE_CONFIG_DIR", str(tmp_path / "remote"))
    minted = auth.mint(resource=shop.url)
    folder = tmp_path / "remote" / "mcp-remote-0.1.37"
    folder.mkdir(parents=True)
    stem = hashlib.md5(shop.url.encode()).hexdigest()
    tokens = {key: minted[key] for key in ("access_token", "refresh_token")}
    theirs = {
        folder / f"{stem}_tokens.json": {**tokens, "token_type": "Bearer", "expires_in": 600},
        folder / f"{stem}_client_info.json": minted["client"],
    }
    for path, said in theirs.items():
        path.write_text(json.dumps(said))
    async with caller(store, shop, auth) as client:
        assert await client.status() == 200
        assert auth.refreshes() == []
        auth.revoke_access()
        assert await client.status() == 200
    assert len(auth.refreshes()) == 1
    kept = store.load(shop.url)
    assert kept is not None
    assert kept.access_token not in ("", minted["access_token"])
    assert {path: json.loads(path.read_text()) for path in theirs} == theirs


async def test_a_secret_is_shown_to_the_issuer_of_the_config_only(store: Store, fake_mcp: Start) -> None:
    shop = fake_mcp(
        tools=["pay"],
        transport="http",
        oauth={"clients": [ROBOT]},
    )
    assert shop.auth is not None
    async with caller(store, shop, shop.auth, **AS_ROBOT, issuer="https://as.example") as machine:
        assert await machine.status() == 401
        assert machine.oauth.failure is not None
        assert f"it names {shop.auth.issuer} as its authorization server" in machine.oauth.failure.reason
    assert shop.auth.requests("token") == []
    store.remove(shop.url)
    async with caller(store, shop, shop.auth, **AS_ROBOT, issuer=shop.auth.issuer) as machine:
        assert await machine.status() == 200


async def test_a_machine_has_a_wider_scope_granted_by_itself(store: Store, fake_mcp: Start) -> None:
    shop = fake_mcp(
        tools=["pay"],
        transport="http",
        oauth={
            "clients": [ROBOT],
            "scopes": ["read", "write"],
            "required_scopes": ["read"],
            "tool_scopes": {"pay": ["write"]},
        },
    )
    assert shop.auth is not None
    async with caller(store, shop, shop.auth, **AS_ROBOT) as machine:
        assert await machine.status() == 200
        assert await machine.status("tools/call", name="pay") == 200
    asked = [request.fields.get("scope") for request in shop.auth.requests("token")]
    assert asked == ["read", "read write"]


async def test_a_machine_never_has_more_than_the_scope_of_its_config(store: Store, fake_mcp: Start) -> None:
    """A server could say that any scope is lacking, and the machine's credentials had it granted."""
    shop = fake_mcp(
        tools=["pay"],
        transport="http",
        oauth={
            "clients": [ROBOT],
            "scopes": ["read", "write"],
            "required_scopes": ["write"],
            "tool_scopes": {"pay": ["write"]},
        },
    )
    assert shop.auth is not None
    async with caller(store, shop, shop.auth, **AS_ROBOT, scope="read") as machine:
        assert await machine.status("tools/call", name="pay") in (401, 403)
        assert machine.oauth.failure is not None
    asked = {request.fields.get("scope") for request in shop.auth.requests("token")}
    assert asked == {"read"}
