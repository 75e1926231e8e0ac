"""Checks of a subject that serves several clients: what one client does harms no other.

The rule: the client that does harm is never the first, because over HTTP the subject ends with that one.
"""

from mcpzip_conformance.check import CONTRACT, MUST, SHOULD, check, expect, saw
from mcpzip_conformance.checks.asking import ELICIT, named
from mcpzip_conformance.checks.several import ECHO, WAIT, Guest, all_held, several
from mcpzip_conformance.errors import Finding, NotPlayableError
from mcpzip_conformance.scene import SHOP, server, tool
from mcpzip_conformance.stage import Stage

_MUCH = 2_000
"""Progress messages of 8 KB that nobody reads: more than the buffers between two processes hold."""
_CALLS = 100
"""Calls that one client has open at the same time."""


@check("shared.crash", MUST, CONTRACT, needs=("shared",))
async def crash(stage: Stage) -> None:
    """A client that crashes in the middle of a call – over stdio its process is killed, over HTTP its
    connections are closed – breaks no other client's open call or later calls."""
    await _leaves(stage, in_order=False)


@check("shared.disconnect", MUST, CONTRACT, needs=("shared",))
async def disconnect(stage: Stage) -> None:
    """A client that disconnects in the middle of a call – over stdio by the end of its input, over HTTP by
    DELETE of its session – breaks no other client's open call or later calls."""
    await _leaves(stage, in_order=True)


async def _leaves(stage: Stage, *, in_order: bool) -> None:
    stays, goes = await several(stage, server(tools=[WAIT, ECHO]), 2)
    number = stays.begin("wait")
    goes.begin("wait")
    await all_held(stage, 2)
    await (goes.player.client.leave() if in_order else goes.player.client.crash())
    await _is_served(stays, f"After {goes.name} has gone")
    stage.release(SHOP, "wait")
    reply = await stays.reply(number)
    expect(reply.text == stays.word, f"The open call of {stays.name} is answered with {reply.brief}.")
    await _is_served(stays, f"After {goes.name} has gone")


@check("shared.disconnect-cancels", SHOULD, CONTRACT, needs=("shared", "cancellation"))
async def disconnect_cancels(stage: Stage) -> None:
    """The call of a client that has disconnected ends at the server, and the call of another client does
    not."""
    stays, goes = await several(stage, server(tools=[WAIT, ECHO]), 2)
    number = stays.begin("wait")
    goes.begin("wait")
    if not await all_held(stage, 2):
        raise NotPlayableError("It runs one call at a time.")
    await goes.player.client.leave()
    await saw(
        stage.record(SHOP),
        lambda seen: seen.events("cancelled") or seen.events("exit"),
        f"The call of {goes.name}, who has disconnected, goes on at the server.",
    )
    stage.release(SHOP, "wait")
    reply = await stays.reply(number)
    expect(reply.text == stays.word, f"The open call of {stays.name} is answered with {reply.brief}.")


@check("shared.hang", MUST, CONTRACT, needs=("shared", "progress"))
async def hang(stage: Stage) -> None:
    """A client that reads nothing, while its call gets more than any buffer between processes holds, delays
    no other client's calls."""
    flood = {"kind": "flood", "tool": "spew", "what": "progress", "count": _MUCH, "size": 8_192}
    shop = server(tools=[tool("spew", text="done"), ECHO], faults=[flood])
    stays, hangs = await several(stage, shop, 2)
    hangs.player.client.pause()
    hangs.begin("spew", b'{"progressToken":1}')
    await saw(
        stage.record(SHOP),
        lambda seen: len(seen.lines()) > _MUCH // 4,
        "The server could not send its progress.",
    )
    for _ in range(20):
        await _is_served(stays, f"While {hangs.name} reads nothing")


@check("shared.flood", MUST, CONTRACT, needs=("shared",))
async def flood(stage: Stage) -> None:
    """A client that has a hundred calls open leaves room for another client's calls."""
    stays, floods = await several(stage, server(tools=[WAIT, ECHO]), 2)
    for _ in range(_CALLS):
        floods.begin("wait")
    await all_held(stage, _CALLS)
    await _is_served(stays, f"While {floods.name} has {_CALLS} calls open")


async def _is_served(guest: Guest, when: str) -> None:
    """Raises Finding unless a call of the client is answered."""
    number = guest.begin("echo")
    try:
        reply = await guest.player.reply(number)
    except Finding as finding:
        raise Finding(f"{when} a call of {guest.name} gets no answer: {finding.summary}") from None
    expect(guest.word in reply.text, f"{when} a call of {guest.name} is answered with {reply.brief}.")


@check("shared.processes", SHOULD, CONTRACT, needs=("shared", "owns-servers"))
async def processes(stage: Stage) -> None:
    """The calls of several clients go to as many processes of a server as the subject's file says: one for
    all, one for each client, or one for all clients with the same capabilities."""
    mode = stage.subject.shared.processes if stage.subject.shared else ""
    if not mode:
        raise NotPlayableError("Its file doesn't say how many processes of a server there are.")
    answers = {ELICIT: [named("x")]}
    guests = await several(stage, server(era="legacy", tools=[ECHO]), 4, says=[{}, {}, answers, answers])
    for guest in guests:
        await guest.call("echo")
    seen = stage.record(SHOP).received("tools/call")
    used = {guest.name: {line.pid for line in seen if guest.word in str(line.params)} for guest in guests}
    wanted = {"one": 1, "per-client": len(guests), "per-capabilities": 2}[mode]
    count = len(set().union(*used.values()))
    expect(
        count == wanted,
        f"The calls of {len(guests)} clients, two of them with elicitation, went to {count} processes; "
        f"{mode} means {wanted}.",
    )
    alike = used["anna"] == used["ben"] and used["cleo"] == used["dora"]
    expect(alike or mode == "per-client", "Clients with the same capabilities were served by different ones.")
