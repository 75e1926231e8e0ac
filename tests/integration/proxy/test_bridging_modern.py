"""A modern client and a legacy upstream: a question ends the client's request, the call waits upstream until
the client comes again with the answer.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from helpers.bridging import (
    ASK,
    META,
    SAID,
    SAMPLE,
    WAIT,
    Bridge,
    again,
    ahead,
    bridged,
    log,
    parked,
    questions,
    refused,
    resumed,
    state_of,
    text_of,
)
from helpers.driver import PATIENCE, Json, alive, comes_true, proxy_of

from mcpzip.proxy import parking

FORM = ["ask", "f", "elicitation/create", {"mode": "form", "message": "?", "requestedSchema": {}}]
ANSWER: Json = {"action": "accept", "content": {"n": 1}}
ALL: Json = {"sampling": {}, "elicitation": {}, "roots": {}}


# Rounds


async def test_a_question_ends_the_request_and_the_answer_goes_back_unchanged(tmp_path: Path) -> None:
    do = [SAMPLE, WAIT]
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        asked = await wire.call(do)
        assert list(questions(asked).values()) == [{"method": "sampling/createMessage", "params": ASK}]
        assert state_of(asked).startswith("mcpzip-")
        odd = {**SAID, "x": [1.0, 10**30, None, "é\u2028"]}
        assert text_of(await resumed(wire, do, asked, odd)) == {"q": odd}
        assert len(bridge.got("tools/call")) == 1


async def test_several_questions_at_once_and_one_after_the_other(tmp_path: Path) -> None:
    do = [SAMPLE, FORM, WAIT, ["ask", "r", "roots/list"], WAIT]
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(**ALL)
        first = await wire.call(do)
        while len(questions(first)) < 2:  # the second came a moment later
            first = await resumed(wire, do, first)
        assert [one["method"] for one in questions(first).values()] == [SAMPLE[2], FORM[2]]
        only_one = await resumed(wire, do, first, SAID)
        assert [one["method"] for one in questions(only_one).values()] == [FORM[2]]
        second = await resumed(wire, do, only_one, ANSWER)
        assert list(questions(second).values()) == [{"method": "roots/list"}]
        assert len({state_of(each) for each in (first, only_one, second)}) == 3
        answers = text_of(await resumed(wire, do, second, {"roots": []}))
        assert answers == {"q": SAID, "f": ANSWER, "r": {"roots": []}}
        assert len(bridge.got("tools/call")) == 1


async def test_what_is_not_answered_is_asked_again(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        asked = await wire.call([SAMPLE, WAIT])
        once_more = await resumed(wire, [SAMPLE, WAIT], asked)
        assert questions(once_more) == questions(asked)
        assert "q" in text_of(await resumed(wire, [SAMPLE, WAIT], once_more, SAID))


@pytest.mark.parametrize("answer", [None, "yes", [1]])
async def test_an_answer_that_is_none_is_refused_and_may_be_given_again(tmp_path: Path, answer: Any) -> None:
    """It went upstream as the result of a request, which is an object."""
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        asked = await wire.call([SAMPLE, WAIT])
        error = (await resumed(wire, [SAMPLE, WAIT], asked, answer))["error"]
        assert error["code"] == -32602
        assert "inputResponses" in error["message"]
        assert text_of(await resumed(wire, [SAMPLE, WAIT], asked, SAID)) == {"q": SAID}


async def test_a_question_that_the_upstream_takes_back_is_asked_no_more(tmp_path: Path) -> None:
    """The call was then answered with a list of no questions."""
    go = tmp_path / "go"
    do = [SAMPLE, ["await", str(go)], ["withdraw", "q"]]
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        asked = await wire.call(do)
        go.touch()
        assert text_of(await resumed(wire, do, asked, SAID)) == {}
        at_once = [SAMPLE, ["withdraw", "q"], ["await", str(go)]]
        answer = await wire.call(at_once)
        if "requestState" in answer["result"]:  # the question was told before it was taken back
            answer = await resumed(wire, at_once, answer, SAID)
        assert text_of(answer) == {}


@pytest.mark.parametrize("way", ["prompt", "resource", "execute_tool"])
async def test_whatever_may_ask_can_be_answered(tmp_path: Path, way: str) -> None:
    do = [["ask", "q", "roots/list"], WAIT]
    asking: dict[str, tuple[str, Json]] = {
        "prompt": ("prompts/get", {"name": "up__run", "arguments": {"do": json.dumps(do)}}),
        "resource": ("resources/read", {"uri": "mcpzip://up/plan://ask"}),
        "execute_tool": (
            "tools/call",
            {"name": "execute_tool", "arguments": {"name": "up__run", "arguments": {"do": do}, "timeout": 9}},
        ),
    }
    method, params = asking[way]
    async with bridged(tmp_path, expose="meta") as bridge:
        wire = bridge.modern(roots={})
        asked = await wire.ask(method, params)
        (key,) = questions(asked)
        roots = {"roots": [{"uri": "file:///a"}]}
        retried = {**params, "inputResponses": {key: roots}, "requestState": state_of(asked)}
        answer = await wire.ask(method, retried)
        assert json.dumps(roots) in json.dumps(answer["result"]).replace("\\", "")
        assert "inputResponses" not in json.dumps(bridge.lines())


# Handles


async def test_a_handle_is_good_for_one_request_once(tmp_path: Path) -> None:
    do = [SAMPLE, WAIT]
    async with bridged(tmp_path, "legacy", "legacy") as bridge:
        wire = bridge.modern(sampling={})
        asked = await wire.call(do)
        state = state_of(asked)
        await refused(wire, do, state + "x")
        await refused(wire, do, state[:-1])
        await refused(wire, do, "mcpzip-" + "A" * 32)
        await refused(wire, [*do, WAIT], state)
        await refused(wire, do, state, tool="up__look")
        await refused(wire, do, state, tool="up2__run")
        assert text_of(await resumed(wire, do, asked, SAID)) == {"q": SAID}
        await refused(wire, do, state)
        assert len(bridge.got("tools/call")) + len(bridge.got("tools/call", "up2")) == 1


async def test_no_state_that_a_legacy_upstream_did_not_give_out_starts_a_call(tmp_path: Path) -> None:
    """One of a mcpzip that ended since, say: the call would run a second time."""
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        await refused(wire, [], "somebody's")
        await refused(wire, [], 7)
        assert bridge.got("tools/call") == []


async def test_the_same_arguments_may_be_written_in_another_way(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        asked = await wire.call({"do": [SAMPLE, WAIT], "a": {"x": 1, "y": 2}})
        (key,) = questions(asked)
        other = {"a": {"y": 2, "x": 1}, "do": [SAMPLE, WAIT]}
        assert "error" in await wire.call({**other, "a": {"x": 1.0, "y": 2}}, requestState=state_of(asked))
        answer = await wire.call(other, inputResponses={key: SAID}, requestState=state_of(asked))
        assert text_of(answer) == {"q": SAID}


async def test_another_clients_handle_is_nobodys_on_a_stream(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        mine, other = bridge.modern(sampling={}), bridge.modern(sampling={})
        asked = await mine.call([SAMPLE, WAIT])
        await refused(other, [SAMPLE, WAIT], state_of(asked))
        assert text_of(await resumed(mine, [SAMPLE, WAIT], asked, SAID)) == {"q": SAID}


async def test_a_call_that_nobody_comes_back_for_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "PARKING_TIME", 0.2)
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        asked = await wire.call([SAMPLE, WAIT])
        (cancelled,) = await bridge.gets("notifications/cancelled")
        assert cancelled["requestId"] is not None
        assert parked(bridge) == 0
        await refused(wire, [SAMPLE, WAIT], state_of(asked))


async def test_a_server_behind_a_second_mcpzip_has_handles_of_its_own(tmp_path: Path) -> None:
    """All handles began alike, so that the outer one took the inner one's for its own."""
    async with bridged(tmp_path) as inner, inner.web() as web:
        outer_folder = tmp_path / "outer"
        outer_folder.mkdir()

        async with proxy_of(
            outer_folder, others={"in": {"type": "http", "url": web.url}}, expose="direct"
        ) as proxy:
            outer = Bridge(outer_folder, proxy)
            wire = outer.modern(sampling={})
            asked = await wire.call([SAMPLE, WAIT], tool="in__up__run")
            (key,) = questions(asked)
            answer = await wire.call(
                [SAMPLE, WAIT],
                tool="in__up__run",
                inputResponses={key: SAID},
                requestState=state_of(asked),
            )
            assert text_of(answer) == {"q": SAID}


# Ends


@pytest.mark.parametrize("when", ["before the question", "resumed"])
async def test_a_cancelled_request_is_cancelled_upstream(tmp_path: Path, when: str) -> None:
    do: list[object] = [["hang"]] if when == "before the question" else [SAMPLE, WAIT, ["hang"]]
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        if when == "resumed":
            asked = await wire.call(do)
            number = again(wire, do, asked, SAID)
            await comes_true(lambda: any("result" in line for line in bridge.lines()))
        else:
            number = wire.send_call(do)
            await bridge.gets("tools/call")
        wire.cancel(number)
        (cancelled,) = await bridge.gets("notifications/cancelled")
        (call,) = [line for line in bridge.lines() if line.get("method") == "tools/call"]
        assert cancelled["requestId"] == call["id"]
        assert parked(bridge) == 0
        assert not any(one.get("id") == number for one in wire.heard)


async def test_an_upstream_that_dies_meanwhile(tmp_path: Path) -> None:
    go = tmp_path / "go"
    do = [SAMPLE, ["await", str(go)], ["die"]]
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        asked = await wire.call(do)
        go.touch()
        ((call, _),) = bridge.proxy._pipeline.parked._calls.values()
        await comes_true(lambda: call.task and call.task.done())
        answer = await resumed(wire, do, asked, SAID)
        assert answer["result"]["isError"]
        assert "may have run" in answer["result"]["content"][0]["text"]
        assert parked(bridge) == 0


async def test_an_upstream_that_dies_and_a_client_that_never_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looked at why the call had failed: the event loop complained."""
    monkeypatch.setattr(parking, "PARKING_TIME", 0.3)
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        go = tmp_path / "go"
        await wire.call([SAMPLE, ["await", str(go)], ["die"]])
        go.touch()
        await comes_true(lambda: parked(bridge) == 0)


async def test_nothing_is_left_when_mcpzip_ends_meanwhile(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        await wire.call([SAMPLE, WAIT])
        pids = [line["started"] for line in bridge.lines() if "started" in line]
    assert not any(map(alive, pids))
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert left == []


# Clocks, progress, logs


async def test_the_clock_of_a_call_stands_still_while_its_client_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    do = [SAMPLE, WAIT, FORM, WAIT]
    async with bridged(tmp_path, expose="meta", call_timeout_seconds=9) as bridge:
        wire = bridge.modern(**ALL)
        args = {"name": "up__run", "arguments": {"do": do}, "timeout": 9}
        params: Json = {"name": "execute_tool", "arguments": args}
        asked = await wire.ask("tools/call", params)
        for answer in (SAID, ANSWER):
            ahead(monkeypatch, 10)  # more than it may take
            (key,) = questions(asked)
            more = {"inputResponses": {key: answer}, "requestState": state_of(asked)}
            asked = await wire.ask("tools/call", {**params, **more})
        assert text_of(asked) == {"q": SAID, "f": ANSWER}


async def test_the_clock_of_a_call_that_asks_while_another_does_stands_still_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that began during another's question went on, and ended its call while its client was asked."""
    async with bridged(tmp_path, expose="meta") as bridge:
        wire = bridge.modern(**ALL)
        first, second = (
            {"name": "up__run", "arguments": {"do": [ask, WAIT]}, "timeout": 9} for ask in (SAMPLE, FORM)
        )
        one = await wire.ask("tools/call", {"name": "execute_tool", "arguments": first})
        two = await wire.ask("tools/call", {"name": "execute_tool", "arguments": second})
        ahead(monkeypatch, 10)
        for args, asked, given in ((second, two, ANSWER), (first, one, SAID)):
            more = {
                "inputResponses": dict.fromkeys(questions(asked), given),
                "requestState": state_of(asked),
            }
            answer = await wire.ask("tools/call", {"name": "execute_tool", "arguments": args, **more})
            assert given in text_of(answer).values()


async def test_progress_has_the_token_of_the_request_that_is_open(tmp_path: Path) -> None:
    do = [["progress", 1], SAMPLE, WAIT, ["progress", 2]]
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        asked = await wire.call(do, meta={"progressToken": "first"})
        await wire.answer(again(wire, do, asked, SAID, meta={"progressToken": "second"}))
        told = wire.notices("notifications/progress")
        assert told == [{"progressToken": "first", "progress": 1}, {"progressToken": "second", "progress": 2}]
        before = [one.get("method", "answer") for one in wire.heard]
        assert before == ["notifications/progress", "answer"] * 2


async def test_only_who_asks_for_logs_hears_them(tmp_path: Path) -> None:
    do = [log("debug", 1), log("warning", 2), log("error", 3)]
    level = {f"{META}logLevel": "warning"}
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern()
        await wire.call(do)
        assert wire.notices("notifications/message") == []
        await wire.call(do, meta=level)
        assert [one["data"] for one in wire.notices("notifications/message")] == [2, 3]
        assert bridge.got("logging/setLevel")[-1] == {"level": "warning"}
        await wire.call(do)
        assert len(wire.notices("notifications/message")) == 2


async def test_a_server_that_does_not_answer_holds_up_no_call_to_another_by_its_log_level(
    tmp_path: Path,
) -> None:
    """Every server was told of a new level, and all were waited for, as long as the call might take."""
    async with bridged(tmp_path, "legacy", "legacy") as bridge:
        wire = bridge.modern()
        hanging = wire.send_call([["await", str(tmp_path / "never")]], tool="up2__run")
        await bridge.gets("tools/call", name="up2")
        async with asyncio.timeout(PATIENCE):
            await wire.call([], meta={f"{META}logLevel": "info"})
        wire.cancel(hanging)
        (tmp_path / "never").touch()


# What a client can't, and what its era doesn't have


@pytest.mark.parametrize(
    ("method", "params", "offered", "needed"),
    [
        ("sampling/createMessage", ASK, {"elicitation": {}}, {"sampling": {}}),
        ("roots/list", {}, {"sampling": {}}, {"roots": {}}),
        ("sampling/createMessage", {**ASK, "tools": []}, {"sampling": {}}, {"sampling": {"tools": {}}}),
        ("elicitation/create", FORM[3], {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        (
            "elicitation/create",
            {"mode": "url", "url": "https://a.example", "message": "?", "elicitationId": "1"},
            {"elicitation": {}},
            {"elicitation": {"url": {}}},
        ),
    ],
)
async def test_what_a_client_cannot_be_asked_is_refused_for_it_and_the_call_goes_on(
    tmp_path: Path, method: str, params: Json, offered: Json, needed: Json
) -> None:
    """Servers ask for roots with every request and do without: none of their tools could be used."""
    ask = ["ask", "q", method, params]
    refusal = {"code": -32601, "message": f"The client does not offer {method}."}
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(**offered)
        assert text_of(await wire.call([ask, WAIT])) == {"q": {"error": refusal}}
        # A failure of another kind is told as it is, one that comes of it as the era has it.
        other = (await wire.call([ask, WAIT, ["error", -32000, "no such task"]]))["error"]
        assert (other["code"], other["message"]) == (-32000, "no such task")
        for code, said in ((-32601, "no"), (-32603, f"Internal: {refusal['message']}")):
            error = (await wire.call([ask, WAIT, ["error", code, said]]))["error"]
            assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": needed})
        failed = {"content": [{"type": "text", "text": refusal["message"]}], "isError": True}
        error = (await wire.call([ask, WAIT, ["result", failed]]))["error"]
        assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": needed})
        own = {"content": [{"type": "text", "text": "no such task"}], "isError": True}
        assert (await wire.call([ask, WAIT, ["result", own]]))["result"]["content"] == own["content"]
        assert bridge.got("notifications/cancelled") == []
        assert parked(bridge) == 0


async def test_what_a_client_can_be_asked_is_what_it_says_in_the_request(tmp_path: Path) -> None:
    """A server heard of the first request's capabilities only."""
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern()
        await wire.call([])
        wire.meta[f"{META}clientCapabilities"] = {"sampling": {}}
        asked = await wire.call([SAMPLE, WAIT])
        assert bridge.got("initialize")[-1]["capabilities"] == {"sampling": {}}
        assert text_of(await resumed(wire, [SAMPLE, WAIT], asked, SAID)) == {"q": SAID}


async def test_a_url_that_is_required_is_a_question(tmp_path: Path) -> None:
    page = {"mode": "url", "url": "https://a.example/1", "message": "Sign in.", "elicitationId": "e1"}
    do = [["error", -32042, "sign in first", {"elicitations": [page]}]]
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(elicitation={"url": {}})
        asked = await wire.call(do)
        assert list(questions(asked).values()) == [{"method": "elicitation/create", "params": page}]
        assert "requestState" not in asked["result"]
        (key,) = questions(asked)
        assert "result" in await wire.call(do, inputResponses={key: {"action": "accept"}})
        assert len(bridge.got("tools/call")) == 2
        assert all("inputResponses" not in params for params in bridge.got("tools/call"))
        lacks = bridge.modern(elicitation={})
        error = (await lacks.call(do))["error"]
        assert (error["code"], error["data"]) == (
            -32021,
            {"requiredCapabilities": {"elicitation": {"url": {}}}},
        )


@pytest.mark.parametrize("kind", ["gone", "bare"])
async def test_a_resource_that_is_not_there_is_told_of_as_the_era_does(tmp_path: Path, kind: str) -> None:
    async with bridged(tmp_path) as bridge:
        uri = f"mcpzip://up/plan://{kind}"
        error = (await bridge.modern().ask("resources/read", {"uri": uri}))["error"]
        assert error == {"code": -32602, "message": "no such thing", "data": {"uri": uri}}
