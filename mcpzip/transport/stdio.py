"""The stdio transport: an upstream process, one JSON-RPC message a line (spec: basic/transports/stdio).

The rule: results pass byte for byte; any other output of the process does no harm, and its last lines are
kept for error messages: those on stderr, and text on stdout that is not MCP.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from mcpzip.model import limits
from mcpzip.model.error_line import error_line
from mcpzip.model.quoting import quoted
from mcpzip.system.event_log import Stream
from mcpzip.system.line_reader import read_lines_from
from mcpzip.system.pipes import Reader, Writer, read_from, write_to
from mcpzip.system.process import Child
from mcpzip.system.reaper import Reaper
from mcpzip.transport.base import (
    ChannelClosedError,
    Dialect,
    Incoming,
    Origin,
    ProcessTap,
    ProgressSink,
)
from mcpzip.transport.jsonrpc import JsonRpcConnection

_KEPT_LINES = 100
_KEPT_JUNK = 10
_KEPT_LINE_LENGTH = 4_000  # characters; a secret that is cut is not redacted
_WRONG_STREAM = "ask its author to write logs to stderr"
_NEWLINE = ord("\n")
_EXIT_POLL = 0.005  # s
_EXIT_POLLS = 40
Output = Callable[[Stream, Sequence[bytes]], None]
_CHECK_INTERVAL = 0.25
"""Seconds between two checks whether the process is alive, while requests wait."""


@asynccontextmanager
async def open_stdio(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    incoming: Incoming,
    reaper: Reaper,
    *,
    grace: Callable[[], float],
    started: Callable[[int], None] = lambda pid: None,
    output: Output = lambda stream, lines: None,
    tap: Callable[[], ProcessTap] | None = None,
) -> AsyncIterator["StdioChannel"]:
    """Starts the process; at the end of the context, ends it and all that it started.

    env: all of its environment. grace: called at the end, gives the seconds between end of input, SIGTERM and
    SIGKILL. started: called with the process id. output: called with the lines that the process writes
    outside the protocol. tap: called once it has started, gives what records it. Raises ChannelClosedError
    (sent=False) when the process can't be started.
    """
    try:
        child = await Child.start(argv, env, cwd, reaper)
    except OSError as error:
        reason, remedy = _cannot_start(argv[0], cwd, error)
        raise ChannelClosedError(reason, sent=False, remedy=remedy) from error
    started(child.pid)
    recording = None if tap is None else tap()
    channel = StdioChannel(child, incoming, output, recording)
    try:
        yield channel
    finally:
        channel.close()
        try:
            await child.end(grace(), reaper)
        finally:
            if recording is not None:
                recording.ended(child.exit_code)


def _cannot_start(command: str, cwd: str | None, error: OSError) -> tuple[str, str]:
    """The reason and the remedy."""
    if isinstance(error, FileNotFoundError) and cwd is not None and not os.path.isdir(cwd):
        return f"the working directory {cwd!r} does not exist", "Make it, or fix 'cwd' in the config."
    if isinstance(error, FileNotFoundError):
        first, *rest = command.split()
        if rest and not os.path.dirname(first):
            return (
                f"the command {command!r} was not found",
                f"Put {first!r} into 'command', the rest into 'args'.",
            )
        return f"the command {command!r} was not found", "Install it, or fix 'command' in the config."
    if isinstance(error, PermissionError):
        return (
            f"the command {command!r} may not be run",
            "Make it executable, or fix 'command' in the config.",
        )
    why = error.strerror or error
    return f"the command {command!r} can't be started ({why})", "Fix 'command' in the config."


class StdioChannel:
    """A `Channel` over a child's pipes."""

    def __init__(
        self, child: Child, incoming: Incoming, output: Output, tap: ProcessTap | None = None
    ) -> None:
        self.dialect: Dialect | None = None
        self._child, self._output = child, output
        self._rpc = JsonRpcConnection(incoming, self._send, full=lambda: self._full, junk=self._keep_junk)
        self._stderr_lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._junk_lines: deque[str] = deque(maxlen=_KEPT_JUNK)
        self._diagnosis: str | None = None  # until another line arrives: all open requests ask for it
        self._stderr_tail = b""
        self._stderr_done = False
        self._exiting: asyncio.Task[None] | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        received: Callable[[bytes], None] = self._received
        said: Callable[[bytes], None] = self._stderr_received
        self._stdin: Writer = write_to(child.stdin)
        if tap is not None:
            received, said = _before(tap.server, received), _before(tap.stderr, said)
            self._stdin = _TappedWriter(self._stdin, tap)
        self._stdout: Reader = read_lines_from(
            child.stdout, received, self._stdout_ended, at_once=limits.TURN
        )
        self._stderr: Reader = read_from(child.stderr, said, self._stderr_ended)

    async def request(
        self,
        method: str,
        params: bytes | None,
        *,
        on_progress: ProgressSink | None = None,
        cancellable: bool = True,
        definition: bytes | None = None,
        origin: Origin | None = None,
    ) -> bytes:
        if not self._rpc.waits:
            self._check_child()
        if self._exiting is not None and self._rpc.gone is None:
            await asyncio.wait({self._exiting})
        if self._rpc.gone is None and self._full:
            raise ChannelClosedError("it doesn't read what it is sent", sent=False, fatal=False)
        number, line, answer = self._rpc.request(method, params, on_progress)
        self._stdin.write(line)
        try:
            return await answer
        except asyncio.CancelledError:
            if cancellable and (notice := self._rpc.peer.cancel(number)):
                self._stdin.write(notice)
            raise
        finally:
            self._rpc.forget(number)

    async def notify(self, method: str, params: bytes | None = None) -> None:
        if self._rpc.gone is None and not self._full:
            self._stdin.write(self._rpc.peer.notify(method, params))
            await self._stdin.drain()

    def diagnosis(self) -> str:
        if self._diagnosis is None:
            said, printed = error_line(self._stderr_lines), error_line(self._junk_lines)
            self._diagnosis = f", saying {quoted(said)}" if said else ""
            if printed:
                wrong = f"it printed text on stdout that is not MCP: {quoted(printed)}"
                self._diagnosis += f"; {wrong}; {_WRONG_STREAM}"
        return self._diagnosis

    def close(self) -> None:
        """Stops reading and writing and fails all open requests."""
        if self._exiting is not None:
            self._exiting.cancel()
        if self._check_timer is not None:
            self._check_timer.cancel()
        self._rpc.end("the connection was closed")
        self._stdout.close()
        self._stderr.close()
        self._stdin.close()

    @property
    def _full(self) -> bool:
        """Whether the process has left the maximum of our output unread."""
        return self._stdin.waiting >= limits.WAITING

    def _send(self, line: bytes) -> None:
        self._stdin.write(line)

    def _received(self, data: bytes) -> None:
        peer = self._rpc.peer
        events = peer.receive(data)
        for event in events:
            self._rpc.received(event, alone=len(events) == 1)
        if data[-1] != _NEWLINE and peer.dropped > limits.DROPPED:
            self._rpc.end(f"it writes a line of more than {limits.DROPPED:,} bytes")

    def _check_child(self) -> None:
        """Closes the channel of a process that crashed while its children keep its pipes open.

        Exit code 0 proves nothing, because a launcher may have left its server running.
        """
        if self._child.exit_code:
            self._stdout_ended()
        elif self._check_timer is None:
            self._check_timer = asyncio.get_running_loop().call_later(_CHECK_INTERVAL, self._check_again)

    def _check_again(self) -> None:
        self._check_timer = None
        if self._rpc.waits and self._rpc.gone is None:
            self._check_child()

    def _stdout_ended(self) -> None:
        # The exit code and the last lines of stderr may arrive a moment after the end of stdout.
        if self._exiting is None:
            self._exiting = asyncio.get_running_loop().create_task(self._wait_for_exit())

    async def _wait_for_exit(self) -> None:
        for _ in range(_EXIT_POLLS):
            if self._child.exit_code is not None and self._stderr_done:
                break
            await asyncio.sleep(_EXIT_POLL)
        code = self._child.exit_code
        self._rpc.end("it exited" + _exit_reason(code) if code is not None else "it closed its output")

    def _stderr_received(self, data: bytes) -> None:
        lines = (self._stderr_tail + data).split(b"\n")
        self._stderr_tail = lines.pop()[-_KEPT_LINE_LENGTH:]
        self._keep(lines)

    def _stderr_ended(self) -> None:
        self._stderr_done = True
        self._keep([self._stderr_tail])

    def _keep(self, lines: Sequence[bytes]) -> None:
        self._diagnosis = None
        self._stderr_lines.extend(filter(None, map(_text, lines[-_KEPT_LINES:])))
        if lines:
            self._output("stderr", lines)

    def _keep_junk(self, line: bytes) -> None:
        if text := _text(line):
            self._diagnosis = None
            self._junk_lines.append(text)
            self._output("stdout", [line])


class _TappedWriter:
    """A `Writer` whose data is recorded, too."""

    def __init__(self, writer: Writer, tap: ProcessTap) -> None:
        self._writer, self._tap = writer, tap
        self.drain = writer.drain
        self._closed = False

    @property
    def waiting(self) -> int:
        return self._writer.waiting

    def write(self, data: bytes) -> None:
        self._tap.client(data)
        self._writer.write(data)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._tap.client_closed()
        self._writer.close()


def _before(first: Callable[[bytes], None], then: Callable[[bytes], None]) -> Callable[[bytes], None]:
    def both(data: bytes) -> None:
        first(data)
        then(data)

    return both


def _text(line: bytes) -> str:
    return line[: 4 * _KEPT_LINE_LENGTH].decode("utf-8", "replace").rstrip()[:_KEPT_LINE_LENGTH]


def _exit_reason(code: int) -> str:
    return f" with code {code}" if code >= 0 else f" on signal {-code}"
