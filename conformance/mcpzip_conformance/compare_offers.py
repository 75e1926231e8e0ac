"""Compares what a server offers besides its tools: resources, templates, prompts.

The rule: every member of the server must be there with its value. A name or URI has the form in the subject's
file; in an answer a resource's URI can be the server's or the client's. Members that the server left out can
be added with their default values.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from mcpzip.wire import NotAnObject, join_object, quote, split_object, without_members
from mcpzip_conformance.compare_conversation import common_members, compare, controlled
from mcpzip_conformance.compare_json import Likeness, lines
from mcpzip_conformance.errors import Finding
from mcpzip_conformance.player import Player
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.route import Route
from mcpzip_conformance.scene import SHOP, Server
from mcpzip_conformance.stage import Stage

_PAGES = 100
_STAMPED = ("ttlMs", "cacheScope")
"""Members that the modern era adds to lists and contents, and that some proxies keep for legacy clients."""


class Kind(NamedTuple):
    """One kind of offer. method, members: its list; key: the member that names it; shown: the client's form
    of that."""

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
    """The listed entries of all pages, by the client's names. Raises Finding if the listing fails."""
    entries: dict[str, bytes] = {}
    params: bytes | None = None
    for _ in range(_PAGES):
        reply = await player.request(kind.method, params)
        try:
            page = split_object(reply.result or b"")
            for raw in msgspec.json.decode(page[kind.members], type=list[msgspec.Raw]):
                entries[str(msgspec.json.decode(raw).get(kind.key))] = bytes(raw)
        except (NotAnObject, KeyError, AttributeError, msgspec.DecodeError):
            raise Finding(f"{kind.method} is answered with {reply.brief}.") from None
        if page.get("nextCursor", b"null") == b"null":
            return entries
        params = join_object({"cursor": page["nextCursor"]})
    raise Finding(f"{kind.method} still had a next page after {_PAGES} pages.")


async def listed(player: Player, kind: Kind, own: Sequence[str]) -> dict[str, bytes]:
    """The entries of these offers, by the server's own names, once the subject lists them. Raises Finding if
    one is missing."""
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


async def same_entries(
    stage: Stage, kind: Kind, shop: Server, own: Sequence[str], members: Collection[str] | None = None
) -> None:
    """Raises Finding unless these offers are listed equally, directly and through the subject. members: only
    these are compared, of an entry and of a prompt's arguments."""
    with controlled():
        straight = await listed(await stage.straight(shop), kind, own)
    straight = {name: _compared(entry, members) for name, entry in straight.items()}
    player = await stage.through(shop)
    through = await listed(player, kind, own)
    expected = [[name, *lines(straight[name], Likeness.VALUE)] for name in own]
    shown = [[name, *_entry(player, kind, name, straight[name], through[name])] for name in own]
    compare(stage, f"{kind.method} shows it differently.", expected, shown)


def _compared(entry: bytes, members: Collection[str] | None) -> bytes:
    """The compared members of an entry, without those that mean the same as their absence."""
    value = msgspec.json.decode(entry)
    for holder in (value, *value.get("arguments", ())):
        for key in list(holder):
            if (members is not None and key not in members) or (key == "required" and not holder[key]):
                del holder[key]
    return msgspec.json.encode(value)


def _entry(player: Player, kind: Kind, own: str, straight: bytes, through: bytes) -> list[str]:
    """An entry, a member a line, with the server's own name. A resource's name, which is for people, may have
    the server's added."""
    fields = split_object(player.route.undone(through))
    fields[kind.key] = quote(own)
    name = str(msgspec.json.decode(straight)["name"])
    shown = msgspec.json.decode(fields.get("name", b"null"))
    if kind is not PROMPT and isinstance(shown, str) and shown.endswith(name):
        fields["name"] = quote(name)
    return lines(common_members(straight, join_object(fields)), Likeness.VALUE)


def same_answers(
    stage: Stage,
    otherwise: str,
    straight: Sequence[Reply],
    player: Player,
    through: Sequence[Reply],
    own: Mapping[str, str],
) -> None:
    """Raises Finding with the sentence ``otherwise`` unless the answers of ``player`` through the subject
    equal the direct ones. own: the client's URI -> the server's own."""
    expected, got = [], []
    for one, other in zip(straight, through, strict=True):
        expected.append(_answered(one.result, one))
        result = None if other.result is None else player.route.undone(other.result)
        if result is not None and one.result is not None:
            value = _owned(msgspec.json.decode(result), own)
            result = common_members(one.result, msgspec.json.encode(value))
        got.append(_answered(result, other))
    compare(stage, otherwise, expected, got)


def _answered(result: bytes | None, reply: Reply) -> list[str]:
    """An answer, a member a line, without the members that an era adds."""
    if result is None:
        return ["answered with an error", *lines(reply.error or b"", Likeness.VALUE)]
    return ["answered with a result", *lines(without_members(result, _STAMPED), Likeness.VALUE)]


def _owned(value: object, own: Mapping[str, str]) -> object:
    """``value`` with the server's own URI in every ``uri``."""
    if isinstance(value, list):
        return [_owned(item, own) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: own.get(it, it) if key == "uri" else _owned(it, own) for key, it in value.items()}
