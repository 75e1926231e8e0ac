"""What commands such as `mcpzip ps` ask of the daemon, and its answers as JSON values."""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from mcpzip import __version__


class Daemon(Protocol):
    """What the commands need of it."""

    def stop(self) -> None: ...

    def retire(self, successor: str) -> None: ...


async def ping(daemon: Daemon, said: Mapping[str, object]) -> object:
    """Whether it runs."""
    return {"pid": os.getpid(), "version": __version__}


async def stop(daemon: Daemon, said: Mapping[str, object]) -> object:
    """Ends the daemon."""
    daemon.stop()
    return {"pid": os.getpid()}


async def retire(daemon: Daemon, said: Mapping[str, object]) -> object:
    """Ends the daemon when no call is under way, for another version."""
    daemon.retire(str(said.get("version")))
    return {"pid": os.getpid()}


COMMANDS: Mapping[object, Callable[[Daemon, Mapping[str, object]], Awaitable[object]]] = {
    "ping": ping,
    "stop": stop,
    "retire": retire,
}
