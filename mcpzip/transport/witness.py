"""What HTTP did to our requests.

The rule: the SDK hides the status of a failed request, and a refused connection ends its whole client. A
`Witness` stands below it as the HTTP transport: it notes what befell which request, and answers in the place
of a server that can't.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec

from mcpzip.model.errors import McpzipError
from mcpzip.system.network import environment_proxy, tls
from mcpzip.system.tasks import looked_at, to_the_end
from mcpzip.transport.verbatim import Verbatim

CONNECT_TIMEOUT = 10.0
"""Seconds to open a TCP or TLS connection."""
_SESSION_HEADER = "mcp-session-id"
_HOLD = 0.2
"""Seconds that the answer to a POST over SSE holds up the next."""

FOLLOW = "If that is the right server, put its address into the config."
UNREACHABLE = "Start the server, or mend 'url' in the config."
_REMEDIES = {
    401: "It wants a sign-in: put an Authorization header under 'headers' in the config.",
    403: "It refuses these credentials: check 'headers' in the config.",
    404: "Check 'url' in the config.",
    405: 'It may speak the other transport over HTTP: change "type" ("http", "sse") in the config.',
    429: "It is rate-limiting us: wait before trying again.",
}
_SERVER_ERROR = "The fault is on its side: its own log says more."


def remedy(status: int) -> str:
    """What the user can do about an HTTP status, as a sentence, or ""."""
    return _REMEDIES.get(status, _SERVER_ERROR if status >= 500 else "")


@dataclass(frozen=True, slots=True)
class Fault:
    """What became of one POST that got no proper answer. ``remedy``: what the user can do, as a sentence."""

    reason: str
    sent: bool
    remedy: str = ""
    status: int | None = None
    in_session: bool = False

    @property
    def counts(self) -> bool:
        """Whether it is what went wrong, whatever the SDK made of it."""
        return self.status is not None and (self.status < 400 or (self.status == 404 and self.in_session))


class _Posted(msgspec.Struct):
    method: str | None = None
    id: int | str | None = None


class Witness(httpx2.AsyncBaseTransport):
    """Notes, for each JSON-RPC request posted, the HTTP failure that befell it."""

    def __init__(self, url: str, *, soften: bool, auth: httpx2.Auth | None = None) -> None:
        """url: of the server; the environment may name a proxy for it. soften: see `open_sse`. auth: signs
        requests, below what is noted: a refusal counts that is left when it has done what it can.
        """
        self._auth = auth
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        self._inner = httpx2.AsyncHTTPTransport(verify=tls(), proxy=environment_proxy(url), limits=limits)
        self._soften = soften
        self.faults: dict[int | str, Fault] = {}
        self.verbatim = Verbatim()
        self.on_fault = asyncio.Event()
        self._late: set[asyncio.Future[httpx2.Response]] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not self._soften or request.method != "POST":
            return await self._send(request)
        # The SDK sends one POST after another, and some servers answer one when its tool is done.
        sending = asyncio.ensure_future(self._delivered(request))
        self._late.add(sending)
        sending.add_done_callback(self._late.discard)
        sending.add_done_callback(looked_at)
        try:
            await asyncio.wait({sending}, timeout=_HOLD)
        except asyncio.CancelledError:
            sending.cancel()
            raise
        return sending.result() if sending.done() else httpx2.Response(202, request=request)

    async def _delivered(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._send(request)
        if not response.has_redirect_location:
            try:
                await response.aread()  # it has nothing for us, but unread it would cost the connection
            except httpx2.TransportError:
                pass  # the request was taken: its answer comes over the event stream, or that ends too
        return response

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            await request.aread()  # one that was redirected is a stream again
        posted = _posted_id(request)
        request = self.verbatim.sent(request, posted)
        try:
            response = await self.verbatim.received(await self._carried(request))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            if request.method != "POST":
                raise
            fault = Fault(unreachable(request.url, error), sent=False, remedy=UNREACHABLE)
            self._note(posted, fault)
            return self._instead(request)
        except (McpzipError, ValueError) as error:
            if request.method != "POST":
                raise httpx2.ConnectError(str(error).rstrip("."), request=request) from error
            self._note(posted, Fault(str(error).rstrip("."), sent=False))
            return self._instead(request)
        except httpx2.TransportError:
            if request.method != "POST":
                raise
            self._note(posted, Fault("the connection was lost", sent=True))
            return self._instead(request)
        if request.method == "POST" and (away := _led_away(request, response)):
            fault = Fault(led_away(away), sent=True, remedy=FOLLOW, status=response.status_code)
            self._note(posted, fault)
            if self._soften:
                await response.aclose()
                return self._instead(request)
            return response
        if response.status_code >= 400 and request.method == "POST":
            fault = Fault(
                f"it answered HTTP {response.status_code} {response.reason_phrase}".rstrip(),
                sent=True,
                remedy=remedy(response.status_code),
                status=response.status_code,
                in_session=_SESSION_HEADER in request.headers,
            )
            self._note(posted, fault)
            if self._soften:
                await response.aclose()
                return self._instead(request)
        return response

    async def _carried(self, request: httpx2.Request) -> httpx2.Response:
        """What comes back for ``request`` once it is signed, however often it has to be sent for that."""
        if self._auth is None:
            return await self._inner.handle_async_request(request)
        flow = self._auth.async_auth_flow(request)
        try:
            outgoing = await flow.__anext__()
            while True:
                response = await self._inner.handle_async_request(outgoing)
                response.request = outgoing
                try:
                    outgoing = await flow.asend(response)
                except StopAsyncIteration:
                    return response
                await response.aclose()
        finally:
            await flow.aclose()

    def _note(self, posted: int | str | None, fault: Fault) -> None:
        if posted is not None:
            self.faults[posted] = fault
            self.on_fault.set()

    def _instead(self, request: httpx2.Request) -> httpx2.Response:
        """What the SDK is shown where there is nothing to show it."""
        return httpx2.Response(202 if self._soften else 503, request=request)

    async def settled(self, number: int, sending: "asyncio.Future[dict[str, object]]") -> None:
        """Waits for ``sending``, or for the failure of its POST where the answer would come on another stream
        (SSE).
        """
        if not self._soften:
            await asyncio.wait({sending})
            return
        while not sending.done() and number not in self.faults:
            self.on_fault.clear()
            fault = asyncio.ensure_future(self.on_fault.wait())
            either: set[asyncio.Future[Any]] = {sending, fault}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                fault.cancel()

    async def aclose(self) -> None:
        late = list(self._late)
        for sending in late:
            sending.cancel()
        try:
            await asyncio.gather(*late, return_exceptions=True)
        finally:
            # It waits for nobody; broken off it would leave what it hasn't come to open.
            await to_the_end(self._inner.aclose())


def led_away(target: str) -> str:
    """What is said of a redirect to ``target``."""
    return f"it redirects to {target}, which is not followed"


def _led_away(request: httpx2.Request, response: httpx2.Response) -> str:
    """Where ``response`` sends a POST that the SDK won't follow: to another origin, or to something that is
    to be fetched with GET; "" for any other response.
    """
    if not response.has_redirect_location:
        return ""
    target = request.url.join(response.headers["location"])
    same = (target.host, target.port) == (request.url.host, request.url.port)
    upgraded = request.url.scheme == "http" and target.scheme == "https" and target.host == request.url.host
    if response.status_code in (307, 308) and (same or upgraded):
        return ""
    return str(target)


def _posted_id(request: httpx2.Request) -> int | str | None:
    if request.method != "POST":
        return None
    try:
        posted = msgspec.json.decode(request.content, type=_Posted)
    except (msgspec.DecodeError, httpx2.RequestNotRead):
        return None
    return None if posted.method is None else posted.id  # the id of an answer is the server's, not ours


def unreachable(url: httpx2.URL, error: Exception) -> str:
    """Why no connection to ``url`` came about."""
    detail = str(error).lower()
    where = f"{url.scheme}://{url.netloc.decode()}"
    if isinstance(error, httpx2.ConnectTimeout):
        return f"{where} did not accept a connection within {CONNECT_TIMEOUT:g} s"
    if "name or service" in detail or "nodename" in detail or "getaddrinfo" in detail:
        return f"the host of {where} can't be found"
    if "certificate" in detail or "ssl" in detail:
        return f"{where} has no certificate we trust ({error})"
    return f"nothing accepts connections at {where}"
