"""Nothing that a program calls runs twice, however the program ends."""

import os
import signal
from pathlib import Path

import pytest
from helpers.bridging import Bridge, bridged
from helpers.changing_server import ChangingServer, tool
from helpers.driver import comes_true, proxy_of, text_of
from helpers.programs import FORM, META, call_to_make, done, error, run_code, value
from msgspec.structs import replace

from mcpzip.config.schema import CodeConfig

HANG = "['hang']"


async def test_a_program_that_is_cancelled_ends_its_calls_and_says_so_later(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        number = wire.send_call({"code": "x = up__look(do=[])\nup__look(do=[['hang']])"}, "run_code")
        await comes_true(lambda: len(done(bridge)) == 2)
        wire.cancel(number)
        await comes_true(lambda: bool(bridge.got("notifications/cancelled")))
        text = text_of(await run_code(wire, "5"))
        assert text.startswith("5\n")
        assert "The client stopped the program before: 2 calls: up__look, up__look (may have run)." in text
        assert "stopped" not in text_of(await run_code(wire, "6"))
    assert len(done(bridge)) == 2


async def test_time_that_is_over_is_an_error_in_the_program(tmp_path: Path) -> None:
    code = (
        "import asyncio\nbefore = 1\ntry:\n"
        "    await asyncio.gather(up__look(do=[['hang']]), up__look(do=[['hang']]))\n"
        "except TimeoutError as error:\n    found = str(error)\n"
        "try:\n    up__look(do=[])\nexcept TimeoutError:\n    late = True\n[found, late]"
    )
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        await value(wire, "up__look(do=[])")
        answer = await wire.call({"code": code, "timeout": 1.5}, "run_code")
        assert text_of(answer["result"]).startswith('["the time of the program is over", true]')
        assert "up__look ×2 (may have run)" in text_of(answer["result"])
        assert await value(wire, "before") == 1
        await comes_true(lambda: len(bridge.got("notifications/cancelled")) == 2)
    assert len(done(bridge)) == 3


async def test_a_server_that_dies_in_a_call_gets_it_once(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        said = await error(wire, "up__look(do=[['die']])")
        assert "Of the program: 1 call: up__look (may have run)." in said
        assert "Check what may have run" in said
        assert await value(wire, "up__look(do=[])") == {}
    assert done(bridge) == [{"do": [["die"]]}, {"do": []}]


@pytest.mark.parametrize("step", range(4))
async def test_a_call_that_is_cancelled_at_any_step_was_made_once(tmp_path: Path, step: int) -> None:
    """Four calls, of which each but one waits for its turn; the client leaves at one of them."""
    calls = [f"up__look(do=[{HANG if each == step else ''}], n={each})" for each in range(4)]
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        number = wire.send_call({"code": "\n".join(calls)}, "run_code")
        await comes_true(lambda: len(done(bridge)) == step + 1)
        wire.cancel(number)
        text = text_of(await run_code(wire, "1"))
        states = f"{step + 1} call"
        assert states in text
        assert "up__look (may have run)" in text
    assert [each["n"] for each in done(bridge)] == list(range(step + 1))


ENDS = ("the client leaves", "the call takes too long", "the server dies", "the worker is killed")


@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("end", ENDS)
async def test_however_a_program_ends_each_call_was_made_once(tmp_path: Path, end: str, step: int) -> None:
    """Three calls, of which one never ends by itself."""
    stays = "['die']" if end == "the server dies" else HANG
    code = "\n".join(f"up__look(do=[{stays if each == step else ''}], n={each})" for each in range(3))
    server = {"timeout": 0.5} if end in ("the call takes too long", "the worker is killed") else None
    async with bridged(tmp_path, server=server, **META) as bridge:
        wire = await bridge.legacy()
        number = wire.send_call({"code": code}, "run_code")
        await comes_true(lambda: len(done(bridge)) == step + 1)
        if end == "the client leaves":
            wire.session.end()
            await wire.session.finish(0.0)
            await comes_true(lambda: bool(bridge.got("notifications/cancelled")))
        else:
            if end == "the worker is killed":
                for worker in workers():
                    os.kill(worker, signal.SIGKILL)
            text = text_of((await wire.answer(number))["result"])
            assert f"{step + 1} call" in text
            assert ("up__look (may have run)" in text) or f"up__look ×{step + 1} (may have run)" in text
            assert await value(wire, "5") == 5
    assert [each["n"] for each in done(bridge)] == list(range(step + 1))


def workers() -> list[int]:
    """The processes of the sandbox that this process has started."""
    if not Path("/proc/self/task").is_dir():
        pytest.skip("the children of a process are in /proc only")
    children = [
        int(pid)
        for each in Path("/proc/self/task").iterdir()
        for pid in (each / "children").read_text().split()
    ]
    return [pid for pid in children if b"monty" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.parametrize("step", range(3))
async def test_a_paused_program_whose_call_is_cancelled_is_over(tmp_path: Path, step: int) -> None:
    code = "\n".join(f"up__run(do=[{HANG if each == step else ''}], n={each})" for each in range(3))
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        call = call_to_make(await run_code(wire, code))
        for _ in range(step):
            call = call_to_make((await wire.call(call, "execute_tool"))["result"])
        number = wire.send_call(call, "execute_tool")
        await comes_true(lambda: len(done(bridge)) == step + 1)
        wire.cancel(number)
        await comes_true(lambda: bool(bridge.got("notifications/cancelled")))
        again = await wire.call(call, "execute_tool")
        assert "no paused program" in text_of(again["result"])
        assert "up__run (may have run)" in text_of(await run_code(wire, "1"))
    assert [each["n"] for each in done(bridge)] == list(range(step + 1))


async def test_a_tool_counts_as_what_it_is_when_it_is_called(tmp_path: Path) -> None:
    """It was called as what it had been when the program began: only reading, or not withdrawn yet."""
    reads, shop = {"readOnlyHint": True}, ChangingServer("shop", tmp_path / "shop")
    paths = ("changed", [tool("look"), tool("pay")]), ("withdrawn", [tool("pay")])
    for name, later in paths:
        shop.offers(tools=[tool("look", annotations=reads), tool("pay")])
        (tmp_path / name).mkdir()
        keys = {"others": {"shop": shop.config}, "trust": "open", **META}
        async with proxy_of(tmp_path / name, **keys) as proxy:
            bridge = Bridge(tmp_path / name, proxy)
            wire = await bridge.legacy()
            call = call_to_make(await run_code(wire, "shop__look()\nshop__pay()\nshop__look()"))
            shop.offers(tools=later)
            await proxy.refresh()
            text = text_of((await wire.call(call, "execute_tool"))["result"])
            assert ("paused before shop__look" if name == "changed" else "was withdrawn meanwhile") in text
            wire.session.end()
            await wire.session.finish(0.0)
    assert [params["name"] for _, params in shop.asked] == ["look", "pay", "look", "pay"]


async def test_a_call_that_was_allowed_may_have_run(tmp_path: Path) -> None:
    """It was said to wait for an answer, although it had got one and had been sent."""
    code = "print('a')\nup__run(do=[['die']])"
    async with bridged(tmp_path, **META) as bridge:
        wire = bridge.modern(**FORM)
        asked = await run_code(wire, code)
        # Nobody has answered, so it is asked again. What was printed was shown once more then.
        asked = await run_code(wire, code, inputResponses={}, requestState=asked["requestState"])
        assert done(bridge) == []
        yes = {key: {"action": "accept", "content": {}} for key in asked["inputRequests"]}
        text = text_of(await run_code(wire, code, inputResponses=yes, requestState=asked["requestState"]))
        assert "1 call: up__run (may have run). Check what may have run" in text
        assert text.count("\na\n") == 1


async def test_a_call_of_which_a_person_is_still_asked_was_not_made(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy(**FORM)
        number = wire.send_call({"code": "up__run(do=[])"}, "run_code")
        asked = await wire.asked("elicitation/create")
        wire.cancel(number)
        wire.write({"id": asked["id"], "result": {"action": "accept", "content": {}}})
        assert "up__run (not run)" in text_of(await run_code(wire, "1"))
    assert done(bridge) == []


async def test_an_answer_and_execute_tool_are_two_ways(tmp_path: Path) -> None:
    """A call whose server waits for an answer would be made once more by `execute_tool`."""
    async with bridged(tmp_path, **META) as bridge:
        wire = bridge.modern(**FORM)
        asked = await run_code(wire, "up__run(do=[])")
        run = asked["requestState"].rpartition("run-")[2]
        call = {"name": "up__run", "arguments": {"do": []}, "run": run}
        assert "no paused program" in text_of((await wire.call(call, "execute_tool"))["result"])
        other = bridge.modern()
        call = call_to_make(await run_code(other, "up__run(do=[])"))
        state = asked["requestState"].replace(run, call["run"])
        again = await other.call({"code": "up__run(do=[])"}, "run_code", requestState=state)
        assert "doesn't wait for an answer" in text_of(again["result"])
    assert done(bridge) == []


async def test_a_paused_program_ends_where_programs_are_turned_off(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        call = call_to_make(await run_code(wire, "up__run(do=[])"))
        bridge.proxy.reconfigure(replace(bridge.proxy.config, code=CodeConfig()))
        assert "no programs run any more" in text_of((await wire.call(call, "execute_tool"))["result"])
    assert done(bridge) == []


async def test_variables_that_a_resumed_program_replaces_are_named(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        call = call_to_make(await run_code(wire, "x = 1\nup__run(do=[])"))
        await run_code(wire, "y = 2")
        text = text_of((await wire.call(call, "execute_tool"))["result"])
        assert "Variables that were set while the program was paused are lost: y." in text
        assert await value(wire, "x") == 1


async def test_a_client_that_leaves_takes_its_programs_along(tmp_path: Path) -> None:
    async with bridged(tmp_path, **META) as bridge:
        wire = await bridge.legacy()
        call_to_make(await run_code(wire, "up__run(do=[])"))
        programs = bridge.proxy.tool_caller.programs
        assert programs is not None
        assert len(programs._sessions) > 0
        wire.send_call({"code": "up__look(do=[['hang']])"}, "run_code")
        await comes_true(lambda: len(done(bridge)) == 1)
        # Over HTTP its requests may end after it has left: what they said was kept then.
        await bridge.endpoint.left(wire.session.client)
        assert len(programs._sessions) == 0
        wire.session.end()
        await wire.session.finish(0.0)
        assert len(programs._sessions) == 0
    assert len(done(bridge)) == 1
