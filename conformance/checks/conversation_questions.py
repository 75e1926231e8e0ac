"""What a server asks the client in the middle of a call, in each era and between the two.

The servers here are of the client's era, so that nobody has to translate, but for the checks at the end.
"""

import msgspec

from conformance.check import MAY, MUST, SHOULD, SPEC_2025, SPEC_2026, check, expect, saw
from conformance.client import Fields, RefusedError
from conformance.errors import Finding, NotPlayableError
from conformance.exchange import (
    Respondent,
    answered,
    asked_alike,
    compare,
    controlled,
    in_words,
    left_open,
    method_of,
    spoken,
)
from conformance.likeness import diff
from conformance.player import Player
from conformance.reply import Reply
from conformance.scene import SHOP, Call, Server, server, tool
from conformance.stage import Stage
from fakes.record import Record
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

SAMPLING = SPEC_2025 + "/client/sampling"
ELICITATION = SPEC_2025 + "/client/elicitation"
ROOTS = SPEC_2025 + "/client/roots"
NEGOTIATION = SPEC_2025 + "/basic/lifecycle#capability-negotiation"
MRTR = SPEC_2026 + "/basic/patterns/mrtr"
ERAS = SPEC_2026 + "/basic/versioning"

_SAMPLE, _ELICIT, _ROOTS = "sampling/createMessage", "elicitation/create", "roots/list"

_SAMPLING = {
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "Summarize – naïvely: all is well."}},
        {"role": "assistant", "content": {"type": "text", "text": "All"}},
        {"role": "user", "content": {"type": "image", "data": "AAEC", "mimeType": "image/png"}},
    ],
    "modelPreferences": {
        "hints": [{"name": "small"}, {"name": "any"}],
        "costPriority": 0.5,
        "speedPriority": 1,
        "intelligencePriority": 0.25,
    },
    "systemPrompt": "Be brief.",
    "includeContext": "none",
    "temperature": 0.25,
    "maxTokens": 100,
    "stopSequences": ["\n\n"],
    "metadata": {"trace": [1, {"a": "b"}]},
}
_SAMPLED = (
    b'{"role":"assistant","content":{"type":"text","text":"All is w\xc3\xa9ll."},"model":"m-1",'
    b'"stopReason":"endTurn"}'
)
_FORM = {
    "mode": "form",
    "message": "A table – für wen?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name", "description": "Whose?", "minLength": 1},
            "people": {"type": "integer", "minimum": 1, "maximum": 12, "default": 2},
            "seat": {"type": "string", "enum": ["inside", "outside"]},
            "quiet": {"type": "boolean", "default": False},
        },
        "required": ["name", "people"],
    },
}
_FILLED = b'{"action":"accept","content":{"name":"\xc3\x89va","people":4,"seat":"outside","quiet":false}}'
_URL = {
    "mode": "url",
    "message": "Sign in, please.",
    "url": "https://example.com/sign-in?a=1&b=%20",
    "elicitationId": "e-1",
}
_HELD = b'{"roots":[{"uri":"file:///home/a%20b","name":"a b"},{"uri":"file:///srv"}]}'
_ACCEPTED, _DECLINED, _DROPPED = b'{"action":"accept"}', b'{"action":"decline"}', b'{"action":"cancel"}'


def _asking(method: str, params: object = None, *, era: str = "legacy") -> Server:
    """A server with a tool that answers with what its client says to a question."""
    ask = {"method": method} | ({} if params is None else {"params": params})
    return server(era=era, tools=[tool("ask", None, ask=ask)])


def _naming(*, era: str = "legacy", delay: float = 0.0) -> Server:
    """A server with a tool that asks for a name, saying in whose name it was called."""
    params = {
        "mode": "form",
        "message": "Who, {by}?",
        "requestedSchema": {"type": "object", "properties": {}},
    }
    ask = {"method": _ELICIT, "params": params}
    named = tool("name", None, text="{by}: {question.content.name}", fill=True, delay=delay, ask=ask)
    return server(era=era, tools=[named])


def _booking(era: str) -> Server:
    """A server with a tool that asks two things, the second when it has the answer to the first."""
    who = {"name": "who", "method": _ELICIT, "params": _FORM}
    when_params = {
        "mode": "form",
        "message": "When, {who.content.name}?",
        "requestedSchema": {"type": "object", "properties": {"day": {"type": "string"}}},
    }
    when = {"name": "when", "round": 2, "method": _ELICIT, "params": when_params}
    said = "{who.content.name} ({who.content.people}) comes on {when.content.day}."
    return server(era=era, tools=[tool("book", None, text=said, fill=True, ask=[who, when])])


_BOOKED = (_FILLED, b'{"action":"accept","content":{"day":"Friday"}}')


@check("conversation.sampling", SHOULD, SAMPLING + "#creating-messages", needs=("sampling",))
async def sampling(stage: Stage) -> None:
    """A server's ``sampling/createMessage`` reaches the client with its params, and the answer the server."""
    await asked_alike(stage, _asking(_SAMPLE, _SAMPLING), [Call("ask")], {_SAMPLE: [_SAMPLED]})


@check(
    "conversation.elicitation-form",
    SHOULD,
    ELICITATION + "#form-mode-elicitation-requests",
    needs=("elicitation",),
)
async def elicitation_form(stage: Stage) -> None:
    """A server's form reaches the user with its schema, and the server what the user did: filled it in,
    declined, went away."""
    says = {_ELICIT: [_FILLED, _DECLINED, _DROPPED]}
    await asked_alike(stage, _asking(_ELICIT, _FORM), [Call("ask")] * 3, says)


@check(
    "conversation.elicitation-url",
    SHOULD,
    ELICITATION + "#url-mode-elicitation-requests",
    needs=("elicitation",),
)
async def elicitation_url(stage: Stage) -> None:
    """A page that a server asks the user to open reaches the user with its URL and id, and the server that it
    was accepted or declined."""
    says = {_ELICIT: [_ACCEPTED, _DECLINED]}
    await asked_alike(stage, _asking(_ELICIT, _URL), [Call("ask")] * 2, says)


@check("conversation.roots", SHOULD, ROOTS + "#listing-roots", needs=("roots",))
async def roots(stage: Stage) -> None:
    """A server's ``roots/list`` reaches the client, and the server the client's roots."""
    await asked_alike(stage, _asking(_ROOTS), [Call("ask")], {_ROOTS: [_HELD]})


@check("conversation.roots-changed", MAY, ROOTS + "#root-list-changes", needs=("roots",))
async def roots_changed(stage: Stage) -> None:
    """A server is told that the client's roots have changed."""
    shop = server(era="legacy", tools=[tool("echo")])
    player = await stage.through(shop, answers=Respondent({_ROOTS: [_HELD]}).answers)
    await player.call(SHOP, "echo")
    player.client.notify("notifications/roots/list_changed")
    await saw(
        stage.record(SHOP),
        lambda seen: seen.received("notifications/roots/list_changed"),
        "The server was not told.",
    )


@check("conversation.question-refused", SHOULD, SAMPLING + "#error-handling", needs=("sampling",))
async def question_refused(stage: Stage) -> None:
    """A question that the client refuses with an error is refused to the server with an error, and the call
    ends."""
    refusal = RefusedError(b'{"code":-1,"message":"User rejected sampling request"}')
    player = await stage.through(
        _asking(_SAMPLE, _SAMPLING), answers=Respondent({_SAMPLE: [refusal]}).answers
    )
    reply = await player.call(SHOP, "ask")
    errors = [line for line in stage.record(SHOP).received() if not line.method and "error" in line.message]
    expect(errors, f"The server got no error for its question; the call is answered with {in_words(reply)}.")


@check("conversation.two-questions", SHOULD, ELICITATION, needs=("elicitation",))
async def two_questions(stage: Stage) -> None:
    """A call in which the server asks twice gets both answers, each where it belongs."""
    await asked_alike(stage, _booking("legacy"), [Call("book")], {_ELICIT: _BOOKED})


@check("conversation.questions-of-two-calls", SHOULD, ELICITATION, needs=("elicitation",))
async def questions_of_two_calls(stage: Stage) -> None:
    """Two calls at a time may both ask, and be answered in any order: each gets its own answer."""
    player = await stage.through(_naming(), answers={_ELICIT: left_open})
    calls = {by: player.begin(SHOP, "name", b'{"by":"%s"}' % by.encode()) for by in ("one", "two")}
    questions = {by: await _question(player, by) for by in calls}
    for by in reversed(calls):
        player.client.answer(questions[by], _name(f"N. {by}"))
    for by, number in calls.items():
        reply = await player.reply(number)
        expect(reply.text == f"{by}: N. {by}", f"The call of {by!r} is answered with {in_words(reply)}.")


@check("conversation.questions-stay-apart", MUST, ELICITATION, needs=("elicitation", "http"))
async def questions_stay_apart(stage: Stage) -> None:
    """With two clients a question reaches the client that made the call, and no other."""
    first_one, second_one = (
        Respondent({_ELICIT: [_name("of the first")]}),
        Respondent({_ELICIT: [_name("of the second")]}),
    )
    first = await stage.through(_naming(delay=0.1), answers=first_one.answers)
    second = await stage.beside(first, answers=second_one.answers)
    sides = ((first, first_one, "the first"), (second, second_one, "the second"))
    # Alone, while the other one came later; then both at a time.
    for those in (sides[:1], sides[1:], sides):
        calls = [
            (player, word, player.begin(SHOP, "name", join_object({"by": quote(word)})))
            for player, _, word in those
        ]
        for player, word, number in calls:
            reply = await player.reply(number)
            expect(
                reply.text == f"{word}: of {word}", f"The call of {word} is answered with {in_words(reply)}."
            )
    for _, respondent, word in sides:
        messages = {_message(params) for _, params in respondent.asked}
        expect(messages == {f"Who, {word}?"}, f"The client that is {word} was asked {sorted(messages)}.")


@check("conversation.capabilities-told", MUST, NEGOTIATION)
async def capabilities_told(stage: Stage) -> None:
    """A server is told of no capability that the client doesn't have: a tool that would ask if it could does
    without."""
    await _does_without(stage, LATEST_LEGACY_VERSION)


@check("conversation.capabilities-told-modern", MUST, SPEC_2026 + "/basic", needs=("modern",))
async def capabilities_told_modern(stage: Stage) -> None:
    """In 2026-07-28 too a server is told of no capability that the client doesn't have."""
    await _does_without(stage, MODERN_VERSION)


async def _does_without(stage: Stage, version: str) -> None:
    questions = {"think": (_SAMPLE, _SAMPLING), "form": (_ELICIT, _FORM), "url": (_ELICIT, _URL)}
    tools = [
        tool(name, None, text="did without", ask={"method": method, "params": params, "optional": True})
        for name, (method, params) in questions.items()
    ]
    tools.append(tool("where", None, text="did without", ask={"method": _ROOTS, "optional": True}))
    shop = server(tools=tools)
    with controlled():
        straight = await stage.straight(shop, version)
        for name in (*questions, "where"):
            expect((await straight.call(SHOP, name)).text == "did without", f"{name} asked")
    player = await stage.through(shop, version=version)
    for name in (*questions, "where"):
        reply = await player.call(SHOP, name)
        expect(
            reply.text == "did without" and not reply.failed,
            f"The client declares nothing, and the server was told of {_declared(stage.record(SHOP))}; "
            f"the call is answered with {in_words(reply)}.",
        )


def _declared(record: Record) -> str:
    """The capabilities a server was told of, in words."""
    told: set[str] = set()
    for line in record.received():
        meta = line.params.get("_meta")
        for holder, key in ((line.params, "capabilities"), (meta, CLIENT_CAPABILITIES_KEY)):
            capabilities = holder.get(key) if isinstance(holder, dict) else None
            told |= set(capabilities) if isinstance(capabilities, dict) else set()
    return " and ".join(sorted(told)) or "nothing"


# The modern era


@check("conversation.mrtr", MUST, MRTR, needs=("modern", "elicitation"))
async def mrtr(stage: Stage) -> None:
    """In 2026-07-28 a server that asks is answered by the next request: its ``inputRequests`` reach the
    client, the client's ``inputResponses`` and ``requestState`` the server."""
    shop = _asking(_ELICIT, _FORM, era="both")
    with controlled():
        straight = await _in_two(await stage.straight(shop, MODERN_VERSION, answers={_ELICIT: left_open}))
    through = await _in_two(await stage.through(shop, version=MODERN_VERSION, answers={_ELICIT: left_open}))
    difference = diff(straight, through, stage.subject.title)
    if difference:
        raise Finding("What the client is asked, or the answer, differs.", difference)


async def _in_two(player: Player) -> list[str]:
    """Play the call and, with the answers, the call again; what came, a member a line."""
    params = player.route.call(SHOP, "ask", b"{}")
    asked = await player.client.reply(player.send("tools/call", params))
    if asked.fields.get("resultType") != "input_required":
        return ["not asked", *answered(player, asked)]
    result = split_object(asked.result or b"{}")
    questions = split_object(result.get("inputRequests", b"{}"))
    more = {"inputResponses": join_object(dict.fromkeys(questions, _FILLED))}
    if "requestState" in result:
        more["requestState"] = result["requestState"]
    told = []
    for question in map(split_object, questions.values()):
        told += spoken(unquote(question["method"]), question.get("params", b"{}"))
    again = await player.reply(player.send("tools/call", join_object(split_object(params) | more)))
    return [*told, *answered(player, again)]


@check("conversation.mrtr-rounds", SHOULD, MRTR, needs=("modern", "elicitation"))
async def mrtr_rounds(stage: Stage) -> None:
    """In 2026-07-28 a server may ask again when it has the first answers."""
    calls, says = [Call("book")], {_ELICIT: _BOOKED}
    await asked_alike(stage, _booking("both"), calls, says, version=MODERN_VERSION)


@check("conversation.mrtr-several", SHOULD, MRTR, needs=("modern", "elicitation", "sampling", "roots"))
async def mrtr_several(stage: Stage) -> None:
    """In 2026-07-28 a server may ask several things at once, each of another kind, and keep no state."""
    asks = [
        {"name": "who", "method": _ELICIT, "params": _FORM},
        {"name": "text", "method": _SAMPLE, "params": _SAMPLING},
        {"name": "roots", "method": _ROOTS},
    ]
    said = "{who.content.name}: {text.content.text} {roots.roots}"
    told = tool("ask", None, text=said, fill=True, ask=asks, state=False)
    shop = server(era="modern", tools=[told])
    says = {_ELICIT: [_FILLED], _SAMPLE: [_SAMPLED], _ROOTS: [_HELD]}
    await asked_alike(stage, shop, [Call("ask")], says, version=MODERN_VERSION)


@check("conversation.mrtr-prompt", SHOULD, MRTR, needs=("modern", "elicitation", "prompts"))
async def mrtr_prompt(stage: Stage) -> None:
    """In 2026-07-28 a server may ask before it gives a prompt, too."""
    messages = '[{"role":"user","content":{"type":"text","text":"For {question.content.name}."}}]'
    prompt = {"name": "letter", "messages": messages, "ask": {"method": _ELICIT, "params": _FORM}}
    shop = server(tools=[tool("echo")], prompts=[prompt])
    sides = []
    for straight in (True, False):
        respondent = Respondent({_ELICIT: [_FILLED]})
        set_up = stage.straight if straight else stage.through
        player = await set_up(shop, version=MODERN_VERSION, answers=respondent.answers)
        await _until_listed(player, "prompts/list", "prompts")
        params = join_object({"name": quote(player.route.prompt(SHOP, "letter"))})
        reply = await player.request("prompts/get", params)
        sides.append([*(spoken(*question) for question in respondent.asked), answered(player, reply)])
    compare(stage, "What the client is asked, or the prompt, differs.", *sides)


async def _until_listed(player: Player, method: str, key: str) -> None:
    """A listing, so that what it lists is known to whoever stands between."""
    reply = await player.request(method)
    expect(reply.fields.get(key), f"{method} is answered with {in_words(reply)}.")


@check("conversation.capability-missing", SHOULD, SPEC_2026 + "/basic", needs=("modern",))
async def capability_missing(stage: Stage) -> None:
    """In 2026-07-28 a call that needs a capability which the client did not declare is answered with error
    -32021, whose data name it."""
    shop = _asking(_ELICIT, _FORM, era="both")
    with controlled():
        straight = await (await stage.straight(shop, MODERN_VERSION)).call(SHOP, "ask")
    through = await (await stage.through(shop, version=MODERN_VERSION)).call(SHOP, "ask")
    difference = diff(_missing(straight), _missing(through), stage.subject.title)
    if difference:
        raise Finding(f"It is answered with {in_words(through)}.", difference)


def _missing(reply: Reply) -> list[str]:
    """An error's code, and which capabilities it says are missing."""
    error = msgspec.json.decode(reply.error or b"{}")
    data = error.get("data")
    needed = data.get("requiredCapabilities") if isinstance(data, dict) else None
    return [
        f"code {error.get('code')}",
        f"requires {', '.join(needed) if isinstance(needed, dict) else needed}",
    ]


# Between the eras


def _between(stage: Stage) -> None:
    """NotPlayableError where the subject is the server: nobody is there to translate."""
    words = stage.subject.start.command
    if words[0] == "{upstream}" or "{scenario}" in words:
        raise NotPlayableError("It is the server itself; nobody stands between the eras.")


@check("conversation.legacy-server", MUST, ERAS, needs=("modern",))
async def legacy_server(stage: Stage) -> None:
    """A client of 2026-07-28 can call the tools of a server that knows only ``initialize``."""
    await _called(stage, "legacy", MODERN_VERSION)


@check("conversation.modern-server", MUST, ERAS, needs=("modern",))
async def modern_server(stage: Stage) -> None:
    """A client that opens with ``initialize`` can call the tools of a server that knows only 2026-07-28."""
    await _called(stage, "modern", LATEST_LEGACY_VERSION)


async def _called(stage: Stage, era: str, version: str) -> None:
    _between(stage)
    player = await stage.through(server(era=era, tools=[tool("echo")]), version=version)
    reply = await player.call(SHOP, "echo", b'{"n":1}')
    expect(reply.json == {"n": 1}, f"A call is answered with {in_words(reply)}.")


@check("conversation.legacy-server-asks", SHOULD, MRTR, needs=("modern", "elicitation"))
async def legacy_server_asks(stage: Stage) -> None:
    """What a server that knows only ``initialize`` asks in a call reaches a client of 2026-07-28 in its way,
    twice in one call, too."""
    _between(stage)
    await asked_alike(
        stage,
        _booking("legacy"),
        [Call("book")],
        {_ELICIT: _BOOKED},
        version=MODERN_VERSION,
        straight=LATEST_LEGACY_VERSION,
    )


@check("conversation.modern-server-asks", SHOULD, MRTR, needs=("modern", "elicitation"))
async def modern_server_asks(stage: Stage) -> None:
    """What a server that knows only 2026-07-28 asks in a call reaches a client that opened with
    ``initialize`` in its way, twice in one call, too."""
    _between(stage)
    await asked_alike(
        stage,
        _booking("modern"),
        [Call("book")],
        {_ELICIT: _BOOKED},
        version=LATEST_LEGACY_VERSION,
        straight=MODERN_VERSION,
    )


async def _question(player: Player, by: str) -> Fields:
    """The question that the call of ``by`` led to. Finding when none comes."""

    def asks(fields: Fields) -> bool:
        return method_of(fields) == _ELICIT and _message(fields.get("params", b"{}")) == f"Who, {by}?"

    try:
        return await player.client.wait_for(asks)
    except Finding:
        raise Finding("The client is not asked for both calls at a time.") from None


def _message(params: bytes) -> str:
    """The ``message`` of a form."""
    try:
        message = split_object(params).get("message", b"")
    except NotAnObject:
        return ""
    return unquote(message) if message.startswith(b'"') else ""


def _name(name: str) -> bytes:
    """A form with this name in it."""
    return join_object({"action": quote("accept"), "content": join_object({"name": quote(name)})})
