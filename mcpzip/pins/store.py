"""Where pins are kept: the file beside the config. `pins.shared_pins` has the other place.

The rules of the file:

1. A file that can't be used is an error, never an empty file: without pins nothing can be compared. Only
   where there never was a file is there nothing to compare with.
2. Each write makes the counter in the file one higher. The last counter is also stored in the cache folder,
   so that an earlier file that somebody puts back is recognized.
3. Whoever writes holds the lock and has read the file under it, so that no process undoes what another wrote.
4. The texts of the items are in a file for each server, which is only read to compare or to show them. Each
   text is used only if it has its digest, so that a change of that file changes no decision.

    pins/config.json                           {"format":"mcpzip-pins","version":1,"counter":7,"servers":{…}}
    pins/config.json.github-1f2e3d4c.texts.json   {"format":"mcpzip-pin-texts","version":1,"texts":{"…":{…}}}
    cache/config.json.pins.json                {"format":"mcpzip-pin-counter","version":1,"counter":7,…}
"""

import hashlib
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol
from zlib import crc32

import msgspec

from mcpzip.config.paths import cache_folder, pins_path
from mcpzip.model import limits
from mcpzip.model.errors import McpzipError
from mcpzip.model.surface import Item
from mcpzip.pins.digests import item_digest
from mcpzip.pins.record import ServerPins, kind_and_name
from mcpzip.system.files import make_folders
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.state_files import read_state, write_state

FORMAT = Format("mcpzip-pins", 1, "a file of pins")
_TEXTS = Format("mcpzip-pin-texts", 1, "a file of pinned texts")
_COUNTER = Format("mcpzip-pin-counter", 1, "a counter of pins")
_LOCK_WAIT = 10.0
"""Seconds."""

Version = tuple[int, ...]
"""What changes with each write of the file."""

Texts = Mapping[bytes, bytes]
"""Of items, by digest."""

Decide = Callable[[ServerPins | None], tuple[ServerPins, Mapping[bytes, bytes]] | None]
"""Gives the pins of a server from now on, and texts of its items by digest; None if nothing changes. Its
argument is the pins of now, which nobody else changes meanwhile."""


class PinsUnusableError(McpzipError):
    """The pins can't be used.

    later: whether a newer version of mcpzip wrote them. repairable: whether `mcpzip review --repair` helps;
    if not, the text says what does. is_pending: whether they are being read for the first time.
    """

    def __init__(
        self,
        place: str,
        why: str,
        *,
        later: bool = False,
        repairable: bool = True,
        is_pending: bool = False,
    ) -> None:
        super().__init__(f"{place} {why}")
        self.later, self.repairable, self.is_pending = later, repairable, is_pending


class KnownPins(Protocol):
    """The pins of all servers, as they were at one moment."""

    @property
    def servers(self) -> Mapping[str, ServerPins]:
        """Those that can be used, by the servers' keys (`server_key`)."""

    def of(self, key: str) -> ServerPins | None:
        """Those of the server with ``key``; None if it was never listed. Raises PinsUnusableError."""


class PinStore(Protocol):
    """Where the pins are. Thread-safe; only `begin`, `version` and `load` don't wait for a disk or a network.

    place: of it, for sentences. shared: whether other machines use it too.
    """

    place: str
    shared: bool

    def begin(self, keys: Collection[str]) -> None:
        """Begins to read the pins of the servers with ``keys``, if that takes long."""

    def wait(self, keys: Collection[str]) -> None:
        """Waits until they are read, or can't be."""

    def version(self) -> Version:
        """Another one after each change that `load` shows."""

    def existed(self) -> bool:
        """Whether there are pins of some server, or were."""

    def load(self) -> KnownPins:
        """The pins. Raises PinsUnusableError if none can be used."""

    def change(self, key: str, decide: Decide) -> None:
        """Changes the pins of the server with ``key`` as ``decide`` says, and writes them. ``decide`` may be
        called several times. Raises PinsUnusableError, OSError, and what ``decide`` raises.
        """

    def texts(self, key: str) -> dict[bytes, bytes]:
        """The stored texts of the items of the server with ``key``, by digest. They may be wrong: use
        `text_of`.
        """

    def replace(
        self, servers: Mapping[str, ServerPins], gone: Collection[str], texts: Mapping[str, Texts]
    ) -> str:
        """Writes ``servers`` and their ``texts``, by the servers' keys, whatever is there now, and removes
        the pins of the servers ``gone``. Returns where the earlier ones were moved to, "" for nowhere. Raises
        OSError.
        """

    def close(self) -> None:
        """Ends what it has open. It may block for a few seconds."""


class Pins(Head):
    """The content of the file. servers: by their keys (`server_key`)."""

    counter: int
    servers: dict[str, ServerPins]

    def of(self, key: str) -> ServerPins | None:
        """The pins of the server with ``key``; None if it was never listed."""
        return self.servers.get(key)


class _Texts(Head):
    texts: dict[str, msgspec.Raw]


class _Counter(Head):
    counter: int
    sha256: str


class _Change:
    """A change that a thread asks for. done: whether it was made, or ``error`` says why not."""

    def __init__(self, key: str, decide: Decide) -> None:
        self.key, self._decide = key, decide
        self.done = self.changed = False
        self.texts: Mapping[bytes, bytes] = {}
        self.error: Exception | None = None

    def make(self, servers: dict[str, ServerPins]) -> None:
        """Changes ``servers``, all pins by their keys."""
        try:
            changed = self._decide(servers.get(self.key))
        except Exception as error:  # of the thread that waits for it
            self.error = error
            return
        if changed is not None:
            servers[self.key], self.texts = changed
            self.changed = True


def server_key(server: str, project: str = "") -> str:
    """The key of ``server``: its name, and for a server of a project also the path of the project's file, so
    that it isn't the user's server of the same name.
    """
    return f"{server}@{project}" if project else server


class PinFile:
    """The pins of the config at ``config_path`` in their file. Thread-safe.

    At a first start many servers are listed at almost the same time, and the file has to be on the disk
    before anything is offered. So threads that wait for the file leave their changes to the one that has it,
    which writes all of them at once (`change`).
    """

    shared = False

    def __init__(self, config_path: str) -> None:
        self.place = self.path = pins_path(config_path)
        name = os.path.basename(config_path)
        self._counter_path = os.path.join(cache_folder(config_path), f"{name}.pins.json")
        self._lock = threading.RLock()
        self._waiting: deque[_Change] = deque()
        self._cached: tuple[Version, Pins] | None = None

    def begin(self, keys: Collection[str]) -> None:
        """Nothing has to begin."""

    def wait(self, keys: Collection[str]) -> None:
        """There is nothing to wait for."""

    def close(self) -> None:
        """Nothing is open."""

    def version(self) -> Version:
        """Of the file as it is now; () if there is none."""
        try:
            found = os.stat(self.path)
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino

    def existed(self) -> bool:
        """Whether there is a file, or was one."""
        return os.path.lexists(self.path) or self._last_counter() is not None

    def load(self) -> Pins:
        """The pins; none if there never was a file. Raises PinsUnusableError."""
        with self._lock:
            version = self.version()
            if self._cached is None or self._cached[0] != version or not version:
                self._cached = version, self._read()
            return self._cached[1]

    @contextmanager
    def changing(self) -> Iterator[Pins]:
        """The pins, which nobody else changes meanwhile. Raises PinsUnusableError, OSError."""
        from mcpzip.system.locks import locked_blocking  # only who writes needs it, and it takes long

        with self._lock:
            make_folders(os.path.dirname(self.path))
            with locked_blocking(f"{self.path}.lock", _LOCK_WAIT):
                yield self.load()

    def change(self, key: str, decide: Decide) -> None:
        """Changes the pins of the server with ``key`` as ``decide`` says, and writes them. Raises
        PinsUnusableError, OSError, and what ``decide`` raises, which another thread may call.
        """
        mine = _Change(key, decide)
        self._waiting.append(mine)
        with self._lock:
            if not mine.done:
                self._make_changes()
        if mine.error is not None:
            raise mine.error

    def _make_changes(self) -> None:
        """Makes all changes that wait, including those that come while this waits for another process."""
        made: list[_Change] = []
        try:
            with self.changing() as pins:
                made = [self._waiting.popleft() for _ in range(len(self._waiting))]
                servers = dict(pins.servers)
                for change in made:
                    change.make(servers)
                texts = [(change, change.texts) for change in made if change.changed]
                for change, own in texts:
                    if own:
                        self._write_texts(change.key, servers[change.key], own)
                if texts:
                    self._write(Pins(FORMAT.name, FORMAT.version, pins.counter + 1, servers))
        except (McpzipError, OSError, TimeoutError) as error:
            if not made:  # the file can't be used, or not be locked
                made = [self._waiting.popleft() for _ in range(len(self._waiting))]
                for change in made:
                    change.error = error
            for change in made:
                if change.changed:
                    change.error = error
        finally:
            for change in made:
                change.done = True

    def write(self, pins: Pins, key: str, server: ServerPins, texts: Mapping[bytes, bytes]) -> None:
        """Writes ``server`` as the pins of the server with ``key``, whose other pins are ``pins``, and its
        ``texts`` beside those that it still needs. Call it while `changing`. Raises OSError.
        """
        if texts:
            self._write_texts(key, server, texts)
        servers = {**pins.servers, key: server}
        self._write(Pins(FORMAT.name, FORMAT.version, pins.counter + 1, servers))

    def replace(
        self, servers: Mapping[str, ServerPins], gone: Collection[str], texts: Mapping[str, Texts]
    ) -> str:
        """Writes a new file with ``servers``, and what can be read of the file as it is, but for the servers
        ``gone``. texts: by the servers' keys. Returns the path to which the file was renamed, "" if there was
        none. Raises OSError.
        """
        from mcpzip.system.locks import locked_blocking  # only who writes needs it, and it takes long

        with self._lock:
            make_folders(os.path.dirname(self.path))
            with locked_blocking(f"{self.path}.lock", _LOCK_WAIT):
                others = self._readable()
                backup = f"{self.path}.bak"
                try:
                    os.replace(self.path, backup)
                except FileNotFoundError:
                    backup = ""
                for key, server in servers.items():
                    self._write_texts(key, server, texts.get(key, {}))
                last = self._last_counter()
                counter = 1 if last is None else last.counter + 1
                kept = {key: each for key, each in others.items() if key not in gone}
                self._write(Pins(FORMAT.name, FORMAT.version, counter, {**kept, **servers}))
                return backup

    def texts(self, key: str) -> dict[bytes, bytes]:
        """The stored texts of the items of the server with ``key``, by digest. They may be wrong: use
        `text_of`.
        """
        try:
            data = read_state(self._texts_path(key), limits.PIN_TEXTS)
            found = _TEXTS.decode(data, _Texts).texts
            return {bytes.fromhex(digest): bytes(text) for digest, text in found.items()}
        except (OSError, UnusableError, ValueError):
            return {}

    def _readable(self) -> dict[str, ServerPins]:
        """What can be read of a file that isn't trusted."""
        try:
            return FORMAT.decode(read_state(self.path, limits.PINS), Pins).servers
        except (OSError, UnusableError):
            return {}

    def _read(self) -> Pins:
        last = self._last_counter()  # before the file: a writer writes it after the file
        try:
            data = read_state(self.path, limits.PINS)
        except FileNotFoundError:
            if last is not None:
                raise PinsUnusableError(self.path, "is gone") from None
            return Pins(FORMAT.name, FORMAT.version, 0, {})
        except OSError as error:
            raise PinsUnusableError(self.path, f"can't be read ({error.strerror or error})") from error
        try:
            pins = FORMAT.decode(data, Pins)
        except UnusableError as error:
            raise PinsUnusableError(self.path, str(error), later=error.later) from None
        if last is not None and pins.counter < last.counter:
            raise PinsUnusableError(
                self.path, f"is an earlier one: its counter is {pins.counter}, and was {last.counter}"
            )
        if last is not None and pins.counter == last.counter and _hex(data) != last.sha256:
            raise PinsUnusableError(self.path, "was changed by another program than mcpzip")
        return pins

    def _write(self, pins: Pins) -> None:
        data = msgspec.json.encode(pins)
        write_state(self.path, data, limits.PINS)
        self._cached = self.version(), pins
        counter = _Counter(_COUNTER.name, _COUNTER.version, pins.counter, _hex(data))
        try:
            data = msgspec.json.encode(counter)
            write_state(self._counter_path, data, limits.PIN_COUNTER, durable=False)
        except OSError:
            pass  # what it protects from needs somebody who can write here too

    def _write_texts(self, key: str, server: ServerPins, texts: Mapping[bytes, bytes]) -> None:
        """Writes those of ``texts`` and of the stored texts that ``server`` needs: first of all those of what
        is offered or held, then, as long as there is room, earlier ones.
        """
        known = {**self.texts(key), **texts}
        current = {each.digest for each in server.held.values()}
        current |= {pin.digest for pin in server.pins.values() if pin.gone is None}
        kept: dict[str, msgspec.Raw] = {}
        room = limits.PIN_TEXTS - 1_024
        for digest in (*current, *(server.digests() - current)):
            if (text := known.get(digest)) is not None and len(text) + 70 <= room:
                kept[digest.hex()] = msgspec.Raw(text)
                room -= len(text) + 70
        data = msgspec.json.encode(_Texts(_TEXTS.name, _TEXTS.version, kept))
        # Without its text an item is still compared by its digest.
        write_state(self._texts_path(key), data, limits.PIN_TEXTS, durable=False)

    def _texts_path(self, key: str) -> str:
        name = re.sub(r"[^A-Za-z0-9_.-]", "-", key.partition("@")[0])[:40]
        return f"{self.path}.{name}-{crc32(key.encode('utf-8', 'surrogatepass')):08x}.texts.json"

    def _last_counter(self) -> _Counter | None:
        try:
            return _COUNTER.decode(read_state(self._counter_path, limits.PIN_COUNTER), _Counter)
        except (OSError, UnusableError):
            return None


def text_of(texts: Mapping[bytes, bytes], key: str, digest: bytes) -> bytes | None:
    """The text of the item with ``key`` and ``digest``; None if it isn't stored, or was changed."""
    text = texts.get(digest)
    if text is None or item_digest(Item(*kind_and_name(key), text)) != digest:
        return None
    return text


def _hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
