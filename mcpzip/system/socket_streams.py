"""Byte streams on sockets, for an asyncio loop that can't watch descriptors: that of Windows.

The rule: as `pipes`, and only with what every event loop can do with a socket.
"""

import asyncio
import socket
from collections.abc import Callable

from mcpzip.system.pipes import CHUNK


class SocketReader:
    """A `pipes.Reader`. Calls ``on_data`` with what arrives on ``connection``, then ``on_eof`` once."""

    def __init__(
        self, connection: socket.socket, on_data: Callable[[bytes], None], on_eof: Callable[[], None]
    ) -> None:
        """connection: non-blocking."""
        self._connection, self._on_data, self._on_eof = connection, on_data, on_eof
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._was_reset = False
        self._task = asyncio.create_task(self._run(), name="read-socket")

    def close(self) -> None:
        self._task.cancel()

    def pause(self) -> None:
        self._may_read.clear()

    def resume(self) -> None:
        self._may_read.set()

    def hung_up(self) -> bool:
        """Whether the connection was lost. That the other side has closed it can't be told from its sending
        no more.
        """
        return self._was_reset

    async def _run(self) -> None:
        data = b"-"
        while data:
            await self._may_read.wait()
            try:
                data = await asyncio.get_running_loop().sock_recv(self._connection, CHUNK)
            except OSError:
                self._was_reset, data = True, b""
            if data:
                self._on_data(data)
        self._on_eof()


class SocketWriter:
    """A `pipes.Writer`. waiting: as there."""

    def __init__(self, connection: socket.socket) -> None:
        """connection: non-blocking."""
        self._connection = connection
        self._queue: list[bytes] = []
        self.waiting = 0
        self._is_open = True
        self._empty = asyncio.Event()
        self._empty.set()
        self._task: asyncio.Task[None] | None = None

    def write(self, data: bytes) -> None:
        if not self._is_open or not data:
            return
        if self._task is None:
            try:
                data = data[self._connection.send(data) :]
            except BlockingIOError:
                pass
            except OSError:
                self.close()
                return
            if not data:
                return
            self._empty.clear()
            self._task = asyncio.create_task(self._flush(), name="write-socket")
        self._queue.append(data)
        self.waiting += len(data)

    async def drain(self) -> None:
        await self._empty.wait()

    def close(self) -> None:
        self._is_open = False
        self._queue.clear()
        self.waiting = 0
        if self._task is not None:
            self._task.cancel()
        self._empty.set()

    async def _flush(self) -> None:
        while self._queue:
            data = b"".join(self._queue)
            self._queue.clear()
            try:
                await asyncio.get_running_loop().sock_sendall(self._connection, data)
            except OSError:
                self._is_open = False
                self._queue.clear()
                self.waiting = 0
            else:
                self.waiting -= len(data)
        self._task = None
        self._empty.set()
