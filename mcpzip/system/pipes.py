"""Byte streams on file descriptors, for an asyncio loop.

The rule: reading and writing never block the loop, and nothing is lost or reordered. POSIX pipes, sockets and
terminals are watched by the loop itself; what a selector can't watch (regular files, and everything on
Windows, where the proactor loop has no readers) gets a thread of its own.
"""

import asyncio
import os
import select
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

CHUNK = 1 << 18
_GATHER = 64  # buffers in one writev: well under every system's IOV_MAX


class Reader(Protocol):
    """Delivers what arrives on a descriptor until it is closed."""

    def close(self) -> None:
        """Stops delivering. The descriptor stays the caller's."""

    def pause(self) -> None:
        """Reads nothing until `resume`: the other side has to wait. What was just read may still come."""

    def resume(self) -> None:
        """Reads again."""

    def hung_up(self) -> bool:
        """Whether nobody is left who could write, as far as that can be seen without reading."""


class Writer(Protocol):
    """Sends bytes in order, buffering what the other side doesn't take yet."""

    @property
    def waiting(self) -> int:
        """Bytes that the other side has yet to take."""

    def write(self, data: bytes) -> None:
        """Queues ``data`` and sends what goes out at once. Silently drops everything after the other side has
        gone.
        """

    async def drain(self) -> None:
        """Returns when everything queued has been taken, or the other side has gone."""

    def close(self) -> None:
        """Stops sending; what is still queued is dropped. The descriptor stays the caller's."""


def read_from(fd: int, on_data: Callable[[bytes], None], on_eof: Callable[[], None]) -> Reader:
    """Starts delivering from ``fd`` to ``on_data`` (on the running loop), then `on_eof` once."""
    loop = asyncio.get_running_loop()
    if _watchable(fd):
        return _SelectorReader(loop, fd, on_data, on_eof)
    return _ThreadReader(loop, fd, on_data, on_eof)


def write_to(fd: int) -> Writer:
    """A writer on ``fd`` for the running loop. A watchable descriptor is made non-blocking."""
    loop = asyncio.get_running_loop()
    if _watchable(fd) and not os.isatty(fd):
        return _SelectorWriter(loop, fd)
    return _ThreadWriter(loop, fd)


def _watchable(fd: int) -> bool:
    """Whether a selector takes ``fd``: not a regular file, nor every device (/dev/null)."""
    mode = os.fstat(fd).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd))


def _write_some(fd: int, batch: Sequence[memoryview | bytes]) -> int:
    """Writes as much of ``batch`` as goes out. Returns how much. Raises OSError."""
    if sys.platform == "win32":
        return os.write(fd, batch[0])
    return os.writev(fd, batch)


def _hung_up(fd: int) -> bool:
    if sys.platform == "win32" or not _watchable(fd):
        return False
    poll = select.poll()
    poll.register(fd, 0)
    return bool(poll.poll(0))  # of nothing but the end is told unasked


class _SelectorReader:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_data: Callable[[bytes], None],
        on_eof: Callable[[], None],
    ) -> None:
        self._loop, self._fd, self._on_data, self._on_eof = loop, fd, on_data, on_eof
        self._open, self._paused = True, False
        loop.add_reader(fd, self._ready)

    def _ready(self) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:  # the other end of a socket or terminal vanished
            data = b""
        if data:
            self._on_data(data)
        else:
            self.close()
            self._on_eof()

    def close(self) -> None:
        self.pause()
        self._open = False

    def pause(self) -> None:
        if self._open and not self._paused:
            self._paused = True
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if self._open and self._paused:
            self._paused = False
            self._loop.add_reader(self._fd, self._ready)

    def hung_up(self) -> bool:
        return _hung_up(self._fd)


class _ThreadReader:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_data: Callable[[bytes], None],
        on_eof: Callable[[], None],
    ) -> None:
        self._loop, self._fd, self._on_data, self._on_eof = loop, fd, on_data, on_eof
        self._open, self._paused = True, False
        self._go = threading.Event()
        """Set while there is to be read: not before what was read is delivered."""
        self._go.set()
        threading.Thread(target=self._run, name=f"read-{fd}", daemon=True).start()

    def _run(self) -> None:
        while self._wanted():
            try:
                data = os.read(self._fd, CHUNK)
            except OSError:
                data = b""
            try:
                self._loop.call_soon_threadsafe(self._deliver, data)
            except RuntimeError:  # the loop is closed: nobody is left to tell
                return
            if not data:
                return

    def _wanted(self) -> bool:
        """Waits until there is to be read; False when there is nothing any more."""
        self._go.wait()
        self._go.clear()
        return self._open

    def _deliver(self, data: bytes) -> None:
        if not self._open:
            return
        if data:
            try:
                self._on_data(data)
            finally:
                if not self._paused:
                    self._go.set()
        else:
            self._open = False
            self._on_eof()

    def close(self) -> None:
        self._open = False
        self._go.set()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            self._go.set()

    def hung_up(self) -> bool:
        return _hung_up(self._fd)


class _SelectorWriter:
    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        self._loop, self._fd = loop, fd
        self._queue: deque[memoryview | bytes] = deque()
        self.waiting = 0
        self._watching = False
        self._open = True
        self._empty = asyncio.Event()
        self._empty.set()
        if sys.platform != "win32":  # where none is made: no pipe can be watched
            os.set_blocking(fd, False)

    def write(self, data: bytes) -> None:
        if not self._open or not data:
            return
        if self._queue:
            self._queue.append(data)
            self.waiting += len(data)
            return
        try:
            sent = os.write(self._fd, data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close()
            return
        if sent < len(data):
            self._queue.append(memoryview(data)[sent:])
            self.waiting = len(data) - sent
            self._empty.clear()
            self._watching = True
            self._loop.add_writer(self._fd, self._flush)

    def _flush(self) -> None:
        while self._queue:
            batch = [self._queue[i] for i in range(min(len(self._queue), _GATHER))]
            try:
                sent = _write_some(self._fd, batch)
            except BlockingIOError:
                return
            except OSError:
                self.close()
                return
            self.waiting -= sent
            while sent:
                first = self._queue[0]
                if sent < len(first):
                    self._queue[0] = memoryview(first)[sent:]
                    return
                sent -= len(first)
                self._queue.popleft()
        self._idle()

    def _idle(self) -> None:
        if self._watching:
            self._watching = False
            self._loop.remove_writer(self._fd)
        self._empty.set()

    async def drain(self) -> None:
        await self._empty.wait()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._queue.clear()
            self.waiting = 0
            self._idle()


class _ThreadWriter:
    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        self._loop, self._fd = loop, fd
        self._queue: deque[bytes] = deque()
        self.waiting = 0
        self._work = threading.Condition()
        self._open = True
        self._empty = asyncio.Event()
        self._empty.set()
        threading.Thread(target=self._run, name=f"write-{fd}", daemon=True).start()

    def write(self, data: bytes) -> None:
        if not self._open or not data:
            return
        self._empty.clear()
        with self._work:
            self._queue.append(data)
            self.waiting += len(data)
            self._work.notify()

    def _run(self) -> None:
        while True:
            with self._work:
                while not self._queue and self._open:
                    self._work.wait()
                if not self._open:
                    return
                data = b"".join(self._queue)
                self._queue.clear()
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError:
                self._open = False
            with self._work:
                self.waiting -= len(data)
                done = not self._queue or not self._open
            if done:
                try:
                    self._loop.call_soon_threadsafe(self._check_empty)
                except RuntimeError:
                    return

    def _check_empty(self) -> None:
        with self._work:
            if not self._queue or not self._open:
                self._empty.set()

    async def drain(self) -> None:
        await self._empty.wait()

    def close(self) -> None:
        with self._work:
            self._open = False
            self._queue.clear()
            self._work.notify()
        self._empty.set()
