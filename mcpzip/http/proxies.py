"""Proxies: HTTP and HTTPS (forwarding and CONNECT; RFC 9110, 7.6 and 9.3.6) and SOCKS5 (RFC 1928, 1929)."""

import base64
import os
from collections.abc import Mapping
from ipaddress import ip_address

import httpx

from mcpzip.http.connection import Connection, Headers
from mcpzip.http.network import Stream, connect
from mcpzip.system.network import tls_context

_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_SOCKS = ("socks5", "socks5h")
_REPLIES = {
    1: "general failure",
    2: "the connection is not allowed",
    3: "the network is unreachable",
    4: "the host is unreachable",
    5: "the connection was refused",
    6: "the time to live expired",
    7: "the command is not supported",
    8: "the type of address is not supported",
}
"""The reasons of a SOCKS5 proxy (RFC 1928, 6)."""


class Proxy:
    """One proxy."""

    def __init__(self, url: str, environment: Mapping[str, str] = os.environ) -> None:
        """url: with user and password, if it wants them. environment: may name the certificates to trust.
        Raises ValueError.
        """
        self._environment = environment
        parsed = httpx.Proxy(url)
        self._scheme, self._host = parsed.url.scheme, parsed.url.raw_host.decode("ascii")
        self._port = parsed.url.port or _DEFAULT_PORTS[self._scheme]
        self._auth = parsed.raw_auth
        self._headers: Headers = list(parsed.headers.raw)
        if self._auth is not None:
            credentials = base64.b64encode(b":".join(self._auth))
            self._headers.insert(0, (b"Proxy-Authorization", b"Basic " + credentials))

    def forwards(self, scheme: str) -> bool:
        """Whether requests to ``scheme`` are sent to the proxy itself, by `forwarded`."""
        return scheme == "http" and self._scheme not in _SOCKS

    def forwarded(self, url: httpx.URL, headers: Headers) -> tuple[bytes, Headers]:
        """The target and the headers of a request for ``url`` that the proxy forwards."""
        return b"%b://%b%b" % (url.raw_scheme, url.netloc, url.raw_path), [*self._headers, *headers]

    async def connect(self, scheme: str, host: str, port: int, timeout: float | None) -> Stream:
        """A connection to ``host`` through the proxy, or to the proxy where it forwards. timeout: seconds, of
        each step. Raises httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError.
        """
        stream = await connect(self._host, self._port, timeout)
        try:
            if self._scheme == "https":
                await stream.start_tls(tls_context(self._environment), self._host, timeout)
            if self._scheme in _SOCKS:
                await self._connect_socks(stream, host, port, timeout)
            elif not self.forwards(scheme):
                await self._connect_tunnel(stream, host, port, timeout)
        except BaseException:
            stream.close()
            raise
        return stream

    async def _connect_tunnel(self, stream: Stream, host: str, port: int, timeout: float | None) -> None:
        target = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}").encode("ascii")
        headers = [(b"Host", target), (b"Accept", b"*/*"), *self._headers]
        timeouts = {"read": timeout, "write": timeout}
        connection = Connection(stream)
        response = await connection.send(b"CONNECT", target, headers, b"", timeouts)
        if not response.is_success:
            raise httpx.ProxyError(f"{response.status_code} {response.reason_phrase}")
        if connection.trailing:
            raise httpx.ConnectError("data was received before TLS began")

    async def _connect_socks(self, stream: Stream, host: str, port: int, timeout: float | None) -> None:
        method = 0 if self._auth is None else 2
        await stream.write(bytes((5, 1, method)), timeout)
        if await _exactly(stream, 2, timeout) != bytes((5, method)):
            raise httpx.ProxyError("the proxy does not accept this way to sign in")
        if self._auth is not None:
            user, password = (each[:255] for each in self._auth)
            await stream.write(bytes((1, len(user))) + user + bytes((len(password),)) + password, timeout)
            if (await _exactly(stream, 2, timeout))[1]:
                raise httpx.ProxyError("the proxy does not accept the user and password")
        await stream.write(b"\5\1\0" + _socks_address(host) + port.to_bytes(2, "big"), timeout)
        version, reply, _, kind = await _exactly(stream, 4, timeout)
        if version != 5 or reply:
            reason = _REPLIES.get(reply, f"code {reply}")
            raise httpx.ProxyError(f"the proxy could not connect to {host}: {reason}")
        length = {1: 4, 4: 16}.get(kind) or (await _exactly(stream, 1, timeout))[0]
        await _exactly(stream, length + 2, timeout)


def _socks_address(host: str) -> bytes:
    try:
        address = ip_address(host)
    except ValueError:
        name = host.encode("ascii")[:255]
        return bytes((3, len(name))) + name
    return bytes((1 if address.version == 4 else 4,)) + address.packed


async def _exactly(stream: Stream, count: int, timeout: float | None) -> bytes:
    data = b""
    while len(data) < count:
        piece = await stream.read(count - len(data), timeout)
        if not piece:
            raise httpx.ProxyError("the proxy closed the connection")
        data += piece
    return data
