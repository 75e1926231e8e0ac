"""The listening end of `loopback`.

The rules:

1. Threads accept and prove, because while a daemon is being loaded nothing else could.
2. Nobody gets more than `loopback.TIMEOUT` seconds, and no more than `WELCOMING` connections are unproven at
   a time. Nothing of what they send is parsed before.
"""

import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from mcpzip.system.files import write_atomic
from mcpzip.system.loopback import (
    CALLER,
    HOST,
    LISTENER,
    SIZE,
    TIMEOUT,
    is_same,
    prepare,
    proof_of,
    receive,
    written,
)

WELCOMING = 64
"""Connections at a time that have proved nothing yet. Further ones are closed."""
_PAUSE = 0.5
"""Seconds without new connections after one could not be taken."""


class Listener:
    """Listens on loopback, and has accepted those that know the token. Thread-safe."""

    def __init__(self, path: str, backlog: int) -> None:
        """path: of the file with the port and the token. Raises OSError."""
        self._token = os.urandom(SIZE)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._accepted: deque[socket.socket] = deque()
        self._lock = threading.Lock()
        self._ready: Callable[[], object] | None = None
        self._is_open = True
        self._welcoming = threading.Semaphore(WELCOMING)
        try:
            if sys.platform == "win32":  # else another process could listen at the same port
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
            self._socket.bind((HOST, 0))
            self._socket.listen(backlog)
            port = self._socket.getsockname()[1]
            write_atomic(path, written(port, self._token), 0o600, follow=False)
        except BaseException:
            self._socket.close()
            raise
        threading.Thread(target=self._run, name="accept", daemon=True).start()

    def accept(self) -> tuple[socket.socket, None]:
        """The next connection, non-blocking. Raises BlockingIOError if there is none."""
        try:
            return self._accepted.popleft(), None
        except IndexError:
            raise BlockingIOError from None

    def watch(self, ready: Callable[[], object] | None) -> None:
        """Has ``ready`` called, in any thread, for the connections that were and will be accepted; None: no
        more.
        """
        with self._lock:
            self._ready = ready
            if ready is not None and self._accepted:
                ready()

    def close(self) -> None:
        """Listens no more. Connections that nobody took are closed."""
        with self._lock:
            self._is_open = False
            self._ready = None
        try:
            self._socket.shutdown(2)  # wakes the thread on Linux; closing it does elsewhere
        except OSError:
            pass
        self._socket.close()
        while self._accepted:
            self._accepted.popleft().close()

    def _run(self) -> None:
        while self._is_open:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed, or there are no descriptors left
                if self._is_open:
                    time.sleep(_PAUSE)
                continue
            if not self._welcoming.acquire(blocking=False):
                connection.close()
                continue
            try:
                threading.Thread(target=self._welcome, args=(connection,), name="hello", daemon=True).start()
            except RuntimeError:  # the system allows no more threads
                self._welcoming.release()
                connection.close()

    def _welcome(self, connection: socket.socket) -> None:
        try:
            proven = self._proves(connection)
        except OSError:
            proven = False
        finally:
            self._welcoming.release()
        with self._lock:
            if proven and self._is_open:
                self._accepted.append(connection)
                if self._ready is not None:
                    self._ready()
                return
        connection.close()

    def _proves(self, connection: socket.socket) -> bool:
        """Whether the process at the other end knows the token. Raises OSError."""
        until = time.monotonic() + TIMEOUT
        connection.settimeout(TIMEOUT)
        theirs, mine = receive(connection, SIZE, until), os.urandom(SIZE)
        if len(theirs) < SIZE:
            return False
        connection.sendall(mine + proof_of(self._token, LISTENER, theirs, mine))
        proof = receive(connection, SIZE, until)
        if not is_same(proof, proof_of(self._token, CALLER, theirs, mine)):
            return False
        prepare(connection)
        return True
