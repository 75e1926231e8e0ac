"""Serves an application on a socket of its own, beside the MCP server."""

import asyncio
import socket
from contextlib import suppress

from mcpzip.server.http.connection import Application, Connection
from mcpzip.server.http.connections import Connections
from mcpzip.server.http.limits import Limits

_LAST_RESPONSES = 0.3
"""Seconds that responses have to be sent when it ends."""


class ApplicationServer:
    """Serves ``application`` from `start` to `close`."""

    def __init__(
        self, application: Application, listening: socket.socket, limits: Limits, room: int | None = None
    ) -> None:
        """listening: is closed at the end. room: for how many connections; by default what ``limits`` say."""
        self._application, self._listening, self._limits = application, listening, limits
        self._connections = Connections(limits, limits.connections if room is None else room)

    async def start(self) -> None:
        """Begins to serve."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self._application, self._connections, self._limits),
            sock=self._listening,
            backlog=self._limits.backlog,
        )

    def shutdown(self) -> None:
        """Takes no more connections or requests. What is under way may end."""
        self._server.close()
        self._connections.shutdown()

    async def close(self) -> None:
        """Ends all connections."""
        await self._connections.stop(self._server)
        with suppress(OSError):
            await self._connections.close(_LAST_RESPONSES)
