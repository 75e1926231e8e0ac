"""Flows in a session: results of one server don't go to another unless a person says so."""

from pathlib import Path

import pytest
from helpers.bridging import bridged, questions
from helpers.driver import Json, text_of

YES: Json = {"action": "accept"}
FORM: Json = {"elicitation": {}}
ASK = {"flows": [{"from": "up", "to": "up2", "do": "ask"}]}
DENY = {"flows": [{"from": "up", "to": "up2__*", "do": "deny"}]}


def failed(answer: Json) -> bool:
    return bool(answer["result"].get("isError"))


async def test_a_flow_counts_for_the_session_that_has_begun_it(tmp_path: Path) -> None:
    async with bridged(tmp_path, "legacy", "legacy", policy=DENY) as bridge:
        one, other = await bridge.legacy(is_only_client=False), await bridge.legacy(is_only_client=False)
        assert not failed(await one.call([], "up2__run"))
        assert not failed(await one.call([], "up__run"))
        refused = await one.call([], "up2__run")
        assert "policy.flows[0]" in text_of(refused["result"])
        assert "after results of “up”" in text_of(refused["result"])
        assert not failed(await other.call([], "up2__run"))
        assert not failed(await one.call([], "up__run"))
        assert len(bridge.got("tools/call", "up2")) == 2


async def test_a_person_is_told_why_they_are_asked(tmp_path: Path) -> None:
    async with bridged(tmp_path, "modern", "modern", policy=ASK) as bridge:
        wire = bridge.modern(**FORM)
        await wire.call({"rounds": []}, "up__run")
        asked = await wire.call({"rounds": []}, "up2__run")
        assert "The agent has seen results of up before." in questions(asked)["approval"]["params"]["message"]
        again = {"inputResponses": {"approval": YES}, "requestState": asked["result"]["requestState"]}
        assert not failed(await wire.call({"rounds": []}, "up2__run", **again))
        assert list(questions(await wire.call({"rounds": []}, "up2__run"))) == ["approval"]
        assert len(bridge.got("tools/call", "up2")) == 1


@pytest.mark.parametrize("method", ["prompt", "resource"])
async def test_prompts_and_resources_begin_a_flow_too(tmp_path: Path, method: str) -> None:
    async with bridged(tmp_path, "legacy", "legacy", policy=DENY) as bridge:
        wire = await bridge.legacy()
        if method == "prompt":
            await wire.ask("prompts/get", {"name": "up__run", "arguments": {"do": "[]"}})
        else:
            await wire.ask("resources/read", {"uri": "mcpzip://up/plan://bare"})
        assert failed(await wire.call([], "up2__run"))


async def test_a_call_that_was_refused_begins_nothing(tmp_path: Path) -> None:
    policy = {**DENY, "tools": {"up__run": "deny"}}
    async with bridged(tmp_path, "legacy", "legacy", policy=policy) as bridge:
        wire = await bridge.legacy()
        assert failed(await wire.call([], "up__run"))
        assert not failed(await wire.call([], "up2__run"))


async def test_modern_clients_over_http_count_as_one(tmp_path: Path) -> None:
    async with bridged(tmp_path, "modern", "modern", policy=ASK) as bridge, bridge.web() as web:
        begin = await web.modern("tools/call", {"name": "up__run", "arguments": {"rounds": []}})
        assert "result" in begin.last
        refused = await web.modern("tools/call", {"name": "up2__run", "arguments": {"rounds": []}})
        assert failed(refused.last)
        assert "mcpzip allow" in text_of(refused.last["result"])
