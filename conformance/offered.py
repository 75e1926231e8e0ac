"""What a server offers besides its tools, and how it compares: resources, templates, prompts.

The rule: a name or a URI becomes what the subject's file says, and nothing else of an offer changes. Where an
answer names a resource, the URI may stand as the server wrote it or as a client reads it.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from conformance.errors import Finding
from conformance.exchange import compare, controlled
from conformance.likeness import Likeness, lines
from conformance.player import Player
from conformance.reply import Reply
from conformance.route import Route
from conformance.scene import SHOP, Server
from conformance.stage import Stage
from mcpzip.wire import NotAnObject, join_object, quote, split_object

_PAGES = 100
_STAMPED = ("ttlMs", "cacheScope")
"""What the modern era writes on lists and contents, and some leave there for legacy clients."""


class Kind(NamedTuple):
    """One kind of offer. method, members: where it is listed; key: the member a client calls it by; shown:
    what that becomes."""

    method: str
    members: str
    key: str
    shown: Callable[[Route, str], str]


RESOURCE = Kind("resources/list", "resources", "uri", lambda route, uri: route.uri(SHOP, uri))
TEMPLATE = Kind(
    "resources/templates/list", "resourceTemplates", "uriTemplate", lambda route, uri: route.uri(SHOP, uri)
)
PROMPT = Kind("prompts/list", "prompts", "name", lambda route, name: route.prompt(SHOP, name))


async def _entries(player: Player, kind: Kind) -> dict[str, bytes]:
    """What is listed, all pages, by what a client calls it. Finding when the listing fails."""
    entries: dict[str, bytes] = {}
    params: bytes | None = None
    for _ in range(_PAGES):
        reply = await player.request(kind.method, params)
        try:
            page = split_object(reply.result or b"")
            for raw in msgspec.json.decode(page[kind.members], type=list[msgspec.Raw]):
                entries[str(msgspec.json.decode(raw).get(kind.key))] = bytes(raw)
        except (NotAnObject, KeyError, AttributeError, msgspec.DecodeError):
            raise Finding(f"{kind.method} is answered with {in_words(reply)}.") from None
        if page.get("nextCursor", b"null") == b"null":
            return entries
        params = join_object({"cursor": page["nextCursor"]})
    raise Finding(f"{kind.method} still had a next page after {_PAGES} pages.")


async def listed(player: Player, kind: Kind, own: Sequence[str]) -> dict[str, bytes]:
    """The entries of these offers, by the server's own names; it may take the subject a moment to learn them.
    Finding when one doesn't come."""
    shown = {kind.shown(player.route, name): name for name in own}
    deadline = time.monotonic() + player.client.patience
    while True:
        try:
            entries = await _entries(player, kind)
            missing = sorted(shown.keys() - entries.keys())
            if not missing:
                return {name: entries[key] for key, name in shown.items()}
            raise Finding(f"{kind.method} doesn't show {missing[0]!r}, but {sorted(entries)[:5]}.")
        except Finding:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.05)


async def same_entries(stage: Stage, kind: Kind, shop: Server, own: Sequence[str]) -> None:
    """These offers are listed alike, straight and through the subject."""
    with controlled():
        straight = await listed(await stage.straight(shop), kind, own)
    player = await stage.through(shop)
    through = await listed(player, kind, own)
    told = [[name, *lines(straight[name], Likeness.VALUE)] for name in own]
    shown = [[name, *_entry(player, kind, name, straight[name], through[name])] for name in own]
    compare(stage, f"{kind.method} shows it differently.", told, shown)


def _entry(player: Player, kind: Kind, own: str, straight: bytes, through: bytes) -> list[str]:
    """An entry, a member a line, under the server's own name again. A resource's name, which is for people,
    may have gained the server's."""
    fields = split_object(player.route.undone(through))
    fields[kind.key] = quote(own)
    name = msgspec.json.decode(split_object(straight)["name"])
    shown = msgspec.json.decode(fields.get("name", b"null"))
    if kind is not PROMPT and isinstance(shown, str) and shown.endswith(name):
        fields["name"] = quote(name)
    return lines(join_object(fields), Likeness.VALUE)


def answered(player: Player, reply: Reply, own: Mapping[str, str]) -> list[str]:
    """An answer, a member a line, without what eras and the subject add. own: a URI as it is called through
    the subject -> the server's own."""
    if reply.result is None:
        return ["answered with an error", *lines(reply.error or b"", Likeness.VALUE)]
    value = msgspec.json.decode(player.route.undone(reply.result))
    kept = {key: item for key, item in value.items() if key not in _STAMPED}
    return ["answered with a result", *lines(msgspec.json.encode(_owned(kept, own)), Likeness.VALUE)]


def _owned(value: object, own: Mapping[str, str]) -> object:
    """``value`` with every ``uri`` in it the server's own again."""
    if isinstance(value, list):
        return [_owned(item, own) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: own.get(it, it) if key == "uri" else _owned(it, own) for key, it in value.items()}


def in_words(reply: Reply) -> str:
    """An answer, for a sentence about it."""
    if reply.result is None:
        return f"error {reply.code!r}: {reply.text}"
    return f"the result {reply.result[:200].decode('utf-8', 'replace')}"
