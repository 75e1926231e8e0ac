"""Checks of a subject that serves several clients: what a server asks during one client's call is asked of no
other, and no client's answer is used for another's call.

The rule: the servers here speak the legacy era, in which a question names no call.
"""

from collections.abc import Sequence
from contextlib import suppress

from mcpzip_fakes.record import Record

from mcpzip_conformance.check import CONTRACT, MUST, SHOULD, SPEC_2025, check, expect, saw
from mcpzip_conformance.checks.asking import ELICIT, LIST_ROOTS, SAMPLE, SAMPLED, named
from mcpzip_conformance.checks.several import WAIT, Guest, aligned, all_held, several, text_member
from mcpzip_conformance.checks.shared import CANCELLATION, NEGOTIATION
from mcpzip_conformance.compare_conversation import Says
from mcpzip_conformance.errors import Finding, NoAnswerError, NotPlayableError
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, server, tool
from mcpzip_conformance.stage import Stage


@check("shared.elicitation", MUST, SPEC_2025 + "/client/elicitation", needs=("shared", "elicitation"))
async def elicitation(stage: Stage) -> None:
    """A question to the user during a client's call is asked of that client only, and its answer reaches that
    call only."""
    params = {"message": "{word}", "requestedSchema": {"type": "object", "properties": {}}}
    ask = {"method": ELICIT, "params": params}
    form = tool("ask", None, text="{question.content.name}", fill=True, hold=True, ask=ask)
    says: list[Says] = [{ELICIT: [named(f"for {name}")]} for name in ("anna", "ben")]
    guests = await several(stage, server(era="legacy", tools=[form]), 2, says=says)
    await _asked_apart(stage, guests, [guest.name for guest in guests])
    for guest in guests:
        asked = {text_member(params, "message") for _, params in guest.respondent.asked}
        expect(asked <= {guest.word}, f"{guest.name} was asked the question of another client's call.")


@check("shared.sampling", MUST, SPEC_2025 + "/client/sampling", needs=("shared", "sampling"))
async def sampling(stage: Stage) -> None:
    """An answer of one client's model is used for no other client's call, not even if the question is the
    same."""
    content = {"type": "text", "text": "Who are you?"}
    params = {"messages": [{"role": "user", "content": content}], "maxTokens": 10}
    think = tool("ask", None, hold=True, ask={"method": SAMPLE, "params": params})
    says: list[Says] = [
        {SAMPLE: [SAMPLED.replace(b"m-1", f"for {name}".encode())]} for name in ("anna", "ben")
    ]
    guests = await several(stage, server(era="legacy", tools=[think]), 2, says=says)
    await _asked_apart(stage, guests, [guest.name for guest in guests])


@check("shared.roots", MUST, SPEC_2025 + "/client/roots", needs=("shared", "roots"))
async def roots(stage: Stage) -> None:
    """The roots of one client are told in no other client's call."""
    where = tool("ask", None, hold=True, ask={"method": LIST_ROOTS})
    says: list[Says] = [
        {LIST_ROOTS: [b'{"roots":[{"uri":"file:///for %b"}]}' % name]} for name in (b"anna", b"ben")
    ]
    guests = await several(stage, server(era="legacy", tools=[where]), 2, says=says)
    await _asked_apart(stage, guests, [guest.name for guest in guests])


@check("shared.roots-changed", MUST, CONTRACT, needs=("shared", "roots"))
async def roots_changed(stage: Stage) -> None:
    """After a client has said that its roots have changed, the new ones are told in its calls, and in no call
    of another client that had the same roots before."""
    where = tool("ask", None, ask={"method": LIST_ROOTS})
    says: list[Says] = [{LIST_ROOTS: [b'{"roots":[{"uri":"file:///for both"}]}']} for _ in range(2)]
    guests = await several(stage, server(era="legacy", tools=[where]), 2, says=says)
    for guest in (*guests, *guests):
        with suppress(NoAnswerError):  # whether it is answered is another check's requirement
            await guest.call("ask")
    first, second = guests
    first.player.client.answers[LIST_ROOTS] = lambda params: b'{"roots":[{"uri":"file:///for anna"}]}'
    first.player.client.notify("notifications/roots/list_changed")
    for guest, wanted, other in ((first, "anna", "both"), (second, "both", "anna"), (first, "anna", "both")):
        reply = await guest.call("ask")
        expect(
            f"for {wanted}" in reply.text and f"for {other}" not in reply.text,
            f"After the roots of {first.name} have changed, the call of {guest.name} is answered with "
            f"{reply.brief}.",
        )


@check("shared.questions-at-a-time", SHOULD, CONTRACT, needs=("shared", "elicitation"))
async def questions_at_a_time(stage: Stage) -> None:
    """Calls of several clients in which the server asks at the same time are all answered with their own
    client's answer."""
    ask = {"method": ELICIT, "params": {"message": "{word}", "requestedSchema": {"type": "object"}}}
    form = tool("ask", None, text="{question.content.name}", fill=True, hold=True, ask=ask)
    says: list[Says] = [{ELICIT: [named(f"for {name}")]} for name in ("anna", "ben")]
    guests = await several(stage, server(era="legacy", tools=[form]), 2, says=says)
    for guest, reply in await _all_asking(stage, guests):
        expect(reply.text == f"for {guest.name}", f"The call of {guest.name} is answered with {reply.brief}.")


async def _asked_apart(stage: Stage, guests: Sequence[Guest], names: Sequence[str]) -> None:
    """Let the clients call at the same time, and then one after another; in each call the server asks its
    client. Raises Finding if an answer of one client is in the reply to another."""
    replies = await _all_asking(stage, guests)
    for guest in guests:
        with suppress(NoAnswerError):  # whether it is answered is another check's requirement
            replies.append((guest, await guest.call("ask")))
    for guest, reply in replies:
        for name in names:
            expect(
                name == guest.name or f"for {name}" not in reply.text,
                f"The call of {guest.name} is answered with what {name} said: {reply.brief}.",
            )


async def _all_asking(stage: Stage, guests: Sequence[Guest]) -> list[tuple[Guest, Reply]]:
    """The replies to calls that ask at the same time; only those that came."""
    await aligned(guests)
    calls = [(guest, guest.begin("ask")) for guest in guests]
    await all_held(stage, len(calls))
    stage.release(SHOP, "ask")
    replies = []
    for guest, number in calls:
        with suppress(NoAnswerError):
            replies.append((guest, await guest.player.reply(number)))
    return replies


@check("shared.left-behind", MUST, CANCELLATION, needs=("shared", "elicitation", "cancellation"))
async def left_behind(stage: Stage) -> None:
    """A server may ignore that a call was cancelled. What it then asks during the call of a client that has
    cancelled it, or has disconnected, is asked of no other client."""
    ask = {"method": ELICIT, "params": {"message": "{word}", "requestedSchema": {"type": "object"}}}
    form = tool("ask", None, text="{word}", fill=True, hold=True, ignores_cancel=True, ask=ask)
    says: list[Says] = [{ELICIT: [named(name)]} for name in ("anna", "ben", "cleo")]
    guests = await several(stage, server(era="legacy", tools=[WAIT, form]), 3, says=says)
    stays, cancels, leaves = guests
    number = stays.begin("wait")
    its = cancels.begin("ask")
    leaves.begin("ask")
    if not await all_held(stage, 3):
        raise NotPlayableError("It runs one call at a time.")
    cancels.player.client.cancel(its)
    await leaves.player.client.leave()
    with suppress(Finding):  # a server need not be told, and a process that has ended asks nothing
        await saw(stage.record(SHOP), _both_are_told, "Not told.", stage.patience / 4)
    stage.release(SHOP, "ask")
    with suppress(Finding):
        await saw(stage.record(SHOP), _asks, "The server asks nothing.", stage.patience / 4)
    await stays.player.request("tools/list")  # all messages before its answer have arrived by then
    stage.release(SHOP, "wait")
    await stays.reply(number)
    expect(
        not stays.respondent.asked,
        f"{stays.name} was asked what belongs to the call of another client, which had ended that call.",
    )


def _both_are_told(seen: Record) -> bool:
    """Whether both calls were cancelled, or their processes have ended."""
    return len(seen.received("notifications/cancelled")) + len(seen.events("exit")) >= 2


def _asks(seen: Record) -> bool:
    return any(line.method == ELICIT for line in seen.sent())


# Identity


@check("shared.capabilities", MUST, NEGOTIATION, needs=("shared", "elicitation"))
async def capabilities(stage: Stage) -> None:
    """During the call of a client that can't be asked nobody is asked: not another client that can."""
    ask = {"method": ELICIT, "params": {"message": "{word}", "requestedSchema": {"type": "object"}}}
    form = tool("ask", None, text="{word}", fill=True, ask={**ask, "optional": True})
    first, second = await several(
        stage, server(era="legacy", tools=[form]), 2, says=[{ELICIT: [named("Anna")]}]
    )
    for guest in (first, second, first):
        with suppress(NoAnswerError):  # whether it is answered is another check's requirement
            await guest.call("ask")
    asked = {text_member(params, "message") for _, params in first.respondent.asked}
    expect(
        asked <= {first.word},
        f"{first.name} was asked the question of the call of {second.name}, who declares no elicitation.",
    )
    questions = second.player.client.messages(ELICIT)
    expect(not questions, f"{second.name}, who declares no elicitation, was asked something.")
