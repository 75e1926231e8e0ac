"""stdio: a process for each client.

The rule: three threads a client, so that nothing waits for anything else: one reads stdout, one writes stdin,
one keeps the end of stderr.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from mcpzip.wire import FrameTooLong, LineFramer
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.clients.channel import Sink

_CHUNK = 1 << 16
_KEPT = 4096
"""Characters of stderr that the reason of an end quotes at most."""
_GRACE = 5.0
"""Seconds that the process may take to exit after the end of its input."""


class StdioChannel:
    """See `channel.Channel`. process: the started process."""

    def __init__(
        self, command: Sequence[str], sink: Sink, *, env: Mapping[str, str], cwd: str | Path | None
    ) -> None:
        self._sink = sink
        self._errors = b""
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            start_new_session=sys.platform != "win32",
        )
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._keep, self._write, self._read)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, message: JsonObject) -> None:
        """See `Channel`."""
        self.send_text(msgspec.json.encode(message))

    def send_text(self, text: bytes, id: object = None, headers: Mapping[str, str] | None = None) -> None:
        """See `Channel`."""
        self._outgoing.put(text + b"\n")

    def opened(self) -> None:
        """See `Channel`."""

    def close(self) -> None:
        """Close stdin, wait for the exit, and kill the process if it doesn't come."""
        self._outgoing.put(None)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_GRACE)
        self.kill()

    def kill(self) -> None:
        """SIGKILL for the process alone; what it started stays, as after a crash."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._outgoing.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_GRACE)

    def sweep(self) -> None:
        """End whatever is left of the process's group (POSIX)."""
        self.kill()
        if sys.platform != "win32":
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def _read(self) -> None:
        framer, stdout = LineFramer(), self.process.stdout
        assert stdout is not None
        with suppress(OSError, ValueError), stdout:
            while data := os.read(stdout.fileno(), _CHUNK):
                for frame in framer.feed(data):
                    self._sink.took(frame.head if isinstance(frame, FrameTooLong) else frame)
        self._threads[0].join(_GRACE / 10)  # the rest of stderr says why
        said = self._errors.decode("utf-8", "backslashreplace").strip()
        self._sink.ended("it closed its output" + (f", saying: {said}" if said else ""))

    def _write(self) -> None:
        stdin = self.process.stdin
        assert stdin is not None
        with suppress(OSError, ValueError), stdin:
            while (line := self._outgoing.get()) is not None:
                stdin.write(line)
                stdin.flush()

    def _keep(self) -> None:
        stderr = self.process.stderr
        assert stderr is not None
        with suppress(OSError, ValueError), stderr:
            while data := os.read(stderr.fileno(), _CHUNK):
                self._errors = (self._errors + data)[-_KEPT:]
