"""Pins in a store that processes and machines share: one value for each server, and its parts.

The rules:

1. What was read counts on while the store can't be used: it was approved, and what a server lists is compared
   with it. Of a server whose pins were not read yet, or are neither those that this machine has seen last nor
   made of them, nothing is known: that is an error, never a server without pins.
2. Whoever writes has read the value that is replaced, and compares versions. Who is too late decides again.
3. Nothing here is asked for a request of a client: `load` is answered from memory, which messages and a look
   now and then keep up to date.
4. A machine that has pins in its file brings them along when it uses the store first (`decision.moved_in`).
5. Parts are written before the value that names them. Those that it names no more are deleted after it, in
   the version in which they were seen before: who has written them again since needs them.
"""

import asyncio
import errno
import os
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from mcpzip.model import limits
from mcpzip.model.errors import StoreError
from mcpzip.pins.decision import moved_in
from mcpzip.pins.record import ServerPins
from mcpzip.pins.shared_record import (
    SharedRecord,
    decode,
    divided,
    encode,
    follows,
    joined,
    name_of,
    prefix_of,
    short,
    texts_of,
    texts_to_keep,
)
from mcpzip.pins.store import Decide, PinFile, PinsUnusableError, Texts, Version
from mcpzip.store.sealed_table import Sealed, SealedTable
from mcpzip.store.seen import SeenCounters
from mcpzip.store.thread import StoreThread
from mcpzip.store.watching import Watching
from mcpzip.system.formats import UnusableError
from mcpzip.system.sealing import KeyRing
from mcpzip.system.threads import in_thread

TABLE = CHANNEL = "pins"
PARTS = "pin-parts"
_PROBE = "probe"
"""The name of a value that is written to know whether the store takes writes again."""
_TRIES = 16
"""How often a write is tried against writes of others."""


class Times(NamedTuple):
    """Seconds. poll: after which versions are looked at without a message. sweep: after which parts that no
    value names are deleted; much longer than any writing takes.
    """

    poll: float = 5.0
    sweep: float = 600.0


USUAL = Times()


class _Problem(NamedTuple):
    """Why the pins of a server don't count: what is said of the store's address. later, repairable,
    is_pending: see `PinsUnusableError`.
    """

    why: str
    later: bool = False
    repairable: bool = True
    is_pending: bool = False


_PENDING = _Problem("has the pins, and was not read yet", repairable=False, is_pending=True)


class _Known(NamedTuple):
    """What was read or written last of one server. version: the store's, 0 for none. counter, mark: see
    `Sealed`. earlier, renewed: see `SharedRecord`. again: whether it is to be read again, although its
    version is the same.
    """

    version: int = 0
    counter: int = 0
    mark: str = ""
    pins: ServerPins | None = None
    parts: frozenset[str] = frozenset()
    text_parts: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    renewed: int = 0
    is_current: bool = True
    problem: _Problem | None = None
    again: bool = False


class Snapshot:
    """What is known at one moment. place: of the store."""

    def __init__(self, place: str, known: Mapping[str, _Known]) -> None:
        self._place, self._known = place, known

    @property
    def servers(self) -> Mapping[str, ServerPins]:
        """Those that can be used, by the servers' keys."""
        return {key: each.pins for key, each in self._known.items() if each.pins and not each.problem}

    def of(self, key: str) -> ServerPins | None:
        """Those of the server with ``key``; None if it was never listed. Raises PinsUnusableError."""
        known = self._known.get(key, _Known(problem=_PENDING))
        if (problem := known.problem) is not None:
            raise PinsUnusableError(
                self._place,
                problem.why,
                later=problem.later,
                repairable=problem.repairable,
                is_pending=problem.is_pending,
            )
        return known.pins


class SharedPins:
    """The pins in the store of ``thread``. Thread-safe."""

    shared = True

    def __init__(
        self,
        thread: StoreThread,
        make_ring: Callable[[], KeyRing],
        namespace: str,
        place: str,
        own: PinFile,
        seen: SeenCounters,
        times: Times | None = None,
    ) -> None:
        """own: the file of this machine, from which pins are brought along. seen: what it has seen last.
        times: None for the usual ones.
        """
        self._times = times = times or USUAL
        self.place, self._thread, self._own, self._seen = place, thread, own, seen
        self._table = SealedTable(thread, make_ring, namespace, TABLE)
        self._parts = SealedTable(thread, make_ring, namespace, PARTS)
        # Other threads read these two, which are replaced as a whole. All else belongs to the store's loop.
        self._known: Mapping[str, _Known] = MappingProxyType({})
        self._generation = 0
        self._watching = Watching(thread, CHANNEL, self._look, times.poll)
        self._first: dict[str, asyncio.Task[None]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._can_read = self._can_write = True
        self._unnamed: Mapping[str, int] = {}
        self._swept_at = time.monotonic()

    # ---- `mcpzip.pins.store.PinStore`

    def begin(self, keys: Collection[str]) -> None:
        if not self._known.keys() >= set(keys):
            self._thread.begin(lambda: self._want(keys))

    def wait(self, keys: Collection[str]) -> None:
        if not self._known.keys() >= set(keys):
            self._thread.call(lambda: self._wait(keys))

    def version(self) -> Version:
        return (self._generation,)

    def existed(self) -> bool:
        return True

    def load(self) -> Snapshot:
        return Snapshot(self.place, self._known)

    def change(self, key: str, decide: Decide) -> None:
        self.wait([key])
        for _ in range(_TRIES):
            known = self._known
            changed = decide(Snapshot(self.place, known).of(key))
            if changed is None or self._thread.call(partial(self._write, key, known[key], *changed)):
                return
        raise _contended()

    def texts(self, key: str) -> dict[bytes, bytes]:
        try:
            self.wait([key])
            return self._thread.call(lambda: self._texts_now(key))
        except OSError:
            return {}

    def replace(
        self, servers: Mapping[str, ServerPins], gone: Collection[str], texts: Mapping[str, Texts]
    ) -> str:
        for key in (*servers, *gone):
            self.wait([key])
            self._thread.call(partial(self._overwrite, key, servers.get(key), texts.get(key, {})))
        return ""

    def close(self) -> None:
        self._thread.close(self._watching.finish)

    # ---- reading, on the store's loop

    async def _want(self, keys: Collection[str]) -> None:
        if not self._first:
            self._watching.start()
        for key in keys:
            if key not in self._first:
                self._locks[key] = asyncio.Lock()
                self._first[key] = self._watching.begin(self._read_first(key))

    async def _wait(self, keys: Collection[str]) -> None:
        await self._want(keys)
        if tasks := [self._first[key] for key in keys]:
            await asyncio.wait(tasks)

    async def _read_first(self, key: str) -> None:
        try:
            await self._read(key)
        except OSError as error:
            self._can_read = False
            why = error.found if isinstance(error, StoreError) else str(error)
            problem = _Problem(f"has the pins, but {why}", repairable=False)
            self._know(key, _Known(problem=problem, again=True))

    async def _read(self, key: str) -> None:
        """Reads the pins of a server. Raises OSError."""
        async with self._locks[key]:
            is_first_use = self._seen.get(name_of(key)) is None
            known = await self._found(key)
            if known.problem is None and is_first_use:
                known = await self._bring_own(key, known)
            if known.problem is None and not known.is_current:
                with suppress(OSError):  # it is only sealed with another key
                    known = await self._written(key, known, known.pins, {}) or known
            self._know(key, known)

    async def _found(self, key: str) -> _Known:
        """What the store has now, if it is what was seen last, or later. Raises StoreError."""
        name, failure = name_of(key), UnusableError("")
        for _ in range(3):
            try:
                sealed = await self._table.get(name)
                if sealed is None:
                    return _Known() if self._seen.get(name) is None else _unusable(key, 0)
                record = decode(sealed.data, key)
                pins = record.pins
                if record.pin_parts:
                    pins = joined(await self._pieces(record.pin_parts), ServerPins, limits.SHARED_PINS)
            except UnusableError as error:  # somebody may just have replaced its parts
                failure = error
                continue
            if problem := self._seen.problem(name, sealed.counter, sealed.mark):
                return _unusable(key, sealed.version, problem)
            seen = self._seen.get(name)
            if seen and seen.mark != sealed.mark and not follows(record, seen.counter, seen.mark):
                return _unusable(key, sealed.version, "was not made of the one that was seen here last")
            return _read_as(sealed, record, pins)
        return _unusable(key, await self._table.version(name), str(failure), later=failure.later)

    async def _bring_own(self, key: str, known: _Known) -> _Known:
        """What is known after the pins in the file of this machine were taken over. Raises OSError."""

        def own_pins() -> ServerPins | None:
            return self._own.load().of(key) if os.path.lexists(self._own.path) else None

        try:
            own = await in_thread(own_pins, "pins")
        except PinsUnusableError as error:
            why = f"can't take over the pins of this machine: {error}. Delete that file if they aren't needed"
            return _Known(known.version, problem=_Problem(why, repairable=False), again=True)
        if own is None:
            return known
        texts = await in_thread(lambda: self._own.texts(key), "pins")
        for _ in range(_TRIES):
            pins = moved_in(known.pins, own, time.time())
            if pins is None:
                return known
            if (written := await self._written(key, known, pins, texts)) is not None:
                return written
            if (known := await self._found(key)).problem is not None:
                return known
        raise _contended()

    def _know(self, key: str, known: _Known) -> None:
        if known.problem is None and known.version:
            self._seen.note(name_of(key), known.counter, known.mark)
        before = self._known.get(key)
        if before is None or (before.version, before.problem) != (known.version, known.problem):
            self._known = MappingProxyType({**self._known, key: known})
            self._generation += 1

    async def _texts_now(self, key: str) -> dict[bytes, bytes]:
        try:
            return await self._texts(self._known[key])
        except UnusableError:
            await self._read(key)  # somebody may just have replaced them
        try:
            return await self._texts(self._known[key])
        except UnusableError:
            return {}

    async def _texts(self, known: _Known) -> dict[bytes, bytes]:
        """Raises StoreError and UnusableError."""
        if not known.text_parts:
            return {}
        pieces = await self._pieces(known.text_parts)
        return await in_thread(lambda: texts_of(pieces), "pins")

    async def _pieces(self, names: Collection[str]) -> list[bytes]:
        """The content of parts. Raises StoreError and UnusableError."""
        found = []
        for name in names:
            if (sealed := await self._parts.get(name)) is None:
                raise UnusableError("lacks a part")
            found.append(sealed.data)
        return found

    # ---- writing, on the store's loop, by whoever has the lock of the server

    async def _write(self, key: str, before: _Known, pins: ServerPins, texts: Texts) -> bool:
        """Replaces ``before`` in the store; False if there is something else now, which is known then."""
        async with self._locks[key]:
            try:
                written = await self._written(key, before, pins, texts)
            except StoreError:
                self._can_write = False
                raise
            self._know(key, written or await self._found(key))
            return written is not None

    async def _overwrite(self, key: str, pins: ServerPins | None, texts: Texts) -> None:
        """Replaces whatever is in the store. pins: None has the server count as never listed."""
        name = name_of(key)
        async with self._locks[key]:
            for _ in range(_TRIES):
                seen = self._seen.get(name)
                counter = 0 if seen is None else seen.counter
                now = max(counter + 1, time.time_ns() // 1_000)
                there = _Known(await self._table.version(name), counter, renewed=now)
                if (written := await self._written(key, there, pins, texts)) is not None:
                    self._know(key, written)
                    return
        raise _contended()

    async def _written(
        self, key: str, before: _Known, pins: ServerPins | None, texts: Texts
    ) -> _Known | None:
        """Writes ``pins``, with ``texts`` beside those of ``before`` that they need. None if the store has
        something else than ``before`` now. Raises OSError.
        """
        there, text_parts = before.parts if before.is_current else frozenset(), before.text_parts
        new: dict[str, bytes] = {}
        if pins is not None and (texts or not before.is_current):
            try:
                known = await self._texts(before)
            except UnusableError:
                known, there = {}, frozenset()
            kept = {**known, **texts}
            new |= await in_thread(lambda: divided(key, texts_to_keep(pins, kept)), "pins")
            text_parts = tuple(new)
        try:
            more = (*before.earlier, *([short(before.mark)] if before.mark else [])), before.renewed
            data, record, parts = await in_thread(lambda: encode(key, pins, text_parts, *more), "pins")
        except ValueError as error:
            raise OSError(errno.EFBIG, str(error)) from None
        new |= parts
        gone = before.parts - record.parts
        versions = await self._parts.versions() if gone else {}
        for name in new.keys() - there:
            await self._parts.set(name, new[name], await self._parts.version(name))
        sealed = await self._table.set(name_of(key), data, before.version, least=before.counter)
        if sealed is None:
            return None
        self._watching.tell(name_of(key).encode())
        if gone:
            self._watching.soon(self._delete({name: versions[name] for name in gone if name in versions}))
        return _read_as(sealed, record, pins)

    async def _delete(self, parts: Mapping[str, int]) -> None:
        """Deletes ``parts``, by name, that have these versions still."""
        with suppress(OSError):
            for name, version in parts.items():
                await self._parts.delete(name, version)

    # ---- what others do, on the store's loop

    async def _look(self) -> None:
        """Raises OSError."""
        try:
            versions = await self._table.versions()
            for key, known in self._known.items():
                if known.again or versions.get(name_of(key), 0) != known.version:
                    await self._read(key)
            if not self._can_write:
                await self._table.set(_PROBE, b"", versions.get(_PROBE, 0))
        except OSError:
            self._can_read = False
            raise
        if not (self._can_read and self._can_write):
            self._can_read = self._can_write = True
            self._generation += 1  # what was held, because nothing could be written, is decided again
        await self._sweep()

    async def _sweep(self) -> None:
        """Deletes parts that nobody names, which processes have left that were killed while they wrote."""
        if time.monotonic() - self._swept_at < self._times.sweep:
            return
        self._swept_at = time.monotonic()
        whole = {prefix_of(key): known.parts for key, known in self._known.items() if not known.problem}
        unnamed = {
            name: version
            for name, version in (await self._parts.versions()).items()
            if (begin := name.partition(".")[0]) in whole and name not in whole[begin]
        }
        old = {name: version for name, version in unnamed.items() if self._unnamed.get(name) == version}
        self._unnamed = unnamed
        await self._delete(old)


def _read_as(sealed: Sealed, record: SharedRecord, pins: ServerPins | None) -> _Known:
    return _Known(
        sealed.version,
        sealed.counter,
        sealed.mark,
        pins,
        record.parts,
        record.text_parts,
        record.earlier,
        record.renewed,
        sealed.is_current,
    )


def _unusable(key: str, version: int, why: str = "", *, later: bool = False) -> _Known:
    server = key.partition("@")[0]
    found = f"has pins of {server} that can't be used: the value {why}"
    said = found if why else f"has lost its pins of {server}"
    return _Known(version, problem=_Problem(said, later))


def _contended() -> OSError:
    return OSError(errno.EAGAIN, "other processes keep changing these pins")
