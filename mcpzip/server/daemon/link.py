"""The connection of a `mcpzip serve` to a daemon, and the question whether that daemon still runs.

`server.shim` imports this module at every start, so it imports only small modules of the standard library.
"""

import math
from _socket import AF_INET, MSG_PEEK  # see `local_socket`

from mcpzip.server.daemon import protocol
from mcpzip.system import local_socket

_CHUNK = 1 << 16


class Link:
    """A connection to a daemon. accept_until: when it has to have accepted the client (monotonic s), infinity
    once it has; accepted: whether it has. waiting: the bytes that it has not taken yet. held: what follows
    them once it has accepted the client; a daemon that was suspended would otherwise process it after the
    client was served otherwise. pid: of its process, 0 until it has said so.
    """

    def __init__(
        self, connection: local_socket.Connection, first: bytes, held: bytes, accept_until: float
    ) -> None:
        connection.setblocking(False)
        self.connection, self.waiting, self.accept_until = connection, bytearray(first), accept_until
        self.held = bytearray(held)
        self.pid = 0
        self.accepted = False
        self.half_closed = self.broken = False
        self._is_tcp = connection.family == AF_INET

    @property
    def unsent(self) -> int:
        """The bytes of the client that it has not taken yet, and before it has accepted the client, all."""
        return len(self.waiting) + len(self.held)

    def accept(self, pid: int) -> None:
        """It has accepted the client."""
        self.accept_until, self.accepted = math.inf, True
        self.pid = pid
        self.waiting += self.held
        self.held.clear()

    def add(self, data: bytes) -> None:
        """The client has sent ``data``."""
        if self.accepted:
            self.waiting += data
        else:
            self.held += data

    def forward(self, data: bytes) -> None:
        """The client has sent ``data``: sends what it takes of it."""
        if self.waiting or not self.accepted or self._is_tcp:
            self.add(data)
            self.send()
            return
        try:
            sent = self.connection.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:  # as in `send`
            self.broken, sent = True, 0
        if sent < len(data):
            self.waiting += data[sent:]

    def send(self) -> None:
        """Sends what it takes."""
        if self._is_tcp and self._has_ended():  # it would be taken, and lost
            self.broken = True
            return
        try:
            del self.waiting[: self.connection.send(self.waiting)]
        except BlockingIOError:
            pass
        except OSError:  # it has ended, without these bytes; what it said last is still to be read
            self.broken = True

    def receive(self) -> "bytes | None":
        """What it says; b"" at the end, None for nothing."""
        try:
            return self.connection.recv(_CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _has_ended(self) -> bool:
        """Whether its process has closed the connection."""
        try:
            return not self.connection.recv(1, MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def half_close(self) -> None:
        """Says that the client sends no more."""
        self.half_closed = True
        try:
            self.connection.shutdown(1)  # SHUT_WR
        except OSError:
            pass

    def is_suspended(self) -> bool:
        """Whether its process is known to be suspended. Only Linux tells (proc(5))."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                state = file.read(4096).rpartition(b")")[2].split()[0]
        except (OSError, IndexError):
            return False
        return state in (b"T", b"t")


class Probe:
    """The question whether the daemon with the process id ``pid`` (0: not known) runs, on a connection of its
    own.
    """

    def __init__(self, connection: local_socket.Connection, pid: int) -> None:
        """Raises OSError."""
        self.connection, self._pid = connection, pid
        connection.send(protocol.greeting("ping", {}))

    def hear(self) -> "bool | None":
        """Whether it runs, now that something arrived; None if another daemon answers, or nothing is said."""
        try:
            name, value = protocol.read_notice(self.connection.recv(_CHUNK))
        except OSError:
            return None
        if name != protocol.ANSWER or not isinstance(value, dict):
            return None
        return True if value.get("pid") == self._pid or not self._pid else None
