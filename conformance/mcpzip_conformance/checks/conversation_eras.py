"""Checks of questions to a client of 2026-07-28, and of a client and a server of different eras."""

import msgspec

from mcpzip.wire import LATEST_LEGACY_VERSION, MODERN_VERSION, join_object, quote, split_object, unquote
from mcpzip_conformance.check import MUST, SHOULD, SPEC_2026, check, expect
from mcpzip_conformance.checks.asking import (
    BOOKED,
    ELICIT,
    FILLED,
    FORM,
    HELD,
    LIST_ROOTS,
    SAMPLE,
    SAMPLED,
    SAMPLING,
    asking,
    booking,
)
from mcpzip_conformance.compare_conversation import (
    Respondent,
    bridged,
    compare,
    compare_requests,
    controlled,
    message_lines,
    reply_lines,
    unanswered,
)
from mcpzip_conformance.compare_json import diff
from mcpzip_conformance.errors import Finding
from mcpzip_conformance.player import Player
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, Call, server, tool
from mcpzip_conformance.stage import Stage

MRTR = SPEC_2026 + "/basic/patterns/mrtr"
ERAS = SPEC_2026 + "/basic/versioning"


@check("conversation.mrtr", MUST, MRTR, needs=("modern", "elicitation"))
async def mrtr(stage: Stage) -> None:
    """In 2026-07-28 a server's questions are answered by the next request: its ``inputRequests`` reach the
    client, the client's ``inputResponses`` and ``requestState`` the server."""
    shop = asking(ELICIT, FORM, era="both")
    with controlled():
        straight = await _in_two(await stage.straight(shop, MODERN_VERSION, answers={ELICIT: unanswered}))
    through = await _in_two(await stage.through(shop, version=MODERN_VERSION, answers={ELICIT: unanswered}))
    difference = diff(straight, through, stage.subject.title)
    if difference:
        raise Finding("The server's requests, or the answer, differ.", difference)


async def _in_two(player: Player) -> list[str]:
    """Play the call, and again with the answers. Returns the messages, one member on each line."""
    params = player.route.call(SHOP, "ask", b"{}")
    asked = await player.client.reply(player.send("tools/call", params))
    if asked.fields.get("resultType") != "input_required":
        return ["not asked", *reply_lines(player, asked)]
    result = split_object(asked.result or b"{}")
    questions = split_object(result.get("inputRequests", b"{}"))
    more = {"inputResponses": join_object(dict.fromkeys(questions, FILLED))}
    if "requestState" in result:
        more["requestState"] = result["requestState"]
    told = []
    for question in map(split_object, questions.values()):
        told += message_lines(unquote(question["method"]), question.get("params", b"{}"))
    again = await player.reply(player.send("tools/call", join_object(split_object(params) | more)))
    return [*told, *reply_lines(player, again)]


@check("conversation.mrtr-rounds", SHOULD, MRTR, needs=("modern", "elicitation"))
async def mrtr_rounds(stage: Stage) -> None:
    """In 2026-07-28 a server can ask again after the first answers."""
    calls, says = [Call("book")], {ELICIT: BOOKED}
    await compare_requests(stage, booking("both"), calls, says, version=MODERN_VERSION)


@check("conversation.mrtr-several", SHOULD, MRTR, needs=("modern", "elicitation", "sampling", "roots"))
async def mrtr_several(stage: Stage) -> None:
    """In 2026-07-28 a server can ask several questions of different kinds at once, without a state."""
    asks = [
        {"name": "who", "method": ELICIT, "params": FORM},
        {"name": "text", "method": SAMPLE, "params": SAMPLING},
        {"name": "roots", "method": LIST_ROOTS},
    ]
    said = "{who.content.name}: {text.content.text} {roots.roots}"
    told = tool("ask", None, text=said, fill=True, ask=asks, state=False)
    shop = server(era="modern", tools=[told])
    says = {ELICIT: [FILLED], SAMPLE: [SAMPLED], LIST_ROOTS: [HELD]}
    await compare_requests(stage, shop, [Call("ask")], says, version=MODERN_VERSION)


@check("conversation.mrtr-prompt", SHOULD, MRTR, needs=("modern", "elicitation", "prompts"))
async def mrtr_prompt(stage: Stage) -> None:
    """In 2026-07-28 a server can ask before it returns a prompt, too."""
    messages = '[{"role":"user","content":{"type":"text","text":"For {question.content.name}."}}]'
    prompt = {"name": "letter", "messages": messages, "ask": {"method": ELICIT, "params": FORM}}
    shop = server(tools=[tool("echo")], prompts=[prompt])
    sides = []
    for straight in (True, False):
        respondent = Respondent({ELICIT: [FILLED]})
        set_up = stage.straight if straight else stage.through
        player = await set_up(shop, version=MODERN_VERSION, answers=respondent.answers)
        await _until_listed(player, "prompts/list", "prompts")
        params = join_object({"name": quote(player.route.prompt(SHOP, "letter"))})
        reply = await player.request("prompts/get", params)
        sides.append(
            [*(message_lines(*question) for question in respondent.asked), reply_lines(player, reply)]
        )
    compare(stage, "The server's requests, or the prompt, differ.", *sides)


async def _until_listed(player: Player, method: str, key: str) -> None:
    """List, so that the subject knows the items."""
    reply = await player.request(method)
    expect(reply.fields.get(key), f"{method} is answered with {reply.brief}.")


@check("conversation.capability-missing", SHOULD, SPEC_2026 + "/basic", needs=("modern", "elicitation"))
async def capability_missing(stage: Stage) -> None:
    """In 2026-07-28 a call that needs a capability which the client did not declare is answered with error
    -32021, whose data name it."""
    shop = asking(ELICIT, FORM, era="both")
    with controlled():
        straight = await (await stage.straight(shop, MODERN_VERSION)).call(SHOP, "ask")
    through = await (await stage.through(shop, version=MODERN_VERSION)).call(SHOP, "ask")
    difference = diff(_missing(straight), _missing(through), stage.subject.title)
    if difference:
        raise Finding(f"It is answered with {through.brief}.", difference)


def _missing(reply: Reply) -> list[str]:
    """The code of an error, and the missing capabilities that it names."""
    error = msgspec.json.decode(reply.error or b"{}")
    data = error.get("data")
    needed = data.get("requiredCapabilities") if isinstance(data, dict) else None
    return [
        f"code {error.get('code')}",
        f"requires {', '.join(needed) if isinstance(needed, dict) else needed}",
    ]


# Between the eras


@check("conversation.legacy-server", SHOULD, ERAS, needs=("modern",))
async def legacy_server(stage: Stage) -> None:
    """A client of 2026-07-28 can call the tools of a server that knows only ``initialize``."""
    await _called(stage, "legacy", MODERN_VERSION)


@check("conversation.modern-server", SHOULD, ERAS, needs=("modern",))
async def modern_server(stage: Stage) -> None:
    """A client that opens with ``initialize`` can call the tools of a server that knows only 2026-07-28."""
    await _called(stage, "modern", LATEST_LEGACY_VERSION)


async def _called(stage: Stage, era: str, version: str) -> None:
    player = await bridged(stage, server(era=era, tools=[tool("echo")]), version=version)
    reply = await player.call(SHOP, "echo", b'{"n":1}')
    expect(reply.json == {"n": 1}, f"A call is answered with {reply.brief}.")


@check("conversation.legacy-server-asks", SHOULD, MRTR, needs=("modern", "elicitation"))
async def legacy_server_asks(stage: Stage) -> None:
    """A question of a server that knows only ``initialize`` reaches a client of 2026-07-28 in its era's form,
    also twice in one call."""
    await compare_requests(
        stage,
        booking("legacy"),
        [Call("book")],
        {ELICIT: BOOKED},
        version=MODERN_VERSION,
        straight=LATEST_LEGACY_VERSION,
    )


@check("conversation.modern-server-asks", SHOULD, MRTR, needs=("modern", "elicitation"))
async def modern_server_asks(stage: Stage) -> None:
    """A question of a server that knows only 2026-07-28 reaches a client that opened with ``initialize`` in
    its era's form, also twice in one call."""
    await compare_requests(
        stage,
        booking("modern"),
        [Call("book")],
        {ELICIT: BOOKED},
        version=LATEST_LEGACY_VERSION,
        straight=MODERN_VERSION,
    )
