"""What a server offers besides its tools, and how it compares: resources, templates, prompts.

The rule: what the server said is there, with its value. A name or a URI becomes what the subject's file says;
where an answer names a resource, the URI may stand as the server wrote it or as a client reads it. Members
that the server left out may be there, too: what they say is what they would mean by default.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from mcpzip.wire import NotAnObject, join_object, quote, split_object, without_members
from mcpzip_conformance.compare_conversation import compare, controlled, said_too
from mcpzip_conformance.compare_json import Likeness, lines
from mcpzip_conformance.errors import Finding
from mcpzip_conformance.player import Player
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.route import Route
from mcpzip_conformance.scene import SHOP, Server
from mcpzip_conformance.stage import Stage

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


async def same_entries(
    stage: Stage, kind: Kind, shop: Server, own: Sequence[str], members: Collection[str] | None = None
) -> None:
    """These offers are listed alike, straight and through the subject. members: only these are compared, of
    an entry and of a prompt's arguments."""
    with controlled():
        straight = await listed(await stage.straight(shop), kind, own)
    straight = {name: _compared(entry, members) for name, entry in straight.items()}
    player = await stage.through(shop)
    through = await listed(player, kind, own)
    told = [[name, *lines(straight[name], Likeness.VALUE)] for name in own]
    shown = [[name, *_entry(player, kind, name, straight[name], through[name])] for name in own]
    compare(stage, f"{kind.method} shows it differently.", told, shown)


def _compared(entry: bytes, members: Collection[str] | None) -> bytes:
    """The members of an entry that are compared, without what means the same as nothing."""
    value = msgspec.json.decode(entry)
    for holder in (value, *value.get("arguments", ())):
        for key in list(holder):
            if (members is not None and key not in members) or (key == "required" and not holder[key]):
                del holder[key]
    return msgspec.json.encode(value)


def _entry(player: Player, kind: Kind, own: str, straight: bytes, through: bytes) -> list[str]:
    """An entry, a member a line, under the server's own name again. A resource's name, which is for people,
    may have gained the server's."""
    fields = split_object(player.route.undone(through))
    fields[kind.key] = quote(own)
    name = str(msgspec.json.decode(straight)["name"])
    shown = msgspec.json.decode(fields.get("name", b"null"))
    if kind is not PROMPT and isinstance(shown, str) and shown.endswith(name):
        fields["name"] = quote(name)
    return lines(said_too(straight, join_object(fields)), Likeness.VALUE)


def same_answers(
    stage: Stage,
    otherwise: str,
    straight: Sequence[Reply],
    player: Player,
    through: Sequence[Reply],
    own: Mapping[str, str],
) -> None:
    """Finding with the sentence ``otherwise`` unless the answers that ``player`` got through the subject say
    what those straight did. own: a URI as it is called through the subject -> the server's own."""
    told, got = [], []
    for one, other in zip(straight, through, strict=True):
        told.append(_answered(one.result, one))
        result = None if other.result is None else player.route.undone(other.result)
        if result is not None and one.result is not None:
            value = _owned(msgspec.json.decode(result), own)
            result = said_too(one.result, msgspec.json.encode(value))
        got.append(_answered(result, other))
    compare(stage, otherwise, told, got)


def _answered(result: bytes | None, reply: Reply) -> list[str]:
    """An answer, a member a line, without what the eras write on it."""
    if result is None:
        return ["answered with an error", *lines(reply.error or b"", Likeness.VALUE)]
    return ["answered with a result", *lines(without_members(result, _STAMPED), Likeness.VALUE)]


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
