"""The daemon of a measured config: asking it, ending it, and finding every process that a config has.

The rule: a measurement leaves no daemon behind, whatever becomes of it.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from mcpzip.server.daemon import protocol
from mcpzip.system import local_socket

_PROC = Path("/proc")
_PATIENCE = 20.0
_LOOK = 0.01


class Daemon:
    """The daemon of ``config``, whether it runs or not. socket, lock: the paths of its files."""

    def __init__(self, config: Path) -> None:
        self.socket, self.lock = protocol.socket_and_lock(str(config), "")

    def ask(self, kind: str) -> object:
        """What it answers to a command; None if it doesn't run or doesn't answer."""
        try:
            connection = local_socket.connect(self.socket)
            if connection is None:
                return None
            with closing(connection):
                connection.settimeout(_PATIENCE)
                connection.sendall(protocol.greeting(kind, {}))
                line = b""
                while not line.endswith(b"\n"):
                    data = connection.recv(1 << 16)
                    if not data:
                        return None
                    line += data
        except OSError:
            return None
        return protocol.read_notice(line)[1]

    @property
    def pid(self) -> int | None:
        """Its process id; None if it doesn't run."""
        said = self.ask("ping")
        return said["pid"] if isinstance(said, dict) else None

    @property
    def is_gone(self) -> bool:
        """Whether no process holds its lock."""
        if not os.path.isdir(os.path.dirname(self.lock)):
            return True
        lock = local_socket.take_lock(self.lock)
        if lock is not None:
            os.close(lock)
        return lock is not None

    def stop(self) -> None:
        """Ends it, and waits until it has gone. Raises SystemExit if it stays."""
        self.ask("stop")
        if not within(_PATIENCE, lambda: self.is_gone):
            raise SystemExit(f"The daemon with the lock {self.lock} does not end.")


@contextmanager
def daemon_of(config: Path) -> Iterator[Daemon]:
    """The daemon of ``config``, which is ended with the block."""
    daemon = Daemon(config)
    try:
        yield daemon
    finally:
        daemon.stop()


def within(seconds: float, true: Callable[[], bool]) -> bool:
    """Waits until something is true. Returns whether it became so in time."""
    late = time.monotonic() + seconds
    while not true():
        if time.monotonic() > late:
            return False
        time.sleep(_LOOK)
    return True


def processes_of(folder: Path) -> dict[int, str]:
    """The running processes whose command line or environment names ``folder``, and those that they have
    started: process id -> command line (Linux).
    """
    mark, marked, parents, commands = os.fsencode(folder), set(), {}, {}
    for path in _PROC.glob("[0-9]*"):
        pid = int(path.name)
        with suppress(OSError):
            command, variables = (path / "cmdline").read_bytes(), (path / "environ").read_bytes()
            state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
            if state == "Z" or pid == os.getpid():
                continue
            parents[pid] = int(parent)
            commands[pid] = command.replace(b"\0", b" ").decode("utf-8", "replace").strip()
            if mark in command or mark in variables:
                marked.add(pid)
    more = marked
    while more:
        more = {pid for pid, parent in parents.items() if parent in more} - marked
        marked |= more
    return {pid: commands[pid] for pid in marked}


def end_all(folder: Path) -> None:
    """Kills what is left of the processes of ``folder``."""
    for pid in processes_of(folder):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
