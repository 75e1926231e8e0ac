"""The store that the replicas of a check share, and the relay before it, by which the runner takes it away.

The rule: the store is a real one, and the runner knows nothing of what is said to it. The subject is told the
address of the relay, which passes bytes on; when a check says so it refuses connections, or takes them and
passes nothing on.
"""

import asyncio
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from mcpzip_conformance.declaration import Store
from mcpzip_conformance.errors import NotPlayableError
from mcpzip_conformance.http_subject import free_port
from mcpzip_conformance.processes import Process
from mcpzip_conformance.template import fill_words

_EACH = 0.02
"""Seconds between two attempts to connect."""
_PIECE = 64 * 1024
_HOST = "127.0.0.1"


class RunningStore:
    """A store that takes connections. address: ``HOST:PORT`` of the relay before it."""

    def __init__(self, host: str, port: int, process: Process | None) -> None:
        self._store, self._process = (host, port), process
        self._port = free_port()
        self.address = f"{_HOST}:{self._port}"
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(
        cls, declared: Store, folder: Path, env: Mapping[str, str], patience: float
    ) -> "RunningStore":
        """Start the store, if it doesn't run, and the relay before it. folder: for its files, which exists.
        Raises NotPlayableError if it can't be reached in time."""
        if declared.address:
            host, _, port = declared.address.rpartition(":")
            store = cls(host.strip("[]"), int(port), None)
            what = f"at {declared.address}"
        else:
            command = fill_words(
                declared.command,
                {
                    "python": sys.executable,
                    "store_port": str(own := free_port()),
                    "store_folder": str(folder),
                },
            )
            what = f"after {command[0]} was started"
            if shutil.which(command[0], path=env.get("PATH")) is None:
                raise NotPlayableError(f"Its store can't be started: {command[0]} isn't on the PATH.")
            store = cls(_HOST, own, await Process.start(command, lambda _: None, env=env, cwd=folder))
        try:
            await store._until_up(what, patience)
            await store.mend()
        except BaseException:
            await store.end()
            raise
        return store

    async def refuse(self) -> None:
        """Break all connections, and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()
        self._flowing.set()

    def hold(self) -> None:
        """Pass nothing on, on the connections that there are and on new ones."""
        self._flowing.clear()

    async def mend(self) -> None:
        """Take connections again, and pass on what was held."""
        self._flowing.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, _HOST, self._port)

    async def end(self) -> None:
        """End the relay, and the store if it was started here."""
        await self.refuse()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._process is not None:
            self._process.terminate()
            await self._process.end(2.0)

    async def _until_up(self, what: str, patience: float) -> None:
        try:
            async with asyncio.timeout(patience):
                while True:
                    with suppress(OSError):
                        _, writer = await asyncio.open_connection(*self._store)
                        writer.close()
                        return
                    if self._process is not None and self._process.code is not None:
                        break
                    await asyncio.sleep(_EACH)
        except TimeoutError:
            pass
        said = "" if self._process is None else self._process.last_words()
        raise NotPlayableError(f"No store takes connections {what}{said or '.'}")

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        try:
            there, to = await asyncio.open_connection(*self._store)
            self._open.add(to)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._pass_on(reader, to))
                    both.create_task(self._pass_on(there, writer))
            finally:
                self._open.discard(to)
                to.close()
        except* OSError:
            pass  # one side has broken the connection, so the other one's ends
        finally:
            self._open.discard(writer)
            self._tasks.discard(task)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_PIECE):
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()
        raise ConnectionError
