"""Measurements of a subject: tokens, time, memory.

The rule: a check here fails only if the measured operation doesn't work. Tokens are UTF-8 bytes of JSON
without white space, divided by four. Times depend on the machine and its load, so they are compared with the
same operation directly on the server, as a ratio, where that is possible.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
from mcpzip_fakes.definitions import Tool
from mcpzip_fakes.scenario import Scenario

from mcpzip_conformance.check import CONTRACT, MAY, check, expect
from mcpzip_conformance.errors import Finding, NotPlayableError
from mcpzip_conformance.player import Player
from mcpzip_conformance.scene import SHOP, Server, server, tool
from mcpzip_conformance.stage import Stage

_SHIPPED = ("slack", "todoist", "github")
_EACH = 10
"""Tools taken of each server."""
_STARTS = 3
_WARM_UP, _CALLS = 5, 50
_AT_A_TIME, _ROUNDS = 32, 3
_LARGE, _LARGE_CALLS = 1_000_000, 5
_BYTES_PER_TOKEN = 4
_MB = 1e6

_QUERIES = ("send a message", "create an issue", "list open tasks", "customer invoice", "assign to someone")

WELL = server(tools=[tool("echo")])


def _catalog(stage: Stage) -> list[Server]:
    """40 tools: ten each of Slack, Todoist and GitHub, and ten invented ones with five parameters; on four
    servers, or on one if the subject can have only one."""
    tools: dict[str, Sequence[Tool]] = {name: Scenario.load(name).all_tools()[:_EACH] for name in _SHIPPED}
    made_up = server("shop", generate={"count": _EACH, "parameters": 5})
    tools["shop"] = made_up.scenario.all_tools()
    if "several-servers" in stage.subject.missing():
        every = {each.name: each for those in tools.values() for each in those}
        tools = {SHOP: list(every.values())}
    return [server(name, tools=those) for name, those in tools.items()]


async def _with_catalog(stage: Stage) -> tuple[Player, list[Server]]:
    """A player through the subject, once all tools are listed."""
    servers = _catalog(stage)
    player = await stage.through(*servers)
    await player.ready([(each.name, one.name) for each in servers for one in each.scenario.all_tools()])
    return player, servers


def _tokens(texts: Sequence[bytes]) -> int:
    """The tokens of JSON texts, whatever their white space."""
    compact = [msgspec.json.encode(msgspec.json.decode(text)) for text in texts]
    return round(sum(map(len, compact)) / _BYTES_PER_TOKEN)


@check("cost.listing", MAY, CONTRACT)
async def listing(stage: Stage) -> None:
    """What a model gets before its first step, with 40 tools of 4 servers: the tokens of ``tools/list``,
    their ratio to the definitions as the servers wrote them, and the tokens of the ``instructions``."""
    player, servers = await _with_catalog(stage)
    tools = await player.list_tools()
    expect(tools, "It lists no tools.")
    written = _tokens([one.raw.encode() for each in servers for one in each.scenario.all_tools()])
    stage.measure("tools/list of 40 tools", _tokens(tools), "tokens")
    stage.measure("tools/list ÷ the servers' own", _tokens(tools) / written, "ratio")
    said = player.opening.fields.get("instructions")
    text = said.encode("utf-8", "surrogatepass") if isinstance(said, str) else b""
    stage.measure("instructions at the handshake", round(len(text) / _BYTES_PER_TOKEN), "tokens")


@check("cost.search-reply", MAY, CONTRACT, needs=("search",))
async def search_reply(stage: Stage) -> None:
    """The tokens of the reply to a search over 40 tools of 4 servers, the middle one of five, without a
    limit."""
    player, _ = await _with_catalog(stage)
    sizes = []
    for query in _QUERIES:
        reply = await player.search_reply(query)
        expect(not reply.failed, f"The search for {query!r} fails: {reply.text[:200]}")
        sizes.append(_tokens([reply.result or b"{}"]))
    stage.measure("answer to one search", statistics.median(sizes), "tokens")


@check("cost.start-up", MAY, CONTRACT, timed=True)
async def start_up(stage: Stage) -> None:
    """The time from its start until ``initialize`` is answered, and until a first call is: the middle one of
    three starts; and the ratio to the server alone."""
    opened, called, straight = [], [], []
    for _ in range(_STARTS):
        player = await stage.started(WELL)
        await player.open()
        opened.append(_at(player))
        await _first_call(player)
        called.append(_at(player))
        await player.client.end()
        if stage.subject.upstream == "stdio":
            alone = await stage.straight(WELL, measured=True)
            straight.append(_at(alone))
            await alone.client.end()
    stage.measure("time until initialize is answered", statistics.median(opened), "ms")
    stage.measure("time until a first call is answered", statistics.median(called), "ms")
    if straight:
        ratio = statistics.median(opened) / statistics.median(straight)
        stage.measure("start ÷ start of the server alone", ratio, "ratio")


def _at(player: Player) -> float:
    """Milliseconds from the start to the last received message."""
    return 1000 * next(
        message.at for message in reversed(player.client.transcript.messages) if message.sent is False
    )


async def _first_call(player: Player) -> None:
    """A call, repeated until the subject knows the tool."""
    deadline = time.monotonic() + player.client.patience
    while (await player.call(SHOP, "echo", b'{"n":1}')).json != {"n": 1}:
        if time.monotonic() > deadline:
            raise Finding("It never came to the first call.")
        await asyncio.sleep(0.01)


@check("cost.latency", MAY, CONTRACT, timed=True)
async def latency(stage: Stage) -> None:
    """The time that it adds to a call: the middle one of 50, after a warm-up, in alternation with 50 straight
    to the server; and the ratio of the two. A call among 32 at a time, too."""
    straight, through = await stage.straight(WELL, measured=True), await stage.through(WELL)

    async def call(player: Player) -> None:
        reply = await player.call(SHOP, "echo", b'{"n":1}')
        expect(reply.json == {"n": 1}, f"A call is answered with {reply.text[:200]!r}.")

    async def many(player: Player) -> None:
        await asyncio.gather(*(call(player) for _ in range(_AT_A_TIME)))

    own, its = await _in_turn(call, straight, through, _CALLS, _WARM_UP)
    stage.measure("time added to one call", its - own, "ms")
    stage.measure("one call ÷ the same without proxy", its / own, "ratio")
    own, its = await _in_turn(many, straight, through, _ROUNDS)
    stage.measure(f"time of one of {_AT_A_TIME} calls at once", its / _AT_A_TIME, "ms")
    stage.measure(f"{_AT_A_TIME} calls at once ÷ the same without proxy", its / own, "ratio")


@check("cost.large-result", MAY, CONTRACT, timed=True)
async def large_result(stage: Stage) -> None:
    """The time of a call whose result has 1 MB: the middle one of five, in alternation with five straight to
    the server; and the ratio of the two."""
    big = server(tools=[tool("tell", None, size=_LARGE)])
    straight, through = await stage.straight(big, measured=True), await stage.through(big)

    async def call(player: Player) -> None:
        text = (await player.call(SHOP, "tell")).text
        expect(len(text) == _LARGE, f"The result has {len(text)} characters of {_LARGE}.")

    own, its = await _in_turn(call, straight, through, _LARGE_CALLS)
    stage.measure("time of a call with a result of 1 MB", its, "ms")
    stage.measure("result of 1 MB ÷ the same without proxy", its / own, "ratio")


async def _in_turn(
    act: Callable[[Player], Awaitable[None]], straight: Player, through: Player, times: int, warm_up: int = 1
) -> tuple[float, float]:
    """The median duration of ``act`` directly and through the subject, in milliseconds, measured in
    alternation."""
    took: dict[Player, list[float]] = {straight: [], through: []}
    for _ in range(warm_up + times):
        for player, seconds in took.items():
            begun = time.perf_counter()
            await act(player)
            seconds.append(time.perf_counter() - begun)
    own, its = (1000 * statistics.median(seconds[-times:]) for seconds in took.values())
    return own, its


@check("cost.memory", MAY, CONTRACT)
async def memory(stage: Stage) -> None:
    """The memory that it and the processes it started keep (resident, its servers left out) after 40 tools
    were listed and one was called. On Linux only."""
    if not _descendants(os.getpid(), set()):
        raise NotPlayableError("Memory is measured where there is a /proc: on Linux.")
    player, servers = await _with_catalog(stage)
    await player.list_tools()
    await player.call(servers[0].name, servers[0].scenario.all_tools()[0].name)
    fakes = {line.pid for record in stage.records().values() for line in record.events("start")}
    kept = [_resident(pid) for pid in _descendants(player.client.process.pid, fakes)]
    stage.measure("memory, without its servers", sum(kept) / _MB, "MB")


def _descendants(root: int, without: set[int]) -> list[int]:
    """``root`` and its descendants, without the processes ``without`` and their descendants; empty if there
    is no /proc."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        after_name = _read(folder / "stat").rpartition(")")[2].split()
        if after_name:
            parents.setdefault(int(after_name[1]), []).append(int(folder.name))
    found, left = [], [root] if parents else []
    while left:
        pid = left.pop()
        if pid not in without:
            found.append(pid)
            left += parents.get(pid, [])
    return found


def _resident(pid: int) -> int:
    """The resident memory of a process in bytes; 0 if it has ended."""
    for line in _read(Path(f"/proc/{pid}/status")).splitlines():
        if line.startswith("VmRSS:"):
            return 1024 * int(line.split()[1])
    return 0


def _read(path: Path) -> str:
    """The text of a file in /proc; "" if the process has ended."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
