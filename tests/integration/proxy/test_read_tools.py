"""`execute_read_tool` reaches tools that read and no others: by no name, in no era, in no state of a call."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.bridging import Bridge, Wire, again, bridged, questions, state_of
from helpers.driver import Json, config_of, encoded, text_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcpzip.config.paths import audit_path
from mcpzip.policy.audit_files import FileReader, decoded

YES: Json = {"action": "accept", "content": {}}
FORM: Json = {"elicitation": {}}
SPLIT: Json = {"expose": {"split": True}}
READ, ANY = "execute_read_tool", "execute_tool"
ASKS: Json = {"mode": "form", "message": "?", "requestedSchema": {}}
ROUND: Json = {"q": {"method": "elicitation/create", "params": ASKS}}

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


async def client(bridge: Bridge, era: str, **capabilities: object) -> Wire:
    return await bridge.legacy(**capabilities) if era == "legacy" else bridge.modern(**capabilities)


def said(answer: Json) -> str:
    assert answer["result"].get("isError") is True, answer
    return text_of(answer["result"])


def ran(bridge: Bridge) -> list[str]:
    """The names of the tools that the server was asked to run."""
    return [call["name"] for call in bridge.got("tools/call")]


def use(name: str, /, **arguments: object) -> Json:
    return {"name": name, "arguments": arguments}


def edit(bridge: Bridge, folder: Path, server: Json | None = None, **keys: Any) -> None:
    """Edits the config. server: more of the server's entry."""
    others = json.loads((folder / "config.json").read_bytes())["mcpServers"]
    others["up"] |= server or {}
    bridge.proxy.reconfigure(config_of(folder, others=others, **{**SPLIT, **keys}))


async def redefine(bridge: Bridge, name: str, **fields: object) -> None:
    """The server lists one of its tools differently."""
    state = bridge.proxy._catalog_state
    record = state.catalog.servers["up"]
    entries = record.entries
    changed = [
        each.parse("up", json.dumps({"name": name, **fields}).encode()) if each.tool == name else each
        for each in entries
    ]
    await bridge.proxy._refresher.close()  # a listing under way would bring the tool back as it was
    state._replace(type(state.catalog)({"up": replace(record, entries=type(entries)(changed))}))


# what it runs


@ERAS
async def test_it_runs_what_reads_and_execute_tool_runs_everything(tmp_path: Path, era: str) -> None:
    async with bridged(tmp_path, **SPLIT) as bridge:
        wire = await client(bridge, era)
        for tool, through in (("up__look", READ), ("up__look", ANY), ("up__run", ANY)):
            assert "isError" not in (await wire.call(use(tool, do=[]), through))["result"]
        assert said(await wire.call(use("up__run", do=[]), READ)) == (
            "execute_read_tool runs only tools that read, and the class of up__run is: writes, may destroy, "
            "reaches out. Nothing ran. Call it with execute_tool."
        )
    assert ran(bridge) == ["look", "look", "run"]


async def test_the_config_decides_what_a_tool_is(tmp_path: Path) -> None:
    """Not what its server says of it."""
    async with bridged(tmp_path, server={"risk": {"run": "reads", "look": "writes"}}, **SPLIT) as bridge:
        wire = bridge.modern()
        assert "isError" not in (await wire.call(use("up__run", do=[]), READ))["result"]
        assert "up__look is: writes." in said(await wire.call(use("up__look", do=[]), READ))
        edit(bridge, tmp_path, {"risk": {}})
        assert "up__run is: writes, may destroy" in said(await wire.call(use("up__run", do=[]), READ))
        assert "isError" not in (await wire.call(use("up__look", do=[]), READ))["result"]
    assert ran(bridge) == ["run", "look"]


async def test_of_our_own_tools_it_runs_the_status(tmp_path: Path) -> None:
    async with bridged(tmp_path, audit=True, **SPLIT) as bridge:
        wire = bridge.modern()
        assert "up" in text_of((await wire.call({"name": "Proxy-Status"}, READ))["result"])
        for name in ("proxy_refresh", "Proxy.Refresh"):
            assert "the class of proxy_refresh is: writes." in said(await wire.call({"name": name}, READ))
        assert "isError" not in (await wire.call({"name": "proxy_refresh"}, ANY))["result"]
    assert not Path(audit_path(str(tmp_path / "config.json"))).exists()  # noqa: ASYNC240 - a small file


async def test_without_the_setting_there_is_no_such_tool(tmp_path: Path) -> None:
    for expose in ("meta", "direct", {"mode": "meta", "split": False}):
        async with bridged(tmp_path, expose=expose) as bridge:
            for wire in (await bridge.legacy(), bridge.modern()):
                error = (await wire.call(use("up__look", do=[]), READ))["error"]
                assert error["code"] == -32602
                assert f"There is no tool '{READ}'" in error["message"]
        assert ran(bridge) == []


async def test_a_server_has_its_own_where_nothing_is_ours(tmp_path: Path) -> None:
    async with bridged(tmp_path, expose="transparent") as bridge:
        await bridge.modern().call({"do": []}, READ)
    assert ran(bridge) == [READ]


# no way round: names

CALLS: list[Json] = [
    use("up__run"),
    use("run"),
    use("up-run"),
    use("UP__RUN"),
    use("up.run"),
    use("upRun"),
    use(" up__run "),
    use("up__runn"),
    use("mcp__mcpzip__up__run"),
    use("up__run", name="up__look"),
    {"tool_name": "up__run", "args": {"do": []}},
    {"name": "up__run", "do": [], "tool": "up__look"},
    {"name": "up__run", "arguments": '{"do": []}'},
    {"name": "up__run", "arguments": None, "timeout": 5},
    {"name": "up__run", "arguments": [1]},
    use(ANY, name="up__run", arguments={"do": []}),
    use(READ, name="up__run", arguments={"do": []}),
    use("mcpzip__execute_tool", name="up__run"),
]


@ERAS
@pytest.mark.parametrize("policy", [None, {"tools": {"up__*": "allow"}}], ids=["without", "policy"])
async def test_no_name_leads_to_a_tool_that_does_more(tmp_path: Path, era: str, policy: Json | None) -> None:
    async with bridged(tmp_path, server={"pin": True}, policy=policy, **SPLIT) as bridge:
        wire = await client(bridge, era, **FORM)
        for each in (*CALLS, encoded(use("up__run")).decode()):
            answer = await wire.answer(wire.send("tools/call", {"name": READ, "arguments": each}))
            assert "error" in answer or said(answer), each
        assert ran(bridge) == []
        # The names mean what they should, as the other tool shows.
        for each in CALLS[:4]:
            await wire.call(each, ANY)
        assert ran(bridge) == ["run"] * 4


NAMES = ["up__look", "up__run", "up__run_all", "up__look_up", "up2__run", "up2__look"]


@given(
    st.sampled_from(NAMES),
    st.lists(
        st.sampled_from(
            [
                str.upper,
                str.title,
                lambda name: name.replace("__", "."),
                lambda name: name.replace("_", ""),
                lambda name: name.partition("__")[2] or name,
                lambda name: name[:-1],
                lambda name: name + "s",
                lambda name: name[:2] + name[3:],
                lambda name: f"mcp__mcpzip__{name}",
                lambda name: f" {name}\n",
            ]
        ),
        max_size=3,
    ),
    st.sampled_from(["legacy", "modern"]),
    st.dictionaries(st.sampled_from(["run", "look", "l*", "*_all"]), st.sampled_from(["reads", "writes"])),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_the_name_and_the_config_are_what_runs_is_of_the_right_class(
    shared_bridge: tuple[Bridge, Path], name: str, spoil: list[Callable[[str], str]], era: str, risk: Json
) -> None:
    bridge, folder = shared_bridge
    edit(bridge, folder, {"risk": risk})
    before = len(bridge.got("tools/call")), len(bridge.got("tools/call", "up2"))
    for change in spoil:
        name = change(name)
    wire = await client(bridge, era)
    answer = await wire.call(use(name, do=[]), READ)
    new = [("up", one["name"]) for one in bridge.got("tools/call")[before[0] :]]
    new += [("up2", one["name"]) for one in bridge.got("tools/call", "up2")[before[1] :]]
    decisions = bridge.proxy.tool_caller.guard.decisions
    for server, tool in new:
        entry = bridge.proxy.catalog.get(f"{server}__{tool}")
        assert entry is not None
        assert decisions.of(entry).risk.effect == "reads"
    assert bool(new) == ("result" in answer and "isError" not in answer["result"])


@pytest.fixture
async def shared_bridge(tmp_path: Path) -> Any:
    async with bridged(tmp_path, "legacy", "legacy", **SPLIT) as bridge:
        yield bridge, tmp_path


async def test_no_batch_leads_there_either(tmp_path: Path) -> None:
    async with bridged(tmp_path, **SPLIT) as bridge, bridge.web() as web:
        session = await web.session(protocolVersion="2025-03-26")
        session.headers.pop("MCP-Protocol-Version")  # which this version has not
        batch = [
            {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": READ, "arguments": each}}
            for n, each in enumerate((use("up__run", do=[]), use("up__look", do=[]), use("run", do=[])))
        ]
        reply = await session.ask("POST", json.dumps(batch).encode())
        answers = {each["id"]: each["result"] for each in json.loads(reply.messages[-1])}
        assert [answers[n].get("isError", False) for n in range(3)] == [True, False, True]
    assert ran(bridge) == ["look"]


# no way round: time


@ERAS
async def test_what_changes_after_the_search_is_what_it_is_at_the_call(tmp_path: Path, era: str) -> None:
    async with bridged(tmp_path, **SPLIT) as bridge:
        wire = await client(bridge, era)
        found = text_of((await wire.call({"query": "look"}, "search_tools"))["result"])
        assert found.splitlines()[0] == "up__look [] read-only"
        await redefine(bridge, "look", description="Looks, and tidies up.")
        assert "up__look is: writes, may destroy" in said(await wire.call(use("up__look", do=[]), READ))
        found = text_of((await wire.call({"query": "look"}, "search_tools"))["result"])
        assert found.startswith("up__look: Looks, and tidies up [")
        assert "read-only" not in found
        await redefine(bridge, "look", annotations={"readOnlyHint": True})
        assert "isError" not in (await wire.call(use("up__look", do=[]), READ))["result"]
    assert ran(bridge) == ["look"]


CHANGES: dict[str, tuple[Json, str]] = {
    "another class": ({"risk": {"look": "writes"}}, "up__look is: writes. Nothing ran."),
    "withdrawn": ({"tools": {"deny": ["look"]}}, "was changed or withdrawn"),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_what_changes_while_a_person_is_asked_does_not_run(tmp_path: Path, change: str) -> None:
    server, sentence = CHANGES[change]
    async with bridged(tmp_path, policy="ask", **SPLIT) as bridge:
        old, new = await bridge.legacy(**FORM), bridge.modern(**FORM)
        number = old.send_call(use("up__look", do=[]), READ)
        asked = await old.asked("elicitation/create")
        question = await new.call(use("up__look", do=[]), READ)
        edit(bridge, tmp_path, server, policy="ask")
        old.write({"id": asked["id"], "result": YES})
        assert sentence in said(await old.answer(number))
        assert said(await resumed_read(new, use("up__look", do=[]), question, YES))
    assert ran(bridge) == []


async def resumed_read(wire: Wire, call: Json, asked: Json, *answers: Json) -> Json:
    return await wire.answer(again(wire, call, asked, *answers, tool=READ))


async def test_a_call_of_a_legacy_client_is_not_made_again_if_its_tool_does_more_now(tmp_path: Path) -> None:
    """A modern server asks, and the client answers after the class of the tool has changed."""
    async with bridged(tmp_path, "modern", **SPLIT) as bridge:
        wire = await bridge.legacy(**FORM)
        for server, calls in (({}, 2), ({"risk": {"look": "writes"}}, 1)):
            before = len(ran(bridge))
            number = wire.send_call(use("up__look", rounds=[ROUND]), READ)
            asked = await wire.hears(lambda one: one.get("method") == "elicitation/create")
            wire.heard.remove(asked)
            edit(bridge, tmp_path, server)
            wire.write({"id": asked["id"], "result": YES})
            answer = await wire.answer(number)
            assert len(ran(bridge)) - before == calls
        assert "up__look is: writes. Nothing ran." in said(answer)


@ERAS
async def test_a_waiting_call_goes_on_only_for_what_reads(tmp_path: Path, era: str) -> None:
    """With either tool, but not for another call than the one that waits, and not after its class changed."""
    do: Json = (
        {"rounds": [ROUND]}
        if era == "modern"
        else {"do": [["ask", "q", "elicitation/create", ASKS], ["wait"]]}
    )
    look, run = use("up__look", **do), use("up__run", **do)
    async with bridged(tmp_path, era, **SPLIT) as bridge:
        wire = bridge.modern(**FORM)
        asked = await wire.call(look, READ)
        assert list(questions(asked))
        done = await resumed_read(wire, look, asked, YES)
        assert "isError" not in done["result"]
        before = len(ran(bridge))

        # What execute_tool has begun is not ended by the other.
        asked = await wire.call(run, ANY)
        assert "up__run is: writes, may destroy" in said(await resumed_read(wire, run, asked, YES))
        if era == "legacy":  # the state is ours: it is of one call
            refused = await resumed_read(wire, look, asked, YES)
            assert refused["error"]["code"] == -32602
        assert ran(bridge)[before:] == ["run"]
        assert "isError" not in (await wire.answer(again(wire, run, asked, YES, tool=ANY)))["result"]
        before = len(ran(bridge))

        asked = await wire.call(look, READ)
        edit(bridge, tmp_path, {"risk": {"look": "writes"}})
        assert "up__look is: writes. Nothing ran." in said(await resumed_read(wire, look, asked, YES))
        assert ran(bridge)[before:] == ["look"]
        assert "isError" not in (await wire.answer(again(wire, look, asked, YES, tool=ANY)))["result"]


# the policy comes on top


async def test_the_policy_is_applied_too(tmp_path: Path) -> None:
    async with bridged(tmp_path, policy={"reads": "deny", "destroys": "ask"}, **SPLIT) as bridge:
        wire = bridge.modern(**FORM)
        assert 'policy.reads is "deny"' in said(await wire.call(use("up__look", do=[]), READ))
        assert "Call it with execute_tool" in said(await wire.call(use("up__run", do=[]), READ))
        edit(bridge, tmp_path, policy={"reads": "ask", "destroys": "deny"})
        asked = await wire.call(use("up__look", do=[]), READ)
        assert "tool look of the server up" in questions(asked)["approval"]["params"]["message"]
        assert ran(bridge) == []
        assert "isError" not in (await resumed_read(wire, use("up__look", do=[]), asked, YES))["result"]
        # Not: call it with execute_tool, which is denied as well.
        denied = said(await wire.call(use("up__run", do=[]), READ))
        assert 'denied by policy: policy.destroys is "deny"' in denied
    assert ran(bridge) == ["look"]


async def test_an_approval_of_one_is_not_one_of_the_other(tmp_path: Path) -> None:
    async with bridged(tmp_path, policy="ask", **SPLIT) as bridge:
        wire = bridge.modern(**FORM)
        asked = await wire.call(use("up__look", do=[]), READ)
        given = {"inputResponses": {"approval": YES}, "requestState": state_of(asked)}
        assert "up__run is: writes" in said(await wire.call(use("up__run", do=[]), READ, **given))
        assert "isError" not in (await wire.call(use("up__look", do=[]), READ, **given))["result"]
    assert ran(bridge) == ["look"]


async def test_what_is_refused_is_in_the_audit_log(tmp_path: Path) -> None:
    async with bridged(tmp_path, audit=True, policy={"tools": {"up2__*": "deny"}}, **SPLIT) as bridge:
        wire = bridge.modern()
        await wire.call(use("up__look", do=[]), READ)
        await wire.call(use("up__run", do=[], to="all"), READ)
        edit(bridge, tmp_path, audit=True, policy={"destroys": "deny"})
        await wire.call(use("up__run", do=[]), READ)
    lines = [decoded(text) for _, text in FileReader(audit_path(str(tmp_path / "config.json"))).texts()]
    assert [(line.tool, line.decision, line.outcome, line.arguments) for line in lines if line] == [
        ("look", "allow", "result", ("do",)),
        ("run", "allow", "not read-only", ("do", "to")),
        ("run", "deny", "denied", ("do",)),
    ]
    counts = bridge.proxy.statistics.servers["up"]
    assert (counts.calls, counts.errors) == (1, 0)


# what a model is told


async def test_describe_says_which_of_the_two(tmp_path: Path) -> None:
    async with bridged(tmp_path, server={"policy": {"tools": {"run": "ask"}}}, **SPLIT) as bridge:
        wire = bridge.modern()

        async def described(name: str) -> str:
            return text_of((await wire.call({"name": name}, "describe_tool"))["result"])

        assert "\nRun it with execute_read_tool.\n" in await described("up__look")
        assert "a person is asked before each call. Run it with execute_tool.\n" in await described("up__run")
        assert (await described("proxy_status")).endswith("Run it with execute_read_tool.")
        assert (await described("proxy_refresh")).endswith("Run it with execute_tool.")
        edit(bridge, tmp_path, {"policy": "deny"})
        assert "Run it with" not in await described("up__run")
        edit(bridge, tmp_path, {"policy": None}, expose="meta")
        assert "Run it with" not in await described("up__look") + await described("proxy_status")


async def test_a_name_that_is_not_shown_says_which_of_the_two(tmp_path: Path) -> None:
    async with bridged(tmp_path, **SPLIT) as bridge:
        wire = bridge.modern()
        for name, through in (("up__look", READ), ("up__run", ANY)):
            message = (await wire.call({"do": []}, name))["error"]["message"]
            assert f"{through} with name '{name}'" in message
        assert READ in (await wire.call({}, "execute_red_tool"))["error"]["message"]
    assert ran(bridge) == []
