"""HTTP connections to a server: for signing in, and for requests.

The rule: what comes before an answer has a limit. httpcore passes over interim answers (1xx; RFC 9110, 15.2)
for as long as they come, thousands of them without giving the event loop a turn. So a read brings little
while the head of an answer is awaited, and what it brings is counted.
"""

import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import httpcore2
import httpx2

from mcpzip.model.limits import HEAD
from mcpzip.system.network import environment_proxy, tls
from mcpzip.wire.inflating import UnfitAnswerError

_READ = 4 * 1024
"""Bytes that are read at a time of the head of an answer: about 200 interim ones."""
_KEPT_OPEN = 20
"""Connections that stay open unused."""


class HeadTooLongError(UnfitAnswerError, httpx2.RemoteProtocolError):
    """Too much came before an answer began."""


class _Head:
    """What has come of one answer whose head is awaited."""

    def __init__(self) -> None:
        self.bytes = 0


_awaited: ContextVar[_Head | None] = ContextVar("_awaited", default=None)


class Connections(httpx2.AsyncBaseTransport):
    """The connections to the server at ``url``, through the proxy that the environment names for it.

    A request fails with HeadTooLongError when more than `limits.HEAD` bytes come before its answer, and with
    what httpx2's own transport raises.
    """

    def __init__(self, url: str) -> None:
        self._pool = _pool(environment_proxy(url))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """As `httpx2.AsyncHTTPTransport` does."""
        url = request.url
        outgoing = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=cast(httpx2.AsyncByteStream, request.stream),
            extensions=request.extensions,
        )
        before = _awaited.set(_Head())
        try:
            with _named_by_httpx():
                response = await self._pool.handle_async_request(outgoing)
        finally:
            _awaited.reset(before)
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response.stream),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Closes them all, with what is under way on them."""
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _named_by_httpx():
            async for piece in self._inner:
                yield piece

    async def aclose(self) -> None:
        with _named_by_httpx():
            await self._inner.aclose()


class _Backend(httpcore2.AsyncNetworkBackend):
    """The network, whose streams count what comes of a head."""

    def __init__(self) -> None:
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """As httpcore2 does."""
        return _Stream(
            await self._inner.connect_tcp(host, port, timeout, local_address, socket_options=socket_options)
        )

    async def sleep(self, seconds: float) -> None:
        """As httpcore2 does."""
        await self._inner.sleep(seconds)


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        head = _awaited.get()
        if head is None:
            return await self._inner.read(max_bytes, timeout)
        if head.bytes >= HEAD:
            raise HeadTooLongError(f"its answer has not begun after {HEAD:,} bytes")
        data = await self._inner.read(min(max_bytes, _READ), timeout)
        head.bytes += len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _pool(proxy: str | None) -> httpcore2.AsyncConnectionPool:
    """Connections without a limit on how many are in use. Raises ValueError for a proxy that can't be."""
    common: dict[str, Any] = {
        "ssl_context": tls(),
        "max_connections": None,
        "max_keepalive_connections": _KEPT_OPEN,
        "keepalive_expiry": 5.0,
        "network_backend": _Backend(),
    }
    if proxy is None:
        return httpcore2.AsyncConnectionPool(**common)
    said = httpx2.Proxy(proxy)
    where = httpcore2.URL(
        scheme=said.url.raw_scheme, host=said.url.raw_host, port=said.url.port, target=said.url.raw_path
    )
    if said.url.scheme in ("socks5", "socks5h"):
        return httpcore2.AsyncSOCKSProxy(where, proxy_auth=said.raw_auth, **common)
    return httpcore2.AsyncHTTPProxy(where, proxy_auth=said.raw_auth, proxy_headers=said.headers.raw, **common)


@contextmanager
def _named_by_httpx() -> Iterator[None]:
    """An error of httpcore2 becomes that of httpx2 of the same name."""
    try:
        yield
    except Exception as error:
        for kind in type(error).__mro__:
            same = getattr(httpx2, kind.__name__, None)
            if kind.__module__.startswith("httpcore2") and same is not None:
                raise same(str(error)) from error
        raise
