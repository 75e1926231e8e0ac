"""Checks of a subject that serves several clients: what one client causes is seen by no other.

The rule: every check has several clients, whose requests have the same ids, in front of one server.
"""

from collections.abc import Sequence
from contextlib import suppress

from mcpzip_fakes.record import Record

from mcpzip.wire import CLIENT_INFO_KEY, join_object, quote, split_object
from mcpzip_conformance.check import CONTRACT, JSON_RPC, MUST, SHOULD, SPEC_2025, check, expect, saw
from mcpzip_conformance.checks.several import (
    ECHO,
    WAIT,
    Guest,
    aligned,
    all_held,
    several,
    text_member,
    unseen,
)
from mcpzip_conformance.client import Fields
from mcpzip_conformance.compare_conversation import method_of
from mcpzip_conformance.errors import Finding, NoAnswerError, NotPlayableError
from mcpzip_conformance.scene import SHOP, Server, server, tool
from mcpzip_conformance.stage import Stage

PROGRESS = SPEC_2025 + "/basic/utilities/progress#progress-flow"
CANCELLATION = SPEC_2025 + "/basic/utilities/cancellation#behavior-requirements"
LOGGING = SPEC_2025 + "/server/utilities/logging#setting-log-level"
STREAMS = SPEC_2025 + "/basic/transports#multiple-connections"
WATCHED = SPEC_2025 + "/server/resources#subscriptions"
NEGOTIATION = SPEC_2025 + "/basic/lifecycle#capability-negotiation"
PAGING = SPEC_2025 + "/server/utilities/pagination"
LIST_CHANGED = SPEC_2025 + "/server/tools#list-changed-notification"

_UPDATED = "notifications/resources/updated"
_TOLD = "notifications/x-shop/word"
_NOTE, _OTHER = "memo://note", "memo://other"
_TOKEN = b'{"progressToken":"same"}'


@check("shared.results", MUST, JSON_RPC + "#response_object", needs=("shared",))
async def results(stage: Stage) -> None:
    """Concurrent calls of several clients whose requests have the same id are answered to their own clients,
    in any order; with clients of both eras, if the subject speaks both."""
    guests = await several(stage, server(tools=[WAIT]), 3, both_eras=True)
    await aligned(guests)
    calls = [(guest, guest.begin("wait")) for guest in guests]
    overlap = await all_held(stage, len(calls))
    if not overlap:  # a subject that runs one call at a time
        stage.release(SHOP, "wait")
    for guest, number in reversed(calls):
        stage.release(SHOP, "wait", word=guest.word)
        reply = await guest.reply(number)
        expect(reply.text == guest.word, f"The call of {guest.name} is answered with {reply.brief}.")
    await unseen(guests)


@check("shared.progress", MUST, PROGRESS, needs=("shared", "progress"))
async def progress(stage: Stage) -> None:
    """Progress of concurrent calls of several clients with the same progress token reaches the client of its
    call only."""
    steps = [{"progress": n, "message": "{word}"} for n in (1, 2)]
    shop = server(tools=[tool("build", None, text="{word}", fill=True, progress=steps, hold=True)])
    guests = await several(stage, shop, 3, both_eras=True)
    await _overlapping(stage, guests, "build", _TOKEN)


@check("shared.logs", MUST, STREAMS, needs=("shared", "logging"))
async def logs(stage: Stage) -> None:
    """What a server logs during a client's call reaches no other client."""
    said = [{"level": "info", "data": "{word}"}]
    shop = server(era="legacy", tools=[tool("build", None, text="{word}", fill=True, log=said, hold=True)])
    await _overlapping(stage, await several(stage, shop, 2), "build")


@check("shared.log-level", SHOULD, LOGGING, needs=("shared", "logging"))
async def log_level(stage: Stage) -> None:
    """The log level that one client sets is no other client's: each gets the logs of its own calls from its
    own level on."""
    said = [{"level": level, "data": f"{{word}} {level}"} for level in ("info", "error")]
    shop = server(era="legacy", tools=[tool("build", None, text="{word}", fill=True, log=said)])
    guests = await several(stage, shop, 2)
    levels = (("debug", ["info", "error"]), ("error", ["error"]))
    for guest, (level, _) in zip(guests, levels, strict=True):
        expect(guest.player.offers("logging"), "It does not declare the capability logging.")
        await guest.player.request("logging/setLevel", join_object({"level": quote(level)}))
    for guest in guests:
        await guest.call("build")
    for guest, (level, wanted) in zip(guests, levels, strict=True):
        with suppress(Finding):  # what is missing is said below
            await _logged(guest, f"{guest.word} error")
        messages = guest.player.client.messages("notifications/message")
        came = [_data(fields).removeprefix(f"{guest.word} ") for fields in messages]
        expect(
            came == wanted,
            f"{guest.name}, who set the level {level}, got {', '.join(came) or 'nothing'} of its own call.",
        )


async def _logged(guest: Guest, text: str) -> None:
    """Wait for this log message. Raises NoAnswerError."""
    await guest.player.client.wait_for(lambda fields: _data(fields) == text)


@check("shared.notifications", MUST, STREAMS, needs=("shared",))
async def notifications(stage: Stage) -> None:
    """A notification that a server sends during a client's call reaches no other client."""
    notice = [{"method": _TOLD, "params": '{"word": "{word}"}'}]
    shop = server(
        era="legacy", tools=[tool("build", None, text="{word}", fill=True, notify=notice, hold=True)]
    )
    await _overlapping(stage, await several(stage, shop, 2), "build")


@check("shared.errors", MUST, JSON_RPC + "#error_object", needs=("shared",))
async def errors(stage: Stage) -> None:
    """The error with which one client's call is answered reaches that client, and leaves another client's
    call with the same id alone."""
    error = {"code": -32050, "message": "{word}", "data": '{"word": "{word}"}'}
    shop = server(tools=[WAIT, tool("fail", None, error=error, fill=True, hold=True)])
    guests = await several(stage, shop, 2)
    await aligned(guests)
    first, second = guests
    failing, waiting = first.begin("fail"), second.begin("wait")
    if not await all_held(stage, 2):
        stage.release(SHOP, "wait")
    stage.release(SHOP, "fail")
    reply = await first.reply(failing)
    expect(
        reply.failed and first.word in reply.text,
        f"The call of {first.name}, which failed, is answered with {reply.brief}.",
    )
    stage.release(SHOP, "wait")
    reply = await second.reply(waiting)
    expect(reply.text == second.word, f"The call of {second.name} is answered with {reply.brief}.")
    await unseen(guests)


async def _overlapping(stage: Stage, guests: Sequence[Guest], name: str, meta: bytes | None = None) -> None:
    """Let all call the tool at the same time, and release the calls when the server has said all. Raises
    Finding if a client gets another's word."""
    await aligned(guests)
    calls = [(guest, guest.begin(name, meta)) for guest in guests]
    await all_held(stage, len(calls))
    stage.release(SHOP, name)
    for guest, number in calls:
        with suppress(NoAnswerError):  # whether calls are answered is another check's requirement
            await guest.player.reply(number)
    await unseen(guests)


# Cancellation


@check("shared.cancel", MUST, CANCELLATION, needs=("shared", "cancellation"))
async def cancel(stage: Stage) -> None:
    """A client that cancels its call ends no other client's call with the same id."""
    guests = await several(stage, server(tools=[WAIT]), 2)
    await aligned(guests)
    (first, its), (second, other) = [(guest, guest.begin("wait")) for guest in guests]
    await all_held(stage, 2)
    first.player.client.cancel(its)
    with suppress(Finding):  # whether the server is told is another check's requirement
        await saw(
            stage.record(SHOP),
            lambda seen: seen.events("cancelled"),
            "The server was not told.",
            stage.patience / 4,
        )
    stage.release(SHOP, "wait")
    reply = await second.reply(other)
    expect(reply.text == second.word, f"The call of {second.name} is answered with {reply.brief}.")
    ended = len(stage.record(SHOP).events("cancelled"))
    expect(ended <= 1, f"{first.name} cancelled its call, and {ended} calls ended at the server.")


# Resources


def _watched() -> Server:
    resources = [{"uri": uri, "name": uri[7:], "text": "Nothing."} for uri in (_NOTE, _OTHER)]
    return server(
        era="legacy", tools=[tool("touch", None, text="touched", updates=[_NOTE])], resources=resources
    )


@check("shared.updates", MUST, WATCHED, needs=("shared", "resources", "subscriptions"))
async def updates(stage: Stage) -> None:
    """A change of a resource is told only to clients that subscribed to it, not to one that subscribed to
    another."""
    guests = await several(stage, _watched(), 3)
    await _subscribe(guests[0], _NOTE)
    await _subscribe(guests[1], _OTHER)
    await guests[0].call("touch")
    with suppress(Finding):  # whether it is told is another check's requirement
        await guests[0].player.client.wait_for(lambda fields: _updated(fields, guests[0]))
    for guest in guests[1:]:
        await guest.player.request("tools/list")  # all messages before its answer have arrived by then
        told = guest.player.client.messages(_UPDATED)
        expect(not told, f"{guest.name}, who did not subscribe to it, is told that the resource changed.")


@check("shared.unsubscribe", MUST, WATCHED, needs=("shared", "resources", "subscriptions"))
async def unsubscribe(stage: Stage) -> None:
    """A client that ends its subscription to a resource ends no other client's subscription to it."""
    first, second = await several(stage, _watched(), 2)
    for guest in (first, second):
        await _subscribe(guest, _NOTE)
    await second.call("touch")
    try:
        await second.player.client.wait_for(lambda fields: _updated(fields, second))
    except NoAnswerError:
        return  # that subscribers aren't told at all is another check's finding
    uri = quote(first.player.route.uri(SHOP, _NOTE))
    await first.player.request("resources/unsubscribe", join_object({"uri": uri}))
    seen = len(second.player.client.messages())
    await second.call("touch")
    try:
        await second.player.client.wait_for(lambda fields: _updated(fields, second), since=seen)
    except NoAnswerError:
        raise Finding(
            f"After {first.name} has unsubscribed {second.name} is no longer told that the resource changed."
        ) from None


async def _subscribe(guest: Guest, uri: str) -> None:
    """Subscribe to a resource. The check is skipped if the subject has no subscriptions."""
    offered = guest.player.opening.fields.get("capabilities")
    resources = offered.get("resources") if isinstance(offered, dict) else None
    if not isinstance(resources, dict) or resources.get("subscribe") is not True:
        raise NotPlayableError("It does not declare that resources can be subscribed to.")
    await guest.player.request("resources/read", _uri(guest, uri))
    reply = await guest.player.request("resources/subscribe", _uri(guest, uri))
    expect(reply.error is None, f"resources/subscribe is answered with {reply.brief}.")


def _uri(guest: Guest, uri: str) -> bytes:
    return join_object({"uri": quote(guest.player.route.uri(SHOP, uri))})


def _updated(fields: Fields, guest: Guest) -> bool:
    return method_of(fields) == _UPDATED and _member(fields, "uri") == guest.player.route.uri(SHOP, _NOTE)


# Identity


@check("shared.client-info", SHOULD, NEGOTIATION, needs=("shared",))
async def client_info(stage: Stage) -> None:
    """If a server learns which client calls, it is the one that does, and not another client of the
    subject."""
    guests = await several(stage, server(tools=[ECHO]), 2)
    for guest in guests:
        await guest.call("echo")
    for guest in guests:
        told = _told_name(stage.record(SHOP), guest)
        others = [other.name for other in guests if other is not guest]
        expect(told not in others, f"For the call of {guest.name} the server was told that {told} calls.")


def _told_name(record: Record, guest: Guest) -> object:
    """The name of the client that the server was told for the call with the guest's word: by the call itself,
    or by the ``initialize`` of its connection."""
    greeted: dict[tuple[object, ...], object] = {}
    for line in record.received():
        headers = line.detail.get("headers")
        session = headers.get("mcp-session-id") if isinstance(headers, dict) else None
        if line.method == "initialize":
            greeted[line.pid, line.connection] = line.params.get("clientInfo")
        elif line.method == "tools/call" and guest.word in str(line.params):
            meta = line.params.get("_meta")
            info = meta.get(CLIENT_INFO_KEY) if isinstance(meta, dict) else None
            if info is None and session is None:
                info = greeted.get((line.pid, line.connection))
            return info.get("name") if isinstance(info, dict) else None
    return None


# Lists


@check("shared.cursors", MUST, PAGING, needs=("shared",))
async def cursors(stage: Stage) -> None:
    """A cursor is used by another client than the one that got it: the request is answered, and both clients'
    lists stay complete."""
    shop = server(
        tools=[tool(f"tool_{n}", text="x") for n in range(5)],
        resources=[{"uri": f"memo://{n}", "name": str(n), "text": "x"} for n in range(5)],
        prompts=[{"name": f"prompt_{n}", "messages": []} for n in range(5)],
        page_size=2,
    )
    first, second = await several(stage, shop, 2)
    for kind in ("tools", "resources", "prompts"):
        if kind == "tools" or kind not in stage.subject.missing():
            await _shared_cursor(first, second, kind)


async def _shared_cursor(first: Guest, second: Guest, kind: str) -> None:
    """Both list; the second client also with the cursor that the first one got, if there was one."""
    whole = await _pages(first, kind)
    page = await first.player.request(f"{kind}/list")
    given = split_object(page.result or b"{}").get("nextCursor", b"null")
    cursor = given if given.startswith(b'"') else b'"given-by-nobody"'
    await second.reply(second.player.send(f"{kind}/list", join_object({"cursor": cursor})))
    if cursor is given:
        rest = await _pages(first, kind, cursor)
        expect(rest == whole[len(whole) - len(rest) :] and rest, _incomplete(first, kind, rest))
    for guest in (first, second):
        listed = await _pages(guest, kind)
        expect(listed == whole, _incomplete(guest, kind, listed))


def _incomplete(guest: Guest, kind: str, listed: Sequence[str]) -> str:
    shown = ", ".join(listed) or "nothing"
    return f"After another client has used a cursor {kind}/list gives {guest.name} only {shown}."


async def _pages(guest: Guest, kind: str, cursor: bytes | None = None) -> list[str]:
    """The names (or URIs) of a list, from a page on. Raises Finding if a page isn't given."""
    found: list[str] = []
    for _ in range(20):
        params = None if cursor is None else join_object({"cursor": cursor})
        reply = await guest.player.request(f"{kind}/list", params)
        items = reply.fields.get(kind)
        if not isinstance(items, list):
            raise Finding(f"{kind}/list of {guest.name} is answered with {reply.brief}.")
        found += [str(item.get("uri") or item.get("name")) for item in items if isinstance(item, dict)]
        cursor = split_object(reply.result or b"{}").get("nextCursor")
        if cursor is None or cursor == b"null":
            break
    return found


@check("shared.rest", MUST, CONTRACT, needs=("shared", "rest"))
async def rest_of_another(stage: Stage) -> None:
    """The rest of a large result of one client can't be read by another client that has learnt its handle,
    and its own client still can."""
    made = {"log": {"kind": "log", "size": 150_000}}
    guests = await several(stage, server(tools=[tool("tell", None, made=made, text="{word}: {log}")]))
    anna, ben = (guest.player for guest in guests)
    told = await anna.request("tools/call", anna.route.call(SHOP, "tell", guests[0].arguments()))
    rest = anna.route.rest(told)
    if rest is None:
        raise NotPlayableError("It gave a large result whole.")
    await ben.request("tools/call", rest)
    await unseen(guests)
    reply = await anna.request("tools/call", rest)
    expect(reply.text.startswith(guests[0].word), f"Its own client gets of it {reply.brief}.")


@check("shared.list-changed", SHOULD, LIST_CHANGED, needs=("shared", "list-changed"))
async def list_changed(stage: Stage) -> None:
    """When the list of a server that all clients share changes, every client is notified whose list changes
    with it."""
    if "prompts" in stage.subject.missing():
        raise NotPlayableError("It passes no prompts, whose list changes here.")
    one = stage.subject.shared is not None and stage.subject.shared.processes == "one"
    message = [{"role": "user", "content": {"type": "text", "text": "Hello."}}]
    shop = server(
        era="legacy",
        # Only over HTTP a server is one process for all, whatever the subject does.
        over="" if one or stage.subject.upstream == "http" else "http",
        tools=[ECHO, tool("grow", None, text="grown", changes=["prompts"])],
        prompts=[
            {"name": "greet", "messages": message},
            {"name": "fresh", "messages": message, "late": True},
        ],
    )
    guests = await several(stage, shop, 3)
    for guest in guests:
        await guest.player.request("prompts/list")
        await guest.call("echo")
    await guests[-1].call("grow")
    for guest in guests:
        try:
            await guest.player.client.wait_for(_prompts_changed)
        except NoAnswerError:
            raise Finding(f"{guest.name} is not notified that the list changed.") from None


def _prompts_changed(fields: Fields) -> bool:
    return method_of(fields) == "notifications/prompts/list_changed"


# Reading messages


def _member(fields: Fields, key: str) -> str:
    """A member of a message's params that is a string; "" without."""
    return text_member(fields.get("params", b"{}"), key)


def _data(fields: Fields) -> str:
    """The text of a log message; "" if it has none."""
    return _member(fields, "data") if method_of(fields) == "notifications/message" else ""
