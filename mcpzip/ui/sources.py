"""What the pages read: the daemon and other running mcpzips, the config, the catalog and the log.

The rules:

1. Nothing is asked before a page needs it, and what blocks runs in a thread.
2. The tools are those of a proxy in this process, opened from the files of the config at the start, and again
   when one of them changed. It starts a server only for a search or a call that needs it, as it
   would for a client.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec

from mcpzip.catalog import snapshot
from mcpzip.config import Config, load
from mcpzip.config.paths import logs_folder, pins_path, snapshot_path, state_path, trust_path
from mcpzip.model.entry import Entry
from mcpzip.model.tokens import estimate
from mcpzip.proxy.call_records import CallRecords
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.daemon import asking
from mcpzip.server.daemon.call_report import CallReport
from mcpzip.server.daemon.recorded_calls import RecordedCalls
from mcpzip.server.daemon.report import DaemonReport
from mcpzip.server.run_file import Run, running
from mcpzip.server.token_costs import Costs, measured
from mcpzip.system.log_files import LogEntry, LogReader
from mcpzip.system.process_memory import Memory, memory_of
from mcpzip.system.tasks import retrieve_exception
from mcpzip.system.threads import in_thread
from mcpzip.ui.calling import Calling
from mcpzip.ui.drafts import Drafts
from mcpzip.ui.examinations import Examinations
from mcpzip.ui.limits import LOG_LINES_KEPT, LOG_SERVERS
from mcpzip.ui.logins import Logins
from mcpzip.ui.seen import Calls, Seen

_Stamp = tuple[tuple[int, ...], ...]
"""What changes when a file is edited or replaced; one for each file."""


class Processes(msgspec.Struct, frozen=True):
    """What runs now. daemon: None if none does. retiring: older daemons that still serve agents. others:
    those that serve agents without a daemon. memory: by process id.
    """

    daemon: DaemonReport | None
    retiring: Sequence[DaemonReport]
    others: Sequence[Run]
    memory: Mapping[int, Memory] = {}

    @property
    def daemons(self) -> list[DaemonReport]:
        """All daemons, the present one first."""
        return [*([] if self.daemon is None else [self.daemon]), *self.retiring]


class _Opened:
    """A proxy, and how many requests use it. costs: of its tools, once they are counted."""

    def __init__(self, proxy: Proxy, stamp: _Stamp) -> None:
        self.proxy, self.stamp = proxy, stamp
        self.users = 0
        self.replaced = False
        self.costs: asyncio.Task[Costs] | None = None


class Sources:
    """What the pages of one config read. Belongs to one event loop. config, project: paths, "" for no
    project. warn: is told what is wrong.
    """

    def __init__(self, config: str, project: str, warn: Callable[[str], None]) -> None:
        """project: the project's file, "" for none. warn: is told what is wrong with the files."""
        self.config, self.project, self.warn = config, project, warn
        self.examinations = Examinations(config, project)
        self.drafts = Drafts()
        self.logins = Logins(warn, self._list)
        self.trying = asyncio.Lock()
        """Held while a server is tried before it is added."""
        self.calling = Calling(config, project)
        self._recorded, self._looking = RecordedCalls(config, project), asyncio.Lock()
        self._made_here = CallRecords()
        state = state_path(config, project)
        files = (config, project, trust_path(config), pins_path(config), snapshot_path(state))
        self._files = [path for path in files if path]
        self._opened: _Opened | None = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self._log = LogReader(logs_folder(config), os.path.basename(config))
        self._lines: dict[str, deque[LogEntry]] = {}
        self._reading = asyncio.Lock()

    # --- processes

    async def processes(self, *, memory: bool = True) -> Processes:
        """What runs now. memory: whether what processes take is measured. Raises DaemonSilentError."""
        return await in_thread(lambda: self._processes(memory), "processes")

    def _processes(self, measured: bool) -> Processes:
        said = asking.ask(self.config, self.project, "report")
        daemon = None if said is None else msgspec.convert(said, DaemonReport)
        older = asking.ask_retiring(self.config, self.project)
        retiring = [msgspec.convert(one, DaemonReport) for one in older]
        pids = {one.pid for one in (daemon, *retiring) if one is not None}
        others = [run for run in running(self.config) if run.pid not in pids]
        found = Processes(daemon, retiring, others)
        if not measured:
            return found
        pids.update(run.pid for run in others)
        for one in found.daemons:
            for server in (server for proxy in one.proxies for server in proxy.servers):
                pids.update(each.pid for each in server.processes if each.pid)
        used = {pid: size for pid in pids if (size := memory_of(pid)) is not None}
        return Processes(daemon, retiring, others, used)

    async def disconnect(self, server: str, *, again: bool) -> object:
        """Ends the processes of ``server`` that the daemon runs; its answer, None if none runs."""
        said = {"server": server, "again": again}
        return await in_thread(
            lambda: asking.ask(self.config, self.project, "disconnect", **said), "disconnect"
        )

    # --- calls

    async def calls(self) -> Calls:
        """The last calls. Raises DaemonSilentError, and McpzipError if the daemon remembers none."""
        async with self._looking:
            found = await in_thread(self._recorded.look, "calls")
        if found is not None:
            return Calls(found, by_daemon=True)
        return Calls([CallReport.of(one) for one in self._made_here][::-1], by_daemon=False)

    async def call(self, seen: Seen, entry: Entry, arguments: bytes) -> bytes:
        """See `Window.call`."""
        return await self.calling.call(seen.proxy, entry, arguments)

    async def kept(self, handle: str, part: bytes) -> bytes:
        """See `Window.kept`."""
        return await self.calling.kept(handle, part)

    # --- tools

    @asynccontextmanager
    async def seen(self) -> AsyncIterator[Seen]:
        """The same as `proxy`, as whoever uses this machine sees it."""
        async with self.proxy() as proxy:
            yield Seen(proxy, None)

    @asynccontextmanager
    async def proxy(self) -> AsyncIterator[Proxy]:
        """The proxy with the present config and catalog. Raises ConfigError."""
        opened = await self._current()
        opened.users += 1
        try:
            yield opened.proxy
        finally:
            opened.users -= 1
            self._close_unused(opened)

    async def open_ahead(self) -> None:
        """Opens the proxy, so that the next page that needs it has it. What is wrong is said there."""
        with suppress(Exception):
            await self._current()

    async def _list(self, server: str) -> None:
        async with self.proxy() as proxy:
            await proxy.refresh([server])

    async def costs(self) -> Costs | None:
        """What the tools cost in a model's context, by an estimate; None while that is being counted, and
        where there are no tools. Raises ConfigError.
        """
        opened = await self._current()
        if not opened.proxy.catalog.entries:
            return None
        if opened.costs is None:
            opened.users += 1

            def counted(task: "asyncio.Task[Costs]") -> None:
                opened.users -= 1
                retrieve_exception(task)
                self._close_unused(opened)

            opened.costs = asyncio.create_task(self._count(opened.proxy), name="costs")
            opened.costs.add_done_callback(counted)
        done, _ = await asyncio.wait({opened.costs}, timeout=_COSTS_WAIT)
        return opened.costs.result() if done else None

    async def _count(self, proxy: Proxy) -> Costs:
        runs = await in_thread(lambda: running(self.config), "running processes")
        return await measured(proxy, estimate, "tokens (estimated)", runs)

    async def _current(self) -> _Opened:
        async with self._opening:
            stamp = self.stamp()
            opened = self._opened
            if opened is None or opened.stamp != stamp:
                made = await self._open(stamp)
                if opened is not None:
                    opened.replaced = True
                    self._close_unused(opened)
                self._opened = opened = made
            return opened

    async def _open(self, stamp: _Stamp) -> _Opened:
        def read() -> tuple[Config, snapshot.Loaded]:
            config = load(self.config, os.environ, self.project)
            return config, snapshot.load_for(config)

        config, (catalog, warnings) = await in_thread(read, "config")
        for warning in warnings:
            self.warn(warning)
        proxy = Proxy(config, catalog, self.warn)
        proxy.tool_caller.calls = self._made_here  # those of the proxies before, too
        await proxy.reviews.wait_for_search()  # so that it says what is held back
        return _Opened(proxy, stamp)

    def stamp(self) -> _Stamp:
        """What changes when a file of the config does."""

        def of(path: str) -> tuple[int, ...]:
            try:
                state = os.stat(path)
            except OSError as error:
                return (error.errno or 0,)
            return state.st_mtime_ns, state.st_size, state.st_ino

        return tuple(map(of, self._files))

    def _close_unused(self, opened: _Opened) -> None:
        if opened.replaced and not opened.users:
            task = asyncio.create_task(opened.proxy.close(), name="close-proxy")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
            task.add_done_callback(retrieve_exception)

    # --- the log

    async def log_of(self, server: str) -> Sequence[LogEntry]:
        """The last lines of the log about ``server``, oldest first."""
        async with self._reading:
            for entry in await in_thread(self._log.read, "log"):
                if entry.server in self._lines or len(self._lines) < LOG_SERVERS:
                    self._lines.setdefault(entry.server, deque(maxlen=LOG_LINES_KEPT)).append(entry)
        return tuple(self._lines.get(server, ()))

    async def close(self) -> None:
        """Ends what was opened."""
        await self.logins.close()
        await self.calling.close()
        opened, self._opened = self._opened, None
        if opened is not None:
            if opened.costs is not None:
                opened.costs.cancel()
                await asyncio.wait({opened.costs})
            await opened.proxy.close()
        while self._closing:
            await asyncio.wait(self._closing)


_COSTS_WAIT = 0.05
"""Seconds that a page waits for costs that are being counted."""
