"""Checks of programs that call tools: what they get, what they do, and what the client sees of that.

They are for subjects whose file says which tool runs programs (``tools.program``). A program is a few lines
in the language of the subject, so that no check depends on how much of a language a sandbox knows.
"""

import json
from collections.abc import Mapping

from mcpzip_fakes.made import Made
from mcpzip_fakes.record import Record

from mcpzip_conformance.check import CONTRACT, MAY, MUST, SHOULD, SPEC_2025, check, expect, saw
from mcpzip_conformance.checks.asking import ELICIT
from mcpzip_conformance.client import Answer
from mcpzip_conformance.errors import NotPlayableError
from mcpzip_conformance.player import Player
from mcpzip_conformance.program import ProgramWriter
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, Server, server, tool
from mcpzip_conformance.stage import Stage

TOOLS = SPEC_2025 + "/server/tools"
CAUGHT = "https://github.com/PrefectHQ/fastmcp/issues/4702"
BATCHES = "https://github.com/smart-mcp-proxy/mcpproxy-go/blob/main/docs/code_execution/overview.md"
UNANNOTATED = "https://github.com/truefoundry/trueforge/issues/318"
CANCELLATION = SPEC_2025 + "/basic/utilities/cancellation#behavior-requirements"
DURABLE = "https://developers.cloudflare.com/agents/tools/codemode/how-it-works/"
NEEDS = ("programs",)
READS: Mapping[str, object] = {"annotations": {"readOnlyHint": True}}
DESTROYS: Mapping[str, object] = {"annotations": {"readOnlyHint": False, "destructiveHint": True}}
TOKEN = "quartz-7731"
"""A word that stands in no program and no message of a subject's own."""
DECLINED, ACCEPTED = b'{"action":"decline"}', b'{"action":"accept","content":{}}'


def _all(reply: Reply) -> str:
    """All that a client sees of an answer, as text."""
    return reply.text + "\n" + json.dumps(reply.fields, ensure_ascii=False)


def _writer(player: Player) -> ProgramWriter:
    return ProgramWriter(player.route)


def _count(stage: Stage, name: str) -> int:
    return len(stage.record(SHOP).calls(name))


@check("programs.value", MUST, CONTRACT, needs=NEEDS)
async def value(stage: Stage) -> None:
    """A program calls a tool with the arguments that it wrote, gets the answer, and what it returns reaches
    the client."""
    answer = {"mark": TOKEN, "rows": [1, None, {"a": "é😀"}]}
    look = tool("look", READS, structuredContent=answer)
    player = await stage.through(server(tools=[look, tool("say", READS, text=TOKEN.upper())]))
    writer = _writer(player)
    given = {"text": 'it\'s "quoted"\n\\ é😀', "n": -3, "yes": True, "none": None, "list": [1.5, {"a": []}]}
    for name, token in (("look", TOKEN), ("say", TOKEN.upper())):
        call = writer.call(SHOP, name, **given)
        reply = await player.run(writer.program(writer.assigned("x", call), writer.returned("x")))
        expect(token in _all(reply), f"What the tool {name!r} answered doesn't come: {_all(reply)[:300]!r}.")
        calls = stage.record(SHOP).calls(name)
        expect(len(calls) == 1, f"The tool {name!r} was called {len(calls)} times by one program.")
        got = calls[0].get("arguments")
        expect(got == given, f"The tool {name!r} got {got!r} instead of {given!r}.")


@check("programs.large-result", SHOULD, CONTRACT, needs=NEEDS)
async def large_result(stage: Stage) -> None:
    """A program gets all of a large result, and can return a small part of it."""
    rows = Made(kind="rows", size=1_050_000)
    made = {"rows": {"kind": rows.kind, "size": rows.size}}
    shop = server(tools=[tool("rows", READS, made=made, structuredContent={"rows": "{rows}"})])
    player = await stage.through(shop)
    writer = _writer(player)
    every = rows.value
    assert isinstance(every, list)
    data = writer.value("x")
    code = writer.program(
        writer.assigned("x", writer.call(SHOP, "rows")),
        writer.returned(f'{data}["rows"][{len(every) - 1}]["title"]'),
    )
    reply = await player.run(code)
    title = every[-1]["title"]
    expect(title in _all(reply), f"The title of the last row doesn't come, but {reply.brief}.")
    size = len(reply.result or b"")
    expect(size < 20_000, f"The answer has {size:,} bytes, though the program returns a few words.")


def _broken() -> Server:
    """A tool that fails in each way, and one that works."""
    failing = tool("fail", READS, text=f"tray 2 is empty ({TOKEN})", isError=True)
    refusing = tool("refuse", READS, error={"code": -32050, "message": f"out of paper ({TOKEN})"})
    return server(tools=[failing, refusing, tool("work", READS, text=TOKEN)])


@check("programs.side-by-side", MAY, BATCHES, needs=NEEDS)
async def side_by_side(stage: Stage) -> None:
    """Twenty calls that a program makes at the same time are open at the same time, a few at least, and their
    values come in the order of the calls."""
    wait = tool("wait", READS, text="value-{n}.", fill=True, hold=True)
    player = await stage.through(server(tools=[wait]))
    writer = _writer(player)
    if not writer.can_call_together:
        raise NotPlayableError("Its file says of no way to make calls at the same time.")
    each = [{"n": number} for number in range(20)]
    code = writer.program(writer.together("x", SHOP, "wait", each), writer.returned("x"))
    number = player.send("tools/call", player.route.program(code))
    several = "Its calls are made one after another."
    await saw(stage.record(SHOP), lambda seen: len(seen.events("held")) > 1, several, stage.patience)
    stage.release(SHOP, "wait")
    said = _all(await player.whole(await player.client.reply(number)))
    found = [said.find(f"value-{n}.") for n in range(20)]
    expect(-1 not in found and found == sorted(found), f"The values don't come in order: {said[:300]!r}.")
    expect(_count(stage, "wait") == 20, f"{_count(stage, 'wait')} calls were made.")


@check("programs.error-caught", SHOULD, CAUGHT, needs=NEEDS)
async def error_caught(stage: Stage) -> None:
    """A program can find out that a call failed, with ``isError`` or an error of the protocol, and go on."""
    player = await stage.through(_broken())
    writer = _writer(player)
    for name in ("fail", "refuse"):
        code = writer.program(
            writer.caught("x", writer.call(SHOP, name), "was-caught"),
            writer.assigned("y", writer.call(SHOP, "work")),
            writer.returned("[x, y]"),
        )
        reply = await player.run(code)
        said = _all(reply)
        expect(
            "was-caught" in said and TOKEN in said and not reply.failed,
            f"A program that catches the error of {name!r} ends with {reply.brief}.",
        )


@check("programs.error-told", SHOULD, TOOLS + "#error-handling", needs=NEEDS)
async def error_told(stage: Stage) -> None:
    """If a call fails and the program does nothing about it, the client gets the words of the tool's error,
    so that a model can correct itself."""
    player = await stage.through(_broken())
    writer = _writer(player)
    for name in ("fail", "refuse"):
        code = writer.program(writer.assigned("x", writer.call(SHOP, name)), writer.returned("x"))
        reply = await player.run(code)
        expect(TOKEN in _all(reply), f"The words of the error of {name!r} don't come, but {reply.brief}.")


@check("programs.image", SHOULD, TOOLS + "#tool-result", needs=NEEDS)
async def image(stage: Stage) -> None:
    """An image that a program gets of a tool and returns reaches the client as an image."""
    picture = str(Made(kind="base64", size=400).value)
    content = [
        {"type": "text", "text": "here"},
        {"type": "image", "data": picture, "mimeType": "image/png"},
    ]
    player = await stage.through(server(tools=[tool("draw", READS, content=content)]))
    writer = _writer(player)
    code = writer.program(writer.assigned("x", writer.call(SHOP, "draw")), writer.returned("x"))
    reply = await player.run(code)
    blocks = reply.fields.get("content")
    images = [
        block
        for block in (blocks if isinstance(blocks, list) else [])
        if isinstance(block, dict) and block.get("type") == "image"
    ]
    expect(images, f"There is no image in what the program returns, but {reply.brief}.")
    expect(images[0].get("data") == picture, "The image has other data.")


@check("programs.destructive-is-seen", SHOULD, TOOLS + "#user-interaction-model", needs=NEEDS)
async def destructive_is_seen(stage: Stage) -> None:
    """A program doesn't call a tool that destroys (``destructiveHint``) before the client has seen that call:
    not if the client can't be asked, and not if it declines."""
    await _held_back(stage, DESTROYS)


@check("programs.unannotated-is-seen", MAY, UNANNOTATED, needs=NEEDS)
async def unannotated_is_seen(stage: Stage) -> None:
    """A tool without hints counts as one that destroys, which is their default (2025-11-25,
    `ToolAnnotations`): a program doesn't call it before the client has seen that call."""
    await _held_back(stage, {})


async def _held_back(stage: Stage, definition: Mapping[str, object]) -> None:
    """The call of a tool with these members in its definition doesn't reach its server."""

    def declines(params: bytes) -> bytes:
        return DECLINED

    shop = server(tools=[tool("erase", definition, text="erased")])
    answers: tuple[tuple[str, Mapping[str, Answer] | None], ...] = (
        ("the client can't be asked", None),
        ("the client declined", {ELICIT: declines}),
    )
    for when, answer in answers:
        player = await stage.through(shop, answers=answer)
        writer = _writer(player)
        call = writer.call(SHOP, "erase", id=TOKEN)
        reply = await player.run(writer.program(writer.assigned("x", call), writer.returned("x")))
        count = _count(stage, "erase")
        expect(count == 0, f"It ran though {when}, and the program was answered with {reply.text[:200]!r}.")


@check("programs.approved", MUST, CONTRACT, needs=NEEDS)
async def approved(stage: Stage) -> None:
    """A call that waited for the client runs once, after the client has seen its tool and arguments and wants
    it; the calls before it don't run again, and the program's value comes."""
    asked: list[bytes] = []

    def accepts(params: bytes) -> bytes:
        asked.append(params)
        return ACCEPTED

    shop = server(
        tools=[
            tool("look", READS, text=f"{TOKEN}-{{#}}", fill=True),
            tool("erase", DESTROYS, text="erased {id}, call {#}", fill=True),
        ]
    )
    ways: tuple[Mapping[str, Answer] | None, ...] = ({ELICIT: accepts}, None)
    ran = 0
    for answers in ways:
        asked.clear()
        player = await stage.through(shop, answers=answers)
        writer = _writer(player)
        code = writer.program(
            writer.assigned("x", writer.call(SHOP, "look")),
            writer.assigned("y", writer.call(SHOP, "erase", id="invoice-42")),
            writer.returned("[x, y]"),
        )
        reply = await player.run(code)
        arguments = b'{"id":"invoice-42"}'
        more = player.route.resumed(reply, SHOP, "erase", arguments)
        seen = asked[0].decode() if asked else _all(reply)
        if asked or more is not None:
            expect("erase" in seen and "invoice-42" in seen, f"It is asked to approve {seen[:300]!r}.")
        if more is not None:
            expect(_count(stage, "erase") == 0, "It ran before it was approved.")
            reply = await player.whole(await player.request("tools/call", more))
        looked, erased = _count(stage, "look"), _count(stage, "erase")
        if erased == 0 and not asked and more is None:
            continue  # it runs no such call inside a program
        ran += 1
        expect((looked, erased) == (1, 1), f"look ran {looked} times, and erase {erased} times.")
        said = _all(reply)
        expect(
            f"{TOKEN}-1" in said and "erased invoice-42, call 1" in said,
            f"The value of the program doesn't come, but {reply.brief}.",
        )
    if not ran:
        raise NotPlayableError("It runs no call that destroys inside a program, and asks nobody about it.")


@check("programs.once", MUST, CONTRACT, needs=NEEDS)
async def once(stage: Stage) -> None:
    """If a program fails in its middle, by an error of its own or by a server that dies, none of its calls is
    made again."""
    shop = server(
        tools=[tool("look", READS, text=TOKEN), tool("die", READS)],
        faults=[{"kind": "crash", "when": "before", "tool": "die"}],
    )
    player = await stage.through(shop)
    writer = _writer(player)
    look = writer.assigned("x", writer.call(SHOP, "look"))
    reply = await player.run(writer.program(look, writer.failing))
    expect(TOKEN not in reply.text or reply.failed, "A program that fails is answered as one that works.")
    count = _count(stage, "look")
    expect(count == 1, f"The call before the error reached its server {count} times.")
    await player.run(writer.program(writer.assigned("y", writer.call(SHOP, "die")), writer.returned("y")))
    count = _count(stage, "die")
    expect(count == 1, f"The server died before its answer, and got the call {count} times.")


@check("programs.cancelled", SHOULD, CANCELLATION, needs=(*NEEDS, "cancellation"))
async def cancelled(stage: Stage) -> None:
    """A program that the client cancels makes no more calls."""
    shop = server(
        tools=[
            tool("wait", READS, text="waited", hold=True),
            tool("pay", READS, text="paid"),
            tool("work", READS, text=TOKEN),
        ]
    )
    player = await stage.through(shop)
    writer = _writer(player)
    code = writer.program(
        writer.caught("x", writer.call(SHOP, "wait"), "failed"),
        writer.assigned("y", writer.call(SHOP, "pay")),
        writer.returned("y"),
    )
    number = player.send("tools/call", player.route.program(code))
    record = stage.record(SHOP)
    await saw(record, lambda seen: seen.events("held"), "The call of the program did not reach its server.")
    player.client.cancel(number)
    work = writer.program(writer.assigned("z", writer.call(SHOP, "work")), writer.returned("z"))
    await _works(player, work)
    stage.release(SHOP, "wait")  # for a proxy that doesn't pass the cancellation on
    await saw(record, _ended, "The server was told nothing, and its call has no end.")
    for _ in range(2):  # the answers to these come after that of the call, and what the program did with it
        await _works(player, work)
    expect(_count(stage, "pay") == 0, "The cancelled program went on, and made its next call.")


async def _works(player: Player, work: str) -> None:
    reply = await player.run(work)
    expect(TOKEN in _all(reply), f"The next program is answered with {reply.brief}.")


def _ended(record: Record) -> bool:
    """Whether the call that answers with ``waited`` was cancelled or answered."""
    return bool(record.events("cancelled")) or any("waited" in str(line.message) for line in record.sent())


@check("programs.continued", SHOULD, DURABLE, needs=NEEDS)
async def continued(stage: Stage) -> None:
    """After a program has failed in its middle, a model can go on without making the calls before the error
    again: a next program has the variables, or the same program sent again gets the answers that there
    are."""
    fill = {"text": f"{TOKEN}, payment {{#}}", "fill": True}
    player = await stage.through(server(tools=[tool("pay", READS, **fill)]))
    writer = _writer(player)
    pay = writer.assigned("paid", writer.call(SHOP, "pay", id=7))
    await player.run(writer.program(pay, writer.failing))
    expect(_count(stage, "pay") == 1, f"The call reached its server {_count(stage, 'pay')} times.")
    reply = await player.run(writer.program(writer.returned("paid")))
    if f"{TOKEN}, payment 1" not in _all(reply):
        reply = await player.run(writer.program(pay, writer.returned("paid")))
    count = _count(stage, "pay")
    expect(
        count == 1,
        "After an error its variables have gone, and the program can only be sent again: its call ran "
        f"{count} times.",
    )
    expect(TOKEN in _all(reply), f"The answer of the first call doesn't come, but {reply.brief}.")
