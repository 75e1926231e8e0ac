"""The connections to servers that are open now, and whose they are, as `mcpzip ps` shows them."""

from collections.abc import Iterator

import msgspec

from mcpzip.proxy.client_binding import ClientBinding
from mcpzip.proxy.exchange import Client
from mcpzip.proxy.shared_binding import SharedBinding
from mcpzip.transport.connection import Connection
from mcpzip.transport.pool import Pool


class OpenConnection(msgspec.Struct, frozen=True):
    """A connection to a server. pid: of its process, None over HTTP. users: the clients that use it; None for
    all. requests: how many are open.
    """

    server: str
    pid: int | None
    users: frozenset[Client] | None
    requests: int


def open_connections(pool: Pool, servers: Iterator[str]) -> list[OpenConnection]:
    """The usable connections to ``servers``."""
    return [
        OpenConnection(name, one.activity.pid, _users(one), one.open_requests)
        for name in servers
        for one in pool.connections(name)
    ]


def _users(connection: Connection) -> frozenset[Client] | None:
    binding = connection.bound_client
    if connection.unbound or not isinstance(binding, ClientBinding):
        return None
    return frozenset(
        binding.members(connection.server.name) if isinstance(binding, SharedBinding) else (binding.client,)
    )
