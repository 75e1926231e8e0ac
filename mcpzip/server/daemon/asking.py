"""Commands that ask a running daemon something. They block."""

import os
import time
from collections.abc import Mapping
from contextlib import closing

from mcpzip.model.errors import McpzipError
from mcpzip.server.daemon import protocol
from mcpzip.server.daemon.connector import Connector, UnavailableError
from mcpzip.system import local_socket
from mcpzip.system.files import remove_file
from mcpzip.system.readiness import wait

TIMEOUT = 5.0
"""Seconds in which a daemon has to answer, or to end."""
_SILENT = (
    f"The daemon does not answer within {TIMEOUT:g} s. If it is suspended, end its process: "
    "mcpzip status shows the process id."
)
_LONGEST_ANSWER = 64 << 20
_LOOK = 0.02
_RETIRING = 20
"""Daemons that have given way, of which reports are asked for."""


class DaemonSilentError(McpzipError):
    """The daemon runs and does not answer, as if it was suspended."""


def ask(config: str, project: str, kind: str, **said: object) -> object:
    """The daemon's answer to a command of ``protocol``; None if no daemon runs. Raises DaemonSilentError."""
    connection = _connect(protocol.socket_and_lock(config, project)[0])
    return None if connection is None else _answer(connection, kind, said)


def ask_retiring(config: str, project: str) -> list[object]:
    """The reports of older daemons that have given way, and still serve agents. Removes the sockets of those
    that were killed. Raises DaemonSilentError.
    """
    folder = os.path.dirname(protocol.socket_and_lock(config, project)[0])
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    names = [name for name in names if name.startswith(protocol.RETIRING) and name.endswith(protocol.ENDING)]
    found: list[object] = []
    for path in (os.path.join(folder, name) for name in names[:_RETIRING]):
        if (connection := _connect(path)) is None:
            _remove(path)
        elif isinstance(report := _answer(connection, "report", {}), dict) and (
            (report.get("config"), report.get("project")) == (config, project)
        ):
            found.append(report)
    return found


def _answer(connection: local_socket.Connection, kind: str, said: Mapping[str, object]) -> object:
    """The answer of the daemon at the other end, which is closed then; see `ask`."""
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
            raise DaemonSilentError(_SILENT) from None
        except OSError:
            return None
    name, value = protocol.read_notice(line)
    return value if name == protocol.ANSWER else None


def wait_for_end(config: str, project: str) -> bool:
    """Waits until no daemon takes connections, `TIMEOUT` seconds at most. Returns whether none does. Its
    servers may still be ending then; the next daemon waits for that.
    """
    until = time.monotonic() + TIMEOUT
    path = protocol.socket_and_lock(config, project)[0]
    while (connection := _connect(path)) is not None:
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


def _connect(path: str) -> local_socket.Connection | None:
    """Raises DaemonSilentError."""
    try:
        return local_socket.connect(path)
    except TimeoutError:
        raise DaemonSilentError(_SILENT) from None
    except OSError:
        return None


def _remove(path: str) -> None:
    try:
        remove_file(path)
    except OSError:
        pass


__all__ = ["DaemonSilentError", "UnavailableError", "ask", "ask_retiring", "start", "wait_for_end"]
