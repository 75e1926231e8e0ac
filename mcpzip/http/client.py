"""The HTTP client for one server: signs requests, follows redirects and stores cookies.

Redirects are followed only within the server's origin; another redirect is returned as the response. Cookies
are sent back to the server that set them, up to a limit.
"""

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx

from mcpzip.http.bodies import beginning, read_response
from mcpzip.http.connections import CHECK_PEER, CheckPeer, Connections
from mcpzip.model.limits import COOKIES, HEADERS
from mcpzip.wire.content_coding import CODINGS, ContentCodingError

REDIRECTS = 5
"""Maximum redirects of one request."""
CONNECT_TIMEOUT = 10.0
"""Seconds to open a TCP or TLS connection."""
WRITE_TIMEOUT = 30.0
"""Seconds in which the server must read some of a request."""
SILENCE = 3600.0
"""Seconds in which the server must send some of a response; calls have their own, shorter timeouts."""

_TIMEOUTS = {"connect": CONNECT_TIMEOUT, "read": SILENCE, "write": WRITE_TIMEOUT, "pool": None}
_REFUSED = (401, 403)
_KEEPS_METHOD = (307, 308)
_REDIRECTS = (301, 302, 303, *_KEEPS_METHOD)
_ACCEPT_ENCODING = (b"Accept-Encoding", CODINGS.encode())
_OWN_HEADERS = (b"accept-encoding", b"content-length", b"transfer-encoding")
"""Header fields that the client sets itself."""

RawHeaders = Sequence[tuple[bytes, bytes]]


class Client:
    """Sends requests to one server."""

    def __init__(
        self, url: str, auth: httpx.Auth | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        """url: of the server. auth: signs each request; it gets 401 and 403 responses with their body, and
        other responses unread. environment: may set a proxy for ``url``. Raises ValueError for an invalid
        proxy.
        """
        self.url = httpx.URL(url)
        self._auth = auth
        self._connections: httpx.AsyncBaseTransport = Connections(url, environment)
        self._cookies = httpx.Cookies()

    def pass_through(self, around: Callable[[httpx.AsyncBaseTransport], httpx.AsyncBaseTransport]) -> None:
        """Sends further requests through what ``around`` puts around the connections."""
        self._connections = around(self._connections)

    async def send(
        self,
        method: str,
        url: httpx.URL,
        headers: RawHeaders,
        content: bytes | None = None,
        *,
        check_peer: CheckPeer | None = None,
    ) -> httpx.Response:
        """Sends a request and returns the response with its body unread; the caller closes it.

        check_peer: see `connections.CheckPeer`. Raises httpx.TransportError,
        ContentCodingError for too long a head or too many header fields, ValueError for a request that can't
        be sent, and what ``auth`` raises.
        """
        request = self._request(method, url, headers, content, check_peer)
        redirects_left = REDIRECTS
        while True:
            response = await self._send_signed(request)
            response.request = request
            self._store_cookies(response)
            target = redirect_target(response)
            if not redirects_left or target is None or not _may_follow(request, response, target):
                return response
            redirects_left -= 1
            await response.aclose()
            without_host = [(name, value) for name, value in headers if name.lower() != b"host"]
            request = self._request(method, target, without_host, content, check_peer)

    async def aclose(self) -> None:
        """Closes all connections, also those in use."""
        await self._connections.aclose()

    def _request(
        self,
        method: str,
        url: httpx.URL,
        headers: RawHeaders,
        content: bytes | None,
        check_peer: CheckPeer | None,
    ) -> httpx.Request:
        body = content or b""
        fields = [pair for pair in headers if pair[0].lower() not in _OWN_HEADERS]
        if url.host and not any(name.lower() == b"host" for name, _ in fields):
            fields.insert(0, (b"Host", url.netloc))
        fields.append(_ACCEPT_ENCODING)
        if body or method == "POST":  # RFC 9110, 8.6
            fields.append((b"Content-Length", b"%d" % len(body)))
        extensions: dict[str, Any] = {"timeout": _TIMEOUTS}
        if check_peer is not None:
            extensions[CHECK_PEER] = check_peer
        # Given ``content`` instead, httpx adds the same fields in three times the time.
        stream = httpx.ByteStream(body)
        request = httpx.Request(method, url, headers=fields, stream=stream, extensions=extensions)
        request.read()
        if url.userinfo and "authorization" not in request.headers:  # RFC 9110, 11.7.1; RFC 7617
            credentials = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
            request.headers["Authorization"] = f"Basic {credentials}"
        if self._cookies.jar:
            self._cookies.set_cookie_header(request)
        return request

    async def _send_signed(self, request: httpx.Request) -> httpx.Response:
        if self._auth is None:
            return await self._send(request)
        flow = self._auth.async_auth_flow(request)
        try:
            outgoing = await flow.__anext__()
            while True:
                response = await self._send(outgoing)
                response.request = outgoing
                if response.status_code in _REFUSED:  # its body tells the auth flow what to do
                    response = read_response(response, await beginning(response))
                try:
                    outgoing = await flow.asend(response)
                except StopAsyncIteration:
                    return response
                await response.aclose()
        finally:
            await flow.aclose()

    async def _send(self, request: httpx.Request) -> httpx.Response:
        response = await self._connections.handle_async_request(request)
        if len(response.headers) > HEADERS:
            await response.aclose()
            raise ContentCodingError(f"its answer has more than {HEADERS} header fields")
        return response

    def _store_cookies(self, response: httpx.Response) -> None:
        """Stores the cookies of ``response``, unless all cookies together would exceed `limits.COOKIES`."""
        if "set-cookie" not in response.headers:
            return
        cookies = httpx.Cookies(self._cookies)
        cookies.extract_cookies(response)
        for cookie in list(cookies.jar):
            if not (cookie.name + (cookie.value or "")).isascii():  # a header can't carry it
                cookies.jar.clear(cookie.domain, cookie.path, cookie.name)
        size = sum(len(cookie.name) + len(cookie.value or "") + len("=; ") for cookie in cookies.jar)
        if size <= COOKIES:
            self._cookies = cookies


def redirect_target(response: httpx.Response) -> httpx.URL | None:
    """The URL that ``response`` redirects to; None if it is no redirect, or not to a valid http(s) URL."""
    if response.status_code not in _REDIRECTS or "location" not in response.headers:
        return None
    try:
        target = response.request.url.join(response.headers["location"])
    except (httpx.InvalidURL, ValueError):
        return None
    return target if target.scheme in ("http", "https") and target.host else None


def _may_follow(request: httpx.Request, response: httpx.Response, target: httpx.URL) -> bool:
    """Whether the request may be repeated at ``target``: it has the same origin, or the same host on https
    with default ports, and the redirect keeps the method.
    """
    url = request.url
    same_origin = (target.scheme, target.host, target.port) == (url.scheme, url.host, url.port)
    upgrade = (url.scheme, url.port, target.scheme, target.port) == ("http", None, "https", None)
    same_server = same_origin or (upgrade and target.host == url.host)
    keeps_method = request.method == "GET" or response.status_code in _KEEPS_METHOD
    return same_server and keeps_method and target.userinfo in (b"", url.userinfo)
