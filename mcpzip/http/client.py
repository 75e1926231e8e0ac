"""The HTTP client of one server: what is sent is signed, and redirected only within the server's origin.

The rules: a request goes where the config says, or to another path there; a redirect elsewhere is an answer
like any other, for whoever asked to report. Cookies come back to where they are from, up to a limit.
"""

import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import httpx

from mcpzip.http.bodies import beginning, read_response
from mcpzip.http.connections import Connections
from mcpzip.model.limits import COOKIES, HEADERS
from mcpzip.wire.content_coding import CODINGS, ContentCodingError

REDIRECTS = 5
"""Redirects that one request follows."""
CONNECT_TIMEOUT = 10.0
"""Seconds to open a TCP or TLS connection."""
WRITE_TIMEOUT = 30.0
"""Seconds that the server may take nothing of what it is sent."""
SILENCE = 3600.0
"""Seconds for which nothing may come of an answer: a call's own timeout is what ends a call."""

_TIMEOUTS = {"connect": CONNECT_TIMEOUT, "read": SILENCE, "write": WRITE_TIMEOUT, "pool": None}
_MAY_BE_SIGNED_FOR = (401, 403)
_KEEPS_METHOD = (307, 308)
_REDIRECTING = (301, 302, 303, *_KEEPS_METHOD)
_CODINGS = (b"Accept-Encoding", CODINGS.encode())
_OURS = (b"accept-encoding", b"content-length", b"transfer-encoding")
"""Header fields that the client alone decides."""

RawHeaders = Sequence[tuple[bytes, bytes]]


Trace = Callable[[str, dict[str, Any]], Awaitable[None]]
"""See httpcore's "trace" extension."""


class Client:
    """Sends requests to one server."""

    def __init__(self, url: str, auth: httpx.Auth | None = None) -> None:
        """url: of the server; the environment may name a proxy for it. auth: signs each request; it is given
        responses that refuse (401, 403) with their body read, and others unread. Raises ValueError for a
        proxy that can't be.
        """
        self.url = httpx.URL(url)
        self._auth = auth
        self._connections = Connections(url)
        self._cookies = httpx.Cookies()

    async def send(
        self,
        method: str,
        url: httpx.URL,
        headers: RawHeaders,
        content: bytes | None = None,
        *,
        trace: Trace | None = None,
    ) -> httpx.Response:
        """The response, whose body is not read; the caller closes it. trace: hears what httpcore does for it.

        Raises httpx.TransportError, UnfitAnswerError for a head that is too long, ValueError for a request
        that can't be sent, and what ``auth`` raises.
        """
        request = self._request(method, url, headers, content, trace)
        left = REDIRECTS
        while True:
            response = await self._signed(request)
            response.request = request
            self._keep_cookies(response)
            target = redirect_target(response)
            if not left or target is None or not _may_follow(request, response, target):
                return response
            left -= 1
            await response.aclose()
            moved = [(name, value) for name, value in headers if name.lower() != b"host"]
            request = self._request(method, target, moved, content, trace)

    async def aclose(self) -> None:
        """Closes the connections, with what is under way on them."""
        await self._connections.aclose()

    def _request(
        self, method: str, url: httpx.URL, headers: RawHeaders, content: bytes | None, trace: Trace | None
    ) -> httpx.Request:
        own = [pair for pair in headers if pair[0].lower() not in _OURS]
        extensions: dict[str, Any] = {"timeout": _TIMEOUTS} | ({} if trace is None else {"trace": trace})
        request = httpx.Request(method, url, headers=[*own, _CODINGS], content=content, extensions=extensions)
        if url.userinfo and "authorization" not in request.headers:  # RFC 9110, 11.7.1; RFC 7617
            shown = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
            request.headers["Authorization"] = f"Basic {shown}"
        if self._cookies.jar:
            self._cookies.set_cookie_header(request)
        return request

    async def _signed(self, request: httpx.Request) -> httpx.Response:
        if self._auth is None:
            return await self._sent(request)
        flow = self._auth.async_auth_flow(request)
        try:
            outgoing = await flow.__anext__()
            while True:
                response = await self._sent(outgoing)
                response.request = outgoing
                if response.status_code in _MAY_BE_SIGNED_FOR:  # it is read before it is answered
                    response = read_response(response, await beginning(response))
                try:
                    outgoing = await flow.asend(response)
                except StopAsyncIteration:
                    return response
                await response.aclose()
        finally:
            await flow.aclose()

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        response = await self._connections.handle_async_request(request)
        if len(response.headers.raw) > HEADERS:
            await response.aclose()
            raise ContentCodingError(f"its answer has more than {HEADERS} header fields")
        return response

    def _keep_cookies(self, response: httpx.Response) -> None:
        """Takes the cookies of ``response``, or none of them where they would be too many."""
        if "set-cookie" not in response.headers:
            return
        together = httpx.Cookies(self._cookies)
        together.extract_cookies(response)
        for cookie in list(together.jar):
            if not (cookie.name + (cookie.value or "")).isascii():  # it fits in no header
                together.jar.clear(cookie.domain, cookie.path, cookie.name)
        size = sum(len(cookie.name) + len(cookie.value or "") + len("=; ") for cookie in together.jar)
        if size <= COOKIES:
            self._cookies = together


def redirect_target(response: httpx.Response) -> httpx.URL | None:
    """Where ``response`` redirects to; None where it does not, or to nothing that is an address."""
    if response.status_code not in _REDIRECTING or "location" not in response.headers:
        return None
    try:
        target = response.request.url.join(response.headers["location"])
    except (httpx.InvalidURL, ValueError):
        return None
    return target if target.scheme in ("http", "https") and target.host else None


def _may_follow(request: httpx.Request, response: httpx.Response, target: httpx.URL) -> bool:
    """Whether the same request may be sent to ``target``: it is in the origin of the one that was redirected,
    or the same host on TLS, and the redirect keeps the method.
    """
    url = request.url
    same = (target.scheme, target.host, target.port) == (url.scheme, url.host, url.port)
    upgraded = (url.scheme, url.port, target.scheme, target.port) == ("http", None, "https", None)
    there = same or (upgraded and target.host == url.host)
    keeps = request.method == "GET" or response.status_code in _KEEPS_METHOD
    return there and keeps and target.userinfo in (b"", url.userinfo)
