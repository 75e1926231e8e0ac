"""Clients of the legacy era over HTTP: each in a session of its own (2025-11-25
`basic/transports/streamable-http`, "Session Management").

The rules: a session begins with an `initialize` that was answered and ends by DELETE or by not being used; a
client that hangs up has cancelled nothing, but isn't asked anything on that response any more, and what it
asked goes on for some minutes only; an id is in use until its request is answered.
"""

import asyncio
import math
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from mcpzip.proxy.exchange import Ask, Client, Exchange, Tell
from mcpzip.proxy.workers import Asker
from mcpzip.server.endpoint import BUSY, Endpoint
from mcpzip.server.http.head import Head
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.outbox import Answer, Outbox, Room
from mcpzip.server.http.reply import Header, Receive, Refusal, Reply, error_message
from mcpzip.server.http.work import Outcome, Work
from mcpzip.server.questions import NOT_READ, Questions
from mcpzip.transport.base import RpcFaultError
from mcpzip.wire import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    Cancelled,
    Era,
    Error,
    Event,
    Invalid,
    Notification,
    Peer,
    Request,
    Result,
    Role,
    RpcError,
    read_opening,
)

STREAM_TIME = 5.0
"""Seconds a client may take to open the stream on which it is to be asked something outside its requests."""

_NO_SESSION = Refusal(400, "There is no Mcp-Session-Id: begin with initialize.", unread=False)
_UNKNOWN = Refusal(404, "This session has ended, or never was: begin with initialize.", unread=False)
_FULL = Refusal(503, "There are too many sessions; try again later.", code=INTERNAL_ERROR, unread=False)
_STOPPING = Refusal(503, "mcpzip was told to stop.", code=INTERNAL_ERROR, unread=False)
_LISTENS = Refusal(409, "The session has its stream already: one is allowed.", unread=False)
_NO_STREAM = RpcError(INVALID_REQUEST, "The client has no stream open on which it could be asked.")
_BEGUN = RpcError(INVALID_REQUEST, "The session has begun already; a new one begins without Mcp-Session-Id.")
_NO_OBJECT = RpcError(INVALID_PARAMS, "params is an object")
_NO_HEADER = "MCP-Protocol-Version is not the version in _meta: it is not there."
_NO_VERSION = "initialize needs a 'protocolVersion'."
_WITHDRAWN = "The request was cancelled."
_UNHEARD = "The client hung up long ago."
_ENDED = "The session has ended."


class Legacy:
    """All sessions of an endpoint."""

    def __init__(self, endpoint: Endpoint, work: Work, limits: Limits, room: Room) -> None:
        self._endpoint, self._work, self._limits, self._room = endpoint, work, limits, room
        self._sessions: dict[str, LegacySession] = {}

    async def post(self, head: Head, body: bytes, reply: Reply, receive: Receive) -> None:
        """Answers a POST with this body."""
        if head.session is None:
            await self._opening(head, body, reply, receive)
        elif session := self._sessions.get(head.session):
            with self._in_use(session, reply.headers):
                await session.post(body, reply, receive)
        else:
            await self._refuse(_UNKNOWN, reply, receive)

    async def get(self, head: Head, reply: Reply, receive: Receive) -> None:
        """Says on its own stream what concerns none of a session's requests."""
        session = self._sessions.get(head.session or "")
        if session is None:
            await self._refuse(_UNKNOWN if head.session else _NO_SESSION, reply, receive)
        elif session.listens.is_set():
            await self._refuse(_LISTENS, reply, receive)
        else:
            with self._in_use(session, reply.headers):
                await session.listen(reply, receive)

    async def delete(self, head: Head, reply: Reply, receive: Receive) -> None:
        """Ends a session."""
        session = self._sessions.get(head.session or "")
        if session is None:
            await self._refuse(_UNKNOWN if head.session else _NO_SESSION, reply, receive)
        else:
            self._end(session)
            await reply.empty(200)

    def end(self) -> None:
        """Ends all sessions."""
        for session in list(self._sessions.values()):
            self._end(session)

    async def _opening(self, head: Head, body: bytes, reply: Reply, receive: Receive) -> None:
        peer = Peer(role=Role.SERVER)
        match event := peer.message(body):
            case Request(method="initialize", params=params):
                opening = read_opening("initialize", params)
                if opening is None or opening.version is None:
                    await reply.json(peer.error(event.id, INVALID_PARAMS, _NO_VERSION))
                elif self._work.full:
                    await reply.json(peer.error(event.id, BUSY.code, BUSY.message))
                elif self._work.over or not self._has_room(head.address):
                    await self._refuse(_STOPPING if self._work.over else _FULL, reply, receive)
                else:
                    await self._open(head.address, peer, event, reply, receive)
            case Request(id=id, method=method, params=params) if _is_modern(method, params):
                await reply.json(peer.error(id, HEADER_MISMATCH, _NO_HEADER), 400)
            case Invalid(id=id, code=code, message=message):
                await reply.json(peer.error(id, code, message), 400)
            case _:
                await self._refuse(_NO_SESSION, reply, receive)

    async def _open(self, address: str, peer: Peer, request: Request, reply: Reply, receive: Receive) -> None:
        session = LegacySession(self._endpoint, self._work, peer, self._limits, self._room, address)
        self._sessions[session.id] = session
        self._endpoint.joined(session.client)
        opened = False
        try:
            with self._in_use(session, reply.unless_failed):
                opened = await session.answer(request, reply, receive)
        finally:
            if not opened:
                self._end(session)

    def _has_room(self, address: str) -> bool:
        """Whether there can be one session more from ``address``; the one that is missed least goes for it.

        That is one that isn't in use: one that did nothing but begin, if there is one, and of these the one
        that was unused longest.
        """
        limits, every = self._limits, list(self._sessions.values())
        if address and not _is_loopback(address):
            of_it = [it for it in every if it.address == address]
            if len(of_it) >= limits.sessions_share:
                return self._lets_one_go(of_it)
        return len(every) < limits.sessions or self._lets_one_go(every)

    def _lets_one_go(self, sessions: "list[LegacySession]") -> bool:
        idle = [it for it in sessions if it.used_until < math.inf]
        if idle:
            self._end(min(idle, key=lambda it: (it.did_something, it.used_until)))
        return bool(idle)

    def _unused(self, session: "LegacySession") -> None:
        """Has ``session`` end unless it is used again."""
        loop = asyncio.get_running_loop()
        session.clock = loop.call_later(self._limits.session_idle, self._late, session)

    def _late(self, session: "LegacySession") -> None:
        if session.busy:  # with what a client asked that hung up
            self._unused(session)
        else:
            self._end(session)

    def _end(self, session: "LegacySession") -> None:
        if self._sessions.pop(session.id, None) is not None:
            session.end()
            self._work.aside(self._endpoint.left(session.client))

    @contextmanager
    def _in_use(self, session: "LegacySession", headers: list[Header]) -> Iterator[None]:
        headers.append((b"mcp-session-id", session.id.encode()))
        if session.clock is not None:
            session.clock.cancel()
        session.uses += 1
        try:
            yield
        finally:
            session.uses -= 1
            if not session.uses and session.id in self._sessions:
                session.last_used = asyncio.get_running_loop().time()
                self._unused(session)

    async def _refuse(self, refusal: Refusal, reply: Reply, receive: Receive) -> None:
        await reply.refuse(refusal, receive, self._limits.linger)


class _Call:
    """A request under way. withdrawn: why it was cancelled, if it was; clock: what ends it after its client
    hung up.
    """

    def __init__(self, id: bytes, room: Room) -> None:
        self.id, self.outbox = id, Outbox(room)
        self.withdrawn: str | None = None
        self.cancel: Callable[[], object] = lambda: None
        self.clock: asyncio.TimerHandle | None = None

    def end_clock(self) -> None:
        """It ends by itself."""
        if self.clock is not None:
            self.clock.cancel()


class LegacySession:
    """One client. id: its Mcp-Session-Id; listens: set while it has its own stream open; uses: HTTP requests
    of it that are open; did_something: whether it asked anything after it had begun; address: of whom it
    came from; last_used: when there was one, by the loop's clock; clock: what ends it then.
    """

    def __init__(
        self, endpoint: Endpoint, work: Work, peer: Peer, limits: Limits, room: Room, address: str = ""
    ) -> None:
        self.id, self.address = secrets.token_hex(16), address
        self.client = Client(Era.LEGACY)
        self.listens = asyncio.Event()
        self.uses = 0
        self.last_used = 0.0
        self.did_something = False
        self.clock: asyncio.TimerHandle | None = None
        self._endpoint, self._work, self._peer, self._limits = endpoint, work, peer, limits
        self._questions = Questions(peer)
        self._calls: dict[bytes, _Call] = {}
        self._room, self._outbox = room, Outbox(room)
        self.client.tell = self._telling(self._outbox)
        self.client.ask = self._asking(self._outbox, self.listens)

    @property
    def busy(self) -> bool:
        """Whether a request of it is under way."""
        return bool(self._calls)

    @property
    def used_until(self) -> float:
        """When it was last used; the end of time while it is."""
        return math.inf if self.uses or self.busy else self.last_used

    def _is_full_for(self, method: str) -> bool:
        # A ping asks whether we are there; that takes no time.
        return self._work.full if method == "ping" else self._work.full_for(self.id)

    async def post(self, body: bytes, reply: Reply, receive: Receive) -> None:
        """Answers a message of the client."""
        match event := self._peer.message(body):
            case Request(id=id, params=params) if params is not None and not params.startswith(b"{"):
                await self._refuse(id, _NO_OBJECT, reply, 400)
            case Request(id=id, method="initialize"):
                await self._refuse(id, _BEGUN, reply)
            case Request(id=id, method=method) if self._is_full_for(method):
                await self._refuse(id, BUSY, reply)
            case Request():
                self.did_something = True
                await self.answer(event, reply, receive)
            case Invalid(id=id, code=code, message=message):
                await reply.json(self._peer.error(id, code, message), 400)
            case _:
                self._take(event)
                await reply.empty(202)

    async def answer(self, request: Request, reply: Reply, receive: Receive) -> bool:
        """Answers a request. Returns whether the client got a result; one that left gets no more of it."""
        call = _Call(request.id, self._room)
        self._calls[call.id] = call
        client, outbox = self.client, call.outbox
        exchange = Exchange(
            client,
            request.id,
            request.params,
            self._telling(outbox),
            self._asking(outbox),
            client.capabilities,
            client.log_level,
        )
        work = self._endpoint.answer(request.method, exchange)
        asker = Asker(self.id, lambda: outbox.closed)
        call.cancel = self._work.answer(work, partial(self._settled, call), asker).cancel
        delivered = False
        try:
            delivered = await reply.deliver(outbox, receive, self._limits.event)
        finally:
            if not delivered:
                outbox.close()
                self._questions.end(outbox.put)
                if self._calls.get(call.id) is call:  # nobody will hear of it
                    loop = asyncio.get_running_loop()
                    call.clock = loop.call_later(self._limits.unheard, self._give_up, call)
        return delivered and outbox.answer is not None and not outbox.answer.failed

    async def _refuse(self, id: bytes, error: RpcError, reply: Reply, status: int = 200) -> None:
        await reply.json(self._peer.error(id, error.code, error.message), status)

    async def listen(self, reply: Reply, receive: Receive) -> None:
        """Says what concerns no request, until the client leaves or the session ends."""
        self.listens.set()
        self.did_something = True
        try:
            await reply.stream()
            # What was asked on the stream before, and not answered, may have been lost with it.
            self._outbox.repeat(self._questions.unanswered(self._outbox.put))
            await reply.deliver(self._outbox, receive)
        finally:
            self.listens.clear()

    def end(self) -> None:
        """The client is gone."""
        if self.clock is not None:
            self.clock.cancel()
        self._peer.eof()
        self._questions.end()
        for call in list(self._calls.values()):
            self._withdraw(call, _ENDED)
        self._outbox.close()

    def _take(self, event: Event) -> None:
        match event:
            case Result() | Error():
                self._questions.answered(event)
            case Cancelled(id=id):
                if call := self._calls.get(id):
                    self._withdraw(call, _WITHDRAWN)
            case Notification(method=method, params=params):
                if self._work.crowded:
                    return
                if work := self._endpoint.notified(self.client, method, params):
                    self._work.aside(work)
            case _:
                pass  # progress, or an answer nobody waits for

    def _give_up(self, call: _Call) -> None:
        self._peer.error(call.id, REQUEST_CANCELLED, _UNHEARD)  # it is answered, though nobody hears of it
        self._withdraw(call, _UNHEARD)

    def _withdraw(self, call: _Call, reason: str) -> None:
        del self._calls[call.id]  # whose id is free from now on
        call.end_clock()
        call.withdrawn = reason
        call.cancel()

    def _settled(self, call: _Call, outcome: Outcome) -> None:
        call.end_clock()
        if self._calls.get(call.id) is call:
            del self._calls[call.id]
        if call.withdrawn is not None:
            # A response has to be something, though the specification wants no answer to a cancelled request.
            outcome = RpcError(REQUEST_CANCELLED, call.withdrawn)
            line = error_message(outcome, call.id)
        elif isinstance(outcome, RpcError):
            line = self._peer.error(call.id, outcome.code, outcome.message, outcome.data, outcome.more)
        else:
            line = self._peer.result(call.id, outcome)
        call.outbox.finish(Answer(line, failed=isinstance(outcome, RpcError)))

    def _telling(self, outbox: Outbox) -> Tell:
        return lambda method, params: outbox.tell(self._peer.notify(method, params))

    def _asking(self, outbox: Outbox, open: asyncio.Event | None = None) -> Ask:
        async def ask(method: str, params: bytes | None) -> bytes:
            if open is not None:
                await _opened(open)
            if not outbox.open:
                raise RpcFaultError(_NO_STREAM)
            if outbox.full:
                raise RpcFaultError(NOT_READ)
            return await self._questions.ask(outbox.put, method, params)

        return ask


def _is_loopback(address: str) -> bool:
    """Whether it is this machine: there may be anybody behind it, a reverse proxy too."""
    return address.startswith(("127.", "::1", "::ffff:127."))


def _is_modern(method: str, params: bytes | None) -> bool:
    opening = read_opening(method, params)
    return opening is not None and opening.era is Era.MODERN


async def _opened(stream: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(STREAM_TIME):
            await stream.wait()
    except TimeoutError:
        raise RpcFaultError(_NO_STREAM) from None
