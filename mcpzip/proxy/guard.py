"""Requests that would reach what is held back, and answers of a server that would show it.

The catalog has nothing that is held (`pins.gate`), so most requests need no look here. The rest may name what
isn't listed: a prompt or a URI with the name of its server, and everything in ``transparent``.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mcpzip.catalog import Catalog
from mcpzip.model import limits, offers
from mcpzip.model.errors import (
    InvalidOfferError,
    UnknownPromptError,
    UnknownResourceError,
    UnknownToolError,
)
from mcpzip.pins.gate import Gate
from mcpzip.proxy.exchange import Exchange, members
from mcpzip.proxy.refresh import Refresher
from mcpzip.system.threads import in_thread
from mcpzip.wire import SERVER_INFO_KEY, unquote, with_members, without_members
from mcpzip.wire.json_iter import elements_of

if TYPE_CHECKING:
    from mcpzip.model.surface import Item, Kind
    from mcpzip.pins.record import Hold

_LISTS: "Mapping[str, tuple[str, Kind, offers.Kind]]" = {
    "tools/list": ("tools", "tool", offers.Kind("tool", "name", limits.NAME)),
    "prompts/list": ("prompts", "prompt", offers.PROMPT),
    "resources/list": ("resources", "resource", offers.RESOURCE),
    "resources/templates/list": ("resourceTemplates", "template", offers.TEMPLATE),
}
_META = "_meta"


class Guard:
    """Everything runs on one event loop."""

    def __init__(self, gate: Gate, catalog: Callable[[], Catalog], refresher: Refresher) -> None:
        """catalog: what is offered now."""
        self._gate, self._catalog, self._refresher = gate, catalog, refresher

    async def check_tool(self, server: str, name: str) -> None:
        """Raises UnknownToolError if the tool ``name`` of ``server`` is held."""
        await self._load()
        held = self._gate.held(server)
        if held.has_name("tool", name):
            record = self._catalog().servers.get(server)
            if record is None or not any(entry.tool == name for entry in record.entries):
                raise UnknownToolError(name)

    async def check_prompt(self, server: str, name: str, asked: str) -> None:
        """Raises UnknownPromptError if the prompt ``name`` of ``server`` is held. asked: its name for the
        client.
        """
        await self._load()
        if self._gate.held(server).has_name("prompt", name) and name not in await in_thread(
            lambda: self._offered(server)[0], "check"
        ):
            raise UnknownPromptError(asked)

    async def check_uri(self, server: str, uri: str, asked: str) -> None:
        """Raises UnknownResourceError if ``uri`` of ``server`` leads to something that is held. asked: what
        the client calls it.
        """
        await self._load()
        held = self._gate.held(server)
        if held.kinds.isdisjoint(("resource", "template")):
            return

        def is_held() -> bool:
            _, resources, templates = self._offered(server)
            return uri not in resources and uri not in templates and held.has_uri(uri, templates)

        if await in_thread(is_held, "check"):
            raise UnknownResourceError(asked)

    def tells_of(self, server: str, params: bytes) -> bool:
        """Whether a notification of ``server`` with ``params`` is about a resource that is held."""
        if server not in self._gate.holding:
            return False
        uri = _text(members(params).get("uri"))
        return uri is not None and self._gate.held(server).is_uri(uri)

    # --- transparent ---

    async def check(self, method: str, exchange: Exchange, server: str) -> None:
        """Raises UnknownPromptError or UnknownResourceError for a request that names something held."""
        fields = exchange.fields
        ref = members(fields.get("ref")) if method == "completion/complete" else {}
        name = _text(fields.get("name") if method == "prompts/get" else ref.get("name"))
        uri = _text(fields.get("uri") if method == "resources/read" else ref.get("uri"))
        if name is not None:
            await self.check_prompt(server, name, name)
        if uri is not None:
            await self.check_uri(server, uri, uri)

    async def cleaned(self, method: str, server: str, result: bytes) -> bytes:
        """``result``, which ``server`` gave to ``method``, without what is held. What isn't decided yet is
        decided first: the server is listed.
        """
        if self._gate.is_open(server):
            return result
        if method == "server/discover":
            return await self._cleaned_discovery(server, result)
        if method not in _LISTS:
            return result
        from mcpzip.pins.record import key_of

        await self._load()
        items = await in_thread(lambda: _items(method, result), "check")
        held = await self._decided(server, [item for item in items if item is not None])
        kept = [item for item in items if item is not None and key_of(item) not in held]
        if len(kept) == len(items):
            return result
        return with_members(result, {_LISTS[method][0]: b"[%b]" % b",".join(item.body for item in kept)})

    async def cleaned_handshake(self, server: str, info: bytes, instructions: str) -> tuple[bytes, str]:
        """What ``server`` says of itself, without what is held."""
        if self._gate.is_open(server):
            return info, instructions
        from mcpzip.pins.surface import INSTRUCTIONS, SERVER, anonymous, items_of_handshake

        held = await self._decided(server, items_of_handshake(info, instructions[: limits.INSTRUCTIONS]))
        return (
            anonymous(server) if SERVER in held else info,
            "" if INSTRUCTIONS in held else instructions[: limits.INSTRUCTIONS],
        )

    async def _cleaned_discovery(self, server: str, result: bytes) -> bytes:
        said = members(result)
        meta = members(said.get(_META))
        info, instructions = meta.get(SERVER_INFO_KEY, b""), _text(said.get("instructions")) or ""
        clean_info, clean_instructions = await self.cleaned_handshake(server, info, instructions)
        if clean_info != info:
            result = with_members(result, {_META: with_members(said[_META], {SERVER_INFO_KEY: clean_info})})
        return result if clean_instructions == instructions else without_members(result, ["instructions"])

    async def _decided(self, server: str, items: "list[Item]") -> "Mapping[str, Hold]":
        """What of ``items`` is held, after they were decided about."""
        from mcpzip.pins.decision import UNDECIDED

        held = await in_thread(lambda: self._gate.admits(server, items), "check")
        if any(hold.reasons == UNDECIDED for hold in held.values()):
            await self._refresher.refresh([server])
            if (rest := self._refresher.rest_listing(server)) is not None:
                await asyncio.wait({rest})
            held = await in_thread(lambda: self._gate.admits(server, items), "check")
        return held

    # --- what is offered ---

    async def _load(self) -> None:
        if not self._gate.loaded:
            await in_thread(self._gate.load, "pins")

    def _offered(self, server: str) -> tuple[set[str], set[str], set[str]]:
        """The names of the prompts, the URIs of the resources, and the templates."""
        record = self._catalog().servers.get(server)
        if record is None:
            return set(), set(), set()
        return (
            {offers.key_of(offers.PROMPT, server, raw) for raw in record.prompts},
            {offers.key_of(offers.RESOURCE, server, raw) for raw in record.resources},
            {offers.key_of(offers.TEMPLATE, server, raw) for raw in record.templates},
        )


def _items(method: str, result: bytes) -> "list[Item | None]":
    """The items of a list; None for one that has no name, and so can't be pinned."""
    from mcpzip.model.surface import Item

    member, kind, key = _LISTS[method]
    found: list[Item | None] = []
    try:
        raws = elements_of(members(result).get(member, b"[]"), limits.LIST_ITEMS)
    except ValueError:
        return [None]  # so that it is shown as empty
    for raw in raws:
        try:
            found.append(Item(kind, offers.key_of(key, "", raw), raw))
        except InvalidOfferError:
            found.append(None)
    return found


def _text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else unquote(raw)
    except ValueError:
        return None
