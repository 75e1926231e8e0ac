"""The two ends of stdio under asyncio, on any system and whatever stdin and stdout really are.

The rule: reading and writing never wait for each other, because otherwise a client that writes much before it
reads would cause a deadlock. If the loop can watch a descriptor it does; otherwise (Windows, a regular file)
a thread reads, and writes block.
"""

import asyncio
import contextlib
import os
import stat
import sys
import threading
from collections.abc import Callable

_CHUNK = 1 << 18


class Output:
    """Writes to a descriptor, in order."""

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        self._descriptor, self._loop = descriptor, loop
        self._waiting = bytearray()
        self._empty = asyncio.Event()
        self._empty.set()
        mode = os.fstat(descriptor).st_mode
        self._watched = sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
        if sys.platform != "win32" and self._watched:
            os.set_blocking(descriptor, False)

    def write(self, data: bytes) -> None:
        """Send ``data`` as soon as the reader reads. Raises BrokenPipeError if the reader has closed."""
        if not self._watched:
            _write_all(self._descriptor, data)
            return
        if not self._waiting:
            data = data[self._try(data) :]
            if data:
                self._empty.clear()
                self._loop.add_writer(self._descriptor, self._drain)
        self._waiting += data

    async def drained(self) -> None:
        """Wait until everything is written, or the reader has closed."""
        await self._empty.wait()

    async def roomy(self) -> None:
        """Wait until little is left to write, or the reader has closed."""
        while len(self._waiting) > _CHUNK:
            await self._empty.wait()

    def flush(self) -> None:
        """Block until everything is written or the reader has closed; before the process exits."""
        if sys.platform != "win32" and self._waiting:  # nothing waits there
            self._loop.remove_writer(self._descriptor)
            os.set_blocking(self._descriptor, True)
            with contextlib.suppress(BrokenPipeError):
                _write_all(self._descriptor, bytes(self._waiting))
            self._waiting.clear()

    def _drain(self) -> None:
        try:
            del self._waiting[: self._try(self._waiting)]
        except BrokenPipeError:
            self._waiting.clear()  # the reader has closed; the end of our input shows that too
        if not self._waiting:
            self._empty.set()
            self._loop.remove_writer(self._descriptor)

    def _try(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0


def read(descriptor: int, loop: asyncio.AbstractEventLoop, received: Callable[[bytes], None]) -> None:
    """Call ``received`` in the loop with all input, and with b"" at its end."""

    def ready() -> None:
        data = _read_some(descriptor)
        if not data:
            loop.remove_reader(descriptor)
        received(data)

    def thread() -> None:
        data = b"-"
        while data:
            data = _read_some(descriptor)
            try:
                loop.call_soon_threadsafe(received, data)
            except RuntimeError:  # the loop has closed
                return

    try:
        loop.add_reader(descriptor, ready)
    except (NotImplementedError, OSError):
        threading.Thread(target=thread, daemon=True).start()


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # a terminal that was closed; Windows raises it for a closed pipe
        return b""


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
