"""The HTTP connections to one server, as a transport for `httpx`."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import httpx

from mcpzip.http.connection import Connection
from mcpzip.http.network import connect
from mcpzip.http.proxies import Proxy
from mcpzip.system.network import environment_proxy, tls_context

_IDLE_CONNECTIONS = 20
"""Maximum idle connections that stay open."""
_IDLE_TIME = 5.0
"""Seconds after which an idle connection is not used again."""
CHECK_PEER = "check_peer"
"""The extension of a request that holds a `CheckPeer`."""

CheckPeer = Callable[[Any], Awaitable[None]]
"""Is called with the peer's address once a connection is made, before anything is sent; what it raises ends
the connection and the request. Not called when the peer is a proxy."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_Origin = tuple[str, str, int]


class Connections(httpx.AsyncBaseTransport):
    """The connections to the server at ``url``, through the proxy that its environment sets for it.

    A request raises HeadTooLongError for a response whose interim responses and head exceed `limits.HEAD`,
    and what httpx's own transport raises.
    """

    def __init__(self, url: str, environment: Mapping[str, str] = os.environ) -> None:
        """environment: may set a proxy, and the certificates to trust. Raises ValueError for an invalid
        proxy.
        """
        proxy = environment_proxy(url, environment)
        self._environment = environment
        self._proxy = None if proxy is None else Proxy(proxy, environment)
        self._busy: dict[Connection, _Origin] = {}
        self._idle: dict[Connection, tuple[_Origin, float]] = {}
        """Origin, and the event loop's time when it became idle; the longest idle first."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """As `httpx.AsyncHTTPTransport` does."""
        url, body = request.url, await request.aread()
        port = url.port or _DEFAULT_PORTS.get(url.scheme)
        if port is None:
            raise httpx.UnsupportedProtocol(f"{url.scheme!r} is not http or https")
        origin = url.scheme, url.raw_host.decode("ascii"), port
        timeouts = request.extensions.get("timeout", {})
        connection = self._take(origin) or await self._open(origin, timeouts.get("connect"), request)
        target, headers = url.raw_path, request.headers.raw
        if self._proxy is not None and self._proxy.forwards(url.scheme):
            target, headers = self._proxy.forwarded(url, headers)
        self._busy[connection] = origin
        return await connection.send(request.method.encode("ascii"), target, headers, body, timeouts)

    async def aclose(self) -> None:
        """Closes all connections, also those in use."""
        for connection in (*self._busy, *self._idle):
            connection.stream.close()
        self._idle.clear()

    def _take(self, origin: _Origin) -> Connection | None:
        """An idle connection to ``origin``, the last used. Closes those that are of no use any more."""
        oldest = asyncio.get_running_loop().time() - _IDLE_TIME
        for connection, (_, since) in list(self._idle.items()):
            if since < oldest or not connection.stream.is_quiet:
                del self._idle[connection]
                connection.stream.close()
        found = next((each for each in reversed(self._idle) if self._idle[each][0] == origin), None)
        if found is not None:
            del self._idle[found]
        return found

    async def _open(self, origin: _Origin, timeout: float | None, request: httpx.Request) -> Connection:
        scheme, host, port = origin
        if self._proxy is None:
            stream = await connect(host, port, timeout)
            try:
                if (check := request.extensions.get(CHECK_PEER)) is not None:
                    await cast(CheckPeer, check)(stream.peer)
            except BaseException:
                stream.close()
                raise
        else:
            stream = await self._proxy.connect(scheme, host, port, timeout)
        if scheme == "https":
            await stream.start_tls(tls_context(self._environment), host, timeout)
        return Connection(stream, self._ended)

    def _ended(self, connection: Connection) -> None:
        origin = self._busy.pop(connection)
        if connection.is_idle:
            self._idle[connection] = origin, asyncio.get_running_loop().time()
            if len(self._idle) > _IDLE_CONNECTIONS:
                oldest = next(iter(self._idle))
                del self._idle[oldest]
                oldest.stream.close()
