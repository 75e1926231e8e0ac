"""The proxies of a daemon: one for each environment in which the config means something else.

The rule: clients share a proxy, and so the processes of servers, if the config means the same to them
(`meaning`). The rest of a server's environment is the daemon's, which is that of the agent that
started it, and for other proxies that of the client that came first.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from mcpzip.proxy.proxy import Proxy
from mcpzip.server import handshake_cache
from mcpzip.server.config_watcher import ConfigWatcher
from mcpzip.server.daemon.meaning import mean_the_same
from mcpzip.server.prepared import Prepared, prepare
from mcpzip.server.run_file import RunFile
from mcpzip.server.stderr import warn
from mcpzip.server.stdio import write_handshake_cache
from mcpzip.server.telemetry import endpoint_of
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    from mcpzip.server.process_telemetry import ProcessTelemetry

ENVIRONMENTS = 8
"""Proxies that a daemon runs at once; clients beyond are served without a daemon."""


class SharedProxy:
    """A proxy, and the clients with its environment. users: how many there are. unused_at: when the last one
    left (monotonic s). warned: what tells each client of a warning. uses: the SHA-256 of the content of the
    config that is in use, hexadecimal.
    """

    def __init__(
        self,
        prepared: Prepared,
        environment: Mapping[str, str],
        folder: str | None,
        edited: "Callable[[SharedProxy], None]",
        telemetry: "ProcessTelemetry | None" = None,
    ) -> None:
        """folder: the working folder of the first client. edited: called when an edit of the config is in
        use, after which `fits` may say something else.
        """
        self.prepared, self.environment = prepared, environment
        self.warned: set[Callable[[str], None]] = set()
        self.proxy = Proxy(prepared.config, prepared.catalog, self._warn, environment)
        self._telemetry = telemetry
        self.endpoint = endpoint_of(self.proxy, telemetry)
        self.users = 0
        self.uses = hashlib.sha256(prepared.file.data).hexdigest()
        self.unused_at = asyncio.get_running_loop().time()
        self._folder, self._stamp = folder, prepared.stamp
        self._tell_edited = edited
        self._has_begun = False
        self._stack = AsyncExitStack()

    def begin(self) -> None:
        """Begins to list servers, now that there is a client, or that there may be none."""
        if not self._has_begun:
            self._has_begun = True
            self.proxy.start(folder=self._folder)

    async def start(self) -> None:
        """Begins to watch the config."""
        self._write_handshake_cache()
        self.run_file = RunFile(self.proxy, is_daemon=True)
        watcher = ConfigWatcher(self.prepared.file, self.proxy, self._warn, self._edited)
        await self._stack.enter_async_context(watcher.running())

    async def close(self) -> None:
        """Ends the servers, and saves what was learnt."""
        self.run_file.close()
        await self._stack.aclose()
        if self._telemetry is not None:
            self._telemetry.forget(self.proxy)
        await self.proxy.close()
        self._write_handshake_cache()

    def _warn(self, sentence: str) -> None:
        warn(sentence)
        for tell in self.warned:
            tell(sentence)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What every client is told on stderr."""
        return self.prepared.warnings

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether the config means the same in ``environment``, and its commands are the same programs."""
        return mean_the_same(self.proxy.config, environment, self.environment)

    def _edited(self, data: bytes) -> None:
        self.uses = hashlib.sha256(data).hexdigest()
        config = self.prepared.config
        self._stamp = None if config.project else handshake_cache.stamp_of(data, config.path)
        self._write_handshake_cache()
        self._tell_edited(self)

    def _write_handshake_cache(self) -> None:
        write_handshake_cache(self.prepared, self.endpoint, self._stamp)


class SharedProxies:
    """The proxies of a daemon."""

    def __init__(
        self,
        first: Prepared,
        environment: Mapping[str, str],
        edited: Callable[[SharedProxy], None],
        telemetry: "ProcessTelemetry | None" = None,
    ) -> None:
        """first: of the daemon's own environment, ``environment``. edited: see `SharedProxy`. telemetry: of
        all of them.
        """
        self._edited, self._telemetry = edited, telemetry
        self._first: Prepared | None = first
        self._config = first.config
        self._project = first.project
        self._environment = environment
        self._proxies: list[SharedProxy] = []
        self._preparing = asyncio.Lock()

    def __iter__(self) -> Iterator[SharedProxy]:
        return iter(self._proxies)

    async def acquire(self, environment: Mapping[str, str], folder: str | None) -> SharedProxy | None:
        """The proxy for a client with ``environment`` in ``folder``, which it has to `release`; None if there
        are too many. Raises ConfigError.
        """
        async with self._preparing:
            found = next((one for one in self._proxies if one.fits(environment)), None)
            if found is None:
                found = await self._make(environment, folder)
            if found is not None:
                found.users += 1
            return found

    def release(self, proxy: SharedProxy) -> None:
        """A client has left."""
        proxy.users -= 1
        proxy.unused_at = asyncio.get_running_loop().time()

    async def default(self) -> SharedProxy:
        """The proxy for the daemon's own environment."""
        found = await self.acquire(self._environment, None)
        assert found is not None, "the first one always fits"
        return found

    async def close_unused(self, now: float, idle: float) -> None:
        """Closes those without clients for ``idle`` seconds, but for the last one."""
        for proxy in list(self._proxies):
            if not proxy.users and now - proxy.unused_at >= idle and len(self._proxies) > 1:
                self._proxies.remove(proxy)
                await proxy.close()

    async def _close_one_unused(self) -> bool:
        """Closes the one that has been without clients for longest. Returns whether there was any."""
        unused = [proxy for proxy in self._proxies if not proxy.users]
        if not unused:
            return False
        oldest = min(unused, key=lambda proxy: proxy.unused_at)
        self._proxies.remove(oldest)
        await oldest.close()
        return True

    async def close(self) -> None:
        """Closes all."""
        proxies, self._proxies = self._proxies, []
        await asyncio.gather(*(proxy.close() for proxy in proxies))

    async def _make(self, environment: Mapping[str, str], folder: str | None) -> SharedProxy | None:
        prepared = self._first
        if prepared is not None and mean_the_same(prepared.config, environment, self._environment):
            # Its file was read in the daemon's environment, in which it is read again when it is edited.
            self._first, environment = None, self._environment
        else:
            if len(self._proxies) >= ENVIRONMENTS and not await self._close_one_unused():
                return None
            again = partial(prepare, self._config.path, self._project, required=False, env=environment)
            prepared = await in_thread(again, "prepare")
        made = SharedProxy(prepared, environment, folder, self._edited, self._telemetry)
        self._proxies.append(made)
        await made.start()
        return made
