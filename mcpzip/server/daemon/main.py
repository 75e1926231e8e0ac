"""`mcpzip daemon run`: the daemon's process, from its lock to its end.

The rules:

1. The lock is taken, and the socket listens, before the rest of mcpzip is loaded, so that a process that
   comes second ends at once, and clients can connect while the first one loads.
2. A daemon that can't use its config sends its clients away: each serves itself, and says what is wrong.
"""

import gc
import os
import sys
import time

from mcpzip.config.paths import config_path, find_project, is_named
from mcpzip.server.daemon import protocol
from mcpzip.system import local_socket
from mcpzip.system.lean_imports import import_asyncio, import_msgspec

HELD_TIMEOUT = 10.0
"""Seconds in which another daemon, which has the lock, either listens or ends."""
_LOOK = 0.02
"""Seconds between two looks at it."""


def main(explicit_config: "str | None") -> int:
    """Runs the daemon until its last client has been gone for a while, or it is told to end. Returns the exit
    code: 0 also if another daemon runs.
    """
    gc.disable()  # importing modules makes no garbage; `run` enables it again
    config, project = config_path(explicit_config, os.environ), find_project(os.environ)
    path, lock_path = protocol.socket_and_lock(config, project)
    try:
        lock = _take_lock(path, lock_path)
        if lock is None:
            _say(protocol.HELD)
            return 0
        listening = local_socket.listen(path)
    except OSError as error:
        return _fail(f"The daemon can't be started: {error}.")
    _say(protocol.LISTENING)
    import_msgspec()
    import_asyncio()
    from mcpzip.server.daemon.daemon import Daemon, refuse
    from mcpzip.server.log import log_config_error
    from mcpzip.server.prepared import prepare

    try:
        prepared = prepare(config, project, required=is_named(explicit_config, os.environ))
    except Exception as error:
        if type(error).__name__ != "ConfigError":
            raise
        log_config_error(config, str(error))
        refuse(listening, path)
        return 2
    return Daemon(prepared, listening, path, lock).run()


def _take_lock(path: str, lock_path: str) -> "int | None":
    """Waits for the lock while the daemon that holds it does not listen, because that daemon may be ending:
    `HELD_TIMEOUT` seconds at most. Returns the lock; None if another daemon has it and listens, or kept it
    for all that time. Raises OSError.
    """
    until = time.monotonic() + HELD_TIMEOUT
    while True:
        lock = local_socket.take_lock(lock_path)
        if lock is not None:
            return lock
        if (connection := local_socket.connect(path)) is not None:
            connection.close()
            return None
        if time.monotonic() > until:
            return None
        time.sleep(_LOOK)


def _fail(sentence: str) -> int:
    from mcpzip.server.stderr import print_warning

    print_warning(sentence)
    _say(protocol.FAILED)
    return 1


def _say(word: bytes) -> None:
    """Tells whoever started the daemon, if anybody listens; nothing is written to that pipe after it."""
    if sys.stdout is None or sys.stdout.isatty():
        return
    try:
        os.write(1, word + b"\n")
    except OSError:
        pass
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.close(null)
