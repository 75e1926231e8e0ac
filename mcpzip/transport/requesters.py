"""Whose requests are open on a connection, and so whom a message concerns that names no request.

The rule: it concerns a client only if no other client has a request open, or has abandoned one lately
(`abandoned_requests`), because one client's notification must not reach another.
"""

import asyncio

from mcpzip.transport.abandoned_requests import AbandonedRequests
from mcpzip.transport.base import Origin


class Requesters:
    """The origins of a connection's open requests. Only those that take notifications count."""

    def __init__(self) -> None:
        self._open: list[Origin] = []
        self._abandoned = AbandonedRequests()

    def begin(self, origin: Origin) -> None:
        """A request is sent."""
        if origin.on_notice is not None:
            self._open.append(origin)

    def end(self, origin: Origin) -> None:
        """It was answered, or will not be."""
        if origin.on_notice is not None:
            self._open.remove(origin)

    def abandon(self, origin: Origin) -> None:
        """Nobody waits for its answer any more, and the server may go on all the same."""
        if origin.on_notice is not None:
            self._abandoned.add(origin.owner, asyncio.get_running_loop().time())

    def notify(self, method: str, params: bytes | None, about: Origin | None, *, logs_wanted: bool) -> None:
        """Passes a notification to the client whose requests are open, or drops it. about: the open request
        that it is about; None where that isn't known. logs_wanted: to one that asked for logs only."""
        if about is not None:
            if about.on_notice is not None and (about.log_level or not logs_wanted):
                about.on_notice(method, params)
            return
        origins = [one for one in self._open if one.log_level or not logs_wanted]
        owners = [one.owner for one in origins]
        owners += self._abandoned.owners(asyncio.get_running_loop().time())
        if origins and all(owner is owners[0] for owner in owners):
            assert origins[-1].on_notice is not None
            origins[-1].on_notice(method, params)
