"""The file by which `mcpzip status` finds this process: ``run/ID.json`` beside the config.

The rules:

1. The file exists while its process serves. The process holds a lock on ``run/ID.lock`` meanwhile, which ends
   with it however it ends, so that a file whose lock is free is left over from a process that was killed.
2. It is written off the event loop, never before a client's first requests, and only after a change. If it
   can't be written, nothing else fails.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from functools import partial

import msgspec

from mcpzip import __version__
from mcpzip.config.paths import run_folder
from mcpzip.model import limits
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.statistics import ClientSeen
from mcpzip.system.files import make_folders, remove_file
from mcpzip.system.state_files import read_state, write_state
from mcpzip.system.threads import in_thread
from mcpzip.wire.client_info import name_and_version

FIRST, INTERVAL = 1.0, 2.0
"""Seconds before the first write, and between two."""
_SERVERS = 500  # that are written
_FILES = 2_000  # that are looked at


class RunServer(msgspec.Struct, frozen=True):
    """A server. state: as in `proxy.status`. calls, errors: of clients of this process. suspect: how much is
    odd about what it said in them.
    """

    name: str
    state: str
    reason: str
    tools: int
    calls: int
    errors: int
    suspect: int = 0


class RunReplies(msgspec.Struct, frozen=True):
    """The replies of one tool. size: bytes of its arguments and results, as JSON."""

    count: int
    size: int


class RunKept(msgspec.Struct, frozen=True):
    """The kept results of one tool. tokens: about how many were not sent because of that."""

    count: int
    tokens: int


class RunClient(msgspec.Struct, frozen=True):
    """A client. since: Unix time of its first request."""

    name: str
    version: str
    since: float


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What the file says. host: the name of the machine (or container), whose process ids ``pid`` is one of.
    address: the URL with --http, else "". project: the project's file in use, or "". replies: of mcpzip's own
    tools, by name; empty where an older version wrote the file. kept: results, by tool. notes: sentences
    about the config, such as an edit that was refused. daemon: whether it is the daemon. Times are Unix
    times.
    """

    version: str
    pid: int
    host: str
    started_at: float
    config: str
    project: str
    address: str
    searches: int
    clients: tuple[RunClient, ...]
    servers: tuple[RunServer, ...]
    notes: tuple[str, ...] = ()
    replies: dict[str, RunReplies] = msgspec.field(default_factory=dict)
    kept: dict[str, RunKept] = msgspec.field(default_factory=dict)
    daemon: bool = False


class RunFile:
    """Keeps the file of a serving proxy up to date. address: the URL at which it serves over HTTP, or ""."""

    def __init__(self, proxy: Proxy, address: str = "", *, is_daemon: bool = False) -> None:
        """address: the URL with --http. is_daemon: whether this process serves all agents. Must be called on
        the event loop.
        """
        self._is_daemon = is_daemon
        self._proxy, self.address = proxy, address
        self._path = os.path.join(run_folder(proxy.config.path), f"{os.getpid()}-{os.urandom(4).hex()}")
        self._release: Callable[[], None] | None = None
        self._written: Run | None = None
        self._task = asyncio.create_task(self._keep(), name="run-file")

    def close(self) -> None:
        """Removes the file."""
        self._task.cancel()
        if self._release is not None:
            self._release()
            _remove(self._path)

    async def _keep(self) -> None:
        await asyncio.sleep(FIRST)
        try:
            self._release = await in_thread(self._take_lock, "run-file", lambda release: release())
            while True:
                now = self._run()
                if now != self._written:
                    await in_thread(partial(self._write, now), "run-file")
                    self._written = now
                await asyncio.sleep(INTERVAL)
        except OSError:  # a full disk, another user's folder: then `mcpzip status` doesn't know this process
            pass

    def _take_lock(self) -> Callable[[], None]:
        from mcpzip.system.locks import hold  # not before the first requests are answered

        make_folders(os.path.dirname(self._path))
        return hold(f"{self._path}.lock")

    def _write(self, run: Run) -> None:
        write_state(f"{self._path}.json", msgspec.json.encode(run))

    def _run(self) -> Run:
        proxy, counted = self._proxy, self._proxy.statistics
        counts = counted.servers
        servers = [
            RunServer(
                name=one.name,
                state=one.state,
                reason=one.reason,
                tools=one.tools,
                calls=counts[one.name].calls if one.name in counts else 0,
                errors=counts[one.name].errors if one.name in counts else 0,
                suspect=one.suspect,
            )
            for one in proxy.status()[:_SERVERS]
        ]
        return Run(
            version=__version__,
            pid=os.getpid(),
            host=socket.gethostname(),
            started_at=counted.started_at,
            config=proxy.config.path,
            project=proxy.config.project,
            address=self.address,
            searches=counted.searches,
            clients=tuple(_client(each) for each in counted.clients.values()),
            servers=tuple(servers),
            notes=proxy.config_notes,
            daemon=self._is_daemon,
            replies={name: RunReplies(each.count, each.size) for name, each in counted.replies.items()},
            kept={name: RunKept(each.count, each.tokens) for name, each in counted.kept.items()},
        )


def running(config_path: str) -> list[Run]:
    """The processes that serve a config in the folder of ``config_path`` now, the oldest first. Removes the
    files of those that were killed. Blocks.
    """
    from mcpzip.system.locks import locked_if_free

    folder = run_folder(config_path)
    found = []
    try:
        names = sorted(os.listdir(folder))[:_FILES]
    except OSError:
        return []
    for path in (os.path.join(folder, name[:-5]) for name in names if name.endswith(".json")):
        try:
            run = msgspec.json.decode(read_state(f"{path}.json", limits.RUN), type=Run)
            with locked_if_free(f"{path}.lock") as free:
                pass
        except (OSError, msgspec.DecodeError):  # it has just ended, or is no file of ours
            continue
        if free:
            _remove(path)
        else:
            found.append(run)
    return sorted(found, key=lambda run: run.started_at)


def _client(seen: ClientSeen) -> RunClient:
    return RunClient(*name_and_version(seen.info), seen.since)


def _remove(path: str) -> None:
    for name in (f"{path}.json", f"{path}.lock"):
        try:
            remove_file(name)
        except OSError:
            pass
