"""`run_code`: programs call tools of real servers; what may do more than read waits for a yes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.bridging import bridged
from helpers.driver import Json, serving, text_of
from helpers.programs import FORM, META, call_to_make, done, error, run_code, value
from mcpzip_fakes.launch import FakeServer

from mcpzip.model import limits
from mcpzip.programs.stubs import UNCHECKED
from mcpzip.proxy.programs import Programs

Fake = Callable[..., FakeServer]

YES: Json = {"action": "accept", "content": {}}
NO: Json = {"action": "decline"}


# what a program is


async def test_calls_one_by_one_and_side_by_side(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        code = (
            "import asyncio\n"
            "one = up__look(do=[['result', {'content': [], 'structuredContent': {'n': 0}}]])\n"
            "two = await asyncio.gather(*[\n"
            "    up__look(do=[['result', {'content': [], 'structuredContent': {'n': n}}]]) for n in (1, 2)\n"
            "])\n"
            "return [each['n'] for each in (one, *two)]"
        )
        assert await value(wire, code) == [0, 1, 2]
        assert len(done(bridge)) == 3


async def test_only_what_it_ends_with_is_shown(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        result = await run_code(wire, "print('a line')\nx = up__look(do=[])\n'text'")
        assert [part["text"] for part in result["content"][:2]] == ["text", "Printed:\na line\n"]
        assert "1 call: up__look" in result["content"][2]["text"]
        assert "Variables stay: x." in result["content"][2]["text"]
        assert result["_meta"]["mcpzip/program"]["calls"] == [{"tool": "up__look", "state": "done"}]
        assert text_of(await run_code(wire, "x = 1")).startswith("The program ended without a value.")


async def test_a_value_is_shown_in_its_own_letters(tmp_path: Path) -> None:
    """A text in Chinese was shown as escapes, in two to three times the tokens."""
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        result = await run_code(wire, "{'text': '开卷 é 🙂'}")
        assert result["content"][0]["text"] == '{"text": "开卷 é 🙂"}'


async def test_variables_stay_also_after_an_error(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire, other = await bridge.legacy(), await bridge.legacy()
        said = await error(wire, "x = up__look(do=[])\ny = 5\n1 / 0")
        assert "Line 3 (1 / 0): ZeroDivisionError" in said
        assert "1 call: up__look." in said
        assert "don't repeat its calls" in said
        assert await value(wire, "[x, y]") == [{}, 5]
        assert "NameError" in await error(other, "y")
        await run_code(wire, "up__run = 5")
        assert await value(wire, "up__run") == 5
        assert "Variables are not kept" not in said


async def test_a_tools_error_can_be_caught(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        bad = "do=[['result', {'content': [{'type': 'text', 'text': 'it is closed'}], 'isError': True}]]"
        code = f"try:\n    up__look({bad})\nexcept RuntimeError as error:\n    found = str(error)\nfound"
        assert text_of(await run_code(wire, code)).startswith("it is closed\n")
        assert "RuntimeError: it is closed" in await error(wire, f"up__look({bad})")
        assert "RuntimeError: " in await error(wire, "up__look(do=[['error', -32000, 'odd']])")


async def test_what_is_certainly_wrong_is_said_before_anything_runs(fake_mcp: Fake, tmp_path: Path) -> None:
    properties = {"id": {"type": "integer"}, "name": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["id"]}
    reads = {"readOnlyHint": True}
    shop = fake_mcp(name="shop", tools=[{"name": "get", "inputSchema": schema, "annotations": reads}])
    wrong = {
        "shop__get(id=1)\nshop__gett(id=2)": "There is no tool 'shop__gett'. The nearest: shop__get.",
        "shop__get(id=1)\nshop__get(nr=2)": "Line 2: Argument 'nr' does not match",
        "shop__get(id=1)\nshop__get()": "Line 2: No argument provided for required parameter 'id'",
        "shop__get(id=1)\nshop__get(id='x')": "Line 2: Argument to function 'shop__get' is incorrect",
        "shop__get(id=1)\nunheard_of": "Line 2: Name 'unheard_of' used when not defined",
        "shop__get(id=1)\ndef f(:": "line 2: ",
        "shop__get(id=1)\nimport pandas": "Line 2: Cannot resolve imported module 'pandas'",
    }
    with serving(tmp_path, shop, code=True) as client:
        client.finds("get", "shop__get")
        for code, expected in wrong.items():
            answer = client.use("run_code", code=code)
            assert answer.failed
            assert expected in answer.text, (code, answer.text)
        assert not client.use("run_code", code="shop__get(id=1)\nshop__get(id=2)").failed
        # What was refused although the sandbox runs it.
        for code in (
            "more = {'id': 1, 'name': 'x'}\nshop__get(**more)",
            "from __future__ import annotations\nshop__get(id=1)",
            f"shop__get(id=1)\n[{', '.join(UNCHECKED)}]\n1",
        ):
            answer = client.use("run_code", code=code)
            assert not answer.failed, answer.text
    assert len(shop.record.calls("get")) == 5


async def test_names_that_are_no_python_names(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(
        name="my-shop",
        tools=[{"name": "do.it", "annotations": {"readOnlyHint": True}, "result": {"text": "a"}}],
    )
    with serving(tmp_path, shop, code=True) as client:
        client.finds("do it", "my-shop__do.it")
        assert client.use("run_code", code="my_shop__do_it()").text.startswith("a\n")
        assert client.use("run_code", code="call('my-shop__do.it', {'x': 1})").text.startswith("a\n")
        many = "import asyncio\nawait asyncio.gather(call('my-shop__do.it'), my_shop__do_it())"
        assert client.use("run_code", code=many).text.startswith('["a", "a"]\n')


async def test_kept_results_are_variables_and_images_survive(fake_mcp: Fake, tmp_path: Path) -> None:
    image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
    words = [{"id": number, "text": "words " * 20} for number in range(2_000)]
    reads = {"readOnlyHint": True}
    tools = [
        {"name": "all", "annotations": reads, "result": {"structuredContent": {"items": words}}},
        {"name": "draw", "annotations": reads, "result": {"content": [{"type": "text", "text": "x"}, image]}},
    ]
    shop = fake_mcp(name="shop", tools=tools)
    with serving(tmp_path, shop, code=True) as client:
        client.finds("all", "shop__all")
        handle = client.execute("shop__all").result["content"][-1]["name"]
        for name in ("r1", handle.replace("-", "_")):
            assert client.use("run_code", code=f"len({name}['items'])").text.startswith("2000\n")
        drawn = client.use("run_code", code="x = shop__draw()\nx[1]").result["content"]
        assert image in drawn
        assert client.use("run_code", code="x[0]['text'], len(shop__all()['items'])").text.startswith(
            '["x", 2000]'
        )
        large = client.use("run_code", code="r1").result["content"]
        assert large[0]["text"].startswith("Kept as ")
        assert large[-1]["text"].startswith("No calls")
        assert client.leave() == 0


def test_the_tool_is_there_if_the_config_says_so(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop")
    with serving(tmp_path, shop) as client:
        names = [tool["name"] for tool in client.ask("tools/list").result["tools"]]
        assert "run_code" not in names
        assert (
            client.ask("tools/call", {"name": "run_code", "arguments": {"code": "1"}}).error["code"] == -32602
        )
    with serving(tmp_path, shop, code={"effects": "deny"}) as client:
        tools = {tool["name"]: tool for tool in client.ask("tools/list").result["tools"]}
        assert tools["run_code"]["inputSchema"]["required"] == ["code"]
        assert "run" in tools["execute_tool"]["inputSchema"]["properties"]
        assert client.use("run_code", code="1 + 1").text.startswith("2\n")
        for wrong in (
            {},
            {"code": ""},
            {"code": 5},
            {"code": "1", "timeout": 0},
            {"code": "1", "timeout": "x"},
        ):
            assert client.use("run_code", **wrong).failed, wrong


# effects


async def test_a_person_is_asked_by_the_client_in_both_eras(tmp_path: Path) -> None:
    code = "found = up__look(do=[])\nfound = up__run(do=[], note='a')\nfound"
    async with bridged(tmp_path, **META) as bridge:
        old, new = await bridge.legacy(**FORM), bridge.modern(**FORM)
        number = old.send_call({"code": code}, "run_code")
        asked = await old.asked("elicitation/create")
        assert '"note": "a"' in asked["params"]["message"]
        assert len(done(bridge)) == 1
        old.write({"id": asked["id"], "result": YES})
        assert text_of((await old.answer(number))["result"]).startswith("{}\n")
        assert len(done(bridge)) == 2
        first = await run_code(new, code)
        assert first["resultType"] == "input_required"
        assert len(done(bridge)) == 3
        key = next(iter(first["inputRequests"]))
        again = {"inputResponses": {key: YES}, "requestState": first["requestState"]}
        other = await new.call({"code": f"{code}\n1"}, "run_code", **again)
        assert "another 'code'" in text_of(other["result"])
        assert text_of(await run_code(new, code, **again)).startswith("{}\n")
        assert len(done(bridge)) == 4
        assert "Nothing was run again" in text_of(await run_code(new, code, **again))
    assert len(done(bridge)) == 4


async def test_no_worker_waits_for_a_person(tmp_path: Path) -> None:
    """Eight people who did not answer would have kept all others from running programs."""
    code = "import asyncio\nawait asyncio.gather(up__run(do=[], n=1), up__look(do=[]), up__run(do=[], n=2))"
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy(**FORM)
        number = wire.send_call({"code": code}, "run_code")
        for count in (1, 2):
            await wire.hears(lambda one: one.get("method") == "elicitation/create")
            asked = wire.heard.pop()
            assert asked["method"] == "elicitation/create"
            assert len(done(bridge)) == count
            programs = bridge.proxy.tool_caller.programs
            assert isinstance(programs, Programs)
            assert programs._sandbox._places._value == limits.PROGRAMS
            wire.write({"id": asked["id"], "result": YES})
        assert text_of((await wire.answer(number))["result"]).startswith("[{}, {}, {}]\n3 calls")


async def test_a_no_is_an_error_in_the_program(tmp_path: Path) -> None:
    code = "try:\n    up__run(do=[])\nexcept RuntimeError as error:\n    found = str(error)\nfound"
    async with bridged(tmp_path, **META) as bridge:
        old, new = await bridge.legacy(**FORM), bridge.modern(**FORM)
        number = old.send_call({"code": code}, "run_code")
        asked = await old.asked("elicitation/create")
        old.write({"id": asked["id"], "result": NO})
        said = text_of((await old.answer(number))["result"])
        assert "declined this call. Nothing ran." in said
        assert "up__run (refused)" in said
        first = await run_code(new, code)
        key = next(iter(first["inputRequests"]))
        again = {"inputResponses": {key: NO}, "requestState": first["requestState"]}
        assert "declined this call" in text_of(await run_code(new, code, **again))
    assert done(bridge) == []


async def test_a_question_of_a_server_reaches_a_modern_client(tmp_path: Path) -> None:
    form = {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": {}}}
    code = f"x = up__look(rounds=[{{'a': {form!r}}}])\ny = up__look(rounds=[])\nx == y, 5"
    async with bridged(tmp_path, "modern", **META) as bridge:
        wire = bridge.modern(**FORM)
        first = await run_code(wire, code)
        assert list(first["inputRequests"]) == ["a"]
        again = {"inputResponses": {"a": YES}, "requestState": first["requestState"]}
        result = await run_code(wire, code, **again)
        assert result["resultType"] == "complete"
        assert "2 calls" in text_of(result)
        assert len(done(bridge)) == 3


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_without_a_way_to_ask_execute_tool_makes_the_call(tmp_path: Path, era: str) -> None:
    code = "x = up__look(do=[])\nprint('a')\nr = up__run(do=[], n=1)\nprint('b')\n[x, r, up__run(do=[], n=2)]"
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy() if era == "legacy" else bridge.modern()
        other = await bridge.legacy() if era == "legacy" else bridge.modern()
        paused = await run_code(wire, code)
        call = call_to_make(paused)
        assert done(bridge) == [{"do": []}]
        changed = await wire.call({**call, "arguments": {"do": [], "n": 7}}, "execute_tool")
        assert "waits for another call" in text_of(changed["result"])
        renamed = await wire.call({**call, "name": "up__look"}, "execute_tool")
        assert "waits for another call" in text_of(renamed["result"])
        foreign = await other.call(call, "execute_tool")
        assert "no paused program" in text_of(foreign["result"])
        assert len(done(bridge)) == 1
        second = call_to_make((await wire.call(call, "execute_tool"))["result"])
        assert second["run"] != call["run"]
        result = (await wire.call(second, "execute_tool"))["result"]
        assert json.loads(result["content"][0]["text"]) == [{}, {}, {}]
        assert result["content"][1]["text"] == "Printed:\na\nb\n"
        assert "3 calls" in text_of(result)
        again = await wire.call(second, "execute_tool")
        assert "no paused program" in text_of(again["result"])
    assert done(bridge) == [{"do": []}, {"do": [], "n": 1}, {"do": [], "n": 2}]


async def test_what_stands_beside_the_arguments(tmp_path: Path) -> None:
    """``run`` means a program only where there are any; else the tool's own is meant, at the wrong place."""
    beside = {"name": "up__run", "arguments": {"do": []}, "run": "p1-a"}
    async with bridged(tmp_path, expose="meta") as bridge:
        wire = await bridge.legacy()
        answer = await wire.call(beside, "execute_tool")
        assert "'run' stands beside 'arguments'" in text_of(answer["result"])
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        for more, said in (({}, "no paused program 'p1-a'"), ({"select": "a"}, "don't go together")):
            assert said in text_of((await wire.call({**beside, **more}, "execute_tool"))["result"])
    assert done(bridge) == []


async def test_two_at_once_make_the_call_once(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        call = call_to_make(await run_code(wire, "up__run(do=[])"))
        numbers = [wire.send_call(call, "execute_tool") for _ in range(5)]
        texts = [text_of((await wire.answer(number))["result"]) for number in numbers]
    assert len(done(bridge)) == 1
    assert sum(text.startswith("{}\n") for text in texts) == 1


async def test_calls_that_wait_side_by_side_are_made_one_by_one(tmp_path: Path) -> None:
    code = (
        "import asyncio\n"
        "x = await asyncio.gather(up__run(do=[], n=1), up__look(do=[], n=2), up__run(do=[], n=3))\nlen(x)"
    )
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        first = call_to_make(await run_code(wire, code))
        assert [each["n"] for each in done(bridge)] == [2]
        second = call_to_make((await wire.call(first, "execute_tool"))["result"])
        assert [each["n"] for each in done(bridge)] == [2, first["arguments"]["n"]]
        result = (await wire.call(second, "execute_tool"))["result"]
        assert text_of(result).startswith("3\n")
    assert sorted(each["n"] for each in done(bridge)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("keys", "runs", "says"),
    [
        ({"code": {"effects": "allow"}}, True, ""),
        ({"code": {"effects": "deny"}}, False, "may do more than read"),
        ({"code": {"allow": ["up__r*"]}}, True, ""),
        ({"code": {"allow": ["up__x*"]}}, False, "is paused before"),
        ({"code": True, "policy": {"tools": {"up__run": "allow"}}}, True, ""),
        ({"code": {"effects": "allow"}, "policy": {"tools": {"up__run": "deny"}}}, False, "denied by policy"),
        ({"code": {"effects": "allow"}, "policy": {"tools": {"up__run": "ask"}}}, False, "is paused before"),
        ({"code": {"allow": ["up__run"]}, "policy": "ask"}, False, "is paused before"),
    ],
)
async def test_the_config_decides(tmp_path: Path, keys: Json, runs: bool, says: str) -> None:
    async with bridged(tmp_path, expose="meta", **keys) as bridge:
        wire = await bridge.legacy()
        text = text_of(await run_code(wire, "up__run(do=[])"))
    assert says in text
    assert len(done(bridge)) == runs


async def test_a_person_reads_whose_results_the_program_has_seen(tmp_path: Path) -> None:
    """What a program moves from one server to another, nobody reads."""
    async with bridged(tmp_path, "legacy", "legacy", **META) as bridge:
        wire = await bridge.legacy(**FORM)
        wire.send_call({"code": "x = up2__look(do=[])\nup__run(do=[], x=x)"}, "run_code")
        asked = await wire.asked("elicitation/create")
        assert "The agent has seen results of up2 before." in asked["params"]["message"]
