"""One server behind the relay."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from conformance.processes import Process
from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    Closed,
    Error,
    Junk,
    Peer,
    Result,
    Role,
    initialize_params,
    split_object,
)

KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "USERPROFILE", "SYSTEMROOT", "TEMP", "TMP")
_INFO = b'{"name":"relay","version":"1"}'
# It waits for the end of the pipe that only the relay holds, and then ends the server's group.
_GUARD = 'read -r _; kill -KILL "-$0" 2>/dev/null'


class ServerGoneError(Exception):
    """The server can't be started or ended under the request."""


class RefusedError(Exception):
    """The server's own error. raw: the error object as JSON text."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        super().__init__(raw)


class Upstream:
    """A server and its tools. trouble: why it can't be used, "" when it can; tools: name -> definition."""

    def __init__(
        self, name: str, entry: Mapping[str, object], env: Mapping[str, str], has: Callable[[str], bool]
    ) -> None:
        self.name, self.env, self._has = name, dict(env), has
        arguments = entry["args"]
        assert isinstance(arguments, list)
        self._command = [str(entry["command"]), *map(str, arguments)]
        self.tools: dict[str, bytes] = {}
        self.trouble = ""
        self._process: Process | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._peer = Peer(role=Role.CLIENT)
        self._open: dict[int, asyncio.Future[bytes]] = {}
        self._deaf = False

    async def ready(self) -> None:
        """Started and listed, starting it (again) if need be. ServerGoneError."""
        dead = self._process is not None and self._process.output_ended.is_set()
        if self._starting is None or (self._starting.done() and dead and not self._has("never-reconnects")):
            self._starting = asyncio.create_task(self._start())
        await asyncio.shield(self._starting)
        if self.trouble:
            raise ServerGoneError(f"The server {self.name} can't be used: {self.trouble}.")

    async def request(self, method: str, params: bytes | None) -> bytes:
        """The result as JSON text. RefusedError, ServerGoneError."""
        if self._process is None or self._process.output_ended.is_set():
            raise ServerGoneError(f"The server {self.name} has gone.")
        number, line = self._peer.request(method, params)
        self._open[number] = asyncio.get_running_loop().create_future()
        self._process.write(line)
        return await self._open[number]

    async def end(self) -> None:
        """End it and what it started."""
        if self._starting is not None:
            self._starting.cancel()
        if self._process is not None and not self._has("leaves-servers"):
            await self._process.end(0.5)
        if self._guard is not None:
            self._guard.kill()
            self._guard.wait()

    async def _start(self) -> None:
        self._peer, self._open, self.trouble = Peer(role=Role.CLIENT), {}, ""
        try:
            self._process = await Process.start(
                self._command, self._received, env=self._environment(), cwd=Path.cwd()
            )
            self._guard = None if self._has("leaves-servers") else _guard(self._process.pid)
            await self.request("initialize", initialize_params(LATEST_LEGACY_VERSION, _INFO, b"{}"))
            self._process.write(self._peer.notify("notifications/initialized"))
            self.tools = await self._listed()
        except (OSError, ServerGoneError) as error:
            self.trouble = (
                error.strerror if isinstance(error, OSError) and error.strerror else "it has exited"
            )
        except RefusedError as error:
            self.trouble = f"it says {error.raw.decode()}"

    async def _listed(self) -> dict[str, bytes]:
        tools: dict[str, bytes] = {}
        params: bytes | None = None
        while True:
            page = split_object(await self.request("tools/list", params))
            for raw in msgspec.json.decode(page["tools"], type=list[msgspec.Raw]):
                tools[msgspec.json.decode(split_object(bytes(raw))["name"], type=str)] = bytes(raw)
            cursor = page.get("nextCursor")
            if cursor is None or self._has("first-page-only"):
                return tools
            params = b'{"cursor":%b}' % cursor

    def _environment(self) -> dict[str, str]:
        if self._has("inherits"):
            return {**os.environ, **self.env}
        return {key: os.environ[key] for key in KEPT if key in os.environ} | self.env

    def _received(self, data: bytes) -> None:
        if self._deaf:
            return
        for event in self._peer.receive(data) if data else self._peer.eof():
            match event:
                case Result():
                    self._settle(event.id, event.result)
                case Error():
                    told = {"code": event.error.code, "message": event.error.message}
                    error = msgspec.json.encode(told)
                    if event.error.data is not None:
                        error = error[:-1] + b',"data":%b}' % event.error.data
                    self._fail(event.id, RefusedError(error))
                case Junk() if self._has("hangs-on-junk"):
                    self._deaf = True
                    return
                case Closed():
                    for number in event.ids:
                        if not self._has("waits-for-ever"):
                            self._fail(
                                number, ServerGoneError(f"The server {self.name} ended under the call.")
                            )
                case _:
                    pass  # log messages and the like

    def _settle(self, number: int, result: bytes) -> None:
        if not self._open[number].done():
            self._open[number].set_result(result)

    def _fail(self, number: int, error: Exception) -> None:
        if not self._open[number].done():
            self._open[number].set_exception(error)


def _guard(group: int) -> "subprocess.Popen[bytes] | None":
    """A shell that outlives us just long enough to end the group; None on Windows."""
    if os.name != "posix":
        return None
    return subprocess.Popen(["sh", "-c", _GUARD, str(group)], stdin=subprocess.PIPE, start_new_session=True)
