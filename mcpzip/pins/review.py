"""What a person does about held items: sees them, approves or rejects them, and repairs the pins.

Nothing here is reachable for a client of mcpzip: only the commands, and the page of `mcpzip ui`, import
this module.
"""

import os
import shutil
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mcpzip.catalog import Catalog
from mcpzip.config import Config
from mcpzip.config.paths import mcpzip_command
from mcpzip.model.errors import StoreError
from mcpzip.pins.decision import approved, pinned_as_is, rejected
from mcpzip.pins.opening import open_pins
from mcpzip.pins.record import KINDS, Event, Hold, ServerPins, kind_and_name
from mcpzip.pins.store import PinStore, PinsUnusableError, server_key, text_of
from mcpzip.pins.surface import Surface

_ROOM = 1_000_000
"""Bytes that should be free on the disk."""


@dataclass(frozen=True, slots=True)
class HeldItem:
    """One held item of ``server``. key: as of `pins.record.key_of`. before, after: what was approved, and
    what is held, as JSON texts; None if it is new, or isn't stored.
    """

    server: str
    key: str
    hold: Hold
    before: bytes | None
    after: bytes | None

    @property
    def kind(self) -> str:
        return kind_and_name(self.key)[0]

    @property
    def name(self) -> str:
        """The name or URI; for what has none, its kind."""
        kind, name = kind_and_name(self.key)
        return name or kind

    @property
    def fingerprint(self) -> str:
        """Eight hex digits of its digest, for a person to compare."""
        return self.hold.digest.hex()[:8]


def why(error: OSError) -> str:
    """What is wrong with the file or the store of the pins, for sentences."""
    return error.found if isinstance(error, StoreError) else error.strerror or str(error)


class Review:
    """The held items of the servers of ``config``. Everything raises PinsUnusableError. Close it, or use it
    as a context.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._store: PinStore = open_pins(config)

    def __enter__(self) -> "Review":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends what is open. It may block for a few seconds."""
        self._store.close()

    @property
    def place(self) -> str:
        """Where the pins are: the path of their file, or the address of their store."""
        return self._store.place

    @property
    def shared(self) -> bool:
        """Whether other machines use the same pins."""
        return self._store.shared

    def held(self, servers: Collection[str]) -> list[HeldItem]:
        """The held items of ``servers``, by server and key."""
        found: list[HeldItem] = []
        for server in sorted(servers):
            known = self.pins_of(server)
            if known is None or not known.held:
                continue
            texts = self._store.texts(self._key(server))
            for key, hold in sorted(known.held.items()):
                pin = known.pins.get(key)
                before = None if pin is None else text_of(texts, key, pin.digest)
                found.append(HeldItem(server, key, hold, before, text_of(texts, key, hold.digest)))
        return found

    def projects(self, server: str = "") -> list[str]:
        """The folders of projects of whose servers something waits for a decision, without the project that
        is used now; with ``server``, of those that have a server of this name. None are known of a store.
        """
        found: set[str] = set()
        for key, known in self._store.load().servers.items():
            name, _, project = key.partition("@")
            if project and project != self._config.project and os.path.isfile(project):
                waits = any(not hold.rejected for hold in known.held.values())
                if name == server if server else waits:
                    found.add(os.path.dirname(project))
        return sorted(found)

    def events(self, servers: Collection[str]) -> list[tuple[str, Event]]:
        """What happened, oldest first, with the server."""
        found = [
            (server, event)
            for server in sorted(servers)
            if (known := self.pins_of(server)) is not None
            for event in known.events
        ]
        return sorted(found, key=lambda pair: pair[1].at)

    def pins_of(self, server: str) -> ServerPins | None:
        """The pins of ``server``; None if it was never listed."""
        self._store.wait([*map(self._key, {*self._config.servers, server})])
        return self._store.load().of(self._key(server))

    def approve(self, items: Collection[HeldItem]) -> list[HeldItem]:
        """Pins ``items`` as they were seen. Returns those that were replaced meanwhile and stay held. Raises
        OSError.
        """
        return self._change(items, approve=True)

    def reject(self, items: Collection[HeldItem]) -> list[HeldItem]:
        """The same for items that a person doesn't want: they stay held."""
        return self._change(items, approve=False)

    def write_problem(self) -> str:
        """Why nothing can be pinned now, and what to do, as sentences; "" if it can, or if that is only known
        when it is tried.
        """
        if self.shared:
            return ""
        folder = os.path.dirname(self.place)
        while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
            folder = os.path.dirname(folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            why, remedy = (
                f"there is no permission to write to {folder}",
                "Give it to your user",
            )
        elif shutil.disk_usage(folder).free < _ROOM:
            why, remedy = f"the disk of {folder} is full", "Free some space"
        else:
            return ""
        refresh = mcpzip_command(self._config.path, "refresh")
        return (
            f"{self.place} can't be written: {why}. So what is new or changed is held, although it "
            f"isn't listed here. {remedy}; then: {refresh}"
        )

    def to_repair(self, catalog: Catalog) -> list[str]:
        """The servers whose pins `repair` replaces: in a store those that can't be used, else all."""
        if not self.shared:
            return sorted(catalog.servers)
        found = []
        for server in sorted(self._config.servers):
            try:
                self.pins_of(server)
            except PinsUnusableError as error:
                if not error.repairable:
                    raise
                found.append(server)
        return found

    def repair(self, catalog: Catalog) -> str:
        """Pins all that ``catalog`` offers of the servers `to_repair`. Those of them that it doesn't have
        count as never listed. In a file others keep their pins if it can be read. Returns the path of the
        replaced file, or "". Raises OSError.
        """
        now, gone = time.time(), list[str]()
        servers: dict[str, ServerPins] = {}
        texts: dict[str, Mapping[bytes, bytes]] = {}
        for name in self.to_repair(catalog):
            record, key = catalog.servers.get(name), self._key(name)
            if record is None or record.fetched_at is None or name not in self._config.servers:
                gone.append(key)
                continue
            items = Surface(record).items
            server = servers[key] = pinned_as_is(items, KINDS, now)
            digests = [pin.digest for pin in server.pins.values()]
            texts[key] = dict(zip(digests, [item.body for item in items], strict=True))
        return self._store.replace(servers, gone, texts)

    def _change(self, items: Collection[HeldItem], *, approve: bool) -> list[HeldItem]:
        late: list[HeldItem] = []
        by_server: dict[str, list[HeldItem]] = {}
        for item in items:
            by_server.setdefault(item.server, []).append(item)
        for server, wanted in by_server.items():
            too_late: list[HeldItem] = []

            def decided(
                known: ServerPins | None, wanted: list[HeldItem] = wanted, too_late: list[HeldItem] = too_late
            ) -> tuple[ServerPins, Mapping[bytes, bytes]] | None:
                there = {} if known is None else known.held  # it was removed meanwhile
                digests = {key: hold.digest for key, hold in there.items()}
                too_late[:] = [item for item in wanted if digests.get(item.key) != item.hold.digest]
                keys = [item.key for item in wanted if item not in too_late]
                if known is None or not keys:
                    return None
                return (approved if approve else rejected)(known, keys, time.time()), {}

            self._store.change(self._key(server), decided)
            late += too_late
        return late

    def _key(self, server: str) -> str:
        project = self._config.project if server in self._config.project_servers else ""
        return server_key(server, project)
