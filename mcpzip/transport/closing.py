"""Closes connections in the background while mcpzip runs. At exit, `Pool.close` closes all connections."""

import asyncio

from mcpzip.transport.connection import Connection


class ClosingConnections:
    """The connections that are being closed. ``len()``: how many there are."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], Connection] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def tasks(self) -> "tuple[asyncio.Task[None], ...]":
        """One for each connection."""
        return tuple(self._tasks)

    @property
    def connections(self) -> tuple[Connection, ...]:
        """The connections."""
        return tuple(self._tasks.values())

    def begin(
        self, connection: Connection, grace: float, *, drain: bool = False, timeout: float | None = None
    ) -> "asyncio.Task[None]":
        """Begins to close ``connection``; drain: when its open requests have ended, or after ``timeout``
        seconds. grace: see `Connection.close`. Returns the task that closes it.
        """

        async def close() -> None:
            try:
                if drain:
                    async with asyncio.timeout(timeout):
                        await connection.ended()
            except TimeoutError:
                pass
            finally:
                await connection.close(grace)

        task = asyncio.create_task(close(), name=f"close-{connection.server.name}")
        self._tasks[task] = connection
        task.add_done_callback(self._tasks.pop)
        return task
