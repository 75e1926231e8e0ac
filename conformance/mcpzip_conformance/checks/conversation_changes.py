"""Checks of changes between calls: lists, and subscribed resources.

A tool of the server makes the change after its answer.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine

import msgspec

from mcpzip.wire import MODERN_VERSION, SUBSCRIPTION_ID_KEY, join_object, quote
from mcpzip_conformance.check import MUST, SHOULD, SPEC_2025, SPEC_2026, check, expect
from mcpzip_conformance.client import Fields
from mcpzip_conformance.compare_conversation import method_of
from mcpzip_conformance.errors import Finding, NotPlayableError
from mcpzip_conformance.player import Player
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, Server, server, tool
from mcpzip_conformance.stage import Stage

TOOLS = SPEC_2025 + "/server/tools#list-changed-notification"
PROMPTS = SPEC_2025 + "/server/prompts#list-changed-notification"
RESOURCES = SPEC_2025 + "/server/resources#list-changed-notification"
WATCHED = SPEC_2025 + "/server/resources#subscriptions"
LISTENING = SPEC_2026 + "/basic/patterns/subscriptions"

_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_UPDATED = "notifications/resources/updated"
_KINDS = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}
"""Each list, and the word for it in the filter of ``subscriptions/listen``."""
_TODAY, _NEWS = "memo://today", "memo://news"
_EACH = 0.1
"""Seconds between two looks at what nobody tells of."""


def _growing(*kinds: str, era: str = "legacy") -> Server:
    """A server whose lists get longer when its tool ``grow`` is called."""
    message = [{"role": "user", "content": {"type": "text", "text": "Hello."}}]
    return server(
        era=era,
        tools=[
            tool("grow", None, text="grown", changes=kinds),
            {**tool("fresh", text="fresh"), "late": "tools" in kinds},
        ],
        prompts=[
            {"name": "greet", "messages": message},
            {"name": "fresh", "messages": message, "late": "prompts" in kinds},
        ],
        resources=[
            {"uri": _TODAY, "name": "today", "text": "Nothing."},
            {"uri": _NEWS, "name": "news", "text": "Something.", "late": "resources" in kinds},
        ],
    )


def _watched(era: str = "legacy") -> Server:
    """A server with two resources, today and news, that change when its tool ``write`` is called."""
    return server(
        era=era,
        tools=[tool("write", None, text="written", updates=[_TODAY, _NEWS])],
        resources=[{"uri": uri, "name": uri[7:], "text": "Nothing."} for uri in (_TODAY, _NEWS)],
    )


@check("conversation.tools-changed", SHOULD, TOOLS, needs=("list-changed",))
async def tools_changed(stage: Stage) -> None:
    """When a server has a new tool it can be called without a new connection; if tools are listed it is
    listed, and the client is notified."""
    player = await stage.through(_growing("tools"))
    await player.call(SHOP, "grow")
    if not player.route.meta:
        await _is_told(player, "tools")
        await _lists(player, "tools/list", "tools", "name", player.route.shown(SHOP, "fresh"))

    async def fresh() -> Reply:
        return await player.call(SHOP, "fresh")

    reply = await _at_last(player, fresh, lambda reply: reply.text == "fresh" and not reply.failed)
    expect(reply.text == "fresh", f"A call of the new tool is answered with {reply.brief}.")


@check("conversation.prompts-changed", SHOULD, PROMPTS, needs=("list-changed", "prompts"))
async def prompts_changed(stage: Stage) -> None:
    """When a server has a new prompt it is listed and can be got, and the client is notified."""
    player = await stage.through(_growing("prompts"))
    name = player.route.prompt(SHOP, "fresh")
    await player.request("prompts/list")
    await player.call(SHOP, "grow")
    await _is_told(player, "prompts")
    await _lists(player, "prompts/list", "prompts", "name", name)
    reply = await player.request("prompts/get", join_object({"name": quote(name)}))
    expect("messages" in reply.fields, f"The new prompt is answered with {reply.brief}.")


@check("conversation.resources-changed", SHOULD, RESOURCES, needs=("list-changed", "resources"))
async def resources_changed(stage: Stage) -> None:
    """When a server has a new resource it is listed and can be read, and the client is notified."""
    player = await stage.through(_growing("resources"))
    uri = player.route.uri(SHOP, _NEWS)
    await player.request("resources/list")
    await player.call(SHOP, "grow")
    await _is_told(player, "resources")
    await _lists(player, "resources/list", "resources", "uri", uri)
    reply = await player.request("resources/read", join_object({"uri": quote(uri)}))
    expect("contents" in reply.fields, f"The new resource is answered with {reply.brief}.")


async def _is_told(player: Player, kind: str) -> None:
    """The client is notified that a list has changed."""
    offered = player.opening.fields.get("capabilities")
    declared = offered.get(kind) if isinstance(offered, dict) else None
    expect(
        isinstance(declared, dict) and declared.get("listChanged") is True,
        f"It does not declare that its {kind} may change ({kind}.listChanged).",
    )
    await _told_by(player, f"notifications/{kind}/list_changed")


async def _lists(player: Player, method: str, key: str, of: str, wanted: str) -> None:
    """The list contains the new item."""

    async def listed() -> Reply:
        return await player.request(method)

    def holds(reply: Reply) -> bool:
        every = reply.fields.get(key)
        return isinstance(every, list) and any(isinstance(it, dict) and it.get(of) == wanted for it in every)

    reply = await _at_last(player, listed, holds)
    expect(holds(reply), f"{method} does not list {wanted!r}.")


async def _at_last(
    player: Player, ask: Callable[[], Coroutine[None, None, Reply]], done: Callable[[Reply], bool]
) -> Reply:
    """Repeat the request until ``done`` is true of the answer or the time is over; return the last answer."""
    deadline = time.monotonic() + player.client.patience
    while True:
        reply = await ask()
        if done(reply) or time.monotonic() > deadline:
            return reply
        await asyncio.sleep(_EACH)


# Subscribed resources


@check("conversation.subscribe", SHOULD, WATCHED, needs=("resources", "subscriptions"))
async def subscribe(stage: Stage) -> None:
    """A client that subscribed to a resource is notified when it changes, with the client's URI."""
    player = await stage.through(_watched())
    uri = await _subscribe(player, _NEWS)
    await player.call(SHOP, "write")
    await _comes(player, lambda it: _updated(it) == uri, f"The client is not told that {uri} has changed.")
    expect(
        all(_updated(it) == uri for it in player.client.messages(_UPDATED)),
        "It is told of a resource that it didn't subscribe to.",
    )


@check("conversation.unsubscribe", SHOULD, WATCHED, needs=("resources", "subscriptions"))
async def unsubscribe(stage: Stage) -> None:
    """A client that has unsubscribed from a resource is no longer notified of it, but still of others."""
    player = await stage.through(_watched())
    gone, kept = await _subscribe(player, _TODAY), await _subscribe(player, _NEWS)
    reply = await player.request("resources/unsubscribe", join_object({"uri": quote(gone)}))
    expect(reply.error is None, f"resources/unsubscribe is answered with {reply.brief}.")
    await player.call(SHOP, "write")
    await _comes(player, lambda it: _updated(it) == kept, f"The client is not told that {kept} has changed.")
    expect(
        not any(_updated(it) == gone for it in player.client.messages(_UPDATED)),
        "It is told of the resource that it unsubscribed from.",
    )


async def _subscribe(player: Player, uri: str) -> str:
    """Subscribe to a resource of the server. Returns the client's URI of it."""
    offered = player.opening.fields.get("capabilities")
    resources = offered.get("resources") if isinstance(offered, dict) else None
    expect(
        isinstance(resources, dict) and resources.get("subscribe") is True,
        "It does not declare subscriptions to resources (resources.subscribe).",
    )
    known = player.route.uri(SHOP, uri)
    reply = await player.request("resources/subscribe", join_object({"uri": quote(known)}))
    expect(reply.error is None, f"resources/subscribe is answered with {reply.brief}.")
    return known


# The modern era


@check("conversation.listen", MUST, LISTENING, needs=("modern",))
async def listen(stage: Stage) -> None:
    """In 2026-07-28 ``subscriptions/listen`` is acknowledged first, with the request's id and only the
    requested items; other changes are not notified."""
    player = await stage.through(_growing(*_KINDS, era="both"), version=MODERN_VERSION)
    if not _declares_changes(player):
        raise NotPlayableError("It declares nothing that a client can subscribe to.")
    await _listen(player, _KINDS["resources"])
    await player.call(SHOP, "grow")
    await player.call(SHOP, "fresh")
    for fields in player.client.messages():
        method = method_of(fields)
        unasked = method.endswith("/list_changed") and method != "notifications/resources/list_changed"
        expect(not unasked, f"The client is told {method}, which it didn't ask for.")


@check("conversation.listen-lists", SHOULD, LISTENING, needs=("modern", "list-changed"))
async def listen_lists(stage: Stage) -> None:
    """In 2026-07-28 a client that listens for a list is notified of its change, with the request's id."""
    player = await stage.through(_growing(*_KINDS, era="both"), version=MODERN_VERSION)
    kinds = _shown_kinds(player)
    for kind in kinds:
        await player.request(f"{kind}/list")
    number = await _listen(player, *(_KINDS[kind] for kind in kinds))
    await player.call(SHOP, "grow")
    for kind in kinds:
        method = f"notifications/{kind}/list_changed"
        fields = await _told_by(player, method)
        _in_the_name_of(number, fields)


@check("conversation.listen-resource", SHOULD, LISTENING, needs=("modern", "resources", "subscriptions"))
async def listen_resource(stage: Stage) -> None:
    """In 2026-07-28 a client that listens for a resource is notified of its change, with the URI that it
    knows and the id of its request."""
    player = await stage.through(_watched("both"), version=MODERN_VERSION)
    uri = player.route.uri(SHOP, _NEWS)
    number = await _listen(player, resources=[uri])
    await player.call(SHOP, "write")
    fields = await _comes(player, lambda it: method_of(it) == _UPDATED, "The client is not told.")
    expect(_updated(fields) == uri, f"It subscribes to {uri} and is notified of {_updated(fields)}.")
    _in_the_name_of(number, fields)


@check("conversation.listen-cancelled", SHOULD, LISTENING, needs=("modern", "list-changed"))
async def listen_cancelled(stage: Stage) -> None:
    """In 2026-07-28 a client that has cancelled a listen request gets no more notifications for it, while its
    other one goes on."""
    player = await stage.through(_growing(*_KINDS, era="both"), version=MODERN_VERSION)
    kind = _shown_kinds(player)[0]
    await player.request(f"{kind}/list")
    ended, kept = await _listen(player, _KINDS[kind]), await _listen(player, _KINDS[kind])
    player.client.cancel(ended)
    await player.call(SHOP, "grow")
    await _comes(
        player,
        lambda it: method_of(it).endswith("/list_changed") and _tag(it) == kept,
        "The other listening is not told.",
    )
    told = [it for it in player.client.messages() if method_of(it).endswith("/list_changed")]
    expect(all(_tag(it) != ended for it in told), "It is told in the name of the one that was cancelled.")


def _shown_kinds(player: Player) -> list[str]:
    """The lists in which the client can see a change, by the capabilities of the subject. Raises
    NotPlayableError if there are none."""
    missing = player.route.subject.missing()
    kinds = [kind for kind in ("prompts", "resources") if kind not in missing]
    kinds += [] if player.route.meta else ["tools"]
    if not kinds:
        raise NotPlayableError("No list that it shows changes with its servers.")
    return kinds


async def _listen(player: Player, *words: str, resources: list[str] | None = None) -> int:
    """Open a subscription, and wait for the acknowledgement. Returns the id of the request. Raises Finding if
    the acknowledgement isn't valid."""
    asked: dict[str, object] = dict.fromkeys(words, True)
    if resources is not None:
        asked["resourceSubscriptions"] = resources
    number = player.send("subscriptions/listen", join_object({"notifications": msgspec.json.encode(asked)}))

    def settled(fields: Fields) -> bool:
        return _tag(fields) == number or ("method" not in fields and fields.get("id") == b"%d" % number)

    first = await _comes(player, settled, "subscriptions/listen is not acknowledged.")
    said = msgspec.json.decode(first.get("error", b"null"))
    if said and not _declares_changes(player):
        raise NotPlayableError("It declares nothing that a client can subscribe to.")
    expect(not said, f"subscriptions/listen is answered with the error {said}.")
    expect(method_of(first) == _ACKNOWLEDGED, f"The first that comes is {method_of(first) or 'a result'}.")
    honoured = _params(first).get("notifications")
    expect(
        isinstance(honoured, dict) and {key for key, value in honoured.items() if value} <= asked.keys(),
        f"Asked for {asked}, it acknowledges {honoured}.",
    )
    return number


def _declares_changes(player: Player) -> bool:
    """Whether the subject declares a list that can change, or resources with subscriptions."""
    offered = player.opening.fields.get("capabilities")
    each = offered.values() if isinstance(offered, dict) else ()
    return any(isinstance(it, dict) and (it.get("listChanged") or it.get("subscribe")) for it in each)


def _in_the_name_of(number: int, fields: Fields) -> None:
    """Raises Finding unless a notification has the id of this subscription."""
    expect(
        _tag(fields) == number,
        f"The listening is request {number}; {method_of(fields)} says {_tag(fields)!r}.",
    )


def _tag(fields: Fields) -> object:
    """The subscription id of a notification; None if it has none."""
    meta = _params(fields).get("_meta")
    return meta.get(SUBSCRIPTION_ID_KEY) if isinstance(meta, dict) else None


def _updated(fields: Fields) -> str | None:
    """The URI in a notification of a changed resource."""
    uri = _params(fields).get("uri")
    return uri if method_of(fields) == _UPDATED and isinstance(uri, str) else None


def _params(fields: Fields) -> dict[str, object]:
    params = msgspec.json.decode(fields.get("params", b"{}"))
    return params if isinstance(params, dict) else {}


async def _told_by(player: Player, method: str) -> Fields:
    """The first notification ``method``. Raises Finding if there is none."""
    return await _comes(player, lambda it: method_of(it) == method, f"The client is not told ({method}).")


async def _comes(player: Player, wanted: Callable[[Fields], bool], otherwise: str) -> Fields:
    """The first message for which ``wanted`` is true. Raises Finding with ``otherwise`` if there is none."""
    try:
        return await player.client.wait_for(wanted)
    except Finding:
        raise Finding(otherwise) from None
