"""Who shares a server's process: clients with the same capabilities, until it asks one of them something."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from helpers.bridging import ASK, SAID, SAMPLE, WAIT, Bridge, Wire, bridged, text_of
from helpers.driver import Json, alive, comes_true

SAMPLING = "sampling/createMessage"


def owners(bridge: Bridge) -> set[object]:
    """Whose connections to the upstream there are."""
    return {key[1] for key in bridge.proxy._pool._states["up"].entries}


async def clients(bridge: Bridge, *capabilities: Json) -> list[Wire]:
    return [await bridge.legacy(is_only_client=False, **each) for each in capabilities]


async def test_clients_with_the_same_capabilities_use_one_process(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        capabilities: Json = {"sampling": {}, "elicitation": {}}
        able = await clients(bridge, {"elicitation": {}, "sampling": {}, "roots": {}}, *[capabilities] * 4)
        answers = await asyncio.gather(*(one.call({"plain": at}) for at, one in enumerate(able)))
        assert all("result" in answer for answer in answers)
        assert bridge.starts() == 2  # the one that listed, and theirs
        declared = [greeting["capabilities"] for greeting in bridge.got("initialize")]
        assert declared[1:] == [{**capabilities, "roots": {"listChanged": True}}]
        plain = await clients(bridge, {"roots": {}}, {"roots": {"listChanged": True}}, {})
        await asyncio.gather(*(one.call({}) for one in plain))
        assert bridge.starts() == 3
        other = await clients(bridge, {"elicitation": {}})
        await other[0].call({})
        assert bridge.starts() == 4


async def asks(wire: Wire) -> None:
    """A call in which the upstream asks its client something."""
    number = wire.send_call([SAMPLE, WAIT])
    question = await wire.asked(SAMPLING)
    assert question["params"] == ASK
    wire.heard.remove(question)
    wire.write({"id": question["id"], "result": SAID})
    assert text_of(await wire.answer(number)) == {"q": SAID}


async def test_the_first_question_is_answered_and_then_each_has_its_own(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        one, other = await clients(bridge, {"sampling": {}}, {"sampling": {}})
        await one.call({})
        await asks(one)
        assert len([owner for owner in owners(bridge) if owner and owner[0] == "client"]) == 0
        for wire in (one, other):
            await asks(wire)
        assert len([owner for owner in owners(bridge) if owner and owner[0] == "client"]) == 2


async def test_first_calls_that_ask_at_the_same_time_are_answered_with_their_own_clients_answers(
    tmp_path: Path,
) -> None:
    """Both calls failed, because both were sent on one connection before the server asked."""
    go = tmp_path / "go"
    async with bridged(tmp_path) as bridge:
        two = await clients(bridge, {"sampling": {}}, {"sampling": {}})
        answers = [{**SAID, "model": name} for name in ("of one", "of other")]
        for wire, answer in zip(two, answers, strict=True):
            wire.says[SAMPLING] = answer
        numbers = [wire.send_call([["await", str(go)], SAMPLE, WAIT]) for wire in two]
        await bridge.gets("tools/call", 2)  # neither waits for the other's end
        go.touch()
        for wire, number, answer in zip(two, numbers, answers, strict=True):
            assert text_of(await wire.answer(number)) == {"q": answer}
        assert bridge.starts() == 3  # the one that listed, and one for each
        assert len(bridge.got("tools/call")) == 2


async def test_a_client_stays_on_a_connection_that_it_has_used(tmp_path: Path) -> None:
    """The server may keep in its process what a client did."""
    async with bridged(tmp_path) as bridge:
        one, other = await clients(bridge, {"sampling": {}}, {"sampling": {}})
        for wire in (one, other):
            await wire.call([["error", -32000, "no"]])  # which doesn't show that it wouldn't ask
        waiting = one.send_call([["hang"]])
        await bridge.gets("tools/call", 3)
        assert "result" in await other.call([])  # after a second, at the side of the one that hangs
        assert bridge.starts() == 2
        one.cancel(waiting)


async def test_a_question_that_could_be_for_two_is_for_none_and_is_remembered(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        one, other = await clients(bridge, {"sampling": {}}, {"sampling": {}})
        await asyncio.gather(one.call([]), other.call([]))  # the tool is known not to ask
        waiting = other.send_call([["hang"]])
        await bridge.gets("tools/call", 3)
        number = one.send_call([SAMPLE, WAIT])
        answer = await one.answer(number)
        assert "Several clients use this connection" in json.dumps(answer)
        assert not [each for wire in (one, other) for each in wire.heard if each.get("method") == SAMPLING]
        other.cancel(waiting)
    async with bridged(tmp_path) as bridge:
        two = await clients(bridge, {"sampling": {}}, {"sampling": {}})
        await asyncio.gather(*(wire.call({}) for wire in two))
        assert len([owner for owner in owners(bridge) if owner and owner[0] == "client"]) == 2
        plain = await clients(bridge, {"roots": {}}, {"roots": {}})  # which it can't ask that
        await asyncio.gather(*(wire.call({}) for wire in plain))
        assert len([owner for owner in owners(bridge) if owner and owner[0] == "shared"]) == 1


async def test_a_cancel_reaches_only_the_call_of_its_client(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        one, other = await clients(bridge, {"sampling": {}}, {"sampling": {}})
        first, second = one.send_call([["hang"]]), other.send_call([["hang"]])  # the same id in both
        assert first == second
        await bridge.gets("tools/call", 2)
        one.cancel(first)
        (cancelled,) = await bridge.gets("notifications/cancelled")
        calls = [line for line in bridge.lines() if line.get("method") == "tools/call"]
        assert cancelled["requestId"] in [call["id"] for call in calls]
        assert len(bridge.got("notifications/cancelled")) == 1
        assert not any(each.get("id") == second for each in other.heard)
        other.cancel(second)


async def test_a_log_message_reaches_its_client_or_none(tmp_path: Path) -> None:
    log = [["say", "notifications/message", {"level": "error", "data": "mine"}]]
    async with bridged(tmp_path) as bridge:
        one, other = await clients(bridge, {"sampling": {}}, {"sampling": {}})
        await one.call(log)
        said = [each for each in one.heard if each.get("method") == "notifications/message"]
        assert [each["params"]["data"] for each in said] == ["mine"]
        waiting = other.send_call([["hang"]])
        await bridge.gets("tools/call", 2)
        await one.call(log)
        for wire in (one, other):
            assert len([each for each in wire.heard if each.get("method") == "notifications/message"]) <= 1
        assert not [each for each in other.heard if each.get("method") == "notifications/message"]
        other.cancel(waiting)


LOG: list[object] = ["say", "notifications/message", {"level": "error", "data": "of the cancelled call"}]


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize(
    ("capabilities", "then"), [({"sampling": {}}, SAMPLE), ({"sampling": {}}, LOG), ({}, LOG)]
)
async def test_what_a_cancelled_call_still_says_reaches_no_other_client(
    tmp_path: Path, leaves: bool, capabilities: Json, then: list[object]
) -> None:
    """A server may ignore a cancellation: another client, with the only open call, was asked its question."""
    goes_on = tmp_path / "goes on"
    async with bridged(tmp_path) as bridge:
        one, other = await clients(bridge, capabilities, capabilities)
        waiting = one.send_call([["hang"]])
        await bridge.gets("tools/call", 1)
        cancelled = other.send_call([["await", str(goes_on)], then])
        await bridge.gets("tools/call", 2)
        if leaves:
            other.session.end()
            await other.session.finish(0.0)
        else:
            other.cancel(cancelled)
        goes_on.touch()
        assert "result" in await one.call([])  # by then what came before it was handled
        assert not one.notices(SAMPLING)
        assert not one.notices("notifications/message")
        one.cancel(waiting)


@pytest.mark.parametrize(("share", "starts"), [("auto", 2), ("always", 2), ("never", 4)])
async def test_the_config_decides(tmp_path: Path, share: str, starts: int) -> None:
    async with bridged(tmp_path, server={"share": share}) as bridge:
        three = await clients(bridge, *[{"sampling": {}}] * 3)
        await asyncio.gather(*(wire.call({}) for wire in three))
        assert bridge.starts() == starts
        bridge.has_asked()
        await asyncio.gather(*(wire.call({}) for wire in three))
        assert bridge.starts() == (5 if share == "auto" else starts)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_is_never_shared_ends_with_its_client(tmp_path: Path, era: str) -> None:
    async with bridged(tmp_path, era, server={"share": "never"}) as bridge:
        one, other = await clients(bridge, {}, {})
        await asyncio.gather(one.call({}), other.call({}))
        started = [line["started"] for line in bridge.lines() if "started" in line]
        assert len(started) == 3
        await bridge.endpoint.left(one.session.client)
        await comes_true(lambda: sum(map(alive, started)) == 2)
        assert "result" in await other.call({})


async def test_a_damaged_file_of_what_was_asked_is_written_anew(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        bridge.has_asked()
    (path,) = (tmp_path / "cache").glob("*.sharing.json")
    path.write_text("{")
    async with bridged(tmp_path) as bridge:
        wire = (await clients(bridge, {"sampling": {}}))[0]
        await wire.call({})
        assert "client" not in {owner[0] for owner in owners(bridge) if isinstance(owner, tuple)}
        bridge.has_asked()
    found: Any = json.loads(path.read_text())
    assert found["servers"]["up"]["capabilities"] == ["sampling", "roots", "elicitation"]
    assert os.stat(path).st_mode & 0o077 == 0
