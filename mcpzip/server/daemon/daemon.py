"""The daemon: takes connections of `mcpzip serve` and of commands, and ends when nobody needs it any more."""

import asyncio
import gc
import json
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcpzip import __version__
from mcpzip.model import limits
from mcpzip.model.errors import ConfigError
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.daemon import protocol
from mcpzip.server.daemon.client import DaemonClient, Greeting, GreetingTooLongError
from mcpzip.server.daemon.commands import COMMANDS
from mcpzip.server.daemon.proxies import SharedProxies, SharedProxy
from mcpzip.server.daemon.report import DaemonReport, daemon_report
from mcpzip.server.daemon.retirement import give_way
from mcpzip.server.log import log_kept
from mcpzip.server.prepared import Prepared
from mcpzip.server.stderr import sanitize_logs, warn
from mcpzip.server.stdio import FINISH_TIMEOUT, OPENING
from mcpzip.server.telemetry import telemetry_of
from mcpzip.system import local_socket
from mcpzip.system.allocator import keep_buffers
from mcpzip.system.descriptors import raise_descriptor_limit
from mcpzip.system.event_log import note
from mcpzip.system.signals import stop_on_signals
from mcpzip.system.tasks import retrieve_exception

GREETING_TIMEOUT = 10.0
"""Seconds in which a process that connects has to say what it wants."""
ACCEPT_PAUSE = 0.5
"""Seconds without new connections after one could not be taken."""
FIRST_CLIENT = 10.0
"""Seconds that a daemon waits for its first client, however short ``daemon.idle_minutes`` is."""
_LOOK = 0.01
"""Seconds between two looks whether calls are under way."""


class Daemon:
    """The daemon of one config. clients: those that it serves. started_at: Unix time."""

    def __init__(self, prepared: Prepared, listening: "local_socket.Listening", path: str, lock: int) -> None:
        """listening: at ``path``; it is closed at the end. lock: the descriptor with the daemon's lock."""
        self.clients: set[DaemonClient] = set()
        self.prepared, self.path = prepared, path
        self._listening, self._lock = listening, lock
        self._identity = local_socket.identity(path)
        self._welcoming: set[asyncio.Task[None]] = set()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._retiring: asyncio.Task[None] | None = None
        self._had_clients = self._closing = False
        self._is_listening = True
        self._successor = self._address = ""
        self._started_at = time.time()

    def run(self) -> int:
        """Serves until the end. Returns the exit code."""
        config = self.prepared.config
        with log_kept(config.path, config.log_level):
            for warning in self.prepared.warnings:
                warn(warning)
            gc.freeze()  # what is loaded by now lives as long as we do
            gc.enable()
            keep_buffers()
            sanitize_logs()
            asyncio.run(self._serve())
        return 0

    async def _serve(self) -> None:
        self._done, self._http_done = asyncio.Event(), asyncio.Event()
        self._serving_http: asyncio.Task[None] | None = None
        stop_on_signals(self._done)
        raise_descriptor_limit(limits.DAEMON_CLIENTS)
        async with telemetry_of(self.prepared.config, os.environ, warn) as telemetry:
            self.proxies = SharedProxies(self.prepared, os.environ, self._edited, telemetry)
            self._watch()
            self._wait_for_clients()
            try:
                async with self._over_http():
                    await self._done.wait()
            finally:
                self._stop_listening()
                await self._end_clients()
                await self.proxies.close()

    @asynccontextmanager
    async def _over_http(self) -> AsyncIterator[None]:
        """Serves clients over HTTP too, if the config has an address for that."""
        if not self.prepared.config.daemon_http:
            yield
            return
        from mcpzip.server.http.serve import listen_http  # few daemons serve clients over HTTP
        from mcpzip.server.http.server import HttpServer

        try:
            address, access, listening, people = listen_http(self.prepared.config)
        except ConfigError as error:
            reason = str(error).replace("--http", "daemon.http", 1)
            warn(f"{reason} Until the daemon is started again, nobody is served over HTTP.")
            yield
            return
        shared = await self.proxies.default()
        shared.begin()
        if people is not None:
            people.rate_limits = lambda: shared.proxy.config.rate_limits
        server = HttpServer(shared.endpoint, access, warn, people=people)
        self._address = address.url(listening.getsockname()[1])
        shared.run_file.address = self._address

        def leaving() -> None:
            if self._done.is_set():
                shared.proxy.notifier.close()

        serving = server.serve(listening, self._http_done, lambda: None, leaving)
        self._serving_http = asyncio.create_task(serving, name="http")
        try:
            yield
        finally:
            self._done.set()
            self._http_done.set()
            await self._serving_http
            self.proxies.release(shared)

    # --- connections

    def _watch(self) -> None:
        local_socket.watch(self._listening, asyncio.get_running_loop(), self._accept)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except BlockingIOError:  # there is no more
                return
            except OSError:  # there are no descriptors left: the event loop would ask again and again
                loop = asyncio.get_running_loop()
                local_socket.watch(self._listening, loop, None)
                loop.call_later(ACCEPT_PAUSE, self._accept_again)
                return
            connection.setblocking(False)
            task = asyncio.create_task(self._welcome(connection), name="daemon-client")
            self._welcoming.add(task)
            task.add_done_callback(self._welcoming.discard)
            task.add_done_callback(retrieve_exception)

    def _accept_again(self) -> None:
        if self._is_listening:
            self._watch()

    async def _welcome(self, connection: socket.socket) -> None:
        try:
            local_socket.check_peer(connection)
            async with asyncio.timeout(GREETING_TIMEOUT):
                line, rest = await _read_line(connection)
                said = json.loads(line)
                kind = said.get("kind") if isinstance(said, dict) else None
                if kind == "client":
                    greeting = Greeting.of(said)
                    while len(rest) < greeting.replay:
                        rest += await _read(connection)
            if kind == "client":
                await self._serve_client(connection, greeting, rest)
            elif kind in COMMANDS:
                answer = await COMMANDS[kind](self, said)
                await _send(connection, protocol.notice(protocol.ANSWER, answer))
        except GreetingTooLongError as error:
            await _refuse(connection, str(error))
        except (OSError, ValueError, TimeoutError):  # it left, or said what no mcpzip says
            pass
        finally:
            connection.close()

    async def _serve_client(self, connection: socket.socket, greeting: Greeting, rest: bytes) -> None:
        shared = None
        if len(self.clients) < limits.DAEMON_CLIENTS and self.prepared.config.shared:
            try:
                shared = await self.proxies.acquire(greeting.environment, greeting.folder or None)
            except ConfigError as error:
                note("warning", "", "daemon", f"a client is served without the daemon: {error}")
        if self._closing or self._done.is_set():  # it finds another daemon, once the connection is closed
            if shared is not None:
                self.proxies.release(shared)
            return
        if shared is None or not shared.proxy.config.shared:
            if shared is not None:
                self.proxies.release(shared)
            await _refuse(connection)
            return
        client = DaemonClient(connection, greeting, shared)
        self.clients.add(client)
        self._had_clients = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        try:
            client.accept(rest[: greeting.replay], rest[greeting.replay :])
            if protocol.is_newer(greeting.version) and not greeting.continued and not self._successor:
                self.retire(greeting.version)
            await client.session.opened(OPENING)
            shared.begin()
            await client.serve()
        finally:
            self.clients.discard(client)
            await client.close()
            self.proxies.release(shared)
            self._wait_for_clients()
            if not shared.users:
                asyncio.get_running_loop().call_later(self.idle_time, self._close_unused)

    def _edited(self, shared: SharedProxy) -> None:
        """The config of ``shared`` was edited: clients in whose environment it means something else now, as
        it refers to more variables, go on with another proxy.
        """
        for client in self.clients:
            if client.shared is shared and not shared.fits(client.greeting.environment):
                client.pause()
                task = asyncio.create_task(self._move(client), name="move-client")
                self._welcoming.add(task)
                task.add_done_callback(self._welcoming.discard)

    async def _move(self, client: DaemonClient) -> None:
        until = asyncio.get_running_loop().time() + FINISH_TIMEOUT
        while client.session.busy and asyncio.get_running_loop().time() < until:  # noqa: ASYNC110 - as below
            await asyncio.sleep(_LOOK)
        client.hand_over(__version__)

    # --- commands

    def running(self) -> list[Proxy]:
        """The proxies."""
        return [shared.proxy for shared in self.proxies]

    def report(self) -> DaemonReport:
        """What it does now."""
        clients = {
            shared: [client for client in self.clients if client.shared is shared] for shared in self.proxies
        }
        config = self.prepared.config
        return daemon_report(
            config,
            clients,
            started_at=self._started_at,
            address=self._address,
            idle=self.idle_time,
            successor=shown(self._successor),
        )

    # --- the end

    def stop(self) -> None:
        """Ends the daemon now. Its clients go on with another one, when they need it."""
        self._done.set()

    def retire(self, successor: str) -> None:
        """Gives way to a newer mcpzip (`retirement`). successor: its version."""
        self._successor = successor
        note("info", "", "daemon", f"version {shown(successor)} takes over when no call is under way")
        self._retiring = asyncio.create_task(self._retire(), name="retire")
        self._retiring.add_done_callback(retrieve_exception)

    async def _retire(self) -> None:
        if not await give_way(self, self._successor):
            self._successor = ""

    async def withdraw(self) -> None:
        """See `retirement.Retiring`."""
        self._stop_listening()
        self._http_done.set()
        if self._serving_http is not None:
            await self._serving_http
        os.close(self._lock)
        self._listen_for_commands()

    def _listen_for_commands(self) -> None:
        """Goes on to say what it does, where no client looks for a daemon."""
        path = protocol.retiring_socket(self.path, os.getpid())
        try:
            self._listening = local_socket.listen(path)
        except OSError:  # then `mcpzip ps` shows the next daemon only
            return
        self.path, self._identity = path, local_socket.identity(path)
        self._is_listening = True
        self._watch()

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way."""
        parked = any(shared.proxy.has_parked_calls() for shared in self.proxies)
        return parked or any(client.session.busy for client in self.clients)

    @property
    def idle_time(self) -> float:
        """Seconds that the daemon stays without clients."""
        configs = [shared.proxy.config for shared in self.proxies] or [self.prepared.config]
        if not all(config.shared for config in configs) or self._is_replaced:
            return 0.0
        return min(config.daemon_idle for config in configs)

    @property
    def _is_replaced(self) -> bool:
        """Whether no new client can find this daemon, because its socket was removed or replaced."""
        return self._closing or local_socket.identity(self.path) != self._identity

    def _wait_for_clients(self) -> None:
        """Ends the daemon later if no client comes. A client over HTTP could not start another one."""
        if self.clients or self._done.is_set() or self.prepared.config.daemon_http:
            return
        seconds = self.idle_time if self._had_clients else max(self.idle_time, FIRST_CLIENT)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if seconds:
            self._idle_timer = asyncio.get_running_loop().call_later(seconds, self._end_if_unused)
        else:
            self._end_if_unused()

    def _end_if_unused(self) -> None:
        if not self.clients:
            note("info", "", "daemon", "no client is left")
            self._done.set()

    def _close_unused(self) -> None:
        """Ends the servers of environments that no client has had for a while."""
        if not self._done.is_set():
            closing = self.proxies.close_unused(asyncio.get_running_loop().time(), self.idle_time)
            task = asyncio.create_task(closing, name="close-unused")
            self._welcoming.add(task)
            task.add_done_callback(self._welcoming.discard)
            task.add_done_callback(retrieve_exception)

    def _stop_listening(self) -> None:
        """From now on processes that connect find no daemon, and start another, which waits for our lock."""
        self._closing = True
        if not self._is_listening:
            return
        self._is_listening = False
        if local_socket.identity(self.path) == self._identity:
            try:
                os.unlink(self.path)
            except OSError:
                pass
        local_socket.watch(self._listening, asyncio.get_running_loop(), None)
        self._listening.close()

    async def _end_clients(self) -> None:
        """Hands the clients over, after their calls have had a moment to end."""
        if self._retiring is not None:
            self._retiring.cancel()
        for client in self.clients:
            client.pause()
        until = asyncio.get_running_loop().time() + FINISH_TIMEOUT
        while self.is_busy and asyncio.get_running_loop().time() < until:  # noqa: ASYNC110 - see above
            await asyncio.sleep(_LOOK)
        for client in self.clients:
            client.hand_over(self._successor)
        left = list(self._welcoming)
        if left:
            await asyncio.wait(left, timeout=FINISH_TIMEOUT)
        for task in left:
            task.cancel()


def refuse(listening: "local_socket.Listening", path: str) -> None:
    """Sends away the clients that have connected so far, of a daemon that can't use its config."""
    try:
        os.unlink(path)
    except OSError:
        pass
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            break
        connection.setblocking(False)
        try:
            connection.send(protocol.notice(protocol.REFUSED))
        except OSError:
            pass
        connection.close()
    listening.close()


def shown(version: str) -> str:
    """The version of another mcpzip, which said it itself."""
    return "".join(c for c in version[:20] if c.isascii() and c.isprintable())


async def _read_line(connection: socket.socket) -> tuple[bytes, bytes]:
    """The first line, and what came after it. Raises ValueError if there is none."""
    data = b""
    while b"\n" not in data:
        data += await _read(connection)
        if len(data) > limits.GREETING and b"\n" not in data[: limits.GREETING]:
            raise GreetingTooLongError(
                f"The environment of this agent takes more than the {limits.GREETING >> 20} MiB that the "
                "daemon reads, so this agent is served without it."
            )
    line, _, rest = data.partition(b"\n")
    return line, rest


async def _read(connection: socket.socket) -> bytes:
    data = await asyncio.get_running_loop().sock_recv(connection, 1 << 18)
    if not data:
        raise ValueError("it has left")
    return data


async def _send(connection: socket.socket, data: bytes) -> None:
    async with asyncio.timeout(GREETING_TIMEOUT):
        await asyncio.get_running_loop().sock_sendall(connection, data)


async def _refuse(connection: socket.socket, reason: str = "") -> None:
    """Says that the client has to be served without a daemon. reason: for its stderr."""
    said = {"reason": reason} if reason else None
    try:
        await _send(connection, protocol.notice(protocol.REFUSED, said))
    except (OSError, TimeoutError):
        pass  # it left
