"""Checks of a server's questions during a call.

The servers here speak the client's era, so that a proxy needn't translate.
"""

import asyncio
from contextlib import suppress

from mcpzip_fakes.record import Record

from mcpzip.wire import (
    CLIENT_CAPABILITIES_KEY,
    LATEST_LEGACY_VERSION,
    MODERN_VERSION,
    NotAnObject,
    join_object,
    quote,
    split_object,
    unquote,
)
from mcpzip_conformance.check import MAY, MUST, SHOULD, SPEC_2025, SPEC_2026, check, expect, saw
from mcpzip_conformance.checks.asking import (
    ACCEPTED,
    BOOKED,
    DECLINED,
    DROPPED,
    ELICIT,
    FILLED,
    FORM,
    HELD,
    LIST_ROOTS,
    SAMPLE,
    SAMPLED,
    SAMPLING,
    URL,
    asking,
    booking,
    named,
    naming,
)
from mcpzip_conformance.client import Fields, RefusedError
from mcpzip_conformance.compare_conversation import (
    Respondent,
    compare_requests,
    controlled,
    method_of,
    unanswered,
)
from mcpzip_conformance.errors import Finding, NoAnswerError
from mcpzip_conformance.player import Player
from mcpzip_conformance.scene import SHOP, Call, server, tool
from mcpzip_conformance.stage import Stage

SPEC_SAMPLING = SPEC_2025 + "/client/sampling"
SPEC_ELICITATION = SPEC_2025 + "/client/elicitation"
SPEC_ROOTS = SPEC_2025 + "/client/roots"
NEGOTIATION = SPEC_2025 + "/basic/lifecycle#capability-negotiation"


@check("conversation.sampling", SHOULD, SPEC_SAMPLING + "#creating-messages", needs=("sampling",))
async def sampling(stage: Stage) -> None:
    """A server's ``sampling/createMessage`` reaches the client with its params, and the answer the server."""
    await compare_requests(stage, asking(SAMPLE, SAMPLING), [Call("ask")], {SAMPLE: [SAMPLED]})


@check(
    "conversation.elicitation-form",
    SHOULD,
    SPEC_ELICITATION + "#form-mode-elicitation-requests",
    needs=("elicitation",),
)
async def elicitation_form(stage: Stage) -> None:
    """A server's form reaches the user with its schema, and the user's response reaches the server: accepted,
    declined, cancelled."""
    says = {ELICIT: [FILLED, DECLINED, DROPPED]}
    await compare_requests(stage, asking(ELICIT, FORM), [Call("ask")] * 3, says)


@check(
    "conversation.elicitation-url",
    SHOULD,
    SPEC_ELICITATION + "#url-mode-elicitation-requests",
    needs=("elicitation",),
)
async def elicitation_url(stage: Stage) -> None:
    """A URL that a server asks the user to open reaches the user with its id, and the server learns whether
    it was accepted or declined."""
    says = {ELICIT: [ACCEPTED, DECLINED]}
    await compare_requests(stage, asking(ELICIT, URL), [Call("ask")] * 2, says, since="2025-11-25")


@check("conversation.roots", SHOULD, SPEC_ROOTS + "#listing-roots", needs=("roots",))
async def roots(stage: Stage) -> None:
    """A server's ``roots/list`` reaches the client, and the server the client's roots."""
    await compare_requests(stage, asking(LIST_ROOTS), [Call("ask")], {LIST_ROOTS: [HELD]})


@check("conversation.roots-changed", MAY, SPEC_ROOTS + "#root-list-changes", needs=("roots",))
async def roots_changed(stage: Stage) -> None:
    """A server is notified that the client's roots have changed."""
    shop = server(era="legacy", tools=[tool("echo")])
    player = await stage.through(shop, answers=Respondent({LIST_ROOTS: [HELD]}).answers)
    await player.call(SHOP, "echo")
    player.client.notify("notifications/roots/list_changed")
    await saw(
        stage.record(SHOP),
        lambda seen: seen.received("notifications/roots/list_changed"),
        "The server was not told.",
    )


@check("conversation.question-refused", SHOULD, SPEC_SAMPLING + "#error-handling", needs=("sampling",))
async def question_refused(stage: Stage) -> None:
    """If a client answers a question with an error, the server gets an error, and the call ends."""
    refusal = RefusedError(b'{"code":-1,"message":"User rejected sampling request"}')
    player = await stage.through(asking(SAMPLE, SAMPLING), answers=Respondent({SAMPLE: [refusal]}).answers)
    reply = await player.call(SHOP, "ask")
    errors = [line for line in stage.record(SHOP).received() if not line.method and "error" in line.message]
    expect(errors, f"The server got no error for its question; the call is answered with {reply.brief}.")


@check("conversation.two-questions", SHOULD, SPEC_ELICITATION, needs=("elicitation",))
async def two_questions(stage: Stage) -> None:
    """A call in which the server asks twice gets both answers, each for its question."""
    await compare_requests(stage, booking("legacy"), [Call("book")], {ELICIT: BOOKED})


@check("conversation.questions-of-two-calls", SHOULD, SPEC_ELICITATION, needs=("elicitation",))
async def questions_of_two_calls(stage: Stage) -> None:
    """Two concurrent calls can both ask, and be answered in any order: each gets its own answer."""
    player = await stage.through(naming(), answers={ELICIT: unanswered})
    calls = {by: player.begin(SHOP, "name", b'{"by":"%s"}' % by.encode()) for by in ("one", "two")}
    asked = [by for by in calls if await _asked(player, by)]
    later = [by for by in calls if by not in asked]  # by a subject that runs one call at a time
    if not asked:
        return  # a missing question is another check's finding
    for by in [*reversed(asked), *later]:
        player.client.answer(await _question(player, by), named(f"N. {by}"))
    for by, number in calls.items():
        reply = await player.reply(number)
        expect(reply.text == f"{by}: N. {by}", f"The call of {by!r} is answered with {reply.brief}.")


@check("conversation.questions-stay-apart", MUST, SPEC_ELICITATION, needs=("elicitation", "http"))
async def questions_stay_apart(stage: Stage) -> None:
    """With two clients a question reaches only the client that made the call."""
    first_one, second_one = (
        Respondent({ELICIT: [named("of the first")]}),
        Respondent({ELICIT: [named("of the second")]}),
    )
    first = await stage.through(naming(delay=0.1), answers=first_one.answers)
    second = await stage.beside(first, answers=second_one.answers)
    sides = ((first, first_one, "the first"), (second, second_one, "the second"))
    # First alone, then both at the same time.
    for those in (sides[:1], sides[1:], sides):
        calls = [
            (player, word, player.begin(SHOP, "name", join_object({"by": quote(word)})))
            for player, _, word in those
        ]
        for player, _, number in calls:
            with suppress(NoAnswerError):  # whether it is answered is another check's requirement
                await player.reply(number)
    for (_, respondent, word), (_, _, other) in zip(sides, reversed(sides), strict=True):
        messages = {_message(params) for _, params in respondent.asked}
        expect(f"Who, {other}?" not in messages, f"The client that is {word} was asked {sorted(messages)}.")


@check("conversation.capabilities-told", SHOULD, NEGOTIATION)
async def capabilities_told(stage: Stage) -> None:
    """For a call the server learns of no sampling, elicitation or roots that the client lacks."""
    await _does_without(stage, LATEST_LEGACY_VERSION)


@check("conversation.capabilities-told-modern", SHOULD, SPEC_2026 + "/basic", needs=("modern",))
async def capabilities_told_modern(stage: Stage) -> None:
    """In 2026-07-28 too a server learns of no sampling, elicitation or roots that the client lacks."""
    await _does_without(stage, MODERN_VERSION)


async def _does_without(stage: Stage, version: str) -> None:
    questions = {"think": (SAMPLE, SAMPLING), "form": (ELICIT, FORM), "url": (ELICIT, URL)}
    tools = [
        tool(name, None, text="did without", ask={"method": method, "params": params, "optional": True})
        for name, (method, params) in questions.items()
    ]
    tools.append(tool("where", None, text="did without", ask={"method": LIST_ROOTS, "optional": True}))
    shop = server(tools=tools)
    with controlled():
        straight = await stage.straight(shop, version)
        for name in (*questions, "where"):
            expect((await straight.call(SHOP, name)).text == "did without", f"{name} asked")
    player = await stage.through(shop, version=version)
    for name in (*questions, "where"):
        with suppress(NoAnswerError):  # only what the server got counts
            await player.call(SHOP, name)
        told = sorted(_declared(stage.record(SHOP)) & {"sampling", "elicitation", "roots"})
        expect(not told, f"The client declares nothing, and the server was told of {' and '.join(told)}.")


def _declared(record: Record) -> set[str]:
    """The client capabilities that a server got in calls, or in the handshake of a connection with calls.
    Connections that only list don't count, because a proxy may declare any capability there."""
    called = {(line.pid, line.connection) for line in record.received() if line.method == "tools/call"}
    told: set[str] = set()
    for line in record.received():
        capabilities: object = None
        if line.method == "initialize" and (line.pid, line.connection) in called:
            capabilities = line.params.get("capabilities")
        elif line.method == "tools/call":
            meta = line.params.get("_meta")
            capabilities = meta.get(CLIENT_CAPABILITIES_KEY) if isinstance(meta, dict) else None
        if isinstance(capabilities, dict):
            told |= {name for name, value in capabilities.items() if value is not None}
    return told


async def _asked(player: Player, by: str) -> bool:
    """Whether the client gets the question of the call of ``by`` while no other question is answered."""
    try:
        async with asyncio.timeout(player.client.patience / 4):
            await _question(player, by)
    except (Finding, TimeoutError):
        return False
    return True


async def _question(player: Player, by: str) -> Fields:
    """The question of the call of ``by``. Raises Finding if there is none."""

    def asks(fields: Fields) -> bool:
        return method_of(fields) == ELICIT and _message(fields.get("params", b"{}")) == f"Who, {by}?"

    try:
        return await player.client.wait_for(asks)
    except NoAnswerError:
        raise Finding(f"The client gets the question of one call, but not that of {by!r}.") from None


def _message(params: bytes) -> str:
    """The ``message`` of an elicitation."""
    try:
        message = split_object(params).get("message", b"")
    except NotAnObject:
        return ""
    return unquote(message) if message.startswith(b'"') else ""
