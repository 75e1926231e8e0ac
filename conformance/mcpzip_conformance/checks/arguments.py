"""Checks of arguments as models write them when they call a tool through a meta-tool.

The rule: the tool runs with the intended arguments, or it doesn't run and the reply explains why. It never
runs with other arguments.
"""

import msgspec

from mcpzip_conformance.check import CONTRACT, MUST, SHOULD, SPEC_2025, check, expect
from mcpzip_conformance.player import Player
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, server, tool
from mcpzip_conformance.stage import Stage

META = ("meta-tools",)
_SCHEMA = {
    "type": "object",
    "properties": {"channel": {"type": "string"}, "text": {"type": "string"}},
    "required": ["channel", "text"],
}
_MEANT = b'{"channel":"C1","text":"hi"}'
SLACK = server(tools=[tool("send", {"inputSchema": _SCHEMA}), tool("noop", text="done")])
_NAMES = (
    "channel",
    "text",
    "thread",
    "c",
    "d",
    "e",
    "f",
    "name",
    "arguments",
    "server",
    "tool",
    "timeout",
    "query",
)
_OPEN = {"type": "object", "properties": {name: {} for name in (*_NAMES, "_meta")}}
ANY = server(tools=[tool("send", {"inputSchema": _OPEN}), tool("noop", text="done")])
"""The same, and ``send`` takes anything."""


async def _meant_or_refused(stage: Stage, player: Player, reply: Reply, what: str) -> None:
    """The server got the intended arguments, or the call was refused with an explanation."""
    calls = stage.record(SHOP).calls("send")
    if not calls:
        expect(reply.failed and reply.text.strip(), f"With {what} nothing ran and nothing was said.")
        return
    got = calls[-1].get("arguments")
    as_text = isinstance(got, str) and player.route.subject.tools.call is None  # passed on unchanged
    expect(as_text or got == msgspec.json.decode(_MEANT), f"With {what} the tool ran with {got!r}.")


def _got(stage: Stage, wanted: object) -> None:
    """Whether the server got the call with these arguments."""
    calls = stage.record(SHOP).calls("send")
    expect(calls, "The call did not reach the server.")
    got = calls[-1].get("arguments")
    expect(got == wanted, f"The server got {got!r}.")


@check("arguments.as-text", MUST, CONTRACT)
async def as_text(stage: Stage) -> None:
    """Arguments given as a string that holds JSON are read, or refused; the tool doesn't run without them."""
    player = await stage.through(SLACK)
    reply = await player.call(SHOP, "send", msgspec.json.encode(_MEANT.decode()))
    await _meant_or_refused(stage, player, reply, "its arguments as a string")


@check("arguments.as-text-twice", MUST, CONTRACT)
async def as_text_twice(stage: Stage) -> None:
    """Arguments given as a string that holds a string that holds JSON are read, or refused."""
    player = await stage.through(SLACK)
    text = msgspec.json.encode(msgspec.json.encode(_MEANT.decode()).decode())
    reply = await player.call(SHOP, "send", text)
    await _meant_or_refused(stage, player, reply, "its arguments as a string in a string")


@check("arguments.flat", MUST, CONTRACT, needs=META)
async def flat(stage: Stage) -> None:
    """Arguments beside the tool's name are used, or refused; the tool doesn't run without them."""
    player = await stage.through(SLACK)
    reply = await player.call(SHOP, "send", _MEANT, flat=True)
    await _meant_or_refused(stage, player, reply, "its arguments beside its name")


@check("arguments.not-an-object", MUST, SPEC_2025 + "/server/tools#calling-tools", needs=META)
async def not_an_object(stage: Stage) -> None:
    """Arguments that are no object at all (a list, a number, a text that is no JSON) are refused with an
    explanation."""
    player = await stage.through(SLACK)
    for given in (b"[1,2]", b"7", b'"send it, please"', b"true"):
        reply = await player.call(SHOP, "send", given)
        expect(reply.failed and reply.text.strip(), f"With {given.decode()} it answers {reply.text!r}.")
    expect(not stage.record(SHOP).calls("send"), "The tool ran all the same.")


@check("arguments.none", MUST, CONTRACT)
async def none(stage: Stage) -> None:
    """A tool that takes no arguments runs when they are left out."""
    player = await stage.through(SLACK)
    reply = await player.call(SHOP, "noop", None)
    expect(reply.text == "done", f"It answers {reply.text!r}.")


@check("arguments.null", SHOULD, CONTRACT, needs=META)
async def null(stage: Stage) -> None:
    """A tool that takes no arguments runs when they are null, as models write them."""
    player = await stage.through(SLACK)
    reply = await player.call(SHOP, "noop", b"null")
    expect(reply.text == "done", f"It answers {reply.text!r}.")


@check("arguments.null-members", MUST, CONTRACT)
async def null_members(stage: Stage) -> None:
    """A member that is null reaches the server as null: it is neither left out nor replaced."""
    player = await stage.through(ANY)
    await player.call(SHOP, "send", b'{"channel":"C1","text":"hi","thread":null}')
    wanted = {"channel": "C1", "text": "hi", "thread": None}
    _got(stage, wanted)


@check("arguments.own-words", MUST, CONTRACT)
async def own_words(stage: Stage) -> None:
    """Arguments with names of the proxy's own (name, arguments, server, tool, timeout, query) reach the
    server."""
    player = await stage.through(ANY)
    given = (
        b'{"name":"n","arguments":{"a":1},"server":"s","tool":"t","timeout":5,"query":"q","_meta":{"x":1}}'
    )
    await player.call(SHOP, "send", given)
    _got(stage, msgspec.json.decode(given))


@check("arguments.near-miss-name", MUST, CONTRACT)
async def near_miss_name(stage: Stage) -> None:
    """A tool name that is nearly right runs the intended tool or is refused; no other tool runs."""
    player = await stage.through(SLACK)
    reply = await player.call(SHOP, "Send", _MEANT)
    record = stage.record(SHOP)
    expect(not record.calls("noop"), "Another tool ran.")
    if not record.calls("send"):
        expect(reply.text.strip(), f"Nothing ran, and the answer is {reply.text!r}.")


@check("arguments.near-miss-says-which", SHOULD, CONTRACT, needs=META)
async def near_miss_says_which(stage: Stage) -> None:
    """A tool name that is nearly right is repaired, or the refusal names the intended tool."""
    player = await stage.through(SLACK)
    reply = await player.call(SHOP, "sned", _MEANT)
    shown = player.route.shown(SHOP, "send")
    ran = bool(stage.record(SHOP).calls("send"))
    expect(ran or shown in reply.text, f"It answers {reply.text!r}.")


@check("arguments.text-is-not-touched", MUST, CONTRACT)
async def text_is_not_touched(stage: Stage) -> None:
    """A string value stays a string, even if it contains JSON, a number or a placeholder."""
    player = await stage.through(ANY)
    values = {"channel": '{"a": 1}', "text": "007", "c": "null", "d": "${HOME}", "e": "{name}", "f": " x "}
    await player.call(SHOP, "send", msgspec.json.encode(values))
    _got(stage, values)
