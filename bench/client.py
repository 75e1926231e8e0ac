"""An MCP client over pipes in the standard library: raw JSON-RPC, so that its own time is small.

The rule: it blocks. At most a window of small requests is in flight, which fits into a pipe, so it can't
deadlock; and it runs on every system.
"""

import json
import os
import select
import subprocess
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

CHUNK = 1 << 16
VERSION = "2025-11-25"


class RefusedError(Exception):
    """The subject answered with an error, or ended."""


class GoneError(RefusedError):
    """The subject ended, or didn't answer in time."""


class Client:
    """One subject process and the conversation with it. `started`: when it was spawned (perf_counter s).

    patience: seconds from its spawn after which it is no longer waited for (POSIX).
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        cwd: Path | None = None,
        patience: float | None = None,
    ) -> None:
        self.started = time.perf_counter()
        self.patience = patience
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            cwd=cwd,
            bufsize=0,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._in, self._out = self._process.stdin, self._process.stdout
        self._pieces: list[bytes] = []
        self._lines: deque[bytes] = deque()
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> int:
        """The descriptor of its output."""
        return self._out.fileno()

    def elapsed(self) -> float:
        """Seconds since it was spawned."""
        return time.perf_counter() - self.started

    def close(self) -> None:
        """Closes its input and waits for its exit; kills it after 5 s."""
        self.hang_up()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._out.close()

    def hang_up(self) -> None:
        """Closes its input."""
        self._in.close()

    @property
    def exit_code(self) -> int | None:
        """That of its process, negative for a signal; None while it runs."""
        return self._process.poll()

    def ended(self) -> bool:
        """Whether its process has ended."""
        return self._process.poll() is not None

    def frame(self, method: str, params: object) -> bytes:
        """A request's line; its id is the one after the last."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"

    @property
    def number(self) -> int:
        """The id of the last `frame`."""
        return self._number

    def notify(self, method: str) -> None:
        self.write(b'{"jsonrpc":"2.0","method":"%b"}\n' % method.encode())

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._in.fileno(), rest) :]

    def line(self) -> bytes:
        """The next line. Raises GoneError if there is none."""
        while not self._lines:
            if self.patience is not None:
                left = max(self.patience - self.elapsed(), 0)
                if not select.select([self._out], [], [], left)[0]:
                    raise GoneError(f"it did not answer within {self.patience:.0f} s")
            data = os.read(self._out.fileno(), CHUNK)
            if not data:
                raise GoneError("it closed its output")
            self._pieces.append(data)
            if b"\n" in data:
                *lines, rest = b"".join(self._pieces).split(b"\n")
                self._lines.extend(lines)
                self._pieces = [rest]
        return self._lines.popleft()

    def answer(self) -> dict[str, object]:
        """The next answer's result, parsed as a client must. Raises RefusedError."""
        while True:
            message = json.loads(self.line())
            if "result" in message:
                result: dict[str, object] = message["result"]
                if result.get("isError"):
                    raise RefusedError(str(result)[:300])
                return result
            if "error" in message:
                raise RefusedError(str(message["error"])[:300])

    def ask(self, method: str, params: object) -> dict[str, object]:
        self.write(self.frame(method, params))
        return self.answer()

    def initialize(self, capabilities: Mapping[str, object] | None = None) -> None:
        """The handshake. capabilities: of the client, none if not given."""
        said = {"protocolVersion": VERSION, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", {**said, "capabilities": capabilities or {}})
        self.notify("notifications/initialized")

    def call(self, params: object) -> dict[str, object]:
        """`tools/call`."""
        return self.ask("tools/call", params)

    def in_flight(self, frames: Iterable[bytes], window: int) -> float:
        """Sends ``frames`` with at most ``window`` of them unanswered. Returns the seconds until the last
        answer."""
        waiting = deque(frames)
        begun = time.perf_counter()
        open_ = 0
        while waiting or open_:
            burst = []
            while waiting and open_ < window:
                burst.append(waiting.popleft())
                open_ += 1
            if burst:
                self.write(b"".join(burst))
            self.answer()
            open_ -= 1
            while self._lines and open_:  # a notification may follow the last answer
                self.answer()
                open_ -= 1
        return time.perf_counter() - begun
