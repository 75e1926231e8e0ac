"""Byte streams on file descriptors, for an asyncio loop.

Reading and writing never block the loop, and nothing is lost or reordered. On POSIX the loop's selector
watches pipes, sockets and terminals. What a selector can't watch (regular files, and everything on Windows,
where the proactor loop has no ``add_reader``) is read and written in a thread.
"""

import asyncio
import os
import select
import stat
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

CHUNK = 1 << 18
_WRITEV_BUFFERS = 64  # less than IOV_MAX of every system


class Reader(Protocol):
    """Delivers what arrives on a descriptor, until the end of the input or `close`."""

    def close(self) -> None:
        """Stops delivering. Does not close the descriptor."""

    def pause(self) -> None:
        """Reads nothing until `resume`. Data that a thread is reading just now may still be delivered."""

    def resume(self) -> None:
        """Reads again."""

    def hung_up(self) -> bool:
        """Whether the other side has closed its end, as far as ``poll`` reports it without reading."""


class Writer(Protocol):
    """Sends bytes in order, and buffers what the other side has not read yet."""

    @property
    def waiting(self) -> int:
        """The number of buffered bytes."""

    def write(self, data: bytes) -> None:
        """Sends ``data``, or buffers it. Drops it silently after the other side has closed its end."""

    async def drain(self) -> None:
        """Waits until the buffer is empty, or the other side has closed its end."""

    def close(self) -> None:
        """Stops sending and drops the buffer. Does not close the descriptor."""


def read_from(fd: int, on_data: Callable[[bytes], None], on_eof: Callable[[], None]) -> Reader:
    """Calls ``on_data`` on the running loop with what arrives on ``fd``, then ``on_eof`` once."""
    loop = asyncio.get_running_loop()
    if _watchable(fd):
        return _SelectorReader(loop, fd, on_data, on_eof)
    return _ThreadReader(loop, fd, on_data, on_eof)


def write_to(fd: int) -> Writer:
    """A writer on ``fd`` for the running loop. Makes a pipe or socket non-blocking."""
    loop = asyncio.get_running_loop()
    if _watchable(fd) and not os.isatty(fd):
        return _SelectorWriter(loop, fd)
    return _ThreadWriter(loop, fd)


def _watchable(fd: int) -> bool:
    """Whether a selector can watch ``fd``. Regular files and some devices (/dev/null) it can't."""
    mode = os.fstat(fd).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd))


def _write_some(fd: int, batch: Sequence[memoryview | bytes]) -> int:
    """Writes as much of ``batch`` as the descriptor takes. Returns the number of bytes. Raises OSError."""
    if sys.platform == "win32":
        return os.write(fd, batch[0])
    return os.writev(fd, batch)


class _BaseReader(ABC):
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_data: Callable[[bytes], None],
        on_eof: Callable[[], None],
    ) -> None:
        self._loop, self._fd, self._on_data, self._on_eof = loop, fd, on_data, on_eof
        self._open, self._paused = True, False
        self._start()

    @abstractmethod
    def _start(self) -> None: ...

    def hung_up(self) -> bool:
        if sys.platform == "win32" or not _watchable(self._fd):
            return False
        poll = select.poll()
        poll.register(self._fd, 0)  # POLLHUP and POLLERR are reported for any event mask
        return bool(poll.poll(0))


class _SelectorReader(_BaseReader):
    def _start(self) -> None:
        self._loop.add_reader(self._fd, self._ready)

    def _ready(self) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:  # the other end of a socket or terminal was lost
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
            self._start()


class _ThreadReader(_BaseReader):
    def _start(self) -> None:
        self._may_read = threading.Event()
        """Set again only when the last chunk is delivered, so that at most one is in memory."""
        self._may_read.set()
        threading.Thread(target=self._run, name=f"read-{self._fd}", daemon=True).start()

    def _run(self) -> None:
        while self._wait_to_read():
            try:
                data = os.read(self._fd, CHUNK)
            except OSError:
                data = b""
            try:
                self._loop.call_soon_threadsafe(self._deliver, data)
            except RuntimeError:  # the loop is closed
                return
            if not data:
                return

    def _wait_to_read(self) -> bool:
        """Waits until the next chunk may be read. Returns False after `close`."""
        self._may_read.wait()
        self._may_read.clear()
        return self._open

    def _deliver(self, data: bytes) -> None:
        if not self._open:
            return
        if data:
            try:
                self._on_data(data)
            finally:
                if not self._paused:
                    self._may_read.set()
        else:
            self._open = False
            self._on_eof()

    def close(self) -> None:
        self._open = False
        self._may_read.set()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            self._may_read.set()


class _BaseWriter:
    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        self._loop, self._fd = loop, fd
        self._queue: deque[memoryview | bytes] = deque()
        self.waiting = 0
        self._open = True
        self._empty = asyncio.Event()
        self._empty.set()

    async def drain(self) -> None:
        await self._empty.wait()


class _SelectorWriter(_BaseWriter):
    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        super().__init__(loop, fd)
        self._watching = False
        if sys.platform != "win32":  # never used there; the check is for mypy
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
            batch = [self._queue[i] for i in range(min(len(self._queue), _WRITEV_BUFFERS))]
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

    def close(self) -> None:
        if self._open:
            self._open = False
            self._queue.clear()
            self.waiting = 0
            self._idle()


class _ThreadWriter(_BaseWriter):
    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        super().__init__(loop, fd)
        self._changed = threading.Condition()
        """Guards the queue, `waiting` and `_open`."""
        threading.Thread(target=self._run, name=f"write-{fd}", daemon=True).start()

    def write(self, data: bytes) -> None:
        if not self._open or not data:
            return
        self._empty.clear()
        with self._changed:
            self._queue.append(data)
            self.waiting += len(data)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue and self._open:
                    self._changed.wait()
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
            with self._changed:
                self.waiting -= len(data)
                done = not self._queue or not self._open
            if done:
                try:
                    self._loop.call_soon_threadsafe(self._check_empty)
                except RuntimeError:
                    return

    def _check_empty(self) -> None:
        with self._changed:
            if not self._queue or not self._open:
                self._empty.set()

    def close(self) -> None:
        with self._changed:
            self._open = False
            self._queue.clear()
            self._changed.notify()
        self._empty.set()
