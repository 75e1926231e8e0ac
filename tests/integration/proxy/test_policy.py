"""Calls under a policy: what is denied or not approved never reaches a server, in both eras, every mode."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.bridging import META, Bridge, Wire, bridged, questions, resumed, state_of
from helpers.driver import MODERN, Json, config_of, executed, proxy_of, text_of
from mcpzip_fakes.launch import FakeServer
from msgspec.structs import replace

from mcpzip.config.paths import allowed_path
from mcpzip.policy.allowances import Allowance, AllowedFile
from mcpzip.policy.hashes import arguments_hash, definition_hash
from mcpzip.proxy.proxy import Proxy

YES: Json = {"action": "accept", "content": {}}
FORM: Json = {"elicitation": {}}
ASK_ALL = {"policy": "ask"}
DO: list[Any] = []


def said(answer: Json) -> str:
    assert answer["result"].get("isError") is True, answer
    return text_of(answer["result"])


def calls(bridge: Bridge) -> list[Any]:
    return bridge.got("tools/call")


async def legacy(bridge: Bridge, **capabilities: object) -> Wire:
    return await bridge.legacy(**capabilities)


# deny


@pytest.mark.parametrize("expose", ["meta", "direct", "transparent"])
async def test_what_is_denied_does_not_run(tmp_path: Path, expose: str) -> None:
    async with bridged(tmp_path, expose=expose, policy={"destroys": "deny"}) as bridge:
        for wire in (await legacy(bridge, **FORM), bridge.modern(**FORM)):
            if expose == "meta":
                answer = await wire.call({"name": "up__run", "arguments": {"do": DO}}, "execute_tool")
            else:
                answer = await wire.call(DO, "run" if expose == "transparent" else "up__run")
            assert 'denied by policy: policy.destroys is "deny" in' in said(answer)
            assert "Nothing ran" in said(answer)
    assert calls(bridge) == []


async def test_a_tool_that_is_not_listed_is_denied_too(tmp_path: Path) -> None:
    """In ``transparent`` any name passes."""
    async with bridged(tmp_path, expose="transparent", policy={"destroys": "deny"}) as bridge:
        wire = await legacy(bridge)
        assert "denied by policy" in said(await wire.call(DO, "unheard_of"))
    assert calls(bridge) == []


async def test_what_is_allowed_runs_unchanged(tmp_path: Path) -> None:
    result = {"content": [], "structuredContent": {"n": 1.0, "big": 10**30}, "x": "é\u2028"}
    async with bridged(tmp_path, policy={"destroys": "deny", "tools": {"up__run": "allow"}}) as bridge:
        answer = await (await legacy(bridge)).call([["result", result]])
    assert answer["result"] == result


async def test_describe_says_what_the_policy_does(tmp_path: Path) -> None:
    policy = {"tools": {"up__run": "deny", "up__look": "ask"}}
    async with bridged(tmp_path, expose="meta", policy=policy) as bridge:
        wire = await legacy(bridge)
        texts = {
            name: text_of((await wire.call({"name": name}, "describe_tool"))["result"])
            for name in ("up__run", "up__look")
        }
        assert "Denied by policy (policy.tools.up__run): calls are refused." in texts["up__run"]
        assert "By policy (policy.tools.up__look) a person is asked" in texts["up__look"]


# ask, legacy


async def test_a_legacy_client_is_asked_and_the_call_goes_on(tmp_path: Path) -> None:
    async with bridged(tmp_path, **ASK_ALL) as bridge:
        wire = await legacy(bridge, **FORM)
        number = wire.send_call({"do": DO, "to": "a\u202eb"})
        asked = await wire.asked("elicitation/create")
        assert calls(bridge) == []
        assert "tool run of the server up" in asked["params"]["message"]
        assert "\\u202e" in asked["params"]["message"]
        assert "\u202e" not in asked["params"]["message"]
        wire.write({"id": asked["id"], "result": YES})
        assert (await wire.answer(number))["result"] == {"content": [{"type": "text", "text": "{}"}]}
        assert [call["arguments"] for call in calls(bridge)] == [{"do": DO, "to": "a\u202eb"}]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"action": "decline"}, "The person who was asked declined this call. Nothing ran."),
        ({"action": "cancel"}, "The person who was asked closed the question"),
        ({"action": "maybe"}, "did not answer the question"),
        ({}, "did not answer the question"),
    ],
)
async def test_without_a_yes_nothing_runs(tmp_path: Path, answer: Json, sentence: str) -> None:
    async with bridged(tmp_path, **ASK_ALL) as bridge:
        old, new = await legacy(bridge, **FORM), bridge.modern(**FORM)
        number = old.send_call(DO)
        asked = await old.asked("elicitation/create")
        old.write({"id": asked["id"], "result": answer})
        assert sentence in said(await old.answer(number))
        assert sentence in said(await resumed(new, DO, await new.call(DO), answer))
    assert calls(bridge) == []


async def test_a_client_that_answers_with_an_error_cannot_be_asked(tmp_path: Path) -> None:
    async with bridged(tmp_path, **ASK_ALL) as bridge:
        wire = await legacy(bridge, **FORM)
        number = wire.send_call(DO)
        asked = await wire.asked("elicitation/create")
        wire.write({"id": asked["id"], "error": {"code": -32603, "message": "no dialogs here"}})
        assert "no dialogs here" in said(await wire.answer(number))
    assert calls(bridge) == []


async def test_each_call_is_asked_about(tmp_path: Path) -> None:
    async with bridged(tmp_path, **ASK_ALL) as bridge:
        wire = await legacy(bridge, **FORM)
        numbers = [wire.send_call(DO), wire.send_call(DO)]
        for _ in numbers:  # the questions come in any order
            asked = await wire.hears(lambda one: one.get("method") == "elicitation/create")
            wire.heard.remove(asked)
            wire.write({"id": asked["id"], "result": YES})
        for number in numbers:
            assert not (await wire.answer(number))["result"].get("isError")
    assert len(calls(bridge)) == 2


async def test_a_cancelled_call_withdraws_its_question(tmp_path: Path) -> None:
    async with bridged(tmp_path, **ASK_ALL) as bridge:
        wire = await legacy(bridge, **FORM)
        number = wire.send_call(DO)
        asked = await wire.asked("elicitation/create")
        wire.cancel(number)
        gone = await wire.hears(lambda one: one.get("method") == "notifications/cancelled")
        assert gone["params"]["requestId"] == asked["id"]
    assert calls(bridge) == []


# ask, modern


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_modern_client_is_asked_by_a_result(tmp_path: Path, era: str) -> None:
    async with bridged(tmp_path, era, **ASK_ALL) as bridge:
        wire = bridge.modern(**FORM)
        asked = await wire.call(DO)
        (one,) = questions(asked).values()
        assert one["method"] == "elicitation/create"
        assert "tool run of the server up" in one["params"]["message"]
        assert calls(bridge) == []
        answer = await resumed(wire, DO, asked, YES)
        assert not answer["result"].get("isError")
        (call,) = calls(bridge)
        assert "inputResponses" not in call
        assert "requestState" not in call


async def test_an_approval_is_for_one_call_once(tmp_path: Path) -> None:
    """Another use of it asks again, and runs nothing."""
    async with bridged(tmp_path, "modern", **ASK_ALL) as bridge:
        wire, other = bridge.modern(**FORM), bridge.modern(**FORM)
        asked = await wire.call({"rounds": [], "n": 1})
        again = {"inputResponses": {"approval": YES}, "requestState": state_of(asked)}
        for client, arguments, tool in (
            (wire, {"rounds": [], "n": 2}, "up__run"),
            (wire, {"rounds": [], "n": 1.0}, "up__run"),
            (wire, {"rounds": [], "n": 1}, "up__look"),
            (other, {"rounds": [], "n": 1}, "up__run"),
        ):
            assert state_of(await client.call(arguments, tool, **again)) != state_of(asked)
        assert calls(bridge) == []
        done = await wire.call({"n": 1, "rounds": []}, **again)
        assert done["result"]["resultType"] == "complete"
        assert state_of(await wire.call({"rounds": [], "n": 1}, **again)) != state_of(asked)
        assert len(calls(bridge)) == 1


async def test_nobody_is_asked_twice_when_the_server_asks_too(tmp_path: Path) -> None:
    form = {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": {}}}
    arguments = {"rounds": [{"a": form}, {"b": form}]}
    async with bridged(tmp_path, "modern", **ASK_ALL) as bridge:
        wire = bridge.modern(**FORM)
        first = await resumed(wire, arguments, await wire.call(arguments), YES)
        assert list(questions(first)) == ["a"]
        second = await resumed(wire, arguments, first, YES)
        assert list(questions(second)) == ["b"]
        assert (await resumed(wire, arguments, second, YES))["result"]["resultType"] == "complete"
        assert len(calls(bridge)) == 3
        replayed = await resumed(wire, arguments, second, YES)
        assert list(questions(replayed)) == ["approval"]
        assert len(calls(bridge)) == 3


async def test_the_same_with_a_legacy_server(tmp_path: Path) -> None:
    form = {"mode": "form", "message": "?", "requestedSchema": {}}
    do = [["ask", "f", "elicitation/create", form], ["wait"]]
    async with bridged(tmp_path, "legacy", **ASK_ALL) as bridge:
        wire = bridge.modern(**FORM)
        server_asks = await resumed(wire, do, await wire.call(do), YES)
        assert list(questions(server_asks)) != ["approval"]
        done = await resumed(wire, do, server_asks, {"action": "accept", "content": {"n": 1}})
        assert json.loads(text_of(done["result"])) == {"f": {"action": "accept", "content": {"n": 1}}}
        assert len(calls(bridge)) == 1


async def test_execute_tool_asks_about_the_tool_that_it_runs(tmp_path: Path) -> None:
    do = {"name": "up-run", "arguments": {"do": DO}}
    async with bridged(tmp_path, expose="meta", policy={"tools": {"up__run": "ask"}}) as bridge:
        wire = bridge.modern(**FORM)
        asked = await wire.call(do, "execute_tool")
        assert "tool run of the server up" in questions(asked)["approval"]["params"]["message"]
        again = {"inputResponses": {"approval": YES}, "requestState": state_of(asked)}
        assert not (await wire.call(do, "execute_tool", **again))["result"].get("isError")
    assert len(calls(bridge)) == 1


async def test_a_tool_that_changed_meanwhile_is_asked_about_again(tmp_path: Path) -> None:
    async with bridged(tmp_path, **ASK_ALL) as bridge:
        old, new = await legacy(bridge, **FORM), bridge.modern(**FORM)
        number = old.send_call(DO)
        asked = await old.asked("elicitation/create")
        modern = await new.call(DO)
        state = bridge.proxy._catalog_state
        record = state.catalog.servers["up"]
        changed = type(record.entries[0]).parse("up", b'{"name":"run","description":"changed"}')
        await bridge.proxy._refresher.close()  # a listing under way would bring the tool back as it was
        state._replace(type(state.catalog)({"up": replace(record, entries=type(record.entries)((changed,)))}))
        old.write({"id": asked["id"], "result": YES})
        assert "was changed or withdrawn while a person was asked" in said(await old.answer(number))
        assert list(questions(await resumed(new, DO, modern, YES))) == ["approval"]
    assert calls(bridge) == []


async def test_a_tool_that_is_withdrawn_meanwhile_does_not_run(tmp_path: Path) -> None:
    async with bridged(tmp_path, **ASK_ALL) as bridge:
        wire = await legacy(bridge, **FORM)
        number = wire.send_call(DO)
        asked = await wire.asked("elicitation/create")
        others = json.loads((tmp_path / "config.json").read_bytes())["mcpServers"]
        others["up"]["tools"] = {"deny": ["run"]}
        bridge.proxy.reconfigure(config_of(tmp_path, others=others, expose="direct", **ASK_ALL))
        wire.write({"id": asked["id"], "result": YES})
        assert "was changed or withdrawn" in said(await wire.answer(number))
    assert calls(bridge) == []


async def test_clients_over_http_are_asked_too(tmp_path: Path) -> None:
    """In the legacy era on the stream of the call; in the modern one, where any client may answer, once."""
    async with bridged(tmp_path, **ASK_ALL) as bridge, bridge.web() as web:
        session = await web.session(capabilities=FORM)
        async with session.calling("up__run", 7, arguments={"do": DO}) as connection:
            await connection.head()
            asked = await connection.event()
            assert asked["method"] == "elicitation/create"
            assert calls(bridge) == []
            await session.reply_to(asked, json.dumps(YES).encode())
            assert (await connection.event())["id"] == 7
        params = {"name": "up__run", "arguments": {"do": DO}}
        meta = {"_meta": {f"{META}clientCapabilities": FORM, f"{META}protocolVersion": MODERN}}
        question = (await web.modern("tools/call", {**params, **meta})).last
        again = {"inputResponses": {"approval": YES}, "requestState": state_of(question)}
        assert not (await web.modern("tools/call", {**params, **meta, **again})).last["result"].get("isError")
        replayed = (await web.modern("tools/call", {**params, **meta, **again})).last
        assert list(questions(replayed)) == ["approval"]
    assert len(calls(bridge)) == 2


# who can't be asked, and what a person allows in a terminal


def allowed(proxy: Proxy, name: str, seconds: float = 60, arguments: bytes | None = None) -> None:
    entry, now = proxy.catalog.get(name), time.time()
    assert entry is not None
    hashed = "" if arguments is None else arguments_hash(arguments)
    AllowedFile(proxy.config.path).allow(Allowance(name, now + seconds, now, definition_hash(entry), hashed))


async def test_who_cannot_be_asked_is_told_how_to_allow_it(tmp_path: Path) -> None:
    async with bridged(tmp_path, **ASK_ALL) as bridge:
        for wire in (await legacy(bridge), bridge.modern(), bridge.modern(elicitation={"url": {}})):
            text = said(await wire.call(DO))
            assert "this client can't ask one" in text
            assert f"mcpzip allow up__run --for 1h --config {tmp_path}/config.json" in text
            assert '"policy": {"tools": {"up__run": "allow"}}' in text
        assert calls(bridge) == []
        allowed(bridge.proxy, "up__run")
        assert not (await wire.call(DO))["result"].get("isError")
        AllowedFile(bridge.proxy.config.path).revoke("up__run", time.time())
        assert "can't ask one" in said(await wire.call(DO))
    assert len(calls(bridge)) == 1


async def test_only_what_was_allowed_runs(tmp_path: Path) -> None:
    async with bridged(tmp_path, **ASK_ALL) as bridge:
        wire = bridge.modern()
        allowed(bridge.proxy, "up__run", arguments=b'{"n": 1, "do": []}')
        assert not (await wire.call({"do": [], "n": 1}))["result"].get("isError")
        for arguments in ({"do": [], "n": 2}, {"do": []}):
            assert "can't ask one" in said(await wire.call(arguments))
        assert "can't ask one" in said(await wire.call({"do": [], "n": 1}, "up__look"))
        now = time.time()
        AllowedFile(bridge.proxy.config.path).allow(
            Allowance("up__look", now + 60, now, "of another definition")
        )
        assert "can't ask one" in said(await wire.call(DO, "up__look"))
    assert len(calls(bridge)) == 1


async def test_a_list_that_cannot_be_used_allows_nothing_and_says_so(tmp_path: Path) -> None:
    async with bridged(tmp_path, **ASK_ALL) as bridge:
        allowed(bridge.proxy, "up__run")
        path = Path(allowed_path(bridge.proxy.config.path))
        path.write_bytes(path.read_bytes()[:-9])  # noqa: ASYNC240 - a small file
        text = said(await bridge.modern().call(DO))
        assert "is damaged" in text
        assert "Until you delete it, nothing counts as allowed" in text
        path.unlink()  # noqa: ASYNC240
        allowed(bridge.proxy, "up__run")
        assert not (await bridge.modern().call(DO))["result"].get("isError")
    assert len(calls(bridge)) == 1


async def test_a_denied_call_is_not_allowed_by_the_list(tmp_path: Path) -> None:
    async with bridged(tmp_path, policy="deny") as bridge:
        allowed(bridge.proxy, "up__run")
        assert "denied by policy" in said(await bridge.modern().call(DO))
    assert calls(bridge) == []


async def test_arguments_that_nobody_can_read_are_not_asked_about(tmp_path: Path) -> None:
    async with bridged(tmp_path, **ASK_ALL) as bridge:
        text = said(await bridge.modern(**FORM).call({"do": [], "x": "y" * 30_000}))
        assert "the arguments are too long to be shown" in text
    assert calls(bridge) == []


async def test_a_name_in_a_command_does_nothing_in_a_shell(fake_mcp: Any, tmp_path: Path) -> None:
    evil: FakeServer = fake_mcp(name="evil", tools=["x$(touch pwned); y"])
    async with proxy_of(tmp_path, evil, policy="ask") as proxy:
        result = await executed(proxy, "evil__x$(touch pwned); y")
    assert "mcpzip allow 'evil__x$(touch pwned); y' --for 1h --config " in text_of(result)


async def test_an_edited_policy_counts_at_once(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern()
        assert not (await wire.call(DO))["result"].get("isError")
        others = json.loads((tmp_path / "config.json").read_bytes())["mcpServers"]
        bridge.proxy.reconfigure(config_of(tmp_path, others=others, expose="direct", policy="deny"))
        assert "denied by policy" in said(await wire.call(DO))
        bridge.proxy.reconfigure(config_of(tmp_path, others=others, expose="direct"))
        assert not (await wire.call(DO))["result"].get("isError")
    assert len(calls(bridge)) == 2
