"""A legacy client: it is asked in the middle of its call, whatever the upstream speaks."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from helpers.bridging import ASK, SAID, SAMPLE, WAIT, Bridge, Wire, ahead, bridged, text_of
from helpers.bridging_server import STATE
from helpers.driver import Json, comes_true
from helpers.raw_http_client import message

SAMPLING = "sampling/createMessage"
QUESTION: Json = {"method": SAMPLING, "params": ASK}
FORM: Json = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}
REFUSAL: Json = {"code": -1, "message": "the user said no", "data": {"why": [1.0, None]}}
ALL: Json = {"sampling": {}, "elicitation": {}, "roots": {}}


def reply(wire: Wire, question: Json, result: Json | None = None, error: Json | None = None) -> None:
    wire.write({"id": question["id"], **({"error": error} if error else {"result": result})})


async def answered(wire: Wire, result: Json, method: str = SAMPLING) -> Json:
    """Answers the latest question."""
    question = await wire.asked(method)
    wire.heard.remove(question)
    reply(wire, question, result)
    return question


# A modern upstream


async def test_a_modern_upstream_asks_round_by_round(tmp_path: Path) -> None:
    rounds = [{"a": QUESTION, "b": FORM}, {"c": {"method": "roots/list"}}]
    async with bridged(tmp_path, "modern") as bridge:
        wire = await bridge.legacy(**ALL)
        number = wire.send_call({"rounds": rounds}, meta={"progressToken": "p", "x/y": 1})
        assert (await answered(wire, SAID))["params"] == ASK
        await answered(wire, {"action": "decline"}, "elicitation/create")
        assert "params" not in await answered(wire, {"roots": []}, "roots/list")
        assert text_of(await wire.answer(number)) == {"c": {"roots": []}}
        first, second, third = (line for line in bridge.lines() if line.get("method") == "tools/call")
        assert len({first["id"], second["id"], third["id"]}) == 3
        assert "requestState" not in first["params"]
        assert second["params"]["requestState"] == STATE + "1"
        assert second["params"]["inputResponses"] == {"a": SAID, "b": {"action": "decline"}}
        assert third["params"]["requestState"] == STATE + "2"
        assert third["params"]["inputResponses"] == {"c": {"roots": []}}
        assert {one["params"]["_meta"]["x/y"] for one in (first, second, third)} == {1}
        assert len({one["params"]["_meta"]["progressToken"] for one in (first, second, third)}) == 3


async def test_an_upstream_that_never_has_enough_is_left_after_ten_rounds(tmp_path: Path) -> None:
    """An eleventh time the client was asked, and its answer thrown away."""
    async with bridged(tmp_path, "modern") as bridge:
        wire = await bridge.legacy(sampling={})
        number = wire.send_call({"rounds": [{"q": QUESTION}] * 12})
        for _ in range(10):
            await answered(wire, SAID)
        answer = await wire.answer(number)
        assert "10 times" in answer["result"]["content"][0]["text"]
        assert not any(one.get("method") == SAMPLING for one in wire.heard)
        assert len(bridge.got("tools/call")) == 11


async def test_an_upstream_that_asks_nothing_is_called_again_with_its_state(tmp_path: Path) -> None:
    async with bridged(tmp_path, "modern") as bridge:
        wire = await bridge.legacy()
        assert text_of(await wire.call({"rounds": [{}, {}]})) is None
        assert [one.get("requestState") for one in bridge.got("tools/call")] == [
            None,
            STATE + "1",
            STATE + "2",
        ]


async def test_a_client_that_refuses_is_answered_with_its_own_error(tmp_path: Path) -> None:
    async with bridged(tmp_path, "modern") as bridge:
        wire = await bridge.legacy(**ALL)
        number = wire.send_call({"rounds": [{"a": QUESTION, "b": FORM}]})
        other = await wire.asked("elicitation/create")
        reply(wire, await wire.asked(SAMPLING), error=REFUSAL)
        assert (await wire.answer(number))["error"] == REFUSAL
        (cancelled,) = wire.notices("notifications/cancelled")
        assert cancelled["requestId"] == other["id"]
        assert len(bridge.got("tools/call")) == 1


async def test_a_client_is_not_asked_what_it_can_not(tmp_path: Path) -> None:
    """It was asked all the same."""
    async with bridged(tmp_path, "modern") as bridge:
        wire = await bridge.legacy(elicitation={})
        error = (await wire.call({"rounds": [{"a": FORM, "b": QUESTION}]}))["error"]
        assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"sampling": {}}})
        assert not any("method" in one and "id" in one for one in wire.heard)


@pytest.mark.parametrize("question", [{}, {"method": 5}, 7])
async def test_a_question_that_makes_no_sense_is_the_upstreams_fault(tmp_path: Path, question: Any) -> None:
    async with bridged(tmp_path, "modern") as bridge:
        wire = await bridge.legacy(**ALL)
        answer = await wire.call({"rounds": [{"a": question}]})
        assert "makes no sense" in answer["result"]["content"][0]["text"]


async def test_a_call_that_is_cancelled_while_its_client_is_asked(tmp_path: Path) -> None:
    async with bridged(tmp_path, "modern") as bridge:
        wire = await bridge.legacy(sampling={})
        number = wire.send_call({"rounds": [{"q": QUESTION}]})
        question = await wire.asked(SAMPLING)
        wire.cancel(number)
        await wire.hears(lambda one: one.get("method") == "notifications/cancelled")
        assert wire.notices("notifications/cancelled")[0]["requestId"] == question["id"]
        reply(wire, question, SAID)  # too late
        assert "result" in await wire.call({})
        assert len(bridge.got("tools/call")) == 2
        assert not any(one.get("id") == number for one in wire.heard)


@pytest.mark.parametrize(("tool", "times"), [("up__run", 2), ("up__look", 3)])
async def test_a_round_that_is_lost_is_not_sent_again_unless_it_does_no_harm(
    tmp_path: Path, tool: str, times: int
) -> None:
    """The second round ends its process; so does, where it only reads, the same round once more."""
    async with bridged(tmp_path, "modern") as bridge:
        wire = await bridge.legacy(sampling={})
        number = wire.send_call({"rounds": [{"q": QUESTION}], "die": 1}, tool=tool)
        await answered(wire, SAID)
        answer = await wire.answer(number)
        assert answer["result"]["isError"]
        said = answer["result"]["content"][0]["text"]
        assert ("may have run" in said) == (tool == "up__run")
        assert len(bridge.got("tools/call")) == times


async def test_rounds_through_execute_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bridged(tmp_path, "modern", expose="meta") as bridge:
        wire = await bridge.legacy(sampling={})
        args = {"name": "up__run", "arguments": {"rounds": [{"q": QUESTION}]}, "timeout": 9}
        number = wire.send("tools/call", {"name": "execute_tool", "arguments": args})
        await wire.asked(SAMPLING)
        ahead(monkeypatch, 10)  # while it is asked the clock stands still
        await answered(wire, SAID)
        assert text_of(await wire.answer(number)) == {"q": SAID}


# A legacy upstream


async def test_questions_and_answers_pass_unchanged(tmp_path: Path) -> None:
    odd = {"role": "assistant", "x": [1.0, 10**30, "é\u2028"], "_meta": {"a": None}}
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy(**ALL)
        number = wire.send_call([["ask", "q", SAMPLING, {**ASK, "y": 1.50}], WAIT, SAMPLE, WAIT])
        assert (await answered(wire, odd))["params"] == {**ASK, "y": 1.5}
        reply(wire, await wire.asked(SAMPLING), error=REFUSAL)
        assert text_of(await wire.answer(number)) == {"q": {"error": REFUSAL}}
        got = [line for line in bridge.lines() if "result" in line or "error" in line]
        assert got == [
            {"jsonrpc": "2.0", "id": "q", "result": odd},
            {"jsonrpc": "2.0", "id": "q", "error": REFUSAL},
        ]


async def test_a_question_that_the_upstream_takes_back_is_taken_back(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy(sampling={})
        number = wire.send_call([SAMPLE, ["await", str(go)], ["withdraw", "q"]])
        question = await wire.asked(SAMPLING)
        go.touch()
        assert text_of(await wire.answer(number)) == {}
        await wire.hears(lambda one: one.get("method") == "notifications/cancelled")
        assert [one["requestId"] for one in wire.notices("notifications/cancelled")] == [question["id"]]


async def test_a_question_that_is_taken_back_when_its_call_was_answered(tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    steps = [SAMPLE, ["early", {"content": []}], ["await", str(go_on)], ["withdraw", "q"]]
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy(sampling={})
        number = wire.send_call(steps)
        question = await wire.asked(SAMPLING)
        assert (await wire.answer(number))["result"] == {"content": []}
        go_on.touch()
        await wire.hears(lambda one: one.get("method") == "notifications/cancelled")
        assert wire.notices("notifications/cancelled") == [{"requestId": question["id"]}]
        reply(wire, question, SAID)  # too late: nobody hears of it
        assert text_of(await wire.call([SAMPLE, ["withdraw", "q"]])) == {}
        assert [line for line in bridge.lines() if line.get("id") == "q"] == []


async def test_a_question_over_http_is_taken_back_when_its_call_has_no_stream_any_more(
    tmp_path: Path,
) -> None:
    """It was said on the stream of the call, which had ended: the client asked its user all the same."""
    go_on = tmp_path / "go-on"
    steps = [SAMPLE, ["early", {"content": []}], ["await", str(go_on)], ["withdraw", "q"]]
    async with bridged(tmp_path) as bridge, bridge.web() as web:
        session = await web.session(capabilities={"sampling": {}})
        async with session.listening() as stream:
            async with session.calling("up__run", 1, arguments={"do": steps}) as call:
                assert (await call.head()).status == 200
                question = await call.event()
                assert question["method"] == SAMPLING
                assert (await call.event())["result"] == {"content": []}
                assert await call.event() == {}
            go_on.touch()
            while (told := await stream.event())["method"] != "notifications/cancelled":
                pass  # lists changed
            assert told["params"] == {"requestId": question["id"]}


async def test_a_question_ends_with_the_call_it_was_asked_in(tmp_path: Path) -> None:
    """The client went on asking its user, for nobody."""
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy(sampling={})
        number = wire.send_call([SAMPLE, WAIT])
        question = await wire.asked(SAMPLING)
        wire.cancel(number)
        await wire.hears(lambda one: one.get("method") == "notifications/cancelled")
        assert wire.notices("notifications/cancelled") == [{"requestId": question["id"]}]
        await bridge.gets("notifications/cancelled")


async def test_a_client_is_asked_nothing_that_it_did_not_declare(tmp_path: Path) -> None:
    """Servers that ask all the same were answered by clients that had never heard of it, or not at all."""
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy(roots={})
        answers = text_of(await wire.call([SAMPLE, WAIT]))
        assert answers["q"]["error"]["code"] == -32601
        assert not any("method" in one and "id" in one for one in wire.heard)


async def test_a_timed_out_call_is_cancelled_and_the_clock_stands_still_while_the_client_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bridged(tmp_path, expose="meta") as bridge:
        wire = await bridge.legacy(sampling={})
        args = {"name": "up__run", "arguments": {"do": [SAMPLE, WAIT, ["hang"]]}, "timeout": 9}
        number = wire.send("tools/call", {"name": "execute_tool", "arguments": args})
        await wire.asked(SAMPLING)
        ahead(monkeypatch, 10)
        await wire.ask("ping", {})
        assert not any(one.get("id") == number for one in wire.heard)
        await answered(wire, SAID)
        await comes_true(lambda: any("result" in line for line in bridge.lines()))
        ahead(monkeypatch, 10)
        answer = await wire.answer(number)
        assert "within 9 s" in answer["result"]["content"][0]["text"]
        (cancelled,) = await bridge.gets("notifications/cancelled")
        (call,) = (line for line in bridge.lines() if line.get("method") == "tools/call")
        assert cancelled["requestId"] == call["id"]


async def test_what_is_said_outside_calls_passes(tmp_path: Path) -> None:
    done: Json = {"elicitationId": "e-1"}
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy(**ALL)
        said = [["say", "notifications/elicitation/complete", done], ["say", "notifications/odd", {"x": 1.0}]]
        await wire.call(said)
        assert wire.notices("notifications/elicitation/complete") == [done]
        assert wire.notices("notifications/odd") == [{"x": 1.0}]
        wire.write({"method": "notifications/roots/list_changed"})
        await bridge.gets("notifications/roots/list_changed")
        await answered(wire, {"roots": []}, "roots/list")  # which no call has to do with
        await comes_true(
            lambda: {"jsonrpc": "2.0", "id": "roots-again", "result": {"roots": []}} in bridge.lines()
        )


async def test_a_level_is_kept_and_said_again(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy(**ALL)
        await wire.call([])
        assert (await wire.ask("logging/setLevel", {"level": "error"}))["result"] == {}
        assert await bridge.gets("logging/setLevel") == [{"level": "error"}]
        log = [["say", "notifications/message", {"level": level, "data": 1}] for level in ("info", "error")]
        await wire.call(log)
        assert [one["level"] for one in wire.notices("notifications/message")] == ["error"]
        await wire.call([["die"]])
        await wire.call([])
        assert bridge.got("logging/setLevel") == [{"level": "error"}] * 2
        bad = await wire.ask("logging/setLevel", {"level": "loud"})
        assert bad["error"]["code"] == -32602


async def test_a_level_reaches_a_modern_upstream_with_each_request(tmp_path: Path) -> None:
    async with bridged(tmp_path, "modern") as bridge:
        wire = await bridge.legacy()
        await wire.call({})
        await wire.ask("logging/setLevel", {"level": "error"})
        await wire.call({})
        levels = [
            params["_meta"].get("io.modelcontextprotocol/logLevel") for params in bridge.got("tools/call")
        ]
        assert levels == [None, "error"]


# Over HTTP


async def asking(bridge: Bridge, *capabilities: Json) -> None:
    """Every session asks for itself, all at a time: each answers what it was asked."""
    async with bridge.web() as web:
        sessions = [await web.session(capabilities=each) for each in capabilities]

        async def one(number: int) -> object:
            session = sessions[number]
            question: Json = {**ASK, "n": number}
            do = [["ask", f"q{number}", SAMPLING, question], WAIT]
            async with session.calling("up__run", 5, arguments={"do": do}) as connection:
                await connection.head()
                asked = await connection.event()
                assert asked["params"]["n"] == number
                await session.ask(
                    "POST",
                    json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"n": number}}).encode(),
                )
                return text_of(await connection.event())

        answers = await asyncio.gather(*map(one, range(len(sessions))))
        assert answers == [{f"q{number}": {"n": number}} for number in range(len(sessions))]
        for session in sessions:
            assert (await session.ask("DELETE")).status == 200


async def test_a_question_reaches_no_other_session(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        bridge.has_asked()
        await asking(bridge, *[{"sampling": {}}] * 4)
        assert bridge.proxy._pipeline.bindings._of == {}
        assert bridge.proxy.notifier._clients == {}


async def test_sessions_with_levels_of_their_own_hear_what_they_want(tmp_path: Path) -> None:
    log = [["say", "notifications/message", {"level": level, "data": level}] for level in ("debug", "error")]
    async with bridged(tmp_path) as bridge, bridge.web() as web:
        loud, quiet = await web.session(), await web.session()
        for session, level in ((loud, "debug"), (quiet, "error")):
            await session.ask("POST", message("logging/setLevel", {"level": level}, 2))

        async def heard(session: Any) -> list[object]:
            told = map(json.loads, (await session.call("up__run", 3, arguments={"do": log})).messages)
            return [one["params"]["data"] for one in told if one.get("method") == "notifications/message"]

        assert await asyncio.gather(heard(loud), heard(quiet)) == [["debug", "error"], ["error"]]
