"""What HTTP did to our requests.

The rule: the SDK hides the status of a failed request, and a refused connection ends its whole client. A
`Witness` stands below it as the HTTP transport: it notes what befell which request, and answers in the place
of a server that can't. The SDK reads whatever it is given to its end; so what it is given has one.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec

from mcpzip.auth.bodies import BodyTooLongError, beginning, whole, with_body
from mcpzip.auth.connections import Connections
from mcpzip.model import limits
from mcpzip.model.errors import McpzipError
from mcpzip.model.limits import COOKIES, HEADERS, MESSAGE, REFUSAL_TIME
from mcpzip.model.quoting import one_line, quoted, shortened
from mcpzip.system.tasks import looked_at, to_the_end
from mcpzip.transport.refusal import refusal, remedy
from mcpzip.transport.verbatim import NOT_OURS, Verbatim, too_long
from mcpzip.wire.inflating import CODINGS, UnfitAnswerError

CONNECT_TIMEOUT = 10.0
"""Seconds to open a TCP or TLS connection."""
_SESSION_HEADER = "mcp-session-id"
_MAY_BE_SIGNED_FOR = (401, 403)
_HOLD = 0.2
"""Seconds that the answer to a POST over SSE holds up the next."""

NEITHER = "it answered with something else than JSON or an event stream"
FOLLOW = "If that is the right server, put its address into the config."
UNREACHABLE = "Start the server, or mend 'url' in the config."


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

        gone: why we gave up a stream that was for everybody, or "".
        """
        self._auth = auth
        self._inner = Connections(url)
        self._soften = soften
        self.faults: dict[int | str, Fault] = {}
        self.verbatim = Verbatim()
        self.on_fault = asyncio.Event()
        self.gone = ""
        self._late: set[asyncio.Future[httpx2.Response]] = set()
        self._told: set[asyncio.Future[httpx2.Response]] = set()  # those of them that ask nothing

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not self._soften or request.method != "POST":
            return await self._send(request)
        # The SDK sends one POST after another, and some servers answer one when its tool is done.
        told = _posted_id(request) is None
        if told and len(self._told) >= limits.ASKED:
            return httpx2.Response(202, request=request)  # the server takes nothing that we tell it
        sending = asyncio.ensure_future(self._send(request))
        for late in (self._late, self._told) if told else (self._late,):
            late.add(sending)
            sending.add_done_callback(late.discard)
        sending.add_done_callback(looked_at)
        try:
            await asyncio.wait({sending}, timeout=_HOLD)
        except asyncio.CancelledError:
            sending.cancel()
            raise
        return sending.result() if sending.done() else httpx2.Response(202, request=request)

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            await request.aread()  # one that was redirected is a stream again
        posted = _posted_id(request)
        request = self.verbatim.sent(request, posted)
        request.headers["Accept-Encoding"] = CODINGS
        try:
            response = await self._carried(request)
            if len(response.headers.raw) > HEADERS:
                await response.aclose()
                raise UnfitAnswerError(f"its answer has more than {HEADERS} header fields")
            return await self._taken_in(request, posted, response)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            if request.method != "POST":
                raise
            fault = Fault(unreachable(request.url, error), sent=False, remedy=UNREACHABLE)
        except UnfitAnswerError as error:
            if request.method != "POST":
                raise httpx2.RemoteProtocolError(str(error), request=request) from error
            fault = Fault(str(error), sent=True)
        except (McpzipError, ValueError) as error:
            if request.method != "POST":
                raise httpx2.ConnectError(one_line(str(error)).rstrip("."), request=request) from error
            fault = Fault(one_line(str(error)).rstrip("."), sent=False)
        except BodyTooLongError:
            fault = Fault(too_long(MESSAGE), sent=True)
        except httpx2.TransportError:
            if request.method != "POST":
                raise
            fault = Fault("the connection was lost", sent=True)
        self._note(posted, fault)
        return self._instead(request)

    async def _taken_in(
        self, request: httpx2.Request, posted: int | str | None, response: httpx2.Response
    ) -> httpx2.Response:
        """``response`` to ``request``, which carries the call ``posted``, as the SDK is to see it."""
        if len(request.headers.get("cookie", "")) > COOKIES:
            response.headers.pop("set-cookie", None)
        if response.has_redirect_location and not _leads_somewhere(request, response):
            del response.headers["location"]
        kind = response.headers.get("content-type", "").lower()
        fine = response.status_code < 400 and not response.has_redirect_location
        if fine and kind.startswith("text/event-stream") and (request.method == "GET" or posted is not None):
            return self.verbatim.events(
                response, lambda reason: self._lost(posted, reason), answer=posted is not None
            )
        if posted is None or self._soften or not kind.startswith("application/json"):
            # Some servers answer what is posted beside an event stream when its tool is done.
            patience = REFUSAL_TIME if not fine else None if self._soften else _HOLD
            body = await beginning(response, patience)
        else:
            body = await whole(response, MESSAGE)
        if request.method != "POST":
            return with_body(response, body)
        if fine:
            shown: bytes | None = body
            if posted is not None and not self._soften and response.status_code != 202:
                if not kind.startswith("application/json"):
                    what = f" ({quoted(kind)})" if kind else ""
                    self._note(posted, Fault(NEITHER + what, sent=True))
                    return self._instead(request)
                shown = await self.verbatim.shown(body)
                if not shown:
                    self._note(posted, Fault(NOT_OURS, sent=True))
                    return self._instead(request)
            response = with_body(response, shown or b"")
            if "content-type" in response.headers:
                response.headers["content-type"] = kind.partition(";")[0]  # UTF-8, whatever it says
            return response
        if away := _led_away(request, response):
            fault = Fault(led_away(away), sent=True, remedy=FOLLOW, status=response.status_code)
        elif response.status_code < 400:
            return with_body(response, b"")  # it is followed
        else:
            fault = Fault(
                refusal(response, body),
                sent=True,
                remedy=remedy(response.status_code),
                status=response.status_code,
                in_session=_SESSION_HEADER in request.headers,
            )
        self._note(posted, fault)
        if self._soften:
            return self._instead(request)
        return with_body(response, self.verbatim.refused(body, posted))

    def _lost(self, posted: int | str | None, reason: str) -> None:
        """A stream was given up: that of one answer, or one for everybody."""
        if posted is None:
            self.gone = reason
        else:
            self._note(posted, Fault(reason, sent=True))

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
                if response.status_code in _MAY_BE_SIGNED_FOR:  # it is read before it is answered
                    response = with_body(response, await beginning(response))
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
    return f"it redirects to {shortened(target)}, which is not followed"


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


def _leads_somewhere(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Whether the redirect ``response`` names an address."""
    try:
        target = request.url.join(response.headers["location"])
    except (httpx2.InvalidURL, ValueError):
        return False
    return target.scheme in ("http", "https") and bool(target.host)


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
        return f"{where} has no certificate we trust ({shortened(str(error))})"
    return f"nothing accepts connections at {where}"
