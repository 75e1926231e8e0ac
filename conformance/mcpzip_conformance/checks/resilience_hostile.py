"""Checks with hostile servers: endless answers, costly schemas and messages.

The rule: a hostile server affects only its own calls. Meanwhile another server's calls are answered within
the patience of any call. No duration is asserted; the sizes are chosen so that work of quadratic size can't
be done within that patience. Memory is measured by checks of its own, on systems that provide it.
"""

import asyncio

from mcpzip_conformance.check import CONTRACT, MUST, SHOULD, check, expect, saw
from mcpzip_conformance.errors import NoAnswerError, NotPlayableError
from mcpzip_conformance.player import TO_START, Player
from mcpzip_conformance.processes import peak_memory
from mcpzip_conformance.scene import SHOP, Server, server, tool
from mcpzip_conformance.stage import Stage

SEVERAL = ("several-servers",)

WELL = server(tools=[tool("echo")])
_ROUNDS = 5
_PAD = 300_000_000
"""Bytes of an answer that should have been refused long before. What handles each as it comes has done so in
a second or two; what looks at all of them whenever some more come is not ready in a minute."""
_HELD, _ALLOWED = 600_000_000, 300_000_000
"""Bytes of an answer, and how many more than before a process may have held by its end: who holds the whole
of it holds twice as many."""


async def _answers(player: Player, rounds: int = _ROUNDS) -> None:
    """Calls of the healthy server are answered, one after another."""
    for number in range(rounds):
        reply = await player.call(SHOP, "echo", b'{"n":%d}' % number)
        wanted = {"n": number}
        expect(reply.json == wanted, f"Another server's call is answered with {reply.text[:300]!r}.")


async def _beside(stage: Stage, bad: Server) -> None:
    """Calls of a healthy server are answered while ``bad`` answers its tool ``pour``; that call is answered
    too, with a result or an error."""
    player = await stage.through(WELL, bad)
    await _answers(player, 1)
    number = player.begin(bad.name, "pour", meta=b'{"progressToken":"pouring"}')
    await saw(stage.record(bad.name), lambda seen: seen.calls("pour"), "The call did not reach its server.")
    await _answers(player)
    await player.client.reply(number, stage.patience * TO_START)
    await _answers(player, 1)
    await player.client.end()


async def _held(stage: Stage, bad: Server) -> None:
    """After a call of ``pour`` no process of the subject has much more memory than before."""
    player = await stage.through(WELL, bad)
    await _answers(player, 1)
    group = player.client.process.pid
    servers = {line.pid for record in stage.records().values() for line in record.events("start")}
    before = peak_memory(group, servers)
    if before is None:
        raise NotPlayableError("This system doesn't provide the peak memory of a process.")
    number = player.begin(bad.name, "pour")
    await saw(stage.record(bad.name), lambda seen: seen.calls("pour"), "The call did not reach its server.")
    try:
        await player.reply(number)
    except NoAnswerError:
        pass  # whether it is answered is another question
    after = peak_memory(group, servers)
    expect(after is not None, "It has ended.")
    assert after is not None
    more = (after - before) // 1_000_000
    expect(after - before < _ALLOWED, f"It held {more} MB more for an answer of {_HELD // 1_000_000} MB.")


def _pouring(kind: str, size: int, over: str = "") -> Server:
    return server(
        "bad", tools=[tool("pour")], faults=[{"kind": kind, "tool": "pour", "size": size}], over=over
    )


@check("resilience.endless-answer", MUST, CONTRACT, needs=SEVERAL)
async def endless_answer(stage: Stage) -> None:
    """While a server sends an answer that does not end, calls of other servers are answered; its own call
    fails, or is answered when the answer ends after all."""
    await _beside(stage, _pouring("endless", _PAD))


@check("resilience.endless-answer-http", MUST, CONTRACT, needs=SEVERAL)
async def endless_answer_http(stage: Stage) -> None:
    """While a server over HTTP sends a body or an event that does not end, calls of other servers are
    answered; its own call fails, or is answered when the answer ends after all."""
    await _beside(stage, _pouring("endless", _PAD, over="http"))


@check("resilience.gzip-bomb", MUST, CONTRACT, needs=SEVERAL)
async def gzip_bomb(stage: Stage) -> None:
    """A compressed answer that expands a thousandfold delays no call of another server, and its own call is
    answered, whole or with an error."""
    await _beside(stage, _pouring("gzip-bomb", _PAD, over="http"))


@check("resilience.endless-answer-held", SHOULD, CONTRACT, needs=SEVERAL)
async def endless_answer_held(stage: Stage) -> None:
    """The memory for an endless answer has a limit."""
    await _held(stage, _pouring("endless", _HELD))


@check("resilience.gzip-bomb-held", SHOULD, CONTRACT, needs=SEVERAL)
async def gzip_bomb_held(stage: Stage) -> None:
    """The memory for a compressed answer has a limit, counted after decompression."""
    await _held(stage, _pouring("gzip-bomb", _HELD, over="http"))


@check("resilience.schema-bomb", MUST, CONTRACT, needs=SEVERAL)
async def schema_bomb(stage: Stage) -> None:
    """A tool whose schema is costly to read (600 references to one enum of 50,000 values) delays no call of
    another server, whether tools are listed, searched or described."""
    fault = {"kind": "schema-bomb", "shape": "refs", "size": 50_000, "count": 600}
    bad = server("bad", tools=[tool("forecast", {"description": "Tell the weather."})], faults=[fault])
    player = await stage.through(WELL, bad)
    asked = [("tools/list", b"{}")]
    if stage.subject.tools.search is not None:
        asked.append(("tools/call", player.route.search("tell the weather")))
    if (describing := player.route.describe("bad", "forecast")) is not None:
        asked.append(("tools/call", describing))
    rounds = 0
    for _ in range(10 * _ROUNDS):  # at first it may not know the tool yet
        for method, params in asked:
            player.send(method, params)
            await _answers(player, 1)
        rounds += bool(stage.record("bad").received("tools/list"))
        if rounds > _ROUNDS:
            break
        await asyncio.sleep(0.1)


@check("resilience.endless-pages", SHOULD, CONTRACT, needs=SEVERAL)
async def endless_pages(stage: Stage) -> None:
    """A server whose list of tools is endless does not hide the tools of others: tools are listed, and calls
    of other servers are answered."""
    fault = {"kind": "endless-pages", "size": 20_000}
    player = await stage.through(WELL, server("bad", tools=[tool("one")], faults=[fault]))
    for _ in range(10 * _ROUNDS):  # at first it may not know the server yet
        await player.list_tools()
        await _answers(player, 1)
        if len(stage.record("bad").received("tools/list")) > 1:
            break
        await asyncio.sleep(0.1)
    await player.list_tools()
    await _answers(player)


@check("resilience.long-name", SHOULD, CONTRACT, needs=SEVERAL)
async def long_name(stage: Stage) -> None:
    """A call of a missing tool, with a name of 300,000 characters, is refused, other calls are answered
    meanwhile, and the refusal does not repeat the name."""
    many = server("many", tools=[tool("first")], generate={"count": 500})
    player = await stage.through(WELL, many)
    name = "工具名字" * 75_000
    number = player.begin("many", name)
    await _answers(player)
    reply = await player.reply(number)
    expect(reply.failed, f"It is answered with {reply.text[:300]!r}.")
    expect(name[:10_000] not in reply.text, f"The refusal has {len(reply.text)} characters.")


@check("resilience.flood", MUST, CONTRACT, needs=SEVERAL)
async def flood(stage: Stage) -> None:
    """While a server sends thousands of messages on one call (progress, logs, pings), calls of other servers
    are answered, and finally its own call."""
    for what in ("progress", "log", "ping"):
        fault = {"kind": "flood", "tool": "pour", "what": what, "count": 2_000, "size": 2_000}
        await _beside(stage, server("bad", tools=[tool("pour")], faults=[fault]))


@check("resilience.many-keys", SHOULD, CONTRACT, needs=SEVERAL)
async def many_keys(stage: Stage) -> None:
    """A result with very many members, one of them a lone surrogate, is answered, unchanged or as an error,
    and calls of other servers are answered meanwhile. The same holds for its ``_meta``, its content, and an
    error."""
    for where in ("meta", "content", "error", "result"):
        fault = {"kind": "many-keys", "tool": "pour", "count": 100_000, "where": where}
        await _many_keys(stage, fault)


async def _many_keys(stage: Stage, fault: dict[str, object]) -> None:
    player = await stage.through(WELL, server("bad", tools=[tool("pour")], faults=[fault]))
    await _answers(player, 1)
    number = player.begin("bad", "pour")
    await _answers(player)
    await player.reply(number)
