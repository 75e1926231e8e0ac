"""How the page calls tools.

The rules:

1. While a daemon runs, it makes the calls, for a session of the page: so they run in the servers that agents
   use, and are remembered beside theirs. Else a proxy in this process makes them.
2. A session is opened by the first call, and closed after `IDLE` seconds without one, because the daemon
   stays as long as it has a client. What is kept for it is forgotten then.
3. The policy decides, in both cases. Nobody can be asked on the page.
"""

import asyncio

from mcpzip.model.entry import Entry
from mcpzip.model.errors import McpzipError
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.metatools import EXECUTE
from mcpzip.proxy.proxy import Proxy
from mcpzip.system.tasks import retrieve_exception
from mcpzip.ui.daemon_session import INFO, DaemonSession
from mcpzip.wire import join_object, quote

IDLE = 600.0
"""Seconds after the last call in which the page stays a client of the daemon."""
_GONE = (
    "This result is kept no more: the page has not called a tool for a while, or the daemon has ended. Call "
    "the tool again."
)


class Calling:
    """The calls of all tabs. Belongs to one event loop."""

    def __init__(self, config: str, project: str) -> None:
        """config, project: the paths of the files."""
        self._config, self._project = config, project
        self._session: DaemonSession | None = None
        self._opening = asyncio.Lock()
        self._under_way = 0
        self._idle: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def call(self, proxy: Proxy, entry: Entry, arguments: bytes) -> bytes:
        """The result of a call of ``entry``, a tool of ``proxy``, which makes it where no daemon runs.
        arguments, result: JSON texts. Raises JsonRpcError, McpzipError.
        """
        session = await self._opened()
        if session is None:
            return await _here(proxy, entry, arguments)
        name, given = _called_as(proxy.config.expose, entry, arguments)
        return await self._made(session, name, given)

    async def kept(self, handle: str, part: bytes) -> bytes:
        """A part of a result that is kept for the session. part: as `execute_tool` has it, JSON text. Raises
        JsonRpcError, McpzipError.
        """
        session = self._session
        if session is None or not session.is_open:
            raise McpzipError(_GONE)
        return await self._made(session, EXECUTE, join_object({"name": quote(handle), "arguments": part}))

    async def _made(self, session: DaemonSession, name: str, arguments: bytes) -> bytes:
        self._under_way += 1
        try:
            return await session.request(
                "tools/call", join_object({"name": quote(name), "arguments": arguments})
            )
        finally:
            self._under_way -= 1
            self._wait_for_calls()

    async def _opened(self) -> DaemonSession | None:
        async with self._opening:
            if self._session is None or not self._session.is_open:
                self._session = await DaemonSession.open(self._config, self._project)
            return self._session

    def _wait_for_calls(self) -> None:
        """Closes the session if no call comes."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE, self._end_if_unused)

    def _end_if_unused(self) -> None:
        if not self._under_way:
            task = asyncio.create_task(self.close(), name="close-session")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
            task.add_done_callback(retrieve_exception)

    async def close(self) -> None:
        """Ends the session."""
        if self._idle is not None:
            self._idle.cancel()
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def _called_as(expose: str, entry: Entry, arguments: bytes) -> tuple[str, bytes]:
    """The name and arguments with which a client of mcpzip calls ``entry``."""
    if expose == "meta":
        return EXECUTE, join_object({"name": quote(entry.name), "arguments": arguments})
    return entry.tool if expose == "transparent" else entry.name, arguments


async def _here(proxy: Proxy, entry: Entry, arguments: bytes) -> bytes:
    client = Client(info=INFO)
    try:
        asked = join_object({"name": quote(entry.name), "arguments": arguments})
        return await proxy.handlers[EXECUTE](asked, Exchange(client))
    finally:
        await proxy.remove_client(client)
