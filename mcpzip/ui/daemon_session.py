"""The page as an MCP client of the daemon, so that its calls run in the servers that agents use.

The rules:

1. Nobody can be asked anything in it: it declares no capability, and a request of the daemon is refused.
2. A request is sent once. Where its answer is lost, the error says that the tool may have run.
"""

import asyncio
import os
import socket
from contextlib import suppress

from mcpzip import __version__
from mcpzip.model.errors import McpzipError
from mcpzip.server.daemon import protocol
from mcpzip.system import local_socket
from mcpzip.system.tasks import cancel, retrieve_exception
from mcpzip.system.threads import in_thread
from mcpzip.wire import (
    METHOD_NOT_FOUND,
    Error,
    Event,
    JsonRpcError,
    NotAMessage,
    Peer,
    Request,
    Result,
    Role,
    join_object,
    quote,
)

INFO = join_object({"name": quote("mcpzip ui"), "version": quote(__version__)})
"""The page as a client: its `Implementation`, JSON text."""
OPENING = 10.0
"""Seconds that the daemon has to take the page as a client."""
_VERSION = "2025-11-25"
_AT_ONCE = 1 << 18
_LOST = (
    "The daemon ended before it answered, so the tool may have run. Check that before you call it again: the "
    "page then uses the next daemon."
)


class DaemonSession:
    """A session. is_open: whether requests can be made."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.is_open = True
        self._reader, self._writer = reader, writer
        self._peer = Peer(role=Role.CLIENT)
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._reading = asyncio.create_task(self._read(), name="daemon-session")
        self._reading.add_done_callback(retrieve_exception)

    @classmethod
    async def open(cls, config: str, project: str) -> "DaemonSession | None":
        """A session with the daemon of a config; None if none runs, or it doesn't take the page. config,
        project: the paths of the files.
        """
        path = protocol.socket_and_lock(config, project)[0]
        try:
            connection = await in_thread(lambda: local_socket.connect(path), "daemon")
            if connection is None:
                return None
            connection.setblocking(False)
            async with asyncio.timeout(OPENING):
                return await cls._begun(socket.socket(fileno=connection.detach()))
        except (OSError, TimeoutError, McpzipError):  # it has just ended, or is suspended
            return None

    @classmethod
    async def _begun(cls, connection: socket.socket) -> "DaemonSession | None":
        reader, writer = await asyncio.open_connection(sock=connection)
        session = None
        try:
            writer.write(_greeting())
            if protocol.read_notice(await reader.readline())[0] == protocol.ACCEPTED:
                session = cls(reader, writer)
                await session._initialize()
            return session
        except BaseException:
            if session is not None:
                await session.close()
            raise
        finally:
            if session is None:
                writer.close()

    async def request(self, method: str, params: bytes) -> bytes:
        """The result of a request. params, result: JSON texts. Raises JsonRpcError, and McpzipError if the
        answer is lost. Cancelling it cancels the request.
        """
        if not self.is_open:
            raise McpzipError(_LOST)
        number, line = self._peer.request(method, params)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._writer.write(line)
        try:
            return await answer
        except asyncio.CancelledError:
            if (withdrawal := self._peer.cancel(number)) is not None and self.is_open:
                self._writer.write(withdrawal)
            raise
        finally:
            del self._waiting[number]

    async def close(self) -> None:
        """Ends the session."""
        await cancel(self._reading)
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _initialize(self) -> None:
        params = join_object({"protocolVersion": quote(_VERSION), "capabilities": b"{}", "clientInfo": INFO})
        await self.request("initialize", params)
        self._writer.write(self._peer.notify("notifications/initialized"))

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(_AT_ONCE):
                for event in self._peer.receive(data):
                    self._handle(event)
                if not self.is_open:
                    break
        except OSError:
            pass
        finally:
            self._end()

    def _handle(self, event: Event) -> None:
        match event:
            case Result(id=number, result=result):
                self._settle(number, result)
            case Error(id=number, error=error, ours=ours):
                self._settle(number, McpzipError(error.message) if ours else JsonRpcError(error))
            case Request(id=id):
                self._writer.write(self._peer.error(id, METHOD_NOT_FOUND, "Nobody can be asked on the page."))
            case NotAMessage(data=data) if protocol.read_notice(data)[0] == protocol.HANDOVER:
                self.is_open = False
            case _:
                pass

    def _settle(self, number: int, outcome: bytes | Exception) -> None:
        answer = self._waiting.get(number)
        if answer is None or answer.done():
            return
        if isinstance(outcome, bytes):
            answer.set_result(outcome)
        else:
            answer.set_exception(outcome)

    def _end(self) -> None:
        self.is_open = False
        for number in list(self._waiting):
            self._settle(number, McpzipError(_LOST))
        self._writer.close()


def _greeting() -> bytes:
    """What the page says to the daemon of itself. It makes no older daemon give way."""
    said = {
        "pid": os.getpid(),
        "agent": os.getpid(),
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "replay": 0,
        "continued": True,
    }
    return protocol.greeting("client", said)
