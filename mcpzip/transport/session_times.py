"""How long connections to servers last, for whoever measures that.

The rule: until `install` is called, it does nothing but look at the clock.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mcpzip.config import ServerConfig

SessionEnded = Callable[[ServerConfig, str, float, bool], None]
"""Is told of a connection that has ended: the server, the version of the protocol, seconds, and whether it
was lost.
"""

_ended: SessionEnded | None = None


def install(ended: SessionEnded | None) -> None:
    """From now on ``ended`` is called; None: nobody."""
    global _ended
    _ended = ended


@contextmanager
def measured(server: ServerConfig, version: str, is_lost: Callable[[], bool]) -> Iterator[None]:
    """While a connection to ``server`` is usable. is_lost: whether it has ended although nobody closed it."""
    begun = time.perf_counter()
    try:
        yield
    finally:
        if _ended is not None:
            _ended(server, version, time.perf_counter() - begun, is_lost())
