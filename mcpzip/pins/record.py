"""What is stored of a server: its pins, what is held back, and what happened (pure)."""

from typing import Literal, cast, get_args

import msgspec

from mcpzip.model.surface import Item, Kind

KINDS: tuple[Kind, ...] = get_args(Kind)
What = Literal[
    "first seen",
    "added",
    "changed",
    "renamed",
    "removed",
    "came back",
    "held",
    "went back",
    "approved",
    "rejected",
]
"""first seen: a server, or one of its lists. added, changed, renamed, came back: taken over without a person.
went back: what was held is again as it was approved.
"""
EVENTS = 200
"""Events that are kept of a server; the oldest are dropped."""
GONE = 2_000
"""Pins that are kept of items which a server doesn't list any more; the oldest are dropped."""


class Pin(msgspec.Struct, frozen=True, omit_defaults=True):
    """An approved item. digest: of its canonical form. raw: the SHA-256 of the bytes that were received last.
    at: when it was approved. gone: since when the server doesn't list it; None if it does. Unix seconds.
    """

    digest: bytes
    raw: bytes
    at: float
    gone: float | None = None


class Hold(msgspec.Struct, frozen=True, omit_defaults=True):
    """An item that is held back. reasons: phrases. rejected: whether a person has seen it and said no."""

    digest: bytes
    raw: bytes
    at: float
    reasons: tuple[str, ...] = ()
    rejected: bool = False


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happened. item: its key (`key_of`), "" for the server as a whole. note: the reasons, or
    the earlier name. before, after: digests of the item.
    """

    at: float
    what: What
    item: str = ""
    note: str = ""
    before: bytes = b""
    after: bytes = b""


class ServerPins(msgspec.Struct, frozen=True):
    """One server. lists: the kinds that it was asked for at least once. pins, held: by key. events: the
    latest last.
    """

    first_seen: float
    lists: tuple[Kind, ...] = ()
    pins: dict[str, Pin] = {}
    held: dict[str, Hold] = {}
    events: tuple[Event, ...] = ()

    def digests(self) -> set[bytes]:
        """Of every item that a person may want to look at."""
        found = {pin.digest for pin in self.pins.values()} | {hold.digest for hold in self.held.values()}
        for event in self.events:
            found.update((event.before, event.after))
        return found - {b""}


def key_of(item: Item) -> str:
    """The key of ``item``, by which `kind_and_name` finds its kind and its name."""
    return f"{item.kind} {item.name}"


def kind_and_name(key: str) -> tuple[Kind, str]:
    """The kind and the name of the item with this key."""
    kind, _, name = key.partition(" ")
    return cast(Kind, kind), name


_WORDS: dict[Kind, tuple[str, str]] = {
    "tool": ("tool", "tools"),
    "prompt": ("prompt", "prompts"),
    "resource": ("resource", "resources"),
    "template": ("resource template", "resource templates"),
    "instructions": ("text of instructions", "texts of instructions"),
    "server": ("name", "names"),
}


def counted(keys: "list[str]") -> str:
    """How many items of each kind have these keys: ``2 tools and 1 prompt``."""
    parts = []
    for kind, (one, several) in _WORDS.items():
        if count := sum(kind_and_name(key)[0] == kind for key in keys):
            parts.append(f"{count:,} {one if count == 1 else several}")
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
