"""Checks with slow, silent, broken or faulty servers, and with a client that disconnects.

The rule: a check asserts an order of events, never a duration, and waits as long as a client would.
"""

import asyncio
import os
from collections.abc import Iterable

from mcpzip_fakes.record import Record

from mcpzip_conformance.check import CONTRACT, MAY, MUST, SHOULD, SPEC_2025, check, expect, saw
from mcpzip_conformance.errors import Finding
from mcpzip_conformance.player import Player
from mcpzip_conformance.processes import is_running
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, Server, server, tool
from mcpzip_conformance.stage import Stage

SHUTDOWN = SPEC_2025 + "/basic/lifecycle#shutdown"
SEVERAL = ("several-servers",)
OWNS = ("owns-servers",)

WELL = server(tools=[tool("echo")])


@check("resilience.slow-start", MUST, CONTRACT, needs=SEVERAL)
async def slow_start(stage: Stage) -> None:
    """A server that starts slowly does not delay the handshake: it is answered before that server has read
    anything."""
    slow = server("slow", tools=[tool("late")], faults=[{"kind": "slow-start", "seconds": 6.0}])
    player = await stage.started(WELL, slow)
    await player.open()
    expect(
        not stage.record("slow").received(),
        "The handshake was answered only after the slow server had started.",
    )


@check("resilience.slow-start-others", MUST, CONTRACT, needs=SEVERAL)
async def slow_start_others(stage: Stage) -> None:
    """While one server is starting the tools of the others can be called."""
    slow = server("slow", tools=[tool("late")], faults=[{"kind": "slow-start", "seconds": 9.0}])
    player = await stage.started(WELL, slow)
    await player.open()
    reply = await player.call(SHOP, "echo", b'{"n":1}')
    while reply.failed and not stage.record("slow").received():  # the other server must start as well
        await asyncio.sleep(0.1)
        reply = await player.call(SHOP, "echo", b'{"n":1}')
    _echoes(reply)
    expect(
        not stage.record("slow").received(), "The call was answered only after the slow server had started."
    )


@check("resilience.slow-start-listing", SHOULD, CONTRACT, needs=SEVERAL)
async def slow_start_listing(stage: Stage) -> None:
    """While one server is starting ``tools/list`` is answered."""
    slow = server("slow", tools=[tool("late")], faults=[{"kind": "slow-start", "seconds": 9.0}])
    player = await stage.started(WELL, slow)
    await player.open()
    await player.list_tools()
    expect(
        not stage.record("slow").received(),
        "tools/list was answered only after the slow server had started.",
    )


@check("resilience.first-call", SHOULD, CONTRACT)
async def first_call(stage: Stage) -> None:
    """A call right after the handshake is answered, even if the server has not been listed yet."""
    player = await stage.started(WELL)
    await player.open()
    _echoes(await player.call(SHOP, "echo", b'{"n":1}'))


@check("resilience.dead-server", MUST, CONTRACT, needs=SEVERAL)
async def dead_server(stage: Stage) -> None:
    """A server that exits at its start does not affect the others, and a call of its tools is refused with an
    error."""
    await _beside(stage, server("broken", tools=[tool("gone")], faults=["exit-at-once"]))


@check("resilience.missing-command", MUST, CONTRACT, needs=SEVERAL)
async def missing_command(stage: Stage) -> None:
    """A server whose command doesn't exist does not affect the others; a call of its tools is refused with an
    error."""
    await _beside(stage, server("broken", tools=[tool("gone")], command=("conformance-no-such-command",)))


@check("resilience.silent-server", MUST, CONTRACT, needs=SEVERAL)
async def silent_server(stage: Stage) -> None:
    """A server that reads everything and answers nothing does not affect the others."""
    player = await stage.through(WELL, server("silent", tools=[tool("gone")], faults=["silence"]))
    _echoes(await player.call(SHOP, "echo", b'{"n":1}'))


@check("resilience.failing-listing", MUST, CONTRACT, needs=SEVERAL)
async def failing_listing(stage: Stage) -> None:
    """A server whose listing fails does not affect the others: their tools are listed, and can be called."""
    broken = server("broken", tools=[tool("gone")], faults=[{"kind": "error", "method": "tools/list"}])
    player = await stage.through(WELL, broken)
    await player.list_tools()
    _echoes(await player.call(SHOP, "echo", b'{"n":1}'))


async def _beside(stage: Stage, broken: Server) -> None:
    player = await stage.through(WELL, broken)
    _echoes(await player.call(SHOP, "echo", b'{"n":1}'))
    reply = await player.call(broken.name, "gone")
    expect(
        reply.failed and reply.text.strip(),
        f"A call of its tool is answered with {reply.result or reply.error!r}.",
    )
    _echoes(await player.call(SHOP, "echo", b'{"n":2}'), 2)


@check("resilience.crash-before-answer", MUST, CONTRACT, needs=OWNS)
async def crash_before_answer(stage: Stage) -> None:
    """If a server dies during a call, the call is soon answered with an error."""
    await _crash(stage, "before")


@check("resilience.crash-within-answer", MUST, CONTRACT, needs=OWNS)
async def crash_within_answer(stage: Stage) -> None:
    """If a server dies in the middle of an answer, the call is answered with an error."""
    await _crash(stage, "middle")


async def _crash(stage: Stage, when: str) -> None:
    shop = server(tools=[tool("pay", text="paid")], faults=[{"kind": "crash", "when": when, "tool": "pay"}])
    player = await stage.through(shop)
    reply = await player.call(SHOP, "pay")
    expect(reply.failed and reply.text.strip(), f"The call is answered with {reply.result or reply.error!r}.")
    pinged = await player.request("ping")
    if (other := await stage.in_session(player)) is not player:
        pinged = await other.request("ping")
    expect(pinged.result is not None, f"After it a ping is answered with error {pinged.code!r}.")


@check("resilience.no-double-execution", MUST, CONTRACT, needs=OWNS)
async def no_double_execution(stage: Stage) -> None:
    """A call whose server died is not sent again: it may have run, and the tool doesn't say that it may be
    repeated."""
    for when in ("before", "middle"):
        fault = {"kind": "crash", "when": when, "tool": "pay"}
        shop = server(tools=[tool("pay", text="paid")], faults=[fault])
        player = await stage.through(shop)
        try:
            await player.call(SHOP, "pay", b'{"cents":100}')
        except Finding:
            pass  # that it is answered is another check's requirement
        await player.client.end()
        runs = len(stage.record(SHOP).calls("pay"))
        expect(runs == 1, f"The server died {when} its answer, and got the call {runs} times.")


@check("resilience.runs-once", MUST, CONTRACT)
async def runs_once(stage: Stage) -> None:
    """A server gets a call once, also when the tool is slow or fails."""
    tools = [
        tool("slow", text="done", delay=0.5),
        tool("fail", text="no", isError=True),
        tool("pay", text="paid"),
    ]
    player = await stage.through(server(tools=tools))
    for name in ("slow", "fail", "pay"):
        await player.call(SHOP, name)
    await player.client.end()
    for name in ("slow", "fail", "pay"):
        runs = len(stage.record(SHOP).calls(name))
        expect(runs == 1, f"The server got the call of {name!r} {runs} times.")


@check("resilience.reconnect", SHOULD, CONTRACT, needs=OWNS)
async def reconnect(stage: Stage) -> None:
    """After a server has died, the next call starts it again."""
    crash = {"kind": "crash", "when": "after", "tool": "echo"}
    player = await stage.through(server(tools=[tool("echo")], faults=[crash]))
    _echoes(await player.call(SHOP, "echo", b'{"n":1}'))
    await saw(stage.record(SHOP), lambda seen: seen.events("exit"), "The server did not get the first call.")
    deadline = asyncio.get_running_loop().time() + stage.patience
    reply = await player.call(SHOP, "echo", b'{"n":2}')
    # Errors about the dead server are allowed until then.
    while reply.failed and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.2)
        player = await stage.in_session(player)
        reply = await player.call(SHOP, "echo", b'{"n":2}')
    _echoes(reply, 2)


@check("resilience.banner", SHOULD, CONTRACT, needs=OWNS)
async def banner(stage: Stage) -> None:
    """A server that prints a greeting on stdout first can be used."""
    await _usable(stage, server(tools=[tool("echo")], faults=["banner"]))


@check("resilience.junk-on-stdout", SHOULD, CONTRACT, needs=OWNS)
async def junk_on_stdout(stage: Stage) -> None:
    """A server that logs to stdout between its answers can be used."""
    lines = ("DEBUG: 200 OK", "{'not': json}", "[]", "{}")
    faults = [{"kind": "junk", "method": "tools/call", "text": line} for line in lines]
    await _usable(stage, server(tools=[tool("echo")], faults=faults))


@check("resilience.invalid-utf8", SHOULD, CONTRACT, needs=OWNS)
async def invalid_utf8(stage: Stage) -> None:
    """A line that isn't UTF-8 on a server's stdout loses only that line."""
    await _usable(
        stage, server(tools=[tool("echo")], faults=[{"kind": "invalid-utf8", "method": "tools/call"}])
    )


@check("resilience.torn-answer", MUST, SPEC_2025 + "/basic/transports#stdio")
async def torn_answer(stage: Stage) -> None:
    """An answer that comes in pieces is one answer."""
    torn = {"kind": "torn", "method": "tools/call", "count": 7}
    await _usable(stage, server(tools=[tool("echo")], faults=[torn]))


@check("resilience.stderr-flood", MUST, SPEC_2025 + "/basic/transports#stdio")
async def stderr_flood(stage: Stage) -> None:
    """A server that writes megabytes to stderr is not blocked by it."""
    flood = {"kind": "stderr", "text": "w" * 1000, "count": 2000}
    await _usable(stage, server(tools=[tool("echo")], faults=[flood]))


async def _usable(stage: Stage, rude: Server) -> None:
    player = await stage.through(rude)
    for number in (1, 2):
        _echoes(await player.call(SHOP, "echo", b'{"n":%d}' % number), number)


@check("resilience.concurrent-calls", MUST, CONTRACT)
async def concurrent_calls(stage: Stage) -> None:
    """Of many concurrent calls, answered out of order, each gets its own answer."""
    names = [f"wait_{n}" for n in range(8)]
    tools = [
        tool(name, text=f"{name} {{n}}", fill=True, delay=0.02 * (8 - n)) for n, name in enumerate(names)
    ]
    player = await stage.through(server(tools=tools))
    begun = [(n, player.begin(SHOP, names[n % 8], b'{"n":%d}' % n)) for n in range(32)]
    for n, number in begun:
        reply = await player.reply(number)
        wanted = f"{names[n % 8]} {n}"
        expect(
            reply.text == wanted, f"The call to be answered with {wanted!r} is answered with {reply.text!r}."
        )


@check("resilience.slow-call-same-server", SHOULD, CONTRACT)
async def slow_call_same_server(stage: Stage) -> None:
    """While one call of a server is open, another one of the same server is answered."""
    player = await stage.through(server(tools=[tool("echo"), tool("wait", text="at last", delay=30.0)]))
    slow = player.begin(SHOP, "wait")
    await saw(stage.record(SHOP), lambda seen: seen.calls("wait"), "The slow call did not reach the server.")
    _echoes(await player.call(SHOP, "echo", b'{"n":1}'))
    expect(not player.client.answered(slow), "The slow call was answered before its server answered it.")


@check("resilience.slow-call-other-server", MUST, CONTRACT, needs=SEVERAL)
async def slow_call_other_server(stage: Stage) -> None:
    """While a call of one server is open, calls of other servers are answered."""
    player = await stage.through(WELL, server("slow", tools=[tool("wait", text="at last", delay=30.0)]))
    player.begin("slow", "wait")
    await saw(
        stage.record("slow"), lambda seen: seen.calls("wait"), "The slow call did not reach its server."
    )
    _echoes(await player.call(SHOP, "echo", b'{"n":1}'))


@check("resilience.exit-on-eof", MUST, SHUTDOWN, needs=("stdio",))
async def exit_on_eof(stage: Stage) -> None:
    """When its input ends it exits, and so do the servers it started."""
    player = await stage.through(WELL)
    await player.call(SHOP, "echo")
    player.client.process.close_stdin()
    expect(
        await player.client.process.exits(stage.patience),
        f"{stage.patience:g} s after the end of its input it still runs.",
    )
    await _servers_gone(stage)


@check("resilience.exit-on-eof-mid-call", MUST, SHUTDOWN, needs=("stdio",))
async def exit_on_eof_mid_call(stage: Stage) -> None:
    """When its input ends during a call it exits, and so do the servers it started."""
    player = await stage.through(server(tools=[tool("wait", text="at last", delay=60.0)]))
    player.begin(SHOP, "wait")
    await saw(stage.record(SHOP), lambda seen: seen.calls("wait"), "The call did not reach the server.")
    player.client.process.close_stdin()
    expect(
        await player.client.process.exits(stage.patience),
        f"{stage.patience:g} s after the end of its input it still runs.",
    )
    await _servers_gone(stage)


@check("resilience.exit-on-sigterm", MUST, SHUTDOWN, posix=True)
async def exit_on_sigterm(stage: Stage) -> None:
    """On SIGTERM it exits, and so do the servers it started."""
    player = await stage.through(WELL)
    await player.call(SHOP, "echo")
    player.client.process.terminate()
    expect(
        await player.client.process.exits(stage.patience),
        f"{stage.patience:g} s after SIGTERM it still runs.",
    )
    await _servers_gone(stage)


@check("resilience.no-orphan", SHOULD, SHUTDOWN, needs=OWNS)
async def no_orphan(stage: Stage) -> None:
    """A server that stays when its input ends and ignores SIGTERM is ended when the client has left."""
    stubborn = server(tools=[tool("echo")], faults=["ignore-eof", "ignore-sigterm"])
    player = await stage.through(stubborn)
    await player.call(SHOP, "echo")
    await _leave(stage, player)
    await _gone(stage, _started(stage.record(SHOP)), "the server")


@check("resilience.no-orphan-grandchild", SHOULD, CONTRACT, needs=OWNS, posix=True)
async def no_orphan_grandchild(stage: Stage) -> None:
    """Processes that a server started (as npx and uvx do) are ended with it, even if they ignore SIGTERM."""
    player = await stage.through(server(tools=[tool("echo")], faults=["fork"]))
    await player.call(SHOP, "echo")
    record = stage.record(SHOP)
    await _leave(stage, player)
    children = [line.detail["child"] for line in record.events("grandchild")]
    await _gone(
        stage, (child for child in children if isinstance(child, int)), "a process that the server started"
    )


@check("resilience.no-orphan-after-kill", MAY, CONTRACT, needs=OWNS, posix=True)
async def no_orphan_after_kill(stage: Stage) -> None:
    """When it is killed outright, its servers end, even one that ignores SIGTERM and the end of its input."""
    stubborn = server(tools=[tool("echo")], faults=["ignore-eof", "ignore-sigterm"])
    player = await stage.through(stubborn)
    await player.call(SHOP, "echo")
    os.kill(player.client.process.pid, 9)
    await player.client.process.exits(stage.patience)
    await _gone(stage, _started(stage.record(SHOP)), "the server")


def _echoes(reply: Reply, number: int = 1) -> None:
    wanted = {"n": number}
    expect(reply.json == wanted, f"A call is answered with {reply.text[:300]!r} instead of {wanted}.")


async def _leave(stage: Stage, player: Player) -> None:
    """The client leaves: the subject's stdin is closed; over HTTP the subject gets SIGTERM."""
    if stage.subject.start.url:
        player.client.process.terminate()
    else:
        player.client.process.close_stdin()
    await player.client.process.exits(stage.patience)


def _started(record: Record) -> list[int]:
    return [line.pid for line in record.events("start")]


async def _servers_gone(stage: Stage) -> None:
    """Raises Finding unless the servers that the subject started have ended."""
    if stage.subject.upstream == "stdio":
        await _gone(stage, _started(stage.record(SHOP)), "a server it started")


async def _gone(stage: Stage, pids: Iterable[int], what: str) -> None:
    """Raises Finding unless all processes end soon after the subject."""
    left = set(pids)
    expect(left, f"There was no sign of {what}.")
    deadline = asyncio.get_running_loop().time() + stage.patience
    while left := {pid for pid in left if is_running(pid)}:
        if asyncio.get_running_loop().time() > deadline:
            raise Finding(f"{stage.patience:g} s after the end {what} still runs.")
        await asyncio.sleep(0.02)
