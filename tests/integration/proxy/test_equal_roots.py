"""Servers that ask for roots: clients with equal roots share a process, and no client's roots are told for
another.
"""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from helpers.bridging import SAMPLE, WAIT, Bridge, Wire, bridged, log, text_of
from helpers.driver import Json, alive, comes_true

from mcpzip.proxy import client_roots
from mcpzip.proxy.shared_binding import RootsBinding, SharedBinding

LIST, CHANGED = "roots/list", "notifications/roots/list_changed"
WHERE: list[object] = [["ask", "q", LIST], WAIT]
NUMBERS = itertools.count()
ANNOUNCED: Json = {"roots": {"listChanged": True}}


def roots(*names: str) -> Json:
    return {"roots": [{"uri": f"file:///{name}", "name": name} for name in names]}


async def client(bridge: Bridge, *names: str, **capabilities: Any) -> Wire:
    """One with these roots, which says when they change; or, without, one without roots."""
    has = {**(ANNOUNCED if names else {}), **capabilities}
    wire = await bridge.legacy(is_only_client=False, **has)
    if names:
        wire.says[LIST] = roots(*names)
    return wire


def learns(bridge: Bridge, method: str = LIST) -> None:
    """The upstream is known to ask this."""
    bridge.proxy._pipeline.bindings.asked("up", method, None)


async def told(wire: Wire) -> Any:
    """The roots that the upstream is told in a call of ``wire``."""
    question = f"q{next(NUMBERS)}"
    return text_of(await wire.call([["ask", question, LIST], WAIT]))[question]


def asked(wire: Wire) -> int:
    """How often ``wire`` was asked for its roots."""
    return sum(one.get("method") == LIST for one in wire.heard)


def living(bridge: Bridge) -> int:
    return sum(alive(line["started"]) for line in bridge.lines() if "started" in line)


def declared(bridge: Bridge) -> list[Json]:
    """The capabilities that each process but the first, which listed, was told."""
    return [greeting["capabilities"] for greeting in bridge.got("initialize")][1:]


async def test_clients_with_equal_roots_share_a_process(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        learns(bridge)
        equal = [await client(bridge, "a", "b") for _ in range(3)]
        other, none = await client(bridge, "b", "a"), [await client(bridge) for _ in range(2)]
        said = await asyncio.gather(*(told(wire) for wire in (*equal, other)))
        assert said == [roots("a", "b")] * 3 + [roots("b", "a")]
        assert [asked(wire) for wire in (*equal, other)] == [1] * 4  # not once for each call
        assert await asyncio.gather(*(told(wire) for wire in equal)) == [roots("a", "b")] * 3
        assert declared(bridge) == [ANNOUNCED] * 2
        for wire in none:
            assert "error" in (await told(wire))
        assert bridge.starts() == 3  # the clients without roots use the process that listed
        assert not any(map(asked, none))


async def test_before_it_asks_all_share_one_process_and_then_it_ends(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        one, same, other = [await client(bridge, name) for name in "aab"]
        none = await client(bridge)
        for wire in (none, one, same, other, none):
            await wire.call([])
        assert declared(bridge) == [ANNOUNCED]
        first, shared = [line["started"] for line in bridge.lines() if "started" in line]
        await comes_true(lambda: not alive(first))  # in which nobody had roots
        assert await told(one) == roots("a")
        assert [await told(wire) for wire in (one, same, other)] == [roots(name) for name in "aab"]
        await none.call([])
        assert bridge.starts() == 5
        await comes_true(lambda: not alive(shared))
        assert asked(none) == 0


async def test_a_server_is_told_of_roots_only_if_a_client_has_some(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        able, plain = await client(bridge, sampling={}), await client(bridge)
        for wire in (able, plain):
            await wire.call([])
        assert declared(bridge) == [{"sampling": {}}]
        has = await client(bridge, "a", sampling={})
        for wire in (has, able, plain):
            await wire.call([])
        assert declared(bridge) == [{"sampling": {}}, {"sampling": {}, **ANNOUNCED}]
        await bridge.endpoint.left(has.session.client)
        for wire in (able, plain):
            await wire.call([])  # it goes on with what there is
        assert len(declared(bridge)) == 2
        for wire in (able, plain):
            await bridge.endpoint.left(wire.session.client)
        await (await client(bridge, sampling={})).call([])
        assert declared(bridge)[2:] in ([], [{"sampling": {}}])


async def test_who_has_no_roots_is_not_asked_and_the_others_neither(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        none, one = await client(bridge), await client(bridge, "a")
        await one.call([])
        assert "does not offer" in json.dumps(await told(none))
        assert asked(none) == asked(one) == 0
        await none.call([])
        assert declared(bridge)[1:] in ([], [{}])  # that which listed may not have ended yet


async def test_a_question_that_could_be_for_two_tells_no_roots(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        one, other = await client(bridge, "a"), await client(bridge, "b")
        waiting = one.send_call([["hang"]])
        await bridge.gets("tools/call", 1)
        assert "Several clients" in json.dumps(await told(other))
        assert asked(one) == asked(other) == 0
        assert await told(other) == roots("b")
        one.cancel(waiting)
        assert await told(one) == roots("a")


async def test_a_server_that_asks_something_else_too_is_not_shared(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        learns(bridge)
        able = [await client(bridge, "a", sampling={}) for _ in range(2)]
        plain = await client(bridge, "a")
        for wire in (*able, plain):
            assert await told(wire) == roots("a")
        assert declared(bridge) == [{"sampling": {}, **ANNOUNCED}, ANNOUNCED]
        learns(bridge, "sampling/createMessage")
        for wire in (*able, plain):
            assert await told(wire) == roots("a")
        assert declared(bridge)[2:] == [{"sampling": {}, **ANNOUNCED}] * 2


# Roots that change


async def test_the_only_one_with_its_roots_keeps_its_process_when_they_change(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        learns(bridge)
        one = await client(bridge, "a")
        assert await told(one) == roots("a")
        one.says[LIST] = roots("b")
        one.write({"method": CHANGED})
        assert await told(one) == roots("b")
        await bridge.gets(CHANGED)
        assert bridge.starts() == 2
        later = await client(bridge, "a")
        assert await told(later) == roots("a")
        assert bridge.starts() == 3


async def test_one_of_several_moves_when_its_roots_change(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        learns(bridge)
        one, same, other = [await client(bridge, name) for name in "aab"]
        for wire in (one, same, other):
            await wire.call([])
        starts = bridge.starts()
        one.says[LIST] = roots("b")
        one.write({"method": CHANGED})
        assert await told(one) == roots("b")
        assert await told(same) == roots("a")
        assert bridge.starts() == starts == 3
        assert bridge.got(CHANGED) == []
        assert asked(same) == asked(other) == 1
        one.says[LIST] = roots("c")
        one.write({"method": CHANGED})
        assert [await told(wire) for wire in (one, same, other)] == [roots(name) for name in "cab"]
        assert bridge.starts() == 4
        one.write({"method": CHANGED})  # they are the same
        assert await bridge.gets(CHANGED) == [None]
        assert await told(one) == roots("c")


async def test_a_server_that_never_asked_is_told_that_roots_have_changed(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        one, other = await client(bridge, "a"), await client(bridge, "b")
        for wire in (one, other):
            await wire.call([])
        one.write({"method": CHANGED})
        await bridge.gets(CHANGED)
        await comes_true(lambda: bridge.proxy._sharing._known.get("up"))
        assert asked(one) == asked(other) == 0  # it could have been for either
        assert [await told(wire) for wire in (one, other)] == [roots("a"), roots("b")]


async def test_a_call_under_way_keeps_its_roots(tmp_path: Path) -> None:
    goes_on = tmp_path / "goes on"
    async with bridged(tmp_path) as bridge:
        learns(bridge)
        one = await client(bridge, "a")
        number = one.send_call([["await", str(goes_on)], *WHERE])
        await bridge.gets("tools/call")
        one.says[LIST] = roots("b")
        one.write({"method": CHANGED})
        later = one.send_call(WHERE)
        await comes_true(lambda: asked(one) == 2)
        goes_on.touch()
        assert text_of(await one.answer(number))["q"] == roots("a")
        assert text_of(await one.answer(later))["q"] == roots("b")
        assert bridge.starts() == 3


async def test_one_that_does_not_say_when_they_change_is_asked_each_time(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        learns(bridge)
        one, same = [await client(bridge, "a", roots={}) for _ in range(2)]
        for wire in (one, same):
            assert await told(wire) == roots("a")
        assert declared(bridge) == [{"roots": {}}]
        one.says[LIST] = roots("b")
        assert "have changed" in json.dumps(await told(one))
        assert [await told(wire) for wire in (one, same)] == [roots("b"), roots("a")]
        one.says[LIST] = roots("c")
        assert await told(one) == roots("c")  # nobody else has its process
        assert bridge.starts() == 3


# Clients that don't say


@pytest.mark.parametrize("answer", ["silence", "error", "junk", "too long"])
async def test_one_that_does_not_say_what_its_roots_are_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(client_roots, "ROOTS_TIMEOUT", 0.1 if answer == "silence" else 20.0)
    junk = {"junk": {"roots": {}}, "too long": roots("a" * 70_000)}
    async with bridged(tmp_path) as bridge:
        learns(bridge)
        two = [await client(bridge, "a") for _ in range(2)]
        for wire in two:
            wire.says.pop(LIST)
            if answer in junk:
                wire.says[LIST] = junk[answer]
            number = wire.send_call([])
            if answer == "error":
                question = await wire.asked(LIST)
                wire.write({"id": question["id"], "error": {"code": -32603, "message": "no"}})
            assert text_of(await wire.answer(number)) == {}
        assert bridge.starts() == 3
        for wire in two:
            wire.says[LIST] = roots("a")
            assert await told(wire) == roots("a")  # on its own connection it is asked itself
        two[0].write({"method": CHANGED})
        await bridge.gets(CHANGED)


async def test_a_modern_client_has_its_own(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        learns(bridge)
        for _ in range(2):
            wire = bridge.modern(is_only_client=False, roots={})
            assert text_of(await wire.call([])) == {}
        assert bridge.starts() == 3


# Who belongs to a connection


def members(bridge: Bridge) -> int:
    bindings = {
        one.bound_client for one in bridge.proxy._pool.connections("up") if one.bound_client is not None
    }
    return sum(len(one.members("up")) for one in bindings if isinstance(one, SharedBinding))


async def test_one_that_sets_a_log_level_belongs_to_the_shared_connection_no_more(tmp_path: Path) -> None:
    """It did, and so nobody was the only one there."""
    async with bridged(tmp_path) as bridge:
        one, other = await client(bridge, "a"), await client(bridge, "a")
        for wire in (one, other):
            await wire.call([])
        assert members(bridge) == 2
        await one.ask("logging/setLevel", {"level": "error"})
        assert members(bridge) == 1
        await other.call([["early", {"content": []}], log("error", "after the call")])
        await other.hears(lambda said: said.get("method") == "notifications/message")
        assert not one.notices("notifications/message")


async def test_one_that_leaves_belongs_to_nothing(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        learns(bridge)
        one, other = await client(bridge, "a"), await client(bridge, "a")
        for wire in (one, other):
            await wire.call([])
        assert members(bridge) == 2
        await bridge.endpoint.left(one.session.client)
        assert members(bridge) == 1
        other.says[LIST] = roots("b")
        other.write({"method": CHANGED})
        assert await told(other) == roots("b")
        assert bridge.starts() == 2
        bindings = bridge.proxy._pipeline.bindings
        assert len(bindings._used) == len(bindings._roots._asked) == 1


async def test_who_moves_still_hears_of_what_it_watches(tmp_path: Path) -> None:
    uri = "plan://ask"
    async with bridged(tmp_path) as bridge:
        learns(bridge)
        one, same = await client(bridge, "a"), await client(bridge, "a")
        for wire in (one, same):
            await wire.call([])
        assert "result" in await one.ask("resources/subscribe", {"uri": f"mcpzip://up/{uri}"})
        one.says[LIST] = roots("b")
        one.write({"method": CHANGED})
        await one.call([["say", "notifications/resources/updated", {"uri": uri}]])
        updates = "notifications/resources/updated"
        await one.hears(lambda said: said.get("method") == updates)
        assert not same.notices(updates)


async def test_sampling_on_a_connection_of_equal_roots_is_answered_once_and_then_apart(
    tmp_path: Path,
) -> None:
    async with bridged(tmp_path) as bridge:
        learns(bridge)
        said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "x"}}
        one, same = [await client(bridge, "a", sampling={}) for _ in range(2)]
        for wire in (one, same):
            wire.says["sampling/createMessage"] = said
            await wire.call([])
        assert text_of(await one.call([SAMPLE, WAIT])) == {"q": said}
        assert not same.notices("sampling/createMessage")
        for wire in (one, same):
            await wire.call([])
        bindings = [one.bound_client for one in bridge.proxy._pool.connections("up")]
        assert sum(isinstance(each, RootsBinding) for each in bindings) <= 1
        assert bridge.starts() == 4
