"""Records a server on stdio: runs it, and passes everything on between it and the client.

The rules:

- Bytes pass unchanged and at once, also half lines; each direction has a thread, so none waits for another.
- What the client sees of the recorder is what it would see of the server: its exit code or the signal that
  ended it, closed pipes, and signals reach it.
- The server's process group ends with the server. Windows has none: there its tree of processes is ended.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from mcpzip.cassettes.process_tap import ProcessTap
from mcpzip.cassettes.tape import Tape
from mcpzip.model.errors import ConfigError

_CHUNK = 1 << 16
_LAST_OUTPUT = 0.5
"""Seconds for what the server has written to arrive once it has exited: others may hold its pipes."""
_POLL = 0.01
_TASKKILL = 5.0
_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")


def record(
    command: Sequence[str], tape: Tape, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> int:
    """Runs ``command`` until it exits, recorded. env, cwd: its environment and its working folder; None for
    ours. Returns its exit code; negative: of the signal that ended
    it. The tape is closed then. Raises ConfigError if it can't be started, CassetteError.
    """
    child = _start(command, env, cwd)
    try:
        tape.begin(command=command)
    except BaseException:
        child.kill()
        _sweep(child)
        raise
    for name in _SIGNALS:
        if number := getattr(signal, name, None):
            signal.signal(number, lambda number, frame: _forward(child, number))
    relay = _Relay(child, tape)
    code = child.wait()
    relay.drain()
    _sweep(child)
    relay.tap.ended(code)
    tape.close()
    return code


def exit_as(code: int) -> None:
    """Ends this process as the server ended; threads that wait for the client are left behind."""
    sys.stderr.flush()
    if code < 0 and sys.platform != "win32":
        with suppress(OSError):  # of SIGKILL it can't be changed
            signal.signal(-code, signal.SIG_DFL)
        if -code in (
            signal.SIGQUIT,
            signal.SIGABRT,
            signal.SIGSEGV,
            signal.SIGBUS,
            signal.SIGFPE,
            signal.SIGILL,
        ):
            import resource

            with suppress(ValueError, OSError):  # the server has made its core file already
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF if sys.platform != "win32" else code)


class _Relay:
    """The three threads. tap: records what passes."""

    def __init__(self, child: "subprocess.Popen[bytes]", tape: Tape) -> None:
        self.tap = ProcessTap(tape)
        self._child = child
        assert child.stdout
        assert child.stderr
        self._reads_since: dict[int, float] = {}  # by descriptor, when a thread began to wait for it
        self._outputs = {
            child.stdout.fileno(): _thread(self._output),
            child.stderr.fileno(): _thread(self._errors),
        }
        _thread(self._input)

    def drain(self) -> None:
        """Waits until the output of a server that has exited has passed, however slowly the client reads."""
        exited = time.monotonic()
        for source, thread in self._outputs.items():
            while thread.is_alive():
                thread.join(_POLL)
                waits_since = self._reads_since.get(source)
                if waits_since and time.monotonic() - max(exited, waits_since) > _LAST_OUTPUT:
                    break

    def _input(self) -> None:
        assert self._child.stdin
        self._pass_on(0, self._child.stdin.fileno(), self.tap.client)
        self.tap.client_closed()
        with suppress(OSError):
            self._child.stdin.close()
        _close(0, os.O_RDONLY)

    def _output(self) -> None:
        assert self._child.stdout
        self._pass_on(self._child.stdout.fileno(), 1, self.tap.server)
        self._child.stdout.close()
        _close(1, os.O_WRONLY)

    def _errors(self) -> None:
        assert self._child.stderr
        self._pass_on(self._child.stderr.fileno(), 2, self.tap.stderr)
        self._child.stderr.close()  # ours stays open: the recorder itself says something there

    def _pass_on(self, source: int, target: int, note: Callable[[bytes], None]) -> None:
        """Passes everything on until the source ends or the target is closed; both are to be closed then, as
        they would be without a recorder in between."""
        while data := self._read(source):
            note(data)
            if not _write(target, data):
                return

    def _read(self, source: int) -> bytes:
        self._reads_since[source] = time.monotonic()
        data = _read(source)
        self._reads_since.pop(source)
        return data


def _start(
    command: Sequence[str], env: Mapping[str, str] | None, cwd: str | None
) -> "subprocess.Popen[bytes]":
    words = list(command)
    try:
        if sys.platform == "win32":
            import shutil

            # CreateProcess finds only .exe files by name; others, such as npx.cmd, need their path.
            words[0] = shutil.which(words[0]) or words[0]
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=env,
            cwd=cwd,
            start_new_session=sys.platform != "win32",
        )
    except OSError as error:
        why = "was not found" if isinstance(error, FileNotFoundError) else f"can't be run ({error.strerror})"
        raise ConfigError("--", "", f"the command {words[0]!r} {why}", "correct what follows --") from error


def _forward(child: "subprocess.Popen[bytes]", number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            child.terminate()
        else:
            os.killpg(child.pid, number)


def _sweep(child: "subprocess.Popen[bytes]") -> None:
    """Ends what the server has started."""
    if sys.platform == "win32":
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(child.pid)],
                capture_output=True,
                timeout=_TASKKILL,
                check=False,
            )
    else:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _close(descriptor: int, mode: int) -> None:
    """Closes it, and leaves its number to no other file."""
    nothing = os.open(os.devnull, mode)
    os.dup2(nothing, descriptor)
    os.close(nothing)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # closed, which Windows says so
        return b""


def _write(descriptor: int, data: bytes) -> bool:
    """Whether ``data`` could be written."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:  # whoever started us shares it with somebody
            import select

            select.select([], [descriptor], [])
        except OSError:
            return False
    return True
