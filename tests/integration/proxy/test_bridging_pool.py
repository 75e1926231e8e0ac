"""Connections to upstreams while clients of both eras come and go: whose they are, what is watched on them,
and that nothing stays that was kept for a client.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from helpers.bridging import SAMPLE, WAIT, Bridge, Wire, bridged, text_of
from helpers.driver import PATIENCE, Json, alive, comes_true, pool_of, proxy_of
from helpers.raw_http_client import Connection, SessionOf, Web, message

from mcpzip.transport import pool as pools
from mcpzip.transport import subscription
from mcpzip.transport.base import NOBODY

URI, OTHER, BAD = "plan://ask", "plan://gone", "plan://bad"
LEGACY_CALL: Json = {"arguments": {}}


def shown(uri: str) -> str:
    return f"mcpzip://up/{uri}"


def pids(bridge: Bridge) -> list[int]:
    return [line["started"] for line in bridge.lines() if "started" in line]


def living(bridge: Bridge) -> int:
    return sum(map(alive, pids(bridge)))


def kept(bridge: Bridge) -> Json:
    """What is kept for clients."""
    proxy = bridge.proxy
    pipeline, notifier = proxy._pipeline, proxy.notifier
    return {
        "bindings": len(pipeline.bindings._of),
        "parked": len(pipeline.parked),
        "clients": len(notifier._clients),
        "own": len(notifier._own),
        "subscriptions": len(notifier._subscriptions),
        "lines": sum(place[1] is not None for slot in proxy._pool._states.values() for place in slot.entries),
    }


NOTHING = dict.fromkeys(("bindings", "parked", "clients", "own", "subscriptions", "lines"), 0)


async def subscribe(client: Wire | SessionOf, uri: str, verb: str = "subscribe") -> Json:
    params = {"uri": shown(uri)}
    if isinstance(client, Wire):
        return await client.ask(f"resources/{verb}", params)
    return (await client.ask("POST", message(f"resources/{verb}", params, 7))).last


async def updated(stream: Connection) -> Json:
    """The params of the next `notifications/resources/updated`."""
    while event := await stream.event():
        if event["method"] == "notifications/resources/updated":
            params: Json = event["params"]
            return params
    raise AssertionError("the stream ended")


@asynccontextmanager
async def two_sessions(
    bridge: Bridge, first: Json, second: Json
) -> AsyncIterator[tuple[SessionOf, SessionOf]]:
    async with bridge.web() as web:
        sessions = await web.session(capabilities=first), await web.session(capabilities=second)
        yield sessions
        for session in sessions:
            await session.ask("DELETE")


# Sessions end


async def test_nothing_is_kept_of_a_session_that_ended(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        bridge.has_asked()
        async with bridge.web() as web:
            session = await web.session(capabilities={"sampling": {}})
            await session.call("up__run", 3, arguments={})
            assert "result" in await subscribe(session, URI)
            assert kept(bridge)["lines"] == 1
            assert living(bridge) == 2
            assert (await session.ask("DELETE")).status == 200
            await comes_true(lambda: kept(bridge) == NOTHING)
            await comes_true(lambda: living(bridge) == 1)
        assert kept(bridge) == NOTHING


async def test_a_session_that_ends_while_its_connection_opens(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge, bridge.web() as web:
        bridge.has_asked()
        session = await web.session(capabilities={"sampling": {}})
        async with session.calling("up__look", 3, arguments={"do": [["hang"]]}):
            await comes_true(lambda: len(bridge.proxy._pool._states["up"].entries) == 2)
            assert (await session.ask("DELETE")).status == 200
        await comes_true(lambda: kept(bridge) == NOTHING)
        await comes_true(lambda: living(bridge) == 1)
        assert bridge.starts() <= 2


async def test_a_connection_that_was_lost_is_not_opened_again_for_who_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was, and stayed open for ever: what had been subscribed to was still remembered."""
    monkeypatch.setattr(pools, "REOPEN", 3.0)
    async with bridged(tmp_path) as bridge, bridge.web() as web:
        bridge.has_asked()
        session = await web.session(capabilities={"sampling": {}})
        await subscribe(session, URI)
        os.kill(pids(bridge)[-1], 9)
        await comes_true(lambda: not bridge.proxy._pool._states["up"].connections()[1:])
        await session.ask("DELETE")
        await comes_true(lambda: not bridge.proxy._pool._background)
        assert bridge.starts() == 2
        assert kept(bridge) == NOTHING


# Who watches


async def test_a_watcher_is_subscribed_anew_when_its_connection_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "REOPEN", 0.01)
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy(sampling={})
        for uri in (URI, OTHER):
            assert "result" in await subscribe(wire, uri)
        assert "result" in await subscribe(wire, OTHER, "unsubscribe")
        os.kill(pids(bridge)[-1], 9)
        assert await bridge.gets("resources/subscribe", 3) == [{"uri": URI}, {"uri": OTHER}, {"uri": URI}]


async def test_sessions_that_share_a_connection_share_its_subscription(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "REOPEN", 0.01)
    async with bridged(tmp_path) as bridge, two_sessions(bridge, {}, {}) as (one, other):
        for session in (one, other):
            assert "result" in await subscribe(session, URI)
        assert len(bridge.got("resources/subscribe")) == 1
        os.kill(pids(bridge)[0], 9)
        await bridge.gets("resources/subscribe", 2)
        await subscribe(one, URI, "unsubscribe")
        await other.call("up__run", arguments={})
        assert bridge.got("resources/unsubscribe") == []
        await other.ask("DELETE")
        await bridge.gets("resources/unsubscribe")


async def test_nobody_is_subscribed_on_somebody_elses_connection(tmp_path: Path) -> None:
    """It was whichever was open: only its client heard of it, and with it the subscription went."""
    async with bridged(tmp_path, idle_timeout_minutes=0.15 / 60) as bridge:
        able = await bridge.legacy(sampling={})
        working = able.send_call([SAMPLE, WAIT])  # which keeps its connection
        async with two_sessions(bridge, {}, {}) as (plain, _):
            await able.asked("sampling/createMessage")  # it is there
            await comes_true(lambda: len(bridge.proxy._pool._states["up"].entries) == 1)
            assert "result" in await subscribe(plain, URI)
            assert len(bridge.proxy._pool._states["up"].connections()) == 2
            do = [["say", "notifications/resources/updated", {"uri": URI}]]
            async with plain.listening() as stream:
                await plain.call("up__run", arguments={"do": do})
                assert await updated(stream) == {"uri": shown(URI)}
        able.cancel(working)


async def test_a_resource_that_is_refused_spoils_no_other_subscription(tmp_path: Path) -> None:
    """It counted as subscribed to: the next to subscribe to anything was told of its end, an error."""
    async with bridged(tmp_path) as bridge, two_sessions(bridge, {}, {}) as (one, other):
        assert (await subscribe(one, BAD))["error"]["message"] == "never heard of it"
        assert "result" in await subscribe(other, URI)
        assert bridge.got("resources/unsubscribe") == []
        assert kept(bridge)["own"] == 0
        assert bridge.proxy._pool._states["up"].subscriptions == {URI}


async def test_a_modern_upstream_that_refuses_one_resource_tells_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was listened to no more: neither of resources nor of lists anything was heard again."""
    monkeypatch.setattr(subscription, "_ACKNOWLEDGE_TIMEOUT", 60.0)
    async with bridged(tmp_path, "modern") as bridge, two_sessions(bridge, {}, {}) as (one, other):
        assert "result" in await subscribe(one, URI)
        async with asyncio.timeout(PATIENCE):
            assert (await subscribe(one, BAD))["error"]["message"] == "never heard of it"
            assert "result" in await subscribe(other, OTHER)
        await comes_true(lambda: heard_of(bridge) == [[URI, OTHER]])


def heard_of(bridge: Bridge) -> list[list[str]]:
    """The resources of each subscription that stands."""
    ended = {params["requestId"] for params in bridge.got("notifications/cancelled")}
    listens = [line for line in bridge.lines() if line.get("method") == "subscriptions/listen"]
    wanted = [line["params"]["notifications"] for line in listens if line["id"] not in ended]
    resources = [one["resourceSubscriptions"] for one in wanted if "resourceSubscriptions" in one]
    return [uris for uris in resources if BAD not in uris]


async def test_one_that_listens_to_what_is_refused_spoils_no_other_subscription(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "_ACKNOWLEDGE_TIMEOUT", 60.0)
    async with bridged(tmp_path, "modern") as bridge:
        modern, legacy = bridge.modern(), await bridge.legacy()
        wanted = {"notifications": {"resourceSubscriptions": [shown(BAD), shown(URI)]}}
        number = modern.send("subscriptions/listen", wanted)
        await modern.hears(lambda one: one.get("method") == "notifications/subscriptions/acknowledged")
        async with asyncio.timeout(PATIENCE):
            assert "result" in await subscribe(legacy, OTHER)
        await comes_true(lambda: heard_of(bridge) == [[URI, OTHER]])
        modern.cancel(number)
        await comes_true(lambda: heard_of(bridge) == [[OTHER]])
        assert kept(bridge)["subscriptions"] == 0


async def test_a_client_is_told_once_though_it_is_heard_of_twice(tmp_path: Path) -> None:
    """One with a connection of its own heard of others' subscriptions, too."""
    async with bridged(tmp_path) as bridge, two_sessions(bridge, {"sampling": {}}, {}) as (own, shared):
        bridge.has_asked()
        for session in (own, shared):
            await subscribe(session, URI)
        do = [["say", "notifications/resources/updated", {"uri": URI}]]
        async with own.listening() as stream, shared.listening() as other:
            await shared.call("up__run", arguments={"do": do})
            assert await updated(other) == {"uri": shown(URI)}
            marked = [["say", "notifications/resources/updated", {"uri": URI, "x": 1}]]
            await own.call("up__run", arguments={"do": marked})
            assert await updated(stream) == {"uri": shown(URI), "x": 1}


async def test_one_that_shared_and_has_a_connection_of_its_own_now_can_end_what_it_watched(
    tmp_path: Path,
) -> None:
    async with bridged(tmp_path) as bridge, bridge.web() as web:
        session = await web.session()
        await subscribe(session, URI)
        await session.ask("POST", message("logging/setLevel", {"level": "error"}, 4))
        assert "result" in await subscribe(session, URI, "unsubscribe")
        assert bridge.got("resources/unsubscribe") == [{"uri": URI}]
        assert bridge.starts() == 1


async def test_a_connection_that_is_watched_is_not_idle(tmp_path: Path) -> None:
    async with bridged(tmp_path, idle_timeout_minutes=0.15 / 60) as bridge:
        wire = await bridge.legacy(sampling={})
        await subscribe(wire, URI)
        first = pids(bridge)
        await comes_true(lambda: living(bridge) == 1)  # the one that listed is closed
        other = await bridge.legacy(sampling={})
        await subscribe(other, URI)
        assert living(bridge) == 2
        await subscribe(other, URI, "unsubscribe")
        await comes_true(lambda: living(bridge) == 1)  # unused as long as the first, or shorter
        assert alive(first[-1])
        await subscribe(wire, URI, "unsubscribe")
        await comes_true(lambda: living(bridge) == 0)


# Eras


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_clients_of_both_eras_are_served_by_an_upstream_of_one(tmp_path: Path, era: str) -> None:
    async with bridged(tmp_path, era) as bridge, bridge.web() as web:
        wire, legacy = bridge.modern(), await bridge.legacy()
        session = await web.session()
        answers = await asyncio.gather(
            wire.call({}), legacy.call({}), session.call("up__run", arguments={}), modern(web)
        )
        assert all("result" in (one if isinstance(one, dict) else one.last) for one in answers)
        spoken = {"_meta" in params for params in bridge.got("tools/call")}
        assert spoken == {era == "modern"}


async def modern(web: Web) -> object:
    return await web.modern("tools/call", {"name": "up__run", "arguments": {}})


async def test_an_upstream_of_both_eras_speaks_to_each_client_in_its_own(
    fake_mcp: object, tmp_path: Path
) -> None:
    shop = fake_mcp(name="up", era="both", tools=["run"])  # type: ignore[operator]
    async with proxy_of(tmp_path, shop, expose="direct") as proxy:
        bridge = Bridge(tmp_path, proxy)
        async with bridge.web() as web:
            session = await web.session()
            for _ in range(2):
                await asyncio.gather(session.call("up__run", arguments={}), modern(web))
        calls = [one.message for one in shop.record.received() if one.message.get("method") == "tools/call"]
        eras = [
            "io.modelcontextprotocol/protocolVersion" in call["params"].get("_meta", {}) for call in calls
        ]
        assert sorted(eras) == [False, False, True, True]
        assert len(shop.record.events("start")) == 2


# Connections come and go


async def test_a_connection_that_only_listed_is_kept_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was kept as long as one that is used."""
    monkeypatch.setattr(pools, "LINGER", 0.2)
    async with bridged(tmp_path) as bridge:
        await comes_true(lambda: living(bridge) == 0 and not bridge.proxy._pool._states["up"].entries)


async def test_a_connection_of_no_more_use_is_replaced_where_it_is_watched(
    fake_mcp: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that a request had found unusable was kept for its watchers, though nothing came on it."""
    monkeypatch.setattr(pools, "REOPEN", 0.01)
    faults = [{"kind": "status", "status": 401, "method": "tools/call", "times": 2}]
    shop = fake_mcp(  # type: ignore[operator]
        name="up",
        era="legacy",
        transport="http",
        tools=["run"],
        resources=[{"uri": URI, "name": "r", "text": "x"}],
        faults=faults,
    )
    async with pool_of(tmp_path, shop) as pool:
        assert await pool.set_subscriptions("up", [URI], NOBODY) == {}
        first = pool._states["up"].connections()
        with pytest.raises(Exception, match="401"):
            await pool.request("up", "tools/call", b'{"name":"run"}', timeout=5)
        await comes_true(lambda: shop.record.methods().count("resources/subscribe") >= 2)
        assert pool._states["up"].connections() != first
        await comes_true(lambda: not pool._closing)


async def test_forgetting_and_closing_at_once_leaves_nothing(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy(sampling={})
        wire.send_call([SAMPLE, WAIT])
        await comes_true(lambda: len(bridge.proxy._pool._states["up"].entries) == 2)
        await bridge.endpoint.left(wire.session.client)
        await bridge.proxy.close()
        assert living(bridge) == 0
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_many_clients_come_and_go_and_the_answers_are_right(tmp_path: Path) -> None:
    async with bridged(tmp_path, "legacy", "modern") as bridge, bridge.web() as web:
        bridge.has_asked()

        async def one(number: int) -> None:
            session = await web.session(capabilities={"roots": {}} if number % 2 else {})
            name = "up2__run" if number % 3 == 0 else "up__run"
            assert "result" in (await session.call(name, number, arguments={})).last
            if number % 2 == 0:
                await subscribe(session, URI)
            await session.ask("DELETE")

        await asyncio.gather(*map(one, range(12)))
        assert kept(bridge) == NOTHING
        assert bridge.proxy._pool._states["up"].subscriptions == frozenset()
        assert text_of((await web.modern("tools/call", {"name": "up__run", "arguments": {}})).last) == {}
        assert json.dumps(bridge.got("resources/subscribe")).count(URI) >= 1
        assert (await bridge.proxy._pool.list_tools("up", origin=NOBODY)).tools
