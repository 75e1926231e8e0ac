"""Commands that ask a running daemon something. They block."""

import time
from contextlib import closing

from mcpzip.model.errors import McpzipError
from mcpzip.server.daemon import protocol
from mcpzip.server.daemon.connector import Connector, UnavailableError
from mcpzip.system import local_socket
from mcpzip.system.readiness import wait

TIMEOUT = 5.0
"""Seconds in which a daemon has to answer, or to end."""
_LONGEST_ANSWER = 64 << 20
_LOOK = 0.02


class DaemonSilentError(McpzipError):
    """The daemon runs and does not answer, as if it was suspended."""


def ask(config: str, project: str, kind: str, **said: object) -> object:
    """The daemon's answer to a command of ``protocol``; None if no daemon runs. Raises DaemonSilentError."""
    connection = _connect(config, project)
    if connection is None:
        return None
    with closing(connection):
        connection.settimeout(TIMEOUT)
        try:
            connection.sendall(protocol.greeting(kind, said))
            line = b""
            while not line.endswith(b"\n"):
                data = connection.recv(1 << 18)
                if not data or len(line) > _LONGEST_ANSWER:
                    return None  # it has just ended
                line += data
        except TimeoutError:
            raise DaemonSilentError(
                f"The daemon does not answer within {TIMEOUT:g} s. If it is suspended, end its process: "
                "mcpzip status shows the process id."
            ) from None
        except OSError:
            return None
    name, value = protocol.read_notice(line)
    return value if name == protocol.ANSWER else None


def wait_for_end(config: str, project: str) -> bool:
    """Waits until no daemon takes connections, `TIMEOUT` seconds at most. Returns whether none does. Its
    servers may still be ending then; the next daemon waits for that.
    """
    until = time.monotonic() + TIMEOUT
    while (connection := _connect(config, project)) is not None:
        connection.close()
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK)
    return True


def start(config: str, project: str, explicit_config: str | None) -> None:
    """Starts the daemon unless it runs. Returns when it takes connections. Raises UnavailableError."""
    connector = Connector(config, project, explicit_config)
    try:
        while (connection := connector.proceed(time.monotonic())) is None:
            news = [connector.output] if connector.output >= 0 else []
            wait(news, (), max(0.0, connector.wake_at - time.monotonic()))
        connection.close()
    finally:
        connector.close()


def _connect(config: str, project: str) -> local_socket.Connection | None:
    try:
        return local_socket.connect(protocol.socket_and_lock(config, project)[0])
    except OSError:
        return None


__all__ = ["DaemonSilentError", "UnavailableError", "ask", "start", "wait_for_end"]
