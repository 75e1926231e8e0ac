"""Checks of the messages during a call: progress, logs, pings, cancellation.

The rule: that a message doesn't come is proved by a message that must come after it, without waiting.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec
from mcpzip_fakes.record import Line

from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    LOG_LEVEL_KEY,
    MODERN_VERSION,
    NotAnObject,
    join_object,
    quote,
    split_object,
    unquote,
)
from mcpzip_conformance.check import MUST, SHOULD, SPEC_2025, SPEC_2026, check, expect, saw
from mcpzip_conformance.client import Fields
from mcpzip_conformance.compare_conversation import (
    compare,
    compare_notifications,
    controlled,
    message_lines,
    method_of,
    received_notifications,
)
from mcpzip_conformance.errors import Finding, NoAnswerError
from mcpzip_conformance.player import Player
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, Call, server, tool
from mcpzip_conformance.stage import Stage

PROGRESS = SPEC_2025 + "/basic/utilities/progress"
CANCELLATION = SPEC_2025 + "/basic/utilities/cancellation"
PING = SPEC_2025 + "/basic/utilities/ping"
LOGGING = SPEC_2025 + "/server/utilities/logging"
STREAMS = SPEC_2025 + "/basic/transports#multiple-connections"

_PROGRESS = "notifications/progress"
_LOG = "notifications/message"
_ECHO = tool("echo")
_WAIT = tool("wait", text="at last", delay=60.0)
_STEPS = (
    {"progress": 0.25, "total": 1, "message": "read – naïvely"},
    {"progress": 0.5, "total": 1},
    {"progress": 0.75, "message": "nearly"},
    {"progress": 1, "total": 1, "message": "done"},
)


def _steps(word: str) -> list[dict[str, object]]:
    """Progress with a text that names its call, over a time in which two calls overlap."""
    return [{"progress": n, "total": 3, "message": f"{word} {n}", "wait": 0.02} for n in (1, 2, 3)]


def _token(token: bytes) -> bytes:
    """``_meta`` with the progress token ``token`` (JSON text)."""
    return join_object({"progressToken": token})


@check("conversation.progress", SHOULD, PROGRESS + "#progress-flow", needs=("progress",))
async def progress(stage: Stage) -> None:
    """The progress of a call arrives with the client's token, complete and in order, before the result."""
    await _progress(stage, LATEST_LEGACY_VERSION)


@check(
    "conversation.progress-modern",
    SHOULD,
    SPEC_2026 + "/basic/patterns/progress",
    needs=("progress", "modern"),
)
async def progress_modern(stage: Stage) -> None:
    """In 2026-07-28 too the progress of a call arrives with the client's token, complete and in order, before
    the result."""
    await _progress(stage, MODERN_VERSION)


async def _progress(stage: Stage, version: str) -> None:
    build = server(tools=[tool("build", text="built", progress=_STEPS)])
    call = Call("build", meta=_token(b'"conformance-1"'))
    told = await compare_notifications(stage, build, call, _PROGRESS, version=version)
    _under(b'"conformance-1"', told)
    values = [msgspec.json.decode(params.get("progress", b"null")) for params in told]
    expect(values == sorted(set(values)), f"The progress does not increase: {values}.")


@check("conversation.progress-not-asked", MUST, PROGRESS + "#progress-flow")
async def progress_not_asked(stage: Stage) -> None:
    """A client that sent no token gets no progress."""
    player = await stage.through(server(tools=[tool("build", text="built", progress=_STEPS), _ECHO]))
    await player.call(SHOP, "build")
    await player.call(SHOP, "echo")  # all messages before its answer have arrived by now
    expect(not player.client.messages(_PROGRESS), "It is told of progress that it didn't ask for.")


@check("conversation.progress-token-kinds", MUST, PROGRESS + "#progress-flow", needs=("progress",))
async def progress_token_kinds(stage: Stage) -> None:
    """Progress has the request's token unchanged, a string or an integer: 0, 7 and "8" too."""
    player = await stage.through(server(tools=[tool("build", text="built", progress=_STEPS)]))
    given: list[bytes] = []
    for token in (b'"a b/1"', b'"\xc3\xa9\xe2\x98\x83"', b"0", b"7", b'"8"', b"9007199254740991"):
        given.append(token)
        for params in await received_notifications(player, Call("build", meta=_token(token)), _PROGRESS):
            _given(split_object(params), given)  # it may be a late one of an earlier call


def _under(token: bytes, told: Sequence[Fields]) -> None:
    """Raises Finding unless all these notifications have this token, of the same type."""
    wanted = msgspec.json.decode(token)
    for params in told:
        got = msgspec.json.decode(params.get("progressToken", b"null"))
        expect(type(got) is type(wanted) and got == wanted, f"The token {wanted!r} came back as {got!r}.")


def _given(params: Fields, tokens: Sequence[bytes]) -> None:
    """Raises Finding unless a notification has one of these tokens."""
    got = params.get("progressToken", b"null")
    known = [_kind(token) for token in tokens]
    expect(
        _kind(got) in known,
        f"Progress came under the token {got.decode()}; the client gave {b', '.join(tokens).decode()}.",
    )


def _kind(token: bytes) -> tuple[bool, object]:
    """A token as type and value: a string differs from a number, two spellings of a number are equal."""
    return token.startswith(b'"'), msgspec.json.decode(token)


@check("conversation.progress-of-two-calls", MUST, PROGRESS + "#progress-flow", needs=("progress",))
async def progress_of_two_calls(stage: Stage) -> None:
    """Progress of two concurrent calls has the token of its call."""
    tools = [tool(word, text=word, progress=_steps(word)) for word in ("up", "down")]
    player = await stage.through(server(tools=tools))
    await _two_at_a_time(player, player, (SHOP, "up", b'"first"'), (SHOP, "down", b'"second"'))


@check(
    "conversation.progress-of-two-servers",
    MUST,
    PROGRESS + "#progress-flow",
    needs=("progress", "several-servers"),
)
async def progress_of_two_servers(stage: Stage) -> None:
    """Progress of two concurrent calls to two servers has the token of its call."""
    player = await stage.through(
        server("first", tools=[tool("up", text="up", progress=_steps("up"))]),
        server("second", tools=[tool("down", text="down", progress=_steps("down"))]),
    )
    await _two_at_a_time(player, player, ("first", "up", b"1"), ("second", "down", b"2"))


@check("conversation.progress-of-two-clients", MUST, PROGRESS + "#progress-flow", needs=("progress", "http"))
async def progress_of_two_clients(stage: Stage) -> None:
    """Two clients can use the same token: each gets only the progress of its own call."""
    tools = [tool(word, text=word, progress=_steps(word)) for word in ("up", "down")]
    first = await stage.through(server(tools=tools))
    second = await stage.beside(first)
    await _two_at_a_time(first, second, (SHOP, "up", b"1"), (SHOP, "down", b"1"))


async def _two_at_a_time(
    first: Player, second: Player, one: tuple[str, str, bytes], other: tuple[str, str, bytes]
) -> None:
    """Two concurrent calls (server, tool, token): the client gets progress with these tokens only, and with
    each token only the progress of its call."""
    open_calls = []
    for player, (name, word, token) in ((first, one), (second, other)):
        open_calls.append((player, word, token, player.begin(name, word, b"{}", _token(token))))
    for player, _, _, number in open_calls:
        with suppress(NoAnswerError):  # whether calls are answered is another check's requirement
            await player.reply(number)
    for player, word, token, _ in open_calls:
        tokens = [token for whose, _, token, _ in open_calls if whose is player]
        foreign = [f"{other} {n}" for _, other, _, _ in open_calls if other != word for n in (1, 2, 3)]
        for fields in player.client.messages(_PROGRESS):
            params = split_object(fields.get("params", b"{}"))
            _given(params, tokens)
            if _kind(params["progressToken"]) == _kind(token):
                said = msgspec.json.decode(params.get("message", b"null"))
                expect(
                    said not in foreign,
                    f"Under the token {token.decode()} of the call of {word!r} came {said!r}.",
                )


@check("conversation.cancel-reaches-server", SHOULD, CANCELLATION, needs=("cancellation",))
async def cancel_reaches_server(stage: Stage) -> None:
    """A call that the client cancels ends at the server."""
    await _cancelled(stage, LATEST_LEGACY_VERSION)


@check(
    "conversation.cancel-reaches-server-modern",
    SHOULD,
    SPEC_2026 + "/basic/patterns/cancellation",
    needs=("cancellation", "modern"),
)
async def cancel_reaches_server_modern(stage: Stage) -> None:
    """In 2026-07-28 too a call that the client cancels ends at the server. Over HTTP closing its stream does
    it."""
    await _cancelled(stage, MODERN_VERSION)


async def _cancelled(stage: Stage, version: str) -> None:
    player = await stage.through(server(tools=[_ECHO, _WAIT]), version=version)
    number = await _waiting(stage, player)
    player.client.cancel(number)
    await saw(
        stage.record(SHOP),
        lambda seen: [line for line in seen.events("cancelled") if line.detail["name"] == "wait"],
        "The server was not told, and works on.",
    )


@check("conversation.cancel-unanswered", SHOULD, CANCELLATION + "#behavior-requirements", needs=("stdio",))
async def cancel_unanswered(stage: Stage) -> None:
    """A call that the client has cancelled gets no answer."""
    player = await stage.through(server(tools=[_ECHO, _WAIT]))
    number = await _waiting(stage, player)
    player.client.cancel(number)
    await player.request("ping")
    await player.call(SHOP, "echo")  # the effects of the cancellation at the server are recorded by now
    expect(not player.client.answered(number), "It was answered after the cancellation.")


@check("conversation.cancel-leaves-others", MUST, CANCELLATION)
async def cancel_leaves_others(stage: Stage) -> None:
    """Cancelling one call does not affect others: a concurrent one, and later ones."""
    tools = [_ECHO, tool("wait", text="at last", delay=3.0), tool("soon", text="soon", delay=0.4)]
    player = await stage.through(server(tools=tools))
    number, beside = player.begin(SHOP, "wait"), player.begin(SHOP, "soon")
    with suppress(Finding):  # a subject that runs one call at a time starts it after the first
        await saw(stage.record(SHOP), lambda seen: seen.calls("soon"), "It did not reach the server.")
    player.client.cancel(number)
    reply = await _reply(player, beside, "The call beside it gets no answer.")
    expect(reply.text == "soon", f"The call beside it is answered with {reply.brief}.")
    reply = await player.call(SHOP, "echo", b'{"n":1}')
    expect(reply.json == {"n": 1}, f"A call after it is answered with {reply.brief}.")


@check("conversation.cancel-stays-apart", MUST, CANCELLATION + "#behavior-requirements", needs=("http",))
async def cancel_stays_apart(stage: Stage) -> None:
    """A client can't cancel another client's request, even with the same id."""
    first = await stage.through(server(tools=[tool("soon", text="soon", delay=0.4)]))
    second = await stage.beside(first)
    number = first.begin(SHOP, "soon")
    with suppress(Finding):  # the answer shows it
        await saw(stage.record(SHOP), lambda seen: seen.calls("soon"), "It did not reach the server.")
    second.client.cancel(number)
    reply = await _reply(first, number, "The call of the other client gets no answer.")
    expect(reply.text == "soon", f"The call of the other client is answered with {reply.brief}.")


@check("conversation.cancel-unknown", MUST, CANCELLATION + "#error-handling")
async def cancel_unknown(stage: Stage) -> None:
    """Cancelling what isn't there breaks nothing: an id that was never used, one that is answered, an invalid
    one, or none."""
    player = await stage.through(server(tools=[_ECHO]))
    done = player.begin(SHOP, "echo")
    await player.reply(done)
    for id in (b"%d" % done, b"424242", b'"nobody"', b"null", b"{}", b""):
        params = join_object({"requestId": id} if id else {"reason": quote("none")})
        player.client.notify("notifications/cancelled", params)
        reply = await player.call(SHOP, "echo", b'{"n":1}')
        expect(
            reply.json == {"n": 1},
            f"After {id.decode() or 'no id'} was cancelled a call is answered with {reply.brief}.",
        )


@check("conversation.ping-during-call", MUST, PING)
async def ping_during_call(stage: Stage) -> None:
    """While a call is open a ``ping`` is answered, if it is answered at other times."""
    player = await stage.through(server(tools=[_ECHO, tool("wait", text="at last", delay=8.0)]))
    try:
        before = await player.request("ping")
        number = await _waiting(stage, player)
    except Finding:
        return  # that a ping, or a call, isn't answered at all is another check's finding
    if before.result is None:
        return
    ping = player.send("ping")
    reply = await _reply(player, ping, "While the call is open it is not answered.")
    expect(reply.result is not None, f"It is answered with {reply.brief}.")
    expect(not player.client.answered(number), "It is answered only when the call is.")


@check("conversation.server-ping", MUST, PING)
async def server_ping(stage: Stage) -> None:
    """A ``ping`` of the server during a call is answered with an empty result."""
    pinging = server(era="legacy", tools=[tool("check", None, ask={"method": "ping"})])
    player = await stage.through(pinging)
    with suppress(NoAnswerError):  # the server's record shows it
        await player.call(SHOP, "check")
    record = stage.record(SHOP)
    for ping in [line for line in record.sent() if line.method == "ping"]:
        answers = [line.message for line in record.received() if _answers(ping, line)]
        expect(answers, "The server's ping was not answered.")
        result = answers[0].get("result")
        pong = isinstance(result, dict) and not result.keys() - {"_meta", "resultType"}
        expect(pong, f"The server's ping was answered with {_said(answers[0])}.")


def _answers(ping: Line, line: Line) -> bool:
    return not line.method and line.pid == ping.pid and line.message.get("id") == ping.message.get("id")


def _said(answer: Mapping[str, object]) -> str:
    key = "error" if "error" in answer else "result"
    return f"the {key} {json.dumps(answer.get(key), ensure_ascii=False)[:200]}"


async def _reply(player: Player, number: int, otherwise: str) -> Reply:
    """The answer to request ``number``. Raises Finding with the sentence ``otherwise`` if there is none."""
    try:
        return await player.reply(number)
    except NoAnswerError:
        raise Finding(otherwise) from None


async def _waiting(stage: Stage, player: Player) -> int:
    """The id of a call that has reached the server and isn't answered."""
    number = player.begin(SHOP, "wait")
    await saw(stage.record(SHOP), lambda seen: seen.calls("wait"), "The call did not reach the server.")
    return number


_LOGS = (
    {"level": "debug", "logger": "shop.db", "data": {"rows": [1, None], "ok": True}},
    {"level": "info", "data": "plain – naïvely"},
    {"level": "warning", "logger": "shop.web", "data": ["a", 2]},
    {"level": "error", "logger": "shop", "data": 0.5},
)


@check("conversation.logging", SHOULD, LOGGING + "#log-message-notifications", needs=("logging",))
async def logging(stage: Stage) -> None:
    """A server's logs during a call reach a client that set the level debug: all, in order, with level,
    logger and data."""
    shop = server(era="legacy", tools=[tool("build", text="built", log=_LOGS)])
    with controlled():
        straight = await stage.straight(shop)
        await _set_level(straight, "debug")
        expected = [
            message_lines(_LOG, params)
            for params in await received_notifications(straight, Call("build"), _LOG)
        ]
    player = await stage.through(shop)
    await _set_level(player, "debug")
    await player.call(SHOP, "build")

    def all_there(messages: Sequence[Fields]) -> bool:
        came = _logs(messages)
        return all(it in came for it in expected)

    try:
        await player.client.until(all_there)
    except Finding:
        pass  # what is missing is in the diff
    compare(
        stage,
        "The client does not hear what the server logs, or not all of it.",
        expected,
        _logs(player.client.messages()),
    )


@check("conversation.logging-level", SHOULD, LOGGING + "#setting-log-level", needs=("logging",))
async def logging_level(stage: Stage) -> None:
    """``logging/setLevel`` suppresses logs below the level, and no others."""
    player = await stage.through(server(era="legacy", tools=[tool("build", text="built", log=_LOGS)]))
    await _set_level(player, "warning")
    await player.call(SHOP, "build")
    await _expect_levels(player, ["warning", "error"])


@check(
    "conversation.logging-modern",
    SHOULD,
    SPEC_2026 + "/server/utilities/logging",
    needs=("logging", "modern"),
)
async def logging_modern(stage: Stage) -> None:
    """In 2026-07-28 a request gets logs from its ``logLevel`` on, and none without one."""
    shop = server(tools=[tool("build", text="built", log=_LOGS)])
    player = await stage.through(shop, version=MODERN_VERSION)
    await player.call(SHOP, "build")
    params = player.route.call(SHOP, "build", b"{}")
    await player.reply(player.send("tools/call", params, more={LOG_LEVEL_KEY: quote("warning")}))
    await _expect_levels(player, ["warning", "error"])


@check("conversation.logs-stay-apart", SHOULD, STREAMS, needs=("logging", "http"))
async def logs_stay_apart(stage: Stage) -> None:
    """Logs during one client's call are sent to no other client."""
    tools = [tool(word, text=word, log=[{"level": "info", "data": word}]) for word in ("one", "two")]
    first = await stage.through(server(era="legacy", tools=tools))
    second = await stage.beside(first)
    for player in (first, second):
        if player.offers("logging"):
            await player.request("logging/setLevel", b'{"level":"debug"}')
    for player, word in ((first, "one"), (second, "two")):
        await player.call(SHOP, word)
    await second.request("tools/list")  # all messages before its answer have arrived by then
    heard_by_second = [_logged(fields) for fields in second.client.messages(_LOG)]
    expect("one" not in heard_by_second, "The other client heard of it.")


async def _set_level(player: Player, level: str) -> None:
    """Set the log level. Raises Finding if the subject doesn't support it or refuses."""
    expect(player.offers("logging"), "It does not declare the capability logging.")
    reply = await player.request("logging/setLevel", join_object({"level": quote(level)}))
    expect(reply.error is None, f"logging/setLevel is answered with {reply.brief}.")


async def _expect_levels(player: Player, wanted: list[str]) -> None:
    """Of all that the tool logs, exactly the messages of these levels arrive, the last of them last."""
    known = [message_lines(_LOG, msgspec.json.encode(log)) for log in _LOGS]
    try:
        await player.client.until(lambda messages: known[-1] in _logs(messages))
    except Finding:
        raise Finding("Messages of the requested level do not arrive.") from None
    came = [str(_LOGS[known.index(it)]["level"]) for it in _logs(player.client.messages()) if it in known]
    expect(came == wanted, f"With the level {wanted[0]} the client got {', '.join(came)}.")


def _logs(messages: Sequence[Fields]) -> list[list[str]]:
    """The logged texts in their order."""
    return [message_lines(_LOG, it.get("params", b"{}")) for it in messages if method_of(it) == _LOG]


def _logged(fields: Fields) -> str | None:
    """The text of a log message; None if it has none."""
    try:
        data = split_object(fields.get("params", b"{}")).get("data", b"")
    except NotAnObject:
        return None
    return unquote(data) if method_of(fields) == _LOG and data.startswith(b'"') else None
