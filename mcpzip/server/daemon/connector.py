"""Connects `mcpzip serve` and commands to the daemon of a config; starts one if there is none.

`server.shim` imports this module at every start, so it imports only small modules of the standard library.
"""

import json
import math
import os
import sys

import mcpzip
from mcpzip.config.paths import PROJECT_VARIABLE, expand_home, is_named
from mcpzip.model import limits
from mcpzip.server.daemon import protocol
from mcpzip.system import local_socket
from mcpzip.system.detached import start_detached

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from mcpzip.system.detached import Output
    from mcpzip.system.pumps import InputPump

START_TIMEOUT = 30.0
"""Seconds in which a daemon that was started has to listen. It takes a hundredth of that on a quiet machine.
"""
_PROGRAM = os.path.join(os.path.dirname(mcpzip.__file__), "__main__.py")
"""What `python -m mcpzip` runs. To find it takes the interpreter 3 ms."""
_RETRY = 0.02
"""Seconds between two attempts to connect to a daemon that another process starts."""


class UnavailableError(Exception):
    """There is no daemon, and none can be started."""


class Connector:
    """The search for a daemon. output: the descriptor that is readable when there is news of a daemon that
    was started, -1 while none is being started. wake_at: when to `proceed` without news (monotonic s).
    """

    def __init__(self, config: str, project: str, explicit_config: "str | None") -> None:
        """config, project: the paths of the files. explicit_config: the option of the command line."""
        self._config, self._explicit, self._project = config, explicit_config, project
        self._path, self._lock = protocol.socket_and_lock(config, project)
        self.output = -1
        self._output: Output | InputPump | None = None
        self.wake_at = math.inf
        self._start_at = self._give_up_at = 0.0

    def begin(self, now: float, start_at: float = 0.0) -> "local_socket.Connection | None":
        """Begins to look for a daemon; see `proceed`. start_at: until then none is started here."""
        self._start_at = start_at
        return self.proceed(now)

    def connect(self) -> "local_socket.Connection | None":
        """A connection to the daemon, if one listens now. Raises OSError."""
        try:
            return local_socket.connect(self._path)
        except TimeoutError:  # on loopback: another process may have got the port of one that was killed
            if local_socket.remove_left_over(self._path, self._lock):
                return None
            raise

    @property
    def can_be_asked(self) -> bool:
        """Whether there is a socket at all at which a daemon may listen."""
        return local_socket.identity(self._path) is not None

    def proceed(self, now: float) -> "local_socket.Connection | None":
        """A connection to the daemon; None if it is not there yet. Raises UnavailableError."""
        try:
            connection = self.connect()
            if connection is None and self.output >= 0:
                connection = self._hear(now)
            elif connection is None and now < self._start_at:
                self.wake_at = now + _RETRY
            elif connection is None:
                self._start(now)
        except OSError as error:
            self.close()
            raise UnavailableError(str(error)) from error
        if connection is not None:
            self.close()
        return connection

    def close(self) -> None:
        """Ends the search."""
        if self._output is not None:
            self._output.close()
        self.output, self._output, self.wake_at = -1, None, math.inf

    def _start(self, now: float) -> None:
        if not may_be_shared(self._config):
            raise UnavailableError("the config does not want a daemon")
        # It runs in another folder, where relative paths and the search for a project mean something else.
        named = ["--config", self._config] if is_named(self._explicit, os.environ) else []
        project = os.path.dirname(self._project) if self._project else "off"
        self._output = start_detached(
            [sys.executable, "-P", _PROGRAM, "daemon", "run", *named],
            expand_home("~", os.environ),
            {**os.environ, PROJECT_VARIABLE: project},
            fork=not local_socket.HAS_NO_UNIX_SOCKETS,
        )
        self.output = self._output.fileno()
        self._give_up_at = self.wake_at = now + START_TIMEOUT

    def _hear(self, now: float) -> "local_socket.Connection | None":
        """What comes of a daemon that was started."""
        assert self._output is not None
        try:
            said = self._output.read()
        except BlockingIOError:
            if now >= self._give_up_at:
                raise UnavailableError("the daemon does not start") from None
            return None
        if said.strip() in (protocol.LISTENING, protocol.HELD):
            connection = self.connect()
            if connection is not None:
                return connection
        self.close()
        raise UnavailableError("the daemon can't be started")


def may_be_shared(config: str) -> bool:
    """Whether the config is a file that may be read twice, and doesn't refuse the daemon. A file that can't
    be used is reported by whoever serves the client.
    """
    try:
        if not os.path.isfile(config):
            return False
        with open(config, "rb") as file:
            found = json.loads(file.read(limits.CONFIG))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("shared") is not False
