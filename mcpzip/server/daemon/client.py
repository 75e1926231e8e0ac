"""One `mcpzip serve` that the daemon serves, and so one agent."""

import asyncio
import os
import socket
import sys
import time
from collections.abc import Mapping

import msgspec

from mcpzip.model import limits, sanitize
from mcpzip.model.redaction import redact
from mcpzip.server.daemon import protocol
from mcpzip.server.daemon.proxies import SharedProxy
from mcpzip.server.session import Session
from mcpzip.server.stdio import FINISH_TIMEOUT, FLUSH_TIMEOUT
from mcpzip.server.stdio_output import StdioOutput
from mcpzip.system.line_reader import read_lines_from
from mcpzip.system.pipes import Reader, Writer, write_to

_LOOK = 0.01
"""Seconds between two looks whether requests are under way, while others are held back."""


class GreetingTooLongError(Exception):
    """What a `mcpzip serve` says of itself is more than may be read. The sentence is for a user."""


class Greeting(msgspec.Struct, frozen=True):
    """What a `mcpzip serve` says of itself.

    pid, folder, environment: of its process. agent: the process that has started it, usually its client.
    replay: the bytes of the messages that were answered before, which follow. version: of mcpzip there.
    continued: whether another daemon has served it before.
    """

    pid: int
    agent: int
    folder: str
    environment: Mapping[str, str]
    replay: int
    version: str
    continued: bool

    @classmethod
    def of(cls, said: Mapping[str, object]) -> "Greeting":
        """From the JSON object. Raises ValueError, GreetingTooLongError."""
        environment, pid, replay, agent = map(said.get, ("environment", "pid", "replay", "agent"))
        if not (isinstance(environment, dict) and isinstance(pid, int) and isinstance(replay, int)):
            raise ValueError("no greeting")
        if replay < 0 or not all(isinstance(v, str) for v in environment.values()):
            raise ValueError("no greeting")
        if replay > limits.GREETING:
            raise GreetingTooLongError(
                f"The settings of this agent take more than the {limits.GREETING >> 20} MiB that the daemon "
                "reads, so this agent is served without it."
            )
        return cls(
            pid,
            agent if isinstance(agent, int) else 0,
            str(said.get("folder")),
            {sys.intern(name): sys.intern(value) for name, value in environment.items()},  # most have it all
            replay,
            str(said.get("version")),
            said.get("continued") is True,
        )


class DaemonClient:
    """The session of a `mcpzip serve`. since: when it began (Unix time)."""

    def __init__(self, connection: socket.socket, greeting: Greeting, shared: SharedProxy) -> None:
        """connection: non-blocking; it is closed at the end."""
        self.greeting, self.shared, self.since = greeting, shared, time.time()
        self._connection = connection
        # Over TCP, because this may be a system whose event loop watches no descriptors.
        self._stream = connection if connection.family == socket.AF_INET else connection.fileno()
        self._writer = _write_to(self._stream)
        self._output = StdioOutput(self._writer)
        # Ids that no other daemon uses for the same client: a late response must not meet another question.
        first_id = int.from_bytes(os.urandom(4)) << 20 | 1
        self.session = Session(
            shared.endpoint,
            self._output.send,
            self._output.send_if_room,
            lambda: self._output.full,
            is_only_client=False,
            first_id=first_id,
            folder=greeting.folder or None,
        )
        self.session.client.pid = greeting.agent or greeting.pid
        self._reader: Reader | None = None
        self._processed = 0
        self._ended = asyncio.Event()
        self._handed_over = False
        self._held_from = 0

    @property
    def has_ended(self) -> bool:
        """Whether it has left, or goes on with another daemon."""
        return self._ended.is_set()

    def accept(self, replay: bytes, rest: bytes) -> None:
        """Begins to serve it. rest: what it sent after ``replay``."""
        transparent = self.shared.proxy.exposure.transparent_server is not None
        said = {"names_are_ours": not transparent, "pid": os.getpid()}
        self._writer.write(protocol.notice(protocol.ACCEPTED, said))
        for warning in self.shared.warnings:
            self._warn(warning)
        self.shared.warned.add(self._warn)
        self.session.replay(replay)
        self._reader = read_lines_from(
            self._stream, self._receive, self._input_ended, at_once=limits.TURN, first=rest
        )
        self._output.reader = self._reader

    async def serve(self) -> None:
        """Serves it until it leaves, or `hand_over` or `end` was called."""
        await self._ended.wait()
        patience = 0.0 if self._reader is None or self._reader.hung_up() else FINISH_TIMEOUT
        self.pause()
        self._output.close()
        if not self._handed_over:
            await self.session.finish(patience)
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT):
                await self._writer.drain()
        except TimeoutError:
            pass  # it doesn't read any more

    async def close(self) -> None:
        """Closes the connection, and ends what was kept for the client."""
        self.shared.warned.discard(self._warn)
        self.pause()
        self._output.close()
        self._writer.close()
        self._connection.close()
        await self.session.finish(0)
        await self.shared.endpoint.left(self.session.client)

    def pause(self) -> None:
        """Processes nothing more that it sends."""
        if self._reader is not None:
            self._reader.close()

    async def becomes_quiet(self, seconds: float) -> bool:
        """Holds new requests back until those under way are answered. Returns whether they are, so that
        `hand_over` loses none; if not within ``seconds``, what was held back is processed.
        """
        session, has_parked_calls = self.session, self.shared.proxy.has_parked_calls
        if has_parked_calls(session.client):
            return False
        if not session.holds:
            self._held_from = self._processed
            session.hold()
        until = asyncio.get_running_loop().time() + seconds
        while not self.has_ended and (session.busy or has_parked_calls(session.client)):
            if not session.holds or asyncio.get_running_loop().time() > until:
                session.release()
                return False
            await asyncio.sleep(_LOOK)
        return not self.has_ended

    def hand_over(self, to: str) -> None:
        """Tells it to go on with another daemon, or to connect to this one again. to: the version of that, ""
        for none as yet.
        """
        if not self._handed_over:
            read = self._held_from if self.session.holds else self._processed
            self._writer.write(protocol.notice(protocol.HANDOVER, {"read": read, "to": to}))
        self._handed_over = True
        self._ended.set()

    def _warn(self, sentence: str) -> None:
        self._output.send_if_room(protocol.notice(protocol.WARNING, sanitize.one_line(redact(sentence))))

    def _receive(self, data: bytes) -> None:
        if self._handed_over:  # another daemon gets it, and what runs here, too, would run twice
            return
        self._processed += len(data)
        self.session.receive(data)

    def _input_ended(self) -> None:
        if self._handed_over:  # another daemon gets what is left
            return
        # If its process was killed, the last line may lack more than its newline.
        self.session.end(cut=self._reader is None or self._reader.hung_up())
        self._ended.set()


def _write_to(stream: int | socket.socket) -> Writer:
    if isinstance(stream, int):
        return write_to(stream)
    from mcpzip.system.socket_streams import SocketWriter

    return SocketWriter(stream)
