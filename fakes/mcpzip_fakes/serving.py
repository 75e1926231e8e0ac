"""Serves an `HttpFake` on 127.0.0.1, in a thread of this process or as a process of its own.

The rule: it stops at once, because tests start and stop many.
"""

import asyncio
import contextlib
import errno
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from types import FrameType

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from mcpzip_fakes import process
from mcpzip_fakes.asgi import TRANSPORT
from mcpzip_fakes.errors import ScenarioError
from mcpzip_fakes.faults import Plan
from mcpzip_fakes.http import HttpFake
from mcpzip_fakes.record import Writer, begun
from mcpzip_fakes.scenario import Scenario

_PATHS = {"http": "/mcp", "sse": "/sse", "": ""}
_TURNS_OF_ACCEPTING = 5
"""Turns of the event loop from when it accepts a connection until that can be closed, and one more."""
_WIND_UP, _LAST_WORDS = 0.2, 5.0
"""Seconds a request may take to end once its client has disconnected, and once it is cancelled."""


class _Protocol(H11Protocol):
    """HTTP/1.1 with the connection in the ASGI scope of a request (`TRANSPORT`), because ASGI can't send
    interim answers.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """As uvicorn does."""
        super().connection_made(transport)
        inner = self.app

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            scope[TRANSPORT] = transport
            await inner(scope, receive, send)

        self.app = app


class _Uvicorn(uvicorn.Server):
    """uvicorn that handles no signals and closes open connections at once when it stops."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(app, http=_Protocol, log_config=None, log_level="critical", ws="none")
        )
        self.listening = threading.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def main_loop(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        await self.on_tick(0)  # sets the headers every response has
        self.listening.set()
        await self._end.wait()

    def stop(self) -> None:
        """From any thread: stop."""
        self._loop.call_soon_threadsafe(self._end.set)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A server that is closed drops what was accepted a moment before, and leaves it open. So first
        # nothing more is accepted, and then those connections get the turns until we are told of them.
        for listening in [each for server in self.servers for each in server.sockets]:
            with contextlib.suppress(NotImplementedError):  # Windows' event loop has no readers
                self._loop.remove_reader(listening.fileno())
        for _ in range(_TURNS_OF_ACCEPTING):
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # their requests notice and end
        for seconds in (_WIND_UP, _LAST_WORDS):
            if self.server_state.tasks:
                await asyncio.wait(self.server_state.tasks, timeout=seconds)
            for task in list(self.server_state.tasks):
                task.cancel()
        await self.lifespan.shutdown()


Place = tuple[ASGIApp, socket.socket]
"""An application, and its listening socket."""


class Threaded:
    """Serves applications in one thread of this process. name: of the thread; close: is awaited at the
    end."""

    def __init__(
        self,
        places: Sequence[Place],
        record: Writer,
        name: str,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._record, self._close = record, close
        self._places = [(_Uvicorn(app), bound) for app, bound in places]
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        for server, _ in self._places:
            server.listening.wait()

    def _run(self) -> None:
        asyncio.run(_serve(self._places, self._close))

    def stop(self) -> None:
        """Close every connection and wait for the thread to end. Can be called again."""
        if self._thread.is_alive():
            for server, _ in self._places:
                server.stop()
            self._thread.join()
            self._record.event("exit", {"reason": "stopped", "code": 0})
            self._record.close()


class Serving(Threaded):
    """Serves a fake in a thread of this process. ``url``: its URL."""

    def __init__(self, fake: HttpFake, record: Writer, port: int = 0) -> None:
        self.url, places = _settled(fake, port)
        super().__init__(places, record, f"fake {self.url}", fake.close)


def run(
    scenario: Scenario,
    record_path: str | None,
    transport: str,
    port: int,
    *,
    stateless: bool = False,
    json_response: bool = False,
) -> None:
    """Serve until the process is ended; prints ``listening URL`` once it accepts connections."""
    number, record = begun(record_path, process.described(transport, scenario.record_env))
    fake = HttpFake(
        scenario, record, transport=transport, run=number, stateless=stateless, json_response=json_response
    )
    process.start(Plan((), number), record)
    url, places = _settled(fake, port)
    servers = [(_Uvicorn(app), bound) for app, bound in places]
    leave = _stop_at_signals(servers, record) if scenario.replay and scenario.replay.new else None
    print(f"listening {url}", flush=True)
    asyncio.run(_serve(servers, fake.close))
    if leave is not None:
        leave()


def _stop_at_signals(servers: Sequence[tuple[_Uvicorn, socket.socket]], record: Writer) -> Callable[[], None]:
    """From now on a signal stops the servers, and not the process, which has something to write at its end.
    Returns what ends it then."""
    came: list[int] = []

    def leave() -> None:
        process.leave(record, signal.Signals(came[0]).name, 128 + came[0])

    def stop(number: int, frame: FrameType | None) -> None:
        came.append(number)
        for server, _ in servers:
            if not server.listening.is_set():
                leave()
            server.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return leave


async def _serve(
    places: Sequence[tuple[_Uvicorn, socket.socket]], close: Callable[[], Awaitable[None]] | None
) -> None:
    try:
        await asyncio.gather(*(server.serve([bound]) for server, bound in places))
    finally:
        if close is not None:
            await close()


def _settled(fake: HttpFake, port: int) -> tuple[str, list[Place]]:
    """The URL of a fake, and its applications with their sockets: the fake, and its authorization server if
    that has a port of its own."""
    bound, url = listen(fake.transport, port)
    places: list[Place] = [(fake.app, bound)]
    if fake.protection:
        if apart := fake.protection.apart:
            other, origin = listen("", 0)
            places.append((apart, other))
            fake.protection.stands_at(url, origin)
        else:
            fake.protection.stands_at(url)
    return url, places


def listen(transport: str, port: int) -> tuple[socket.socket, str]:
    """A listening socket on 127.0.0.1 (``port`` 0: a free one) and its URL. Raises ScenarioError."""
    try:
        bound = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"can't be had ({error.strerror})"
        raise ScenarioError(
            "--port", "", f"port {port} of 127.0.0.1 {why}", "choose another, or 0 for a free one"
        ) from error
    # Connections inherit it. asyncio sets it only on sockets created with the protocol; without it each
    # message waits for the acknowledgement of the last.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound, f"http://127.0.0.1:{bound.getsockname()[1]}{_PATHS[transport]}"
