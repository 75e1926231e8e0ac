"""Decides what of a server's listing is offered, and what is held back (pure).

The rules:

1. An item is offered if it is pinned: if it has the digest that was approved under its kind and name.
2. The first listing of a server, and the first of each of its lists, is pinned, but for items with a flaw
   that no honest item has.
3. After that an item that is new, changed, or back after it was missing is pinned only if ``trust`` says so:
   "pin" holds it if the change is risky, "strict" always, "open" never.
4. An item that is held isn't offered in its earlier form either: the server has another one now.
5. What a person has rejected stays held in that form, also if it is missing for a while.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from mcpzip.config.schema import Trust
from mcpzip.model.surface import Item, Kind
from mcpzip.pins.digests import item_digest, raw_digest
from mcpzip.pins.record import EVENTS, GONE, Event, Hold, Pin, ServerPins, What, key_of, kind_and_name

_COMPARED = 20
"""Items that are new, or missing, up to which it is examined whether one was renamed."""
_ALIKE = 0.6
"""The part of the words that two items have in common if one is the other under a new name."""

UNDECIDED = ("it is not decided yet",)
"""The reasons for which an item is held that no listing has had yet, or only another item of its name."""


class Judge(Struct, frozen=True):
    """What a decision asks others. risks: why it is risky to take over an item instead of an earlier one
    (None for a new item). flaws: why an item isn't even taken over at the first sight of its server. body: of
    the item with a key and a digest; None if it isn't stored.
    """

    risks: Callable[[Item | None, Item], Sequence[str]]
    flaws: Callable[[Item], Sequence[str]]
    body: Callable[[str, bytes], bytes | None]


class Decision(Struct, frozen=True):
    """pins: of the server from now on. held: what of the listing isn't offered, by key. changed: whether
    ``pins`` differ from those before. bodies: of the items that were pinned or held now, by digest.
    """

    pins: ServerPins
    held: Mapping[str, Hold]
    changed: bool
    bodies: Mapping[bytes, bytes] = {}


def decide(
    known: ServerPins | None,
    items: Iterable[Item],
    listed: Collection[Kind],
    trust: Trust,
    judge: Judge,
    now: float,
    *,
    of_person: bool = False,
) -> Decision:
    """known: the pins of the server; None at its first sight. items: of the kinds ``listed``, which are
    complete. now: Unix seconds. of_person: whether they are those of one person, and others may have more:
    then nothing is missing.
    """
    return _Listing(known, trust, judge, now, of_person=of_person).decide(
        {key_of(item): item for item in items}, listed
    )


def verify(known: ServerPins | None, items: Iterable[Item], now: float) -> dict[str, Hold]:
    """Those of ``items`` that aren't offered by the pins alone, by key, without any decision. Some of these
    need one: their reasons are `UNDECIDED`.
    """
    held: dict[str, Hold] = {}
    for item in items:
        key, raw = key_of(item), raw_digest(item.body)
        pin = known.pins.get(key) if known else None
        hold = known.held.get(key) if known else None
        pinned = pin is not None and pin.gone is None and (pin.raw == raw or pin.digest == item_digest(item))
        if pinned and hold is None:
            continue
        digest = item_digest(item)
        if hold is None or hold.digest != digest:
            hold = Hold(digest, raw, now, UNDECIDED)
        held[key] = hold
    return held


class _Listing:
    """The decision about one listing of one server."""

    def __init__(
        self, known: ServerPins | None, trust: Trust, judge: Judge, now: float, *, of_person: bool
    ) -> None:
        self._known = known or ServerPins(now)
        self._is_first, self._of_person = known is None, of_person
        self._trust, self._judge, self._now = trust, judge, now
        self._pins, self._held = dict(self._known.pins), dict(self._known.held)
        self._events: list[Event] = []
        self._bodies: dict[bytes, bytes] = {}
        self._changed = known is None
        self._missing: dict[str, Pin] = {}

    def decide(self, items: Mapping[str, Item], listed: Collection[Kind]) -> Decision:
        known = self._known
        first = [kind for kind in listed if kind not in known.lists]
        if not self._of_person:
            self._note_missing(items, listed)
        new = [key for key in items if key not in self._pins]
        for key, item in items.items():
            pin, hold = self._pins.get(key), self._held.get(key)
            raw = raw_digest(item.body)
            if pin is not None and pin.raw == raw and pin.gone is None and hold is None:
                continue  # nearly always
            self._decide_one(key, item, raw, first=item.kind in first, few_new=len(new) <= _COMPARED)
        for kind in first:
            pinned = sum(kind_and_name(key)[0] == kind for key in items)
            if pinned or kind == "tool":
                self._event("first seen", note=f"{kind}: {pinned:,}")
        if first:
            self._changed = True
        pins = ServerPins(
            known.first_seen,
            (*known.lists, *first),
            _without_oldest_gone(self._pins),
            self._held,
            (*known.events, *self._events)[-EVENTS:],
        )
        held = {key: hold for key, hold in self._held.items() if key in items}
        return Decision(pins, held, self._changed, self._bodies)

    def _note_missing(self, items: Mapping[str, Item], listed: Collection[Kind]) -> None:
        for key, pin in self._known.pins.items():
            if pin.gone is None and key not in items and kind_and_name(key)[0] in listed:
                self._missing[key] = pin
                self._pins[key] = Pin(pin.digest, pin.raw, pin.at, self._now)
                self._event("removed", key, before=pin.digest)
        for key, hold in self._known.held.items():
            if key not in items and kind_and_name(key)[0] in listed and not hold.rejected:
                del self._held[key]
                self._event("removed", key, before=hold.digest)

    def _decide_one(self, key: str, item: Item, raw: bytes, *, first: bool, few_new: bool) -> None:
        pin, hold = self._pins.get(key), self._held.get(key)
        digest = item_digest(item)
        if pin is not None and pin.digest == digest and pin.gone is None:
            if hold is not None:
                del self._held[key]
                self._event("went back", key, before=hold.digest, after=digest)
            self._pins[key] = Pin(digest, raw, pin.at)
            self._changed = True
            return
        if hold is not None and hold.digest == digest and self._trust != "open":
            if hold.raw != raw:
                self._held[key] = Hold(digest, raw, hold.at, hold.reasons, hold.rejected)
                self._changed = True
            if self._judge.body(key, digest) is None:  # it was lost, and a person wants to see it
                self._bodies[digest] = item.body
                self._changed = True
            return
        before = b"" if pin is None else pin.digest
        what: What = "added" if pin is None else "changed" if pin.gone is None else "came back"
        reasons: Sequence[str] = ()
        note = ""
        if first:
            reasons = self._judge.flaws(item)
        else:
            old, renamed = self._earlier(key, item, few_new=few_new)
            if renamed:
                what, note = "renamed", f"from {renamed}"
            if self._trust == "strict":
                reasons = (_STRICT[what], *self._judge.risks(old, item))
            elif self._trust == "pin":
                if pin is not None and old is None:
                    reasons = ("what it was before is not known any more",)
                reasons = (*reasons, *self._judge.risks(old, item))
        self._bodies[digest] = item.body
        if reasons and self._trust != "open":
            self._held[key] = Hold(digest, raw, self._now, tuple(reasons))
            self._event("held", key, "; ".join(filter(None, (note, *reasons))), before, digest)
            return
        self._held.pop(key, None)
        self._pins[key] = Pin(digest, raw, self._now)
        self._changed = True
        if not first:
            self._event(what, key, note, before, digest)

    def _earlier(self, key: str, item: Item, *, few_new: bool) -> tuple[Item | None, str]:
        """The item that ``item`` replaces, None for none; and its name if that was another."""
        if (pin := self._pins.get(key)) is not None:
            body = self._judge.body(key, pin.digest)
            return (None if body is None else Item(item.kind, item.name, body)), ""
        if not few_new or len(self._missing) > _COMPARED:
            return None, ""
        words, best, found, name = _words(item.body), _ALIKE, None, ""
        for other, pin in self._missing.items():
            kind, called = kind_and_name(other)
            if kind != item.kind or (body := self._judge.body(other, pin.digest)) is None:
                continue
            others = _words(body)
            alike = len(words & others) / (len(words | others) or 1)
            if alike >= best:
                best, found, name = alike, Item(kind, called, body), called
        return found, name

    def _event(
        self, what: What, item: str = "", note: str = "", before: bytes = b"", after: bytes = b""
    ) -> None:
        self._events.append(Event(self._now, what, item, note, before, after))
        self._changed = True


_STRICT: Mapping[What, str] = {
    "added": "it is new",
    "changed": "it has changed",
    "came back": "it came back after it was missing",
    "renamed": "it has another name",
}


def approved(pins: ServerPins, keys: Collection[str], now: float) -> ServerPins:
    """``pins`` with the held items ``keys`` pinned."""
    found, held, events = dict(pins.pins), dict(pins.held), list(pins.events)
    for key in keys:
        hold = held.pop(key)
        before = found[key].digest if key in found else b""
        found[key] = Pin(hold.digest, hold.raw, now)
        events.append(Event(now, "approved", key, "", before, hold.digest))
    return ServerPins(pins.first_seen, pins.lists, found, held, tuple(events[-EVENTS:]))


def rejected(pins: ServerPins, keys: Collection[str], now: float) -> ServerPins:
    """``pins`` with the held items ``keys`` marked: they stay held, and nobody is asked about them again."""
    held, events = dict(pins.held), list(pins.events)
    for key in keys:
        hold = held[key]
        held[key] = Hold(hold.digest, hold.raw, hold.at, hold.reasons, True)
        events.append(Event(now, "rejected", key, "", b"", hold.digest))
    return ServerPins(pins.first_seen, pins.lists, pins.pins, held, tuple(events[-EVENTS:]))


def pinned_as_is(items: Iterable[Item], lists: Collection[Kind], now: float) -> ServerPins:
    """The pins of a server of which ``items`` were offered before the file of pins was lost."""
    pins = {key_of(item): Pin(item_digest(item), raw_digest(item.body), now) for item in items}
    event = Event(now, "approved", note="all that was offered, because the file of pins could not be used")
    return ServerPins(now, tuple(lists), pins, {}, (event,))


def moved_in(shared: ServerPins | None, own: ServerPins, now: float) -> ServerPins | None:
    """The pins of a server from now on, when a machine that has ``own`` in its file begins to share them with
    others; None if ``shared`` stay as they are.

    Where nobody has pins of the server yet, those of the machine are everybody's. Else the shared ones count,
    but nothing is let in by that which the machine held back: it stays held, unless a person has approved
    exactly that, and nobody here has rejected it since.
    """
    if shared is None:
        return own
    pins, held, events = dict(shared.pins), dict(shared.held), list(shared.events)
    yes = {(each.item, each.after): each.at for each in shared.events if each.what == "approved"}
    no = {(each.item, each.after): each.at for each in own.events if each.what == "rejected"}
    for key, hold in own.held.items():
        pin, other, this = pins.get(key), held.get(key), (key, hold.digest)
        if other is not None and other.digest == hold.digest:
            if other.rejected or not hold.rejected:
                continue
        elif this in yes and not (hold.rejected and no.get(this, hold.at) >= yes[this]):
            continue
        elif pin is not None and pin.gone is None and pin.digest == hold.digest:
            del pins[key]
        elif other is not None or not hold.rejected:
            continue  # the others decide when they are listed it
        held[key] = hold
        note = "; ".join(("it was held on another machine", *hold.reasons))
        events.append(Event(now, "rejected" if hold.rejected else "held", key, note, b"", hold.digest))
    if held == shared.held:
        return None
    return ServerPins(shared.first_seen, shared.lists, pins, held, tuple(events[-EVENTS:]))


def _words(body: bytes) -> frozenset[bytes]:
    return frozenset(_WORD.findall(body[:65_536]))


_WORD = re.compile(rb"\w+")


def _without_oldest_gone(pins: dict[str, Pin]) -> dict[str, Pin]:
    gone = sorted((pin.gone, key) for key, pin in pins.items() if pin.gone is not None)
    for _, key in gone[: max(len(gone) - GONE, 0)]:
        del pins[key]
    return pins
