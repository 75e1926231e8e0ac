"""The HTTP connections to one server: a transport for `httpx` on `httpcore`'s connection pool.

httpcore skips interim responses (1xx; RFC 9110, 15.2) without a limit, and thousands of them without letting
other tasks run. So `network` limits the bytes before a response, and reads few of them at a time.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, cast

import httpcore
import httpx

from mcpzip.http.network import Network, head_limited
from mcpzip.system.network import environment_proxy, tls_context

_IDLE_CONNECTIONS = 20
"""Maximum idle connections that stay open."""


class Connections(httpx.AsyncBaseTransport):
    """The connections to the server at ``url``, through the proxy that the environment sets for it.

    A request raises HeadTooLongError for a response whose interim responses and head exceed `limits.HEAD`,
    and what httpx's own transport raises.
    """

    def __init__(self, url: str) -> None:
        self._pool = _pool(environment_proxy(url))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """As `httpx.AsyncHTTPTransport` does."""
        url = request.url
        outgoing = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=cast(httpx.AsyncByteStream, request.stream),
            extensions=request.extensions,
        )
        with head_limited(), _httpx_errors():
            response = await self._pool.handle_async_request(outgoing)
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response.stream),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Closes all connections, also those in use."""
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors():
            async for piece in self._inner:
                yield piece

    async def aclose(self) -> None:
        with _httpx_errors():
            await self._inner.aclose()


def _pool(proxy: str | None) -> httpcore.AsyncConnectionPool:
    """A pool without a limit on the connections in use. Raises ValueError for an invalid proxy."""
    common: dict[str, Any] = {
        "ssl_context": tls_context(),
        "max_connections": None,
        "max_keepalive_connections": _IDLE_CONNECTIONS,
        "keepalive_expiry": 5.0,
        "network_backend": Network(),
    }
    if proxy is None:
        return httpcore.AsyncConnectionPool(**common)
    parsed = httpx.Proxy(proxy)
    parts = parsed.url
    url = httpcore.URL(scheme=parts.raw_scheme, host=parts.raw_host, port=parts.port, target=parts.raw_path)
    if parts.scheme in ("socks5", "socks5h"):
        return httpcore.AsyncSOCKSProxy(url, proxy_auth=parsed.raw_auth, **common)
    return httpcore.AsyncHTTPProxy(
        url, proxy_auth=parsed.raw_auth, proxy_headers=parsed.headers.raw, **common
    )


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Raises the exceptions of httpcore as those of httpx, which have the same names."""
    try:
        yield
    except Exception as error:
        for base in type(error).__mro__:
            equivalent = getattr(httpx, base.__name__, None)
            if base.__module__.startswith("httpcore") and equivalent is not None:
                raise equivalent(str(error)) from error
        raise
