"""What a proxy remembers of its last calls: what happened, in which order, and how it ended."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.bridging import SAID, SAMPLE, WAIT, Bridge, Wire, bridged, resumed
from helpers.driver import Json, comes_true, executed, proxy_of
from helpers.programs import META, call_to_make, error, run_code
from mcpzip_fakes.launch import FakeServer

from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.daemon.call_phases import spent
from mcpzip.server.daemon.call_report import CallReport
from mcpzip.wire import Era

Fake = Callable[..., FakeServer]
FORM: Json = {"elicitation": {}}
YES: Json = {"action": "accept"}
SENT = ["connecting", "sent", "answered"]


def recorded(where: Proxy | Bridge) -> list[CallReport]:
    """The calls, the oldest first."""
    proxy = where if isinstance(where, Proxy) else where.proxy
    return [CallReport.of(one) for one in proxy.tool_caller.calls][::-1]


def events(call: CallReport) -> list[str]:
    assert [event.after for event in call.events] == sorted(event.after for event in call.events)
    return [event.what for event in call.events]


def outcomes(where: Proxy | Bridge) -> list[str]:
    return [call.outcome for call in recorded(where)]


async def answers(wire: Wire, method: str, answer: Json) -> None:
    """The client answers what it is asked."""
    asked = await wire.hears(lambda one: one.get("method") == method)
    wire.heard.remove(asked)
    wire.write({"id": asked["id"], "result": answer})


@pytest.mark.parametrize("expose", ["meta", "direct", "transparent"])
async def test_a_call_however_it_is_made(tmp_path: Path, expose: str) -> None:
    async with bridged(tmp_path, expose=expose) as bridge:
        wire, do = await bridge.legacy(), [["result", {"content": [{"type": "text", "text": "secret"}]}]]
        if expose == "meta":
            await wire.call({"name": "up__run", "arguments": {"do": do}}, "execute_tool")
        else:
            await wire.call(do, "run" if expose == "transparent" else "up__run")
        (call,) = recorded(bridge)
    assert (call.client, call.server, call.tool, call.outcome) == ("test", "up", "run", "result")
    assert events(call) == SENT
    assert call.arguments == len(json.dumps({"do": do}, separators=(",", ":")))
    assert 10 < call.tokens < call.result < 200
    assert call.seconds is not None
    assert call.seconds >= call.events[-1].after
    assert (call.decision, call.error, call.repairs, call.kept, call.parent) == ("", "", 0, False, 0)


async def test_neither_arguments_nor_results_are_remembered(tmp_path: Path) -> None:
    async with bridged(tmp_path, policy={"default": "ask"}) as bridge:
        wire = await bridge.legacy(**FORM)
        for do in (
            [["result", {"content": [], "x": "hush-1"}]],
            [["result", {"isError": True, "x": "hush-2"}]],
        ):
            number = wire.send_call(do)
            await answers(wire, "elicitation/create", {"action": "accept", "content": {"x": "hush-3"}})
            await wire.answer(number)
        assert [call.approved_by for call in recorded(bridge)] == ["person", "person"]
        assert all("hush" not in repr(one) for one in bridge.proxy.tool_caller.calls)


async def test_every_outcome_is_as_in_the_audit_log(tmp_path: Path) -> None:
    policy = {"tools": {"up__look": "deny"}}
    async with bridged(tmp_path, policy=policy) as bridge:
        wire = await bridge.legacy()
        await wire.call([["result", {"content": []}]])
        await wire.call([["result", {"content": [], "isError": True}]])
        await wire.call([["error", -32000, "no \x1b[2J\u202e" + "x" * 1_000]])
        await wire.call([], "up__look")
        number = wire.send_call([["hang"]])
        await bridge.gets("tools/call", 4)
        assert recorded(bridge)[-1].seconds is None
        wire.cancel(number)
        await bridge.gets("notifications/cancelled")
        await comes_true(lambda: outcomes(bridge)[-1])
        _, _, refused, denied, cancelled = recorded(bridge)
    assert outcomes(bridge) == ["result", "tool error", "no result", "denied", "cancelled"]
    assert refused.error.startswith("up: “no ")
    assert len(refused.error) <= 160
    assert not set(refused.error) & set("\x1b\u202e")
    assert (denied.decision, denied.rule, events(denied)) == ("deny", "policy.tools.up__look", ["decided"])
    assert events(cancelled) == ["decided", "connecting", "sent", "lost"]


async def test_a_person_who_is_asked_takes_time(tmp_path: Path) -> None:
    async with bridged(tmp_path, policy="ask") as bridge:
        old, new = await bridge.legacy(**FORM), bridge.modern(**FORM)
        number = old.send_call([])
        await answers(old, "elicitation/create", YES)
        await old.answer(number)
        await resumed(new, [], await new.call([]), YES)
        first, second, third = recorded(bridge)
    assert events(first) == ["decided", "person asked", "person answered", *SENT]
    assert [who for who, _ in spent(first, 0)][:2] == ["mcpzip", "person"]
    assert (first.decision, first.approved_by, first.outcome) == ("ask", "person", "result")
    assert (second.outcome, events(second)) == ("asked", ["decided"])
    assert (third.outcome, third.approved_by) == ("result", "person")


async def test_questions_of_a_server_to_a_legacy_client(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy(sampling={})
        number = wire.send_call([SAMPLE, WAIT])
        await answers(wire, "sampling/createMessage", SAID)
        await wire.answer(number)
        (call,) = recorded(bridge)
    assert events(call) == ["connecting", "sent", "sampling", "question over", "answered"]
    assert "client" in dict(spent(call, 0))


async def test_a_modern_server_asks_a_legacy_client(tmp_path: Path) -> None:
    question = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}}
    async with bridged(tmp_path, "modern") as bridge:
        wire = await bridge.legacy(**FORM)
        number = wire.send_call({"rounds": [{"a": question}]})
        await answers(wire, "elicitation/create", YES)
        await wire.answer(number)
        (call,) = recorded(bridge)
    asked = ["input required", "elicitation", "question over"]
    assert events(call) == [*SENT, *asked, *SENT]


async def test_a_parked_call_goes_on_as_another_one(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        await resumed(wire, [SAMPLE, WAIT], await wire.call([SAMPLE, WAIT]), SAID)
        first, second = recorded(bridge)
    assert events(first) == ["connecting", "sent", "sampling", "parked"]
    assert first.outcome == "input required"
    assert events(second)[0] == "resumed"
    assert events(second)[-1] == "answered"
    assert (second.continues, second.outcome) == (first.number, "result")


async def test_progress_is_counted_without_a_list(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy()
        await wire.call([["progress", number] for number in range(200)], meta={"progressToken": "p"})
        (call,) = recorded(bridge)
    assert call.progress is not None
    assert call.progress.count == 200
    assert 0 < call.progress.first <= call.progress.last <= (call.seconds or 0)
    assert events(call) == SENT


async def test_events_without_end_are_bounded(tmp_path: Path) -> None:
    ask = [["ask", f"q{number}", "roots/list"] for number in range(60)]
    async with bridged(tmp_path) as bridge:
        wire = await bridge.legacy(roots={})
        number = wire.send_call([*ask, WAIT])
        for _ in ask:
            await answers(wire, "roots/list", {"roots": []})
        await wire.answer(number)
        (call,) = recorded(bridge)
    assert len(call.events) == 32
    assert call.outcome == "result"


async def test_a_call_that_is_sent_again(fake_mcp: Fake, tmp_path: Path) -> None:
    fault = {"kind": "crash", "when": "before", "run": 1}
    tools = [{"name": "look", "annotations": {"readOnlyHint": True}}]
    async with proxy_of(tmp_path, fake_mcp(name="shop", tools=tools, faults=[fault])) as proxy:
        await executed(proxy, "shop__look")
        (call,) = recorded(proxy)
    assert events(call) == ["connecting", "sent", "sent", "answered"]


async def test_repairs_are_counted_and_their_values_not_kept(fake_mcp: Fake, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"user_name": {"type": "string"}}}
    tools = [{"name": "look", "inputSchema": schema}]
    async with proxy_of(tmp_path, fake_mcp(name="shop", tools=tools)) as proxy:
        await executed(proxy, "Shop-Look", {"userName": "hush"})
        (call,) = recorded(proxy)
        assert call.repairs == 2
        assert "hush" not in repr(next(iter(proxy.tool_caller.calls)))


async def test_a_result_that_is_kept(fake_mcp: Fake, tmp_path: Path) -> None:
    tools = [{"name": "log", "result": {"text": "some words " * 20_000}}]
    async with proxy_of(tmp_path, fake_mcp(name="shop", tools=tools)) as proxy:
        client = Client(era=Era.LEGACY)
        await proxy.call("execute_tool", b'{"name":"shop__log"}', Exchange(client))
        (call,) = recorded(proxy)
    assert call.kept
    assert 30_000 < call.tokens < 80_000


async def test_the_calls_of_a_program_name_it(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        await run_code(wire, "up__look(do=[])\nup__look(do=[])\n1")
        program, *calls = recorded(bridge)
    assert (program.server, program.tool, program.outcome) == ("mcpzip", "run_code", "result")
    assert [call.parent for call in calls] == [program.number] * 2
    assert [events(call) for call in calls] == [SENT] * 2


async def test_what_is_wrong_with_a_program_is_not_remembered(tmp_path: Path) -> None:
    """The reply quotes the program, and so its arguments."""
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        assert "hush" in await error(wire, "up__look(do=[])\nhush")
        (program,) = recorded(bridge)
        assert (program.outcome, program.error) == ("no result", "")
        await run_code(wire, "raise ValueError('hush')")
        assert "hush" not in repr(list(bridge.proxy.tool_caller.calls))


async def test_the_call_that_a_paused_program_waits_for_is_its_own(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        await wire.call(call_to_make(await run_code(wire, "up__run(do=[])\n1")), "execute_tool")
        program, call = recorded(bridge)
    assert (call.tool, call.parent) == ("run", program.number)


async def test_what_may_do_more_than_read_is_remembered_as_refused(tmp_path: Path) -> None:
    async with bridged(tmp_path, expose={"split": True}) as bridge:
        wire = await bridge.legacy()
        await wire.call({"name": "up__run", "arguments": {}}, "execute_read_tool")
        (call,) = recorded(bridge)
        assert (call.outcome, call.events, call.decision) == ("not read-only", (), "")
        assert call.error
    async with bridged(tmp_path, expose={"split": True}, policy={"destroys": "deny"}) as bridge:
        wire = await bridge.legacy()
        await wire.call({"name": "up__run", "arguments": {}}, "execute_read_tool")
        (call,) = recorded(bridge)
        assert (call.outcome, call.decision, call.rule) == ("denied", "deny", "policy.destroys")


async def test_who_calls_is_told_apart(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        names = ["one", "two"]
        clients = [Client(info=json.dumps({"name": name, "version": "7"}).encode(), pid=5) for name in names]
        for client in (*clients, clients[0]):
            await bridge.proxy.call("up__run", b'{"do":[]}', Exchange(client))
        assert [(call.client, call.version, call.pid) for call in recorded(bridge)] == [
            ("one", "7", 5),
            ("two", "7", 5),
            ("one", "7", 5),
        ]


async def test_a_parked_call_whose_client_is_gone(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        await wire.call([SAMPLE, WAIT])
        await bridge.proxy.remove_client(wire.session.client)
        await asyncio.sleep(0)
        (call,) = recorded(bridge)
    assert "abandoned" in events(call)
    assert call.outcome == "input required"
