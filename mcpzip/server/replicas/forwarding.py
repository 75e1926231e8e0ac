"""Sends a request to the replica that it belongs to, and its answer back to the client, as it comes.

The rules: a request is sent once, and to an address that was sealed by a replica. If it can't have run
there, it is served in another way; else the client is told that it may have run. A replica acknowledges a
call (100 Continue) before it runs it. If a connection ends without an acknowledgement, the call didn't run:
the replica closed the connection just before the call arrived. This is concluded only of an address that has
acknowledged a call before, because a proxy on the way may hold interim responses back.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

import httpx

from mcpzip.http.connection import Connection
from mcpzip.http.network import connect
from mcpzip.model import limits
from mcpzip.server.http.event_store import sse_event
from mcpzip.server.http.request import PATH, HttpRequest
from mcpzip.server.http.response import HttpResponse, Refusal, error_message
from mcpzip.server.replicas.replica import Owner, Replica
from mcpzip.system.tasks import retrieve_exception
from mcpzip.wire import INTERNAL_ERROR, Peer, Request, Role, RpcError

TOKEN_HEADER = "mcpzip-forwarded"
NOT_HERE_HEADER = "mcpzip-not-here"
"""Of an answer that says that a request was not taken, so that it can be served elsewhere."""
CONNECT_TIME = 1.0
"""Seconds: replicas are in one network."""
SILENCE = 60.0
"""Seconds without a byte after which a replica is lost; it sends a comment every 15."""
WRITE_TIME = 60.0
AWAY = 5.0
"""Seconds for which a replica isn't tried again that could not be reached."""
IDLE = 30.0
"""Seconds for which an idle connection is used again: less than a replica keeps it open."""
LONGEST_TOKEN = 48 * 1024
"""Characters: the head of a request has 64 KiB."""

_PASSED = (
    *("content-type", "accept", "mcp-session-id", "mcp-protocol-version", "last-event-id"),
    *("mcp-method", "mcp-name"),
)
_PARAM = "mcp-param-"
_PASSED_BACK = frozenset(
    {b"content-type", b"cache-control", b"x-accel-buffering", b"mcp-session-id", b"www-authenticate"}
    | {b"retry-after", b"allow"}
)
_TOO_MANY = Refusal(503, "Too many requests are being forwarded; try again later.", code=INTERNAL_ERROR)
_LOST = "The replica of mcpzip that served this ended, or can't be reached any more, before it had answered. "
MAY_HAVE_RUN = f"{_LOST}The call may have run: check that before you make it again."
_AGAIN = f"{_LOST}Make the request again."


class Forwarder:
    """Forwards requests to other replicas. Everything runs on one event loop. replica: this one."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls: set[asyncio.Task[None]] = set()
        self._idle: dict[Connection, tuple[str, float]] = {}
        """Address, and the loop's time when it became idle; the longest idle first."""
        self._away: dict[str, float] = {}
        self._acknowledging: OrderedDict[str, None] = OrderedDict()
        """Addresses that have acknowledged a call, the one that did so last at the end."""

    def reaches(self, owner: Owner) -> bool:
        """Whether ``owner`` is another replica, which may be there."""
        if self.replica.is_here(owner):
            return False
        until = self._away.get(owner.address, 0.0)
        return until <= asyncio.get_running_loop().time()

    def forward(
        self, request: HttpRequest, response: HttpResponse, owner: Owner, instead: Callable[[], object]
    ) -> None:
        """Has ``owner`` answer ``request``. instead: is called if it can't have got the request."""
        if len(self._tasks) >= limits.FORWARDS:
            response.refuse(_TOO_MANY)
            return
        work = self._forward(request, response, owner, instead)
        task = asyncio.get_running_loop().create_task(work, name="forward")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if request.method == "POST":
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)
        task.add_done_callback(retrieve_exception)

        def left() -> None:
            if asyncio.current_task() is not task:  # which has not just sent the end itself
                task.cancel()

        response.on_end = left

    async def settle(self, patience: float) -> None:
        """Gives what is under way so many seconds to end; the streams of sessions don't."""
        if self._calls:
            await asyncio.wait(list(self._calls), timeout=patience)

    async def close(self) -> None:
        """Ends what is under way, and closes all connections."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for connection in list(self._idle):
            connection.stream.close()
        self._idle.clear()

    async def _forward(
        self, request: HttpRequest, response: HttpResponse, owner: Owner, instead: Callable[[], object]
    ) -> None:
        try:
            if not await self._answered(request, response, owner):
                response.on_end = lambda: None
                instead()
        except Exception as defect:
            response.on_end = lambda: None
            response.failed(defect)

    async def _answered(self, request: HttpRequest, response: HttpResponse, owner: Owner) -> bool:
        """Whether ``owner`` has taken the request, or may have."""
        address = owner.address
        token = self.replica.seal_forward(
            address, request.method, request.body, request.principal, request.client_address
        )
        if len(token) > LONGEST_TOKEN:
            return False
        try:
            connection = self._take(address) or await self._connected(address)
        except (httpx.TransportError, OSError):
            self._note_away(address)
            return False
        try:
            timeouts: dict[str, float | None] = {"read": SILENCE, "write": WRITE_TIME}
            method, path = request.method.encode("ascii"), PATH.encode()
            headers = _headers(request, address, token)
            reply = await connection.send(method, path, headers, request.body, timeouts)
        except httpx.TransportError as error:
            if isinstance(error, httpx.TimeoutException):
                self._note_away(address)
            elif not connection.has_answered and address in self._acknowledging:
                return False
            if request.method == "GET":
                return False
            _say_lost(request, response)
            return True
        if connection.has_acknowledged:
            self._note_acknowledging(address)
        try:
            if NOT_HERE_HEADER in reply.headers:
                return False
            await _pass_back(request, reply, response)
            return True
        finally:
            await reply.aclose()
            if connection.is_idle:
                self._idle[connection] = address, asyncio.get_running_loop().time()

    def _take(self, address: str) -> Connection | None:
        """An idle connection to ``address``, the last used. Closes those that are of no use any more."""
        oldest = asyncio.get_running_loop().time() - IDLE
        for connection, (_, since) in list(self._idle.items()):
            if since < oldest or not connection.stream.is_quiet:
                del self._idle[connection]
                connection.stream.close()
        found = next((each for each in reversed(self._idle) if self._idle[each][0] == address), None)
        if found is not None:
            del self._idle[found]
        return found

    async def _connected(self, address: str) -> Connection:
        host, _, port = address.rpartition(":")
        return Connection(await connect(host.strip("[]"), int(port), CONNECT_TIME))

    def _note_away(self, address: str) -> None:
        now = asyncio.get_running_loop().time()
        self._away = {each: until for each, until in self._away.items() if until > now}
        if len(self._away) < limits.REPLICAS_AWAY:
            self._away[address] = now + AWAY

    def _note_acknowledging(self, address: str) -> None:
        self._acknowledging[address] = None
        self._acknowledging.move_to_end(address)
        if len(self._acknowledging) > limits.REPLICAS_ACKNOWLEDGING:
            self._acknowledging.popitem(last=False)


def _headers(request: HttpRequest, address: str, token: str) -> list[tuple[bytes, bytes]]:
    given = [(name, value) for name in _PASSED for value in request.headers.get(name, ())]
    given += request.headers_starting_with(_PARAM)
    given += [("host", address), (TOKEN_HEADER, token), ("content-length", str(len(request.body)))]
    if request.method == "POST":
        given.append(("expect", "100-continue"))
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given]


async def _pass_back(request: HttpRequest, reply: httpx.Response, response: HttpResponse) -> None:
    headers = [(name, value) for name, value in _lower(reply.headers.raw) if name in _PASSED_BACK]
    whole, began = True, False
    try:
        if "content-length" in reply.headers:  # an event stream, too, whose end was there at its beginning
            body = b"".join([chunk async for chunk in reply.aiter_raw()])
            response.send(reply.status_code, body, *headers)
            return
        response.begin(reply.status_code, *headers)
        began = True
        async for chunk in reply.aiter_raw():
            whole = chunk.endswith(b"\r\n\r\n")
            response.pass_on(chunk)
            await response.drained()
    except httpx.TransportError:
        if not began:
            _say_lost(request, response)
            return
        # What was cut in the middle of an event is no event for the client (HTML, "Server-sent events").
        lost = _lost_line(request) if whole else None
        if lost is not None:
            response.pass_on(sse_event(lost))
    response.finish()


def _lower(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value) for name, value in headers]


def _say_lost(request: HttpRequest, response: HttpResponse) -> None:
    line = _lost_line(request)
    if line is None:
        response.empty(202 if request.method == "POST" else 200)  # nobody waits for what it was about
    else:
        response.json(line)


def _lost_line(request: HttpRequest) -> bytes | None:
    """The message that answers a request whose replica is gone; None for what is no request."""
    if request.method != "POST":
        return None
    event = Peer(role=Role.SERVER).message(request.body)
    if not isinstance(event, Request):
        return None
    reason = MAY_HAVE_RUN if event.method == "tools/call" else _AGAIN
    return error_message(RpcError(INTERNAL_ERROR, reason), event.id)
