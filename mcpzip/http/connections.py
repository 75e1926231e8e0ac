"""The HTTP connections to one server: a transport for `httpx` on `httpcore`'s connection pool.

The rule: what comes before an answer has a limit. httpcore passes over interim answers (1xx; RFC 9110, 15.2)
for as long as they come, thousands of them without giving the event loop a turn. So a read brings little
while the head of an answer is awaited, and what it brings is counted (`network`).
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, cast

import httpcore
import httpx

from mcpzip.http.network import Network, head_limited
from mcpzip.system.network import environment_proxy, tls_context

_KEPT_OPEN = 20
"""Connections that stay open unused."""


class Connections(httpx.AsyncBaseTransport):
    """The connections to the server at ``url``, through the proxy that the environment names for it.

    A request fails with HeadTooLongError when more than `limits.HEAD` bytes come before its answer, and with
    what httpx's own transport raises.
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
        with head_limited(), _named_by_httpx():
            response = await self._pool.handle_async_request(outgoing)
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response.stream),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Closes them all, with what is under way on them."""
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _named_by_httpx():
            async for piece in self._inner:
                yield piece

    async def aclose(self) -> None:
        with _named_by_httpx():
            await self._inner.aclose()


def _pool(proxy: str | None) -> httpcore.AsyncConnectionPool:
    """Connections without a limit on how many are in use. Raises ValueError for a proxy that can't be."""
    common: dict[str, Any] = {
        "ssl_context": tls_context(),
        "max_connections": None,
        "max_keepalive_connections": _KEPT_OPEN,
        "keepalive_expiry": 5.0,
        "network_backend": Network(),
    }
    if proxy is None:
        return httpcore.AsyncConnectionPool(**common)
    said = httpx.Proxy(proxy)
    where = httpcore.URL(
        scheme=said.url.raw_scheme, host=said.url.raw_host, port=said.url.port, target=said.url.raw_path
    )
    if said.url.scheme in ("socks5", "socks5h"):
        return httpcore.AsyncSOCKSProxy(where, proxy_auth=said.raw_auth, **common)
    return httpcore.AsyncHTTPProxy(where, proxy_auth=said.raw_auth, proxy_headers=said.headers.raw, **common)


@contextmanager
def _named_by_httpx() -> Iterator[None]:
    """An error of httpcore becomes that of httpx of the same name."""
    try:
        yield
    except Exception as error:
        for kind in type(error).__mro__:
            same = getattr(httpx, kind.__name__, None)
            if kind.__module__.startswith("httpcore") and same is not None:
                raise same(str(error)) from error
        raise
