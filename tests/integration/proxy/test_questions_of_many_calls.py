"""A modern client with several calls to a legacy upstream, whose questions don't say in which call they are
asked: one outlives the call that it was taken to be of, and nobody is asked twice.
"""

from pathlib import Path

from helpers.bridging import (
    ASK,
    SAID,
    SAMPLE,
    WAIT,
    Bridge,
    Wire,
    again,
    bridged,
    give_up_the_parked,
    questions,
    resumed,
    text_of,
)
from helpers.driver import Json, comes_true

from mcpzip.proxy.call_states import State


async def test_a_question_outlives_the_call_it_was_taken_to_be_of(tmp_path: Path) -> None:
    """It was lost with it: the call that had asked hung, and its clock stood still."""
    go = tmp_path / "go"
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        asking = wire.send_call([["await", str(go)], SAMPLE, WAIT])
        newest = wire.send_call([])
        await comes_true(lambda: bridge.proxy._pipeline.bindings.of(wire.session.client)._calls["up"][1:])
        go.touch()
        # Question and answer of the newest come in one piece, or nearly.
        first = await wire.answer(newest)
        while "requestState" in first["result"]:
            first = await resumed(wire, [], first)
        assert text_of(first) == {}
        asked = await wire.answer(asking)
        assert text_of(await resumed(wire, [["await", str(go)], SAMPLE, WAIT], asked, SAID)) == {"q": SAID}


async def asked_in_one_that_ends(bridge: Bridge, tmp_path: Path) -> tuple[Wire, int, Json]:
    """A client that was asked in the newest of its two calls, which then ended, what the other wants to know:
    it, the id of the other call, and what it was asked.
    """
    ask, end = tmp_path / "ask", tmp_path / "end"
    wire = bridge.modern(sampling={})
    asking = wire.send_call([["await", str(ask)], SAMPLE, WAIT])
    newest = wire.send_call([["await", str(end)]])
    under_way = bridge.proxy._pipeline.bindings.of(wire.session.client)._calls["up"]
    await comes_true(lambda: under_way[1:])
    ask.touch()
    asked = await wire.answer(newest)
    end.touch()
    await comes_true(lambda: not under_way[1:])
    return wire, asking, asked


async def test_nobody_is_asked_twice_for_a_call_that_ends_meanwhile(tmp_path: Path) -> None:
    """The question went to the other call at once, and the answer on its way was for nobody."""
    async with bridged(tmp_path) as bridge:
        wire, asking, asked = await asked_in_one_that_ends(bridge, tmp_path)
        assert text_of(await resumed(wire, [["await", str(tmp_path / "end")]], asked, SAID)) == {}
        assert text_of(await wire.answer(asking)) == {"q": SAID}


async def test_a_question_of_a_call_that_ended_and_that_nobody_comes_back_for_goes_to_another(
    tmp_path: Path,
) -> None:
    async with bridged(tmp_path) as bridge:
        wire, asking, _ = await asked_in_one_that_ends(bridge, tmp_path)
        give_up_the_parked(bridge)
        asked = await wire.answer(asking)
        older_do = [["await", str(tmp_path / "ask")], SAMPLE, WAIT]
        assert text_of(await resumed(wire, older_do, asked, SAID)) == {"q": SAID}


async def test_a_question_of_a_call_that_is_given_up_goes_to_another(tmp_path: Path) -> None:
    go = tmp_path / "go"
    older_do = [["wait"], ["await", str(go)], SAMPLE, WAIT]
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        newer = wire.send_call([["ask", "n", "sampling/createMessage", ASK], WAIT])
        await wire.answer(newer)
        older = wire.send_call(older_do)
        await bridge.gets("tools/call", 2)
        give_up_the_parked(bridge)  # "n" is asked in the older one now
        n = again(wire, older_do, await wire.answer(older), SAID)
        go.touch()
        asked = await wire.answer(n)
        assert text_of(await resumed(wire, older_do, asked, SAID)) == {"q": SAID}


async def test_a_question_that_is_taken_back_while_its_client_is_away_and_its_call_answered(
    tmp_path: Path,
) -> None:
    go_on = tmp_path / "go-on"
    steps = [SAMPLE, ["await", str(go_on)], ["early", {"content": []}], ["withdraw", "q"]]
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        asked = await wire.call(steps)
        assert list(questions(asked))
        go_on.touch()
        (handle,) = bridge.proxy._pipeline.parked._calls
        call, _ = bridge.proxy._pipeline.parked._calls[handle]
        await comes_true(lambda: call.state is State.KEPT and not call.unanswered)
        assert (await resumed(wire, steps, asked, SAID))["result"]["content"] == []
        assert [line for line in bridge.lines() if line.get("id") == "q"] == []
