"""An upstream that is a process: JSON-RPC a line on its stdin and stdout (spec: basic/transports/stdio).

The rule: results pass byte for byte; whatever else the process prints is kept for the diagnosis and hurts
nobody.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from mcpzip.model import limits
from mcpzip.model.redaction import redact
from mcpzip.system.line_reader import read_lines_from
from mcpzip.system.pipes import Reader, read_from, write_to
from mcpzip.system.process import Child
from mcpzip.system.reaper import Reaper
from mcpzip.transport.base import ChannelClosedError, Dialect, Incoming, ProgressSink
from mcpzip.transport.jsonrpc import JsonRpcConnection

_KEPT_LINES = 40
_KEPT_LINE = 4_000  # a secret that was cut in two is not found again
_SHOWN = 400
_LAST_WORDS_POLL = 0.005  # s
_LAST_WORDS_POLLS = 40
_LOOK = 0.25
"""Seconds between two looks at whether the process lives, while requests wait."""


@asynccontextmanager
async def open_stdio(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    incoming: Incoming,
    guardian: Reaper,
    *,
    grace: Callable[[], float],
    started: Callable[[int], None] = lambda pid: None,
) -> AsyncIterator["StdioChannel"]:
    """Starts the process and ends it, with all that it started, on the way out.

    ``env`` is all of its environment. ``grace`` is asked on the way out:
    seconds between end of input, SIGTERM and SIGKILL. started: is told the number of
    the process. Raises ChannelClosedError (sent=False) when it can't be
    started.
    """
    try:
        child = await Child.start(argv, env, cwd, guardian)
    except OSError as error:
        reason, remedy = _cannot_start(argv[0], cwd, error)
        raise ChannelClosedError(reason, sent=False, remedy=remedy) from error
    started(child.pid)
    channel = StdioChannel(child, incoming)
    try:
        yield channel
    finally:
        channel.close()
        await child.end(grace(), guardian)


def _cannot_start(command: str, cwd: str | None, error: OSError) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    if isinstance(error, FileNotFoundError) and cwd is not None and not os.path.isdir(cwd):
        return f"the working directory {cwd!r} does not exist", "Make it, or mend 'cwd' in the config."
    if isinstance(error, FileNotFoundError):
        return f"the command {command!r} was not found", "Install it, or mend 'command' in the config."
    if isinstance(error, PermissionError):
        return (
            f"the command {command!r} may not be run",
            "Make it executable, or mend 'command' in the config.",
        )
    why = error.strerror or error
    return f"the command {command!r} can't be started ({why})", "Mend 'command' in the config."


class StdioChannel:
    """A `Channel` over a child's pipes."""

    def __init__(self, child: Child, incoming: Incoming) -> None:
        self.dialect: Dialect | None = None
        self._child = child
        self._rpc = JsonRpcConnection(incoming, self._send, full=lambda: self._full, junk=self._remember)
        self._said: deque[str] = deque(maxlen=_KEPT_LINES)
        self._stderr_tail = b""
        self._stderr_done = False
        self._last_words: asyncio.Task[None] | None = None
        self._look: asyncio.TimerHandle | None = None
        self._out: Reader = read_lines_from(
            child.stdout, self._received, self._stdout_ended, at_once=limits.TURN
        )
        self._err: Reader = read_from(child.stderr, self._complained, self._stderr_ended)
        self._in = write_to(child.stdin)

    async def request(
        self,
        method: str,
        params: bytes | None,
        *,
        on_progress: ProgressSink | None = None,
        cancellable: bool = True,
        definition: bytes | None = None,
    ) -> bytes:
        if not self._rpc.waits:
            self._look_after_child()
        if self._last_words is not None and self._rpc.gone is None:
            await asyncio.wait({self._last_words})
        if self._rpc.gone is None and self._full:
            raise ChannelClosedError("it doesn't read what it is sent", sent=False, fatal=False)
        number, line, answer = self._rpc.request(method, params, on_progress)
        self._in.write(line)
        try:
            return await answer
        except asyncio.CancelledError:
            if cancellable and (notice := self._rpc.peer.cancel(number)):
                self._in.write(notice)
            raise
        finally:
            self._rpc.forget(number)

    async def notify(self, method: str, params: bytes | None = None) -> None:
        if self._rpc.gone is None and not self._full:
            self._in.write(self._rpc.peer.notify(method, params))
            await self._in.drain()

    def diagnosis(self) -> str:
        return redact(next((line for line in reversed(self._said) if line), ""))[:_SHOWN]

    def close(self) -> None:
        """Stops reading and writing and fails whatever still waits."""
        if self._last_words is not None:
            self._last_words.cancel()
        if self._look is not None:
            self._look.cancel()
        self._rpc.end("the connection was closed")
        self._out.close()
        self._err.close()
        self._in.close()

    @property
    def _full(self) -> bool:
        """Whether as much as may waits for it to read."""
        return self._in.waiting >= limits.WAITING

    def _send(self, line: bytes) -> None:
        self._in.write(line)

    def _received(self, data: bytes) -> None:
        peer = self._rpc.peer
        for event in peer.receive(data):
            self._rpc.received(event)
        if peer.dropped > limits.DROPPED:
            self._rpc.end(f"it writes a line of more than {limits.DROPPED:,} bytes")

    def _look_after_child(self) -> None:
        """Ends the channel of a process that crashed although what it started keeps its pipes open.

        Exit code 0 proves nothing: a launcher may have left its server running.
        """
        if self._child.exit_code:
            self._stdout_ended()
        elif self._look is None:
            self._look = asyncio.get_running_loop().call_later(_LOOK, self._look_again)

    def _look_again(self) -> None:
        self._look = None
        if self._rpc.waits and self._rpc.gone is None:
            self._look_after_child()

    def _stdout_ended(self) -> None:
        # A process that closed its output is no server any more; its exit code and last words may come a
        # moment later.
        if self._last_words is None:
            self._last_words = asyncio.get_running_loop().create_task(self._wait_for_last_words())

    async def _wait_for_last_words(self) -> None:
        for _ in range(_LAST_WORDS_POLLS):
            if self._child.exit_code is not None and self._stderr_done:
                break
            await asyncio.sleep(_LAST_WORDS_POLL)
        code = self._child.exit_code
        self._rpc.end("it exited" + _exit_words(code) if code is not None else "it closed its output")

    def _complained(self, data: bytes) -> None:
        lines = (self._stderr_tail + data).split(b"\n")
        self._stderr_tail = lines.pop()[-_KEPT_LINE:]
        for line in lines[-_KEPT_LINES:]:
            self._remember(line)

    def _stderr_ended(self) -> None:
        self._stderr_done = True
        self._remember(self._stderr_tail)

    def _remember(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        if text:
            self._said.append(text[:_KEPT_LINE])


def _exit_words(code: int) -> str:
    return f" with code {code}" if code >= 0 else f" on signal {-code}"
