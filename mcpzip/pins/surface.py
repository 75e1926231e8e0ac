"""The items of a server's record, and the record without some of them (pure)."""

import re
from collections.abc import Collection

from msgspec.structs import replace

from mcpzip.catalog import ServerRecord
from mcpzip.catalog.parts import Parts
from mcpzip.model import offers
from mcpzip.model.surface import Item, Kind
from mcpzip.wire import NotAnObject, join_object, quote, split_object

SERVER, INSTRUCTIONS = "server ", "instructions "
"""The keys of the two items that have no name."""
_VERSION = re.compile(rb'"[\w.+~-]{0,64}"')
"""A version of a server that says nothing else. It changes with every update, so it isn't pinned."""


class Surface:
    """All that a model can see of the server with ``record``. items: in the order of the record."""

    def __init__(self, record: ServerRecord) -> None:
        self._record = record
        self._prompts = _items("prompt", record.name, record.prompts)
        self._resources = _items("resource", record.name, record.resources)
        self._templates = _items("template", record.name, record.templates)

    @property
    def items(self) -> list[Item]:
        record = self._record
        return [
            *items_of_handshake(record.info, record.instructions),
            *(Item("tool", entry.tool, entry.read()) for entry in record.entries),
            *self._prompts,
            *self._resources,
            *self._templates,
        ]

    def without(self, held: Collection[str]) -> ServerRecord:
        """The record without the items with the keys ``held``. The same object if there are none."""
        record = self._record
        if not held:
            return record
        if any(key.startswith("tool ") for key in held):
            offered = Parts(entry for entry in record.entries if f"tool {entry.tool}" not in held)
            record = replace(record, entries=offered)
        record = replace(
            record,
            prompts=_without(self._prompts, held),
            resources=_without(self._resources, held),
            templates=_without(self._templates, held),
            warnings=_without_names(record.warnings, held),
        )
        if INSTRUCTIONS in held:
            record = replace(record, instructions="")
        if SERVER in held:
            record = replace(record, title="", info=anonymous(record.name))
        return record


def items_of_handshake(info: bytes, instructions: str) -> list[Item]:
    """What a server says of itself. info: its `Implementation` as JSON text; b"" if missing."""
    found = []
    try:
        members = split_object(info) if info else {}
    except NotAnObject:
        members = {}
    version = members.get("version", b'""')
    said = {
        key: value for key, value in members.items() if key != "version" or not _VERSION.fullmatch(version)
    }
    if said:
        found.append(Item("server", "", join_object(said)))
    if instructions:
        found.append(Item("instructions", "", quote(instructions)))
    return found


def anonymous(server: str) -> bytes:
    """The `Implementation` of a server whose own is held: what the config calls it."""
    return join_object({"name": quote(server), "version": b'"0"'})


_KINDS = {"prompt": offers.PROMPT, "resource": offers.RESOURCE, "template": offers.TEMPLATE}


def _items(kind: Kind, server: str, raws: tuple[bytes, ...]) -> list[Item]:
    return [Item(kind, offers.key_of(_KINDS[kind], server, raw), raw) for raw in raws]


def _without(items: list[Item], held: Collection[str]) -> tuple[bytes, ...]:
    return Parts(item.body for item in items if f"{item.kind} {item.name}" not in held)


def _without_names(warnings: tuple[str, ...], held: Collection[str]) -> tuple[str, ...]:
    """``warnings`` without those that quote the name of something held."""
    names = {repr(key.partition(" ")[2]) for key in held} - {"''"}
    return tuple(each for each in warnings if not any(name in each for name in names))
