"""A cassette as a stdio server: it writes the recorded lines.

The rule: the client's first request decides. If its era was recorded over stdio, the recorded lines are sent
(`session`); otherwise a server that knows what is in the cassette answers (``other``).
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, Protocol

from mcpzip.cassettes.cassette import Cassette
from mcpzip.model import limits
from mcpzip.model.sanitize import lines as harmless
from mcpzip.wire import LineFramer
from mcpzip_fakes import process
from mcpzip_fakes.faults import NOTHING, Firing, Plan
from mcpzip_fakes.line_writer import LineWriter, Output, ReceivedLines
from mcpzip_fakes.record import Writer
from mcpzip_fakes.replay.faulty_answers import changed, params_of
from mcpzip_fakes.replay.messages import Message, read
from mcpzip_fakes.replay.played import Played
from mcpzip_fakes.replay.report import report
from mcpzip_fakes.replay.session import Happening
from mcpzip_fakes.scenario import Scenario

if TYPE_CHECKING:
    from mcpzip_fakes.replay.real_server import RealServer


class Server(Protocol):
    """A server that answers what the cassette can't."""

    done: asyncio.Event

    def received(self, data: bytes) -> None:
        """Bytes from stdin; b"" is its end."""


class StdioPlayer:
    """One server with one connection. done: is set at its end; exit_code: of the process then."""

    def __init__(
        self,
        scenario: Scenario,
        cassette: Cassette,
        plan: Plan,
        record: Writer,
        output: Output,
        number: int,
        other: Callable[[], Server],
    ) -> None:
        """number: of this process on its record, from 1. other: makes the server for another era."""
        self._loop = asyncio.get_running_loop()
        self._plan, self._record, self._output = plan, record, output
        self._other = other
        self._server: Server | None = None
        self.exit_code = 0
        self.done = asyncio.Event()
        played = Played(scenario, cassette, "stdio")
        self._eras = played.eras
        self._session = played.session(number, self._loop.time())
        self._pending: bytearray | None = bytearray()
        """What came before the first request; None after that."""
        self._framer = LineFramer()
        self._firing: dict[bytes, Firing] = {}
        """By the id of a request: the faults that fire on it."""
        self._seen_request = self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._answers: set[asyncio.Task[None]] = set()
        """Those that are being written as faults change them."""
        self._lines = LineWriter(output, record, self.done)
        self._arrived = ReceivedLines(record)
        self._real = self._real_server(scenario, cassette)
        self._go_on()

    # Bytes in

    def received(self, data: bytes) -> None:
        """Bytes from stdin; b"" is its end."""
        if self._server is not None:
            self._server.received(data)
        elif self._pending is None:
            self._receive(data)
        else:
            self._pending += data
            self._decide(at_end=not data)

    def _decide(self, *, at_end: bool) -> None:
        """Read up to the first request; it shows who answers."""
        assert self._pending is not None
        while self._pending:
            line, newline, rest = self._pending.partition(b"\n")
            if not newline and not at_end and len(line) <= limits.MESSAGE:
                return
            first = read(bytes(line).strip())
            if first.kind == "request" or len(line) > limits.MESSAGE:
                whole, self._pending = bytes(self._pending), None
                if self._eras.has(first):
                    self._receive(whole)
                else:
                    self._hand_over(whole)
                break
            self._pending = rest
            self._receive(bytes(line + newline))
        if at_end:
            self._pending = None
            self.received(b"")

    def _hand_over(self, data: bytes) -> None:
        server = self._server = self._other()
        server.received(data)

        async def ends() -> None:
            await server.done.wait()
            self.done.set()

        self._keep(self._loop.create_task(ends()))

    def _receive(self, data: bytes) -> None:
        """Bytes for the recorded session."""
        self._arrived.received(data)
        if data:
            frames = self._framer.feed(data)
        else:
            last = self._framer.eof()
            frames = [] if last is None else [last]
        for frame in frames:
            if isinstance(frame, bytes):
                message = read(frame)
                self._message(message)
                self._go_on()
        if not data:
            self._closed = True
            self._session.close(self._loop.time())
            if self._real is not None:
                self._keep(self._loop.create_task(self._real.close()))
            self._go_on()

    def _message(self, message: Message) -> None:
        if message.kind == "request":
            self._request(message)
            return
        if self._real is not None and message.kind == "response" and self._real.answer(message):
            return
        run = self._session.receive(message, self._loop.time())
        if self._real is None or message.kind != "notification":
            return
        if run is None:
            self._real.notification(message)
        else:
            self._real.met(message)

    def _real_server(self, scenario: Scenario, cassette: Cassette) -> "RealServer | None":
        """The server that answers what wasn't recorded; None if that is not wished."""
        if scenario.replay is None or not scenario.replay.new:
            return None
        from mcpzip_fakes.replay.real_server import RealServer  # rarely needed, and a fake must start fast

        command = scenario.replay.command or cassette.command
        real = RealServer(command, scenario.replay, self._lines.send, report)
        self._session.beyond = real.request
        return real

    def _request(self, message: Message) -> None:
        firing = self._plan.meet(message.method, params_of(message))
        first, self._seen_request = not self._seen_request, True
        self._firing[message.id_key] = firing
        strict = firing.get("strict-handshake")
        if strict and first and message.method != "initialize":
            process.leave(self._record, "strict-handshake", int(strict.number("code")))
        crash = firing.get("crash")
        if crash and crash.string("when") == "before":
            self._output.flush()
            process.leave(self._record, "crash", int(crash.number("code")), crash.string("text"))
        run = self._session.receive(message, self._loop.time())
        if run is not None:
            self._record.event("played", {"exchange": run.recorded.number})
            if self._real is not None:
                self._real.met(message)
        if firing.get("error") and run is not None:
            self._session.stop(run, message.raw)  # `changed` makes the error of it

    # Bytes out

    def _go_on(self) -> None:
        """Do what is due, and come back when more is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for happening in self._session.happenings(self._loop.time()):
            self._perform(happening)
        for text in self._session.unmatched:
            self._record.event("unmatched", {"text": text})
            report(text)
        self._session.unmatched.clear()
        if (wakes := self._session.wakes) is not None:
            self._timer = self._loop.call_at(wakes, self._go_on)
        elif self._closed and not self._answers:
            self._end_of_input()

    def _perform(self, happening: Happening) -> None:
        event, message = happening.event, happening.message
        firing = NOTHING if message is None else self._firing.get(message.id_key, NOTHING)
        if event.kind == "stderr":
            _write_error(event.data)
        elif event.kind == "end" and self._closed and self._real is not None:
            self._lines.send(event.data)  # the real server is waited for first
        elif event.kind == "end":
            self._end(event.data, event.code)
        elif not firing.faults:
            self._lines.send(happening.data + b"\n")
        elif firing.get("silence") is None:
            if event.kind != "reply" or message is None:
                self._lines.send(happening.data + b"\n")
            else:
                line = changed(happening.data, message, firing)
                self._keep(self._loop.create_task(self._lines.send_answer(line + b"\n", firing)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            self._answers.discard(task)
            if self._closed:
                self._go_on()

        self._answers.add(task)
        task.add_done_callback(ended)

    def _end_of_input(self) -> None:
        """The client has closed its side, and everything is sent."""
        self.exit_code = self._session.exit_code
        if stay := self._plan.at("end"):
            self._loop.call_later(stay[0].number("seconds"), self.done.set)
        else:
            self.done.set()

    def _end(self, data: bytes, code: int | None) -> NoReturn:
        """End as the recorded process did: after an unfinished line, with its exit code or signal."""
        self._lines.send(data)
        self._output.flush()
        if self._real is not None:
            self._real.kill()
        leave(self._record, "recorded", code or 0)


def leave(record: Writer, reason: str, code: int) -> NoReturn:
    """End this process with an exit code, or (negative) by a signal."""
    if code < 0 and sys.platform != "win32":
        record.event("exit", {"reason": reason, "code": code})
        with contextlib.suppress(OSError):  # of SIGKILL it can't be changed
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    process.leave(record, reason, code)


def _write_error(line: bytes) -> None:
    """Write a line that the server wrote to its standard error."""
    if sys.stderr.isatty():
        line = harmless(line.decode("utf-8", "replace")).encode()
    sys.stderr.buffer.write(line + b"\n")
    sys.stderr.buffer.flush()
