"""What a person does about held items: sees them, approves or rejects them, and repairs the file of pins.

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
from mcpzip.model import limits
from mcpzip.pins.decision import approved, pinned_as_is, rejected
from mcpzip.pins.record import KINDS, Event, Hold, ServerPins, kind_and_name
from mcpzip.pins.store import FORMAT, Pins, PinStore, server_key, text_of
from mcpzip.pins.surface import Surface
from mcpzip.system.formats import UnusableError
from mcpzip.system.state_files import read_state

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


class Review:
    """The held items of the servers of ``config``. Everything raises PinsUnusableError."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._store = PinStore(config.path)

    @property
    def path(self) -> str:
        """Of the file of pins."""
        return self._store.path

    def held(self, servers: Collection[str]) -> list[HeldItem]:
        """The held items of ``servers``, by server and key."""
        found: list[HeldItem] = []
        pins = self._store.load()
        for server in sorted(servers):
            known = pins.servers.get(self._key(server))
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
        is used now; with ``server``, of those that have a server of this name.
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
        pins = self._store.load()
        found = [
            (server, event)
            for server in sorted(servers)
            if (known := pins.servers.get(self._key(server))) is not None
            for event in known.events
        ]
        return sorted(found, key=lambda pair: pair[1].at)

    def pins_of(self, server: str) -> ServerPins | None:
        """The pins of ``server``; None if it was never listed."""
        return self._store.load().servers.get(self._key(server))

    def approve(self, items: Collection[HeldItem]) -> list[HeldItem]:
        """Pins ``items`` as they were seen. Returns those that were replaced meanwhile and stay held. Raises
        OSError.
        """
        return self._change(items, approve=True)

    def reject(self, items: Collection[HeldItem]) -> list[HeldItem]:
        """The same for items that a person doesn't want: they stay held."""
        return self._change(items, approve=False)

    def write_problem(self) -> str:
        """Why nothing can be pinned now, and what to do, as sentences; "" if it can."""
        folder = os.path.dirname(self._store.path)
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
            f"{self._store.path} can't be written: {why}. So what is new or changed is held, although it "
            f"isn't listed here. {remedy}; then: {refresh}"
        )

    def repair(self, catalog: Catalog) -> str:
        """Writes a new file in which all is pinned that ``catalog`` offers. Servers that it doesn't have keep
        their pins if the file can be read. Returns the path of the replaced file, or "". Raises OSError.
        """
        now, servers = time.time(), self._readable()
        texts: dict[str, Mapping[bytes, bytes]] = {}
        for name, record in catalog.servers.items():
            if record.fetched_at is None or name not in self._config.servers:
                servers.pop(self._key(name), None)
                continue
            items = Surface(record).items
            server = pinned_as_is(items, KINDS, now)
            servers[self._key(name)] = server
            digests = [pin.digest for pin in server.pins.values()]
            texts[self._key(name)] = dict(zip(digests, [item.body for item in items], strict=True))
        return self._store.replace(servers, texts)

    def _readable(self) -> dict[str, ServerPins]:
        """What can be read of a file that isn't trusted."""
        try:
            return dict(FORMAT.decode(read_state(self._store.path, limits.PINS), Pins).servers)
        except (OSError, UnusableError):
            return {}

    def _change(self, items: Collection[HeldItem], *, approve: bool) -> list[HeldItem]:
        late: list[HeldItem] = []
        by_server: dict[str, list[HeldItem]] = {}
        for item in items:
            by_server.setdefault(item.server, []).append(item)
        with self._store.changing() as pins:
            for server, wanted in by_server.items():
                key = self._key(server)
                known = pins.servers.get(key)
                if known is None:  # it was removed meanwhile
                    late += wanted
                    continue
                keys: list[str] = []
                for item in wanted:
                    hold = known.held.get(item.key)
                    if hold is not None and hold.digest == item.hold.digest:
                        keys.append(item.key)
                    else:
                        late.append(item)
                if keys:
                    changed = (approved if approve else rejected)(known, keys, time.time())
                    self._store.write(pins, key, changed, {})
                    pins = self._store.load()
        return late

    def _key(self, server: str) -> str:
        project = self._config.project if server in self._config.project_servers else ""
        return server_key(server, project)
