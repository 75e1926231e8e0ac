"""The decisions of one proxy about what servers list: what is held, and what of that is pinned.

The rules:

1. What isn't offered never enters the catalog. So nothing that reads the catalog, its snapshot or the search
   index has to know of pins.
2. If the pins can't be used, what the catalog has already stays, because it was decided earlier. Anything
   else is held, until a person has repaired them, or the store where they are can be used.
3. If a decision can't be written, nothing is pinned by it, and what it would have taken over is held. The
   exception is a folder that never had pins and can't be written: there nothing can be kept at all.
4. No request of a client waits for a store, but for lists in ``transparent`` at the very start.
"""

import errno
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from typing import TYPE_CHECKING

from mcpzip.catalog import Catalog, Listed, ServerRecord
from mcpzip.checks.prefilter import suspects
from mcpzip.config import Config, ServerConfig
from mcpzip.config.paths import mcpzip_command
from mcpzip.model import limits
from mcpzip.model.errors import StoreError
from mcpzip.model.surface import Item, Kind
from mcpzip.pins.decision import Judge, decide, verify
from mcpzip.pins.digests import item_digest, raw_digest
from mcpzip.pins.held import NOTHING, UNKNOWN, Held
from mcpzip.pins.opening import open_pins
from mcpzip.pins.record import KINDS, Hold, ServerPins, key_of, kind_and_name
from mcpzip.pins.store import KnownPins, PinStore, PinsUnusableError, Version, server_key, text_of
from mcpzip.pins.surface import Surface

if TYPE_CHECKING:
    from mcpzip.checks import Others

_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


class Decisions:
    """The pins of one proxy. Methods that read pins or look at a listing are for a thread. store: of the
    pins.
    """

    def __init__(
        self,
        config: Config,
        catalog: Callable[[], Catalog],
        warn: Callable[[str], None] = lambda text: None,
        store: PinStore | None = None,
    ) -> None:
        """catalog: what was admitted of all servers. store: where the pins are, which others use too; None
        for that of ``config``.
        """
        self._config, self._catalog, self._warn = config, catalog, warn
        self.store = self._store = open_pins(config) if store is None else store
        self._is_own_store = store is None
        self._lock = threading.Lock()
        self._pins: KnownPins | None = None
        self._version: Version | None = None
        """Of the pins that were read; None if none were."""
        self._taken_up: Version | None = None
        """The same, for what was done with it (`reload`)."""
        self._decided: dict[str, Version] = {}
        """The version of the pins before the last decision about a server."""
        self._unusable: frozenset[str] = frozenset()
        """The servers whose pins could not be used when they were read."""
        self._is_pending = False
        """Whether that was because they were not read from the store yet."""
        self._unrecorded: set[str] = set()
        """The servers about whose last listing nothing could be decided, or written."""
        self._released = False
        self._compared: tuple[object, Others, object] | None = None
        """See `_others`: of which lists it was made (which must live as long as their ids count), and it."""
        self._held: dict[str, Held] = {}
        self._listed: dict[str, Surface] = {}
        """By server: all that it listed last, if something of it is held."""
        self.problem = ""

    def reconfigure(self, config: Config) -> None:
        """Uses ``config`` from now on."""
        self._config = config
        for server in [*self._held]:
            if server not in config.servers:
                self._held.pop(server, None)
                self._listed.pop(server, None)

    # --- what is held ---

    def held(self, server: str) -> Held:
        """What is held of ``server``, as far as it is known: `load` first. If its pins can't be used,
        everything that isn't offered may be.
        """
        held = self._held.get(server)
        if held is None and self._version is not None and server in self._unusable:
            config = self._config.servers.get(server)
            return NOTHING if config is None or config.trust == "open" else UNKNOWN
        return held or NOTHING

    def summaries(self) -> dict[str, str]:
        """How many items of each server nobody has decided about, by its name: ``2 tools``."""
        return {name: held.summary for name, held in sorted(self._held.items()) if held.summary}

    @property
    def holding(self) -> frozenset[str]:
        """The servers of which something is held."""
        return frozenset(name for name, held in self._held.items() if held.holds)

    @property
    def loaded(self) -> bool:
        """Whether what other processes hold is known, or why it isn't."""
        return self._version is not None and not self._is_pending

    def load(self, *, wait: bool = False) -> None:
        """Reads what is held, unless that was done. wait: also for a store."""
        self._begin(wait=wait)
        with self._lock:
            if not self.loaded:
                self._read()

    def close(self) -> None:
        """Ends what is open. It may block for a few seconds."""
        if self._is_own_store:
            self._store.close()

    # --- decisions ---

    def admit(self, update: Listed, offered: ServerRecord | None) -> Listed:
        """``update`` without what is held of it. offered: what the catalog has of the server."""
        server = self._config.servers.get(update.server)
        if server is None:
            return update
        self._wait([server.name])
        self._decided[server.name] = self._store.version()
        surface = Surface(update.record)
        listed = [kind for kind in KINDS if kind not in update.unlisted]
        held = self._holds(server, surface.items, listed, offered)
        with self._lock:
            self._keep(server.name, held, surface)
        record = surface.without(held.keys())
        return update if record is update.record else update.with_record(record)

    def take_released(self) -> bool:
        """Whether something that was held isn't any more, since this was asked last."""
        released, self._released = self._released, False
        return released

    def merged(self, server: str) -> None:
        """What `admit` returned for ``server`` is offered now. If the file was written since, that has to be
        taken up again.
        """
        if self._taken_up is not None and self._decided.get(server) != self._taken_up:
            self._taken_up = ()

    def again(self) -> None:
        """What `reload` returned could not be used, because the server was listed meanwhile."""
        self._taken_up = ()

    def admits(self, server: str, items: Iterable[Item]) -> "dict[str, Hold]":
        """Those of ``items``, which ``server`` sent, that aren't offered, by key. Decides nothing."""
        config = self._config.servers.get(server)
        if config is None or config.trust == "open":
            return {}
        self._wait([server])
        try:
            known = self._store.load().of(self._key(server))
        except PinsUnusableError as error:
            return _other_than(self._catalog().servers.get(server), items, _reason(error))
        return verify(known, items, time.time())

    def reload(self) -> "tuple[list[tuple[ServerRecord, ServerRecord]], list[str]]":
        """Takes up what was written to the pins since they were read. Returns the records of servers of which
        something else is offered now, with what is offered; and the servers that have to be listed for that.
        """
        self._begin(wait=True)
        with self._lock:
            if self._taken_up == self._store.version():
                return [], []
            was_unusable = bool(self.problem)
            self._read()
            self._taken_up = self._version
            if self._pins is None:
                return [], []
            pins, catalog = self._pins, self._catalog()
            changed: list[tuple[ServerRecord, ServerRecord]] = []
            unknown: list[str] = []
            for name, record in catalog.servers.items():
                config = self._config.servers.get(name)
                if config is None or config.trust == "open" or name in self._unusable:
                    continue
                if name in self._unrecorded:
                    unknown.append(name)
                if (known := pins.of(self._key(name))) is None:
                    continue
                surface = self._listed.get(name) or Surface(record)
                lacks = _lacks(known, surface, record.fetched_at, by_person=self._store.shared)
                if name not in unknown and (lacks or (was_unusable and self.held(name).holds)):
                    unknown.append(name)
                held = self._still_held(known, self.held(name), surface)
                self._keep(name, held, surface if name in self._listed else None)
                if (now_offered := surface.without(held.keys())) != record:
                    changed.append((record, now_offered))
            return changed, unknown

    @property
    def outdated(self) -> bool:
        """Whether the pins were written since `reload`."""
        return self._taken_up is not None and self._taken_up != self._store.version()

    # --- parts of a decision ---

    def _holds(
        self,
        server: ServerConfig,
        items: list[Item],
        listed: Collection[Kind],
        offered: ServerRecord | None,
    ) -> dict[str, Hold]:
        now_listed = [item for item in items if item.kind in listed]
        others = [item for item in items if item.kind not in listed]
        key = self._key(server.name)
        try:
            pins = self._store.load()
            of_person = server.per_user
            judge, now = self._judge(server, key, now_listed), time.time()
            known = pins.of(key)
            decision = None
            if known:
                decision = decide(known, now_listed, listed, server.trust, judge, now, of_person=of_person)
            if decision is None or decision.changed:

                def decide_again(known: ServerPins | None) -> tuple[ServerPins, Mapping[bytes, bytes]] | None:
                    """Another process may have changed the pins meanwhile."""
                    nonlocal decision
                    decision = decide(
                        known, now_listed, listed, server.trust, judge, now, of_person=of_person
                    )
                    return (decision.pins, decision.bodies) if decision.changed else None

                self._store.change(key, decide_again)
                assert decision is not None
        except PinsUnusableError as error:
            self._unrecorded.add(server.name)
            self._tell(str(error))
            return {} if server.trust == "open" else _other_than(offered, items, _reason(error))
        except OSError as error:
            self._unrecorded.add(server.name)
            return self._without_record(server, items, offered, error)
        self.problem = ""
        self._unrecorded.discard(server.name)
        held = dict(decision.held)
        if server.trust != "open":
            before = decision.pins.held
            held.update({key: before[key] for key in before if kind_and_name(key)[0] not in listed})
            held.update(verify(decision.pins, others, time.time()))
        return held

    def _judge(self, server: ServerConfig, key: str, items: Sequence[Item]) -> Judge:
        """What one decision about ``items`` of ``server`` asks. Each question is answered once, although the
        decision may be made again under the lock.
        """
        others: list[Others] = []
        suspected: dict[Kind, Set[str]] = {}
        texts: dict[bytes, bytes] = {}
        answers: dict[tuple[Item | None, Item], Sequence[str]] = {}

        def risks(old: Item | None, new: Item) -> Sequence[str]:
            if (old, new) not in answers:
                if len(answers) >= limits.CHECKED_ITEMS:
                    return (f"more than {limits.CHECKED_ITEMS:,} items changed at once, too many to check",)
                from mcpzip.pins.risk import risky_changes  # most listings need none of the checks

                if not others:
                    others.append(self._others())
                answers[old, new] = risky_changes(old, new, others[0], server.name)
            return answers[old, new]

        def flaws_of(item: Item) -> Sequence[str]:
            if item.kind not in suspected:
                same_kind = [one for one in items if one.kind == item.kind]
                suspected[item.kind] = set(map(key_of, suspects(same_kind)))
            if key_of(item) not in suspected[item.kind]:
                return ()
            if (item, item) not in answers:
                if len(answers) >= limits.CHECKED_ITEMS:
                    return (f"more than {limits.CHECKED_ITEMS:,} items look suspicious, too many to check",)
                from mcpzip.checks.others import NOBODY
                from mcpzip.pins.risk import flaws

                answers[item, item] = flaws(item, NOBODY, server.name)
            return answers[item, item]

        def body(item: str, digest: bytes) -> bytes | None:
            if digest not in texts:  # not read yet, or another process wrote it since
                texts.update(self._store.texts(key))
            return text_of(texts, item, digest)

        return Judge(risks, flaws_of, body)

    def _without_record(
        self, server: ServerConfig, items: list[Item], offered: ServerRecord | None, error: OSError
    ) -> dict[str, Hold]:
        why = error.found if isinstance(error, StoreError) else error.strerror or str(error)
        problem = f"{self._store.place} can't be written ({why})"
        if error.errno in _READ_ONLY and not self._store.existed():
            self._tell(problem, "What servers change between two starts goes unnoticed")
            return {}
        self._tell(problem)
        if server.trust == "open":
            return {}
        try:
            pins = self._store.load().of(self._key(server.name))
        except PinsUnusableError as unusable:
            return _other_than(offered, items, _reason(unusable))
        held = verify(pins, items, time.time())
        where = "the store" if self._store.shared else "the file of pins"
        reason = f"it can't be pinned, because {where} can't be written ({why})"
        return _other_than(offered, [item for item in items if key_of(item) in held], reason)

    def _tell(self, problem: str, effect: str = "Nothing new or changed of a server is offered") -> None:
        if problem != self.problem:
            self.problem = problem
            remedy = mcpzip_command(self._config.path, "review")
            self._warn(f"{problem}. {effect}. What to do: {remedy}")

    def _others(self) -> "Others":
        """What the checks compare with: the tools of all servers. Made again when one of them changes."""
        from mcpzip.checks import Others

        records = self._catalog().servers
        key = tuple((name, id(record.entries)) for name, record in records.items())
        with self._lock:
            if self._compared is None or self._compared[0] != key:
                tools = {
                    name: (Item("tool", entry.tool, entry.read()) for entry in record.entries)
                    for name, record in records.items()
                }
                self._compared = key, Others.of(tools), records
            return self._compared[1]

    @staticmethod
    def _still_held(known: ServerPins, before: Held, surface: Surface) -> dict[str, Hold]:
        """What is held of ``surface`` after the file was written: what the file says is held, and what was
        held here and isn't approved. What this process has decided to offer stays offered otherwise, so that
        two processes whose servers list different things don't answer each other without end.
        """
        held = dict(known.held)
        for item in surface.items:
            key = key_of(item)
            if key not in held and (hold := before.holds.get(key)) is not None:
                pin = known.pins.get(key)
                if pin is None or pin.gone is not None or pin.digest != hold.digest:
                    held[key] = hold
        return held

    def _keep(self, server: str, held: Mapping[str, Hold], surface: Surface | None) -> None:
        """surface: what the server listed, None if this process hasn't listed it."""
        if not self.held(server).holds.keys() <= held.keys():
            self._released = True
        self._held[server] = Held(held)
        if held and surface is not None:
            self._listed[server] = surface
        else:
            self._listed.pop(server, None)

    def _begin(self, *, wait: bool = False) -> None:
        """Has the pins of all servers read that were not read yet."""
        if wait:
            self._wait(self._config.servers)
            return
        with suppress(OSError):  # the store is closed
            self._store.begin([*map(self._key, self._config.servers)])

    def _wait(self, servers: Iterable[str]) -> None:
        """Waits until the pins of ``servers`` are read, or can't be."""
        with suppress(OSError):  # the store is closed
            self._store.wait([*map(self._key, servers)])

    def _read(self) -> None:
        """Reads the pins. What this process decided itself stays."""
        version, unusable = self._store.version(), dict[str, PinsUnusableError]()
        try:
            self._pins = self._store.load()
        except PinsUnusableError as error:
            self._pins, unusable = None, dict.fromkeys(self._config.servers, error)
        else:
            for name, config in self._config.servers.items():
                try:
                    known = self._pins.of(self._key(name))
                except PinsUnusableError as error:
                    unusable[name] = error
                    continue
                if known is not None and name not in self._held:
                    self._held[name] = NOTHING if config.trust == "open" else Held(known.held)
        self._unusable = frozenset(unusable)
        self._is_pending = any(error.is_pending for error in unusable.values())
        problems = [str(error) for error in unusable.values() if not error.is_pending]
        if problems:
            self._tell(problems[0])
        elif not self._is_pending:
            self.problem = ""
        self._version = version  # last, because other threads ask `loaded` and then what is held

    def _key(self, server: str) -> str:
        project = self._config.project if server in self._config.project_servers else ""
        return server_key(server, project)


def _lacks(known: ServerPins, surface: Surface, listed_at: float | None, *, by_person: bool) -> bool:
    """Whether something was pinned after ``surface`` was listed and isn't in it. by_person: only what a
    person approved counts. If servers of several machines list other things, each would list again for the
    others.
    """
    since = listed_at or 0.0
    later = {key for key, pin in known.pins.items() if pin.gone is None and pin.at > since}
    if by_person and later:
        yes = {event.item for event in known.events if event.what == "approved" and event.at > since}
        later = later if "" in yes else later & yes
    return bool(later) and not {key_of(item) for item in surface.items}.issuperset(later)


def _other_than(offered: ServerRecord | None, items: Iterable[Item], reason: str) -> dict[str, Hold]:
    """Those of ``items`` that aren't in ``offered``, by key."""
    known = {} if offered is None else {key_of(item): item for item in Surface(offered).items}
    held: dict[str, Hold] = {}
    for item in items:
        key = key_of(item)
        before = known.get(key)
        if before is None or (before.body != item.body and item_digest(before) != item_digest(item)):
            held[key] = Hold(item_digest(item), raw_digest(item.body), time.time(), (reason,))
    return held


def _reason(error: PinsUnusableError) -> str:
    return f"it can't be compared with what was approved: {error}"
