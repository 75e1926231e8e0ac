"""Sessions of legacy clients over HTTP (2025-11-25 `basic/transports/streamable-http`, "Session Management").

A session begins with an `initialize` that succeeds, and ends by DELETE or when it is unused for long. Where
there are too many, one that isn't in use makes room.
"""

import asyncio
import math
import secrets
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mcpzip.server.endpoint import BUSY, Endpoint
from mcpzip.server.http.event_store import EventStore, ReplayBudget, is_event_id
from mcpzip.server.http.legacy_session import LegacySession
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.response import Header, HttpResponse, Refusal, ScopesChallenge
from mcpzip.server.http.send_queue import QueueBudget
from mcpzip.server.task_tracker import TaskTracker
from mcpzip.wire import (
    BATCHED_VERSION,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Era,
    Invalid,
    Peer,
    Request,
    Role,
    negotiate,
    read_opening,
)

if TYPE_CHECKING:
    from mcpzip.server.http.sealed_sessions import SealedSessions
    from mcpzip.server.replicas.forwarding import Forwarder
    from mcpzip.server.replicas.replica import SealedSession

RESUMABLE_SINCE = "2025-11-25"
"""The first version whose clients understand an event without a message, with which a stream begins."""

_NO_SESSION = Refusal(400, "There is no Mcp-Session-Id: begin with initialize.")
_UNKNOWN = Refusal(404, "This session has ended, or never was: begin with initialize.")
_FULL = Refusal(503, "There are too many sessions; try again later.", code=INTERNAL_ERROR)
_STOPPING = Refusal(503, "mcpzip was told to stop.", code=INTERNAL_ERROR)
_LISTENS = Refusal(409, "The session has its stream already: one is allowed.")
_FORGOTTEN = Refusal(400, "Nothing is known behind this Last-Event-ID any more.")
_NO_HEADER = "MCP-Protocol-Version is not the version in _meta: it is not there."
_NO_VERSION = "initialize needs a 'protocolVersion'."

Use = Callable[[LegacySession, HttpRequest, HttpResponse], None]
"""What a request does with its session."""


class LegacySessions:
    """All legacy sessions of an endpoint, by Mcp-Session-Id."""

    _sealed: "SealedSessions | None" = None

    def __init__(
        self,
        endpoint: Endpoint,
        tasks: TaskTracker,
        limits: Limits,
        budget: QueueBudget,
        challenge: ScopesChallenge | None = None,
        forwarder: "Forwarder | None" = None,
    ) -> None:
        """challenge: where people sign in. forwarder: where there are replicas."""
        self._challenge = challenge
        if forwarder is not None:
            from mcpzip.server.http.sealed_sessions import SealedSessions  # most have no replicas

            self._sealed = SealedSessions(forwarder)
        self._endpoint, self._tasks, self._limits, self._budget = endpoint, tasks, limits, budget
        self._sessions: dict[str, LegacySession] = {}
        self._replay_budget = ReplayBudget(limits.replayed, limits.replayed_by_all)

    def post(self, request: HttpRequest, response: HttpResponse) -> None:
        """Answers a POST."""
        if request.session_id is None:
            self._begin(request, response)
        else:
            self._find(request, response, self._post)

    def _post(self, session: LegacySession, request: HttpRequest, response: HttpResponse) -> None:
        self._use(session, response, response.headers)
        session.post(request.body, response)

    def get(self, request: HttpRequest, response: HttpResponse) -> None:
        """Opens the session's own stream, for what belongs to none of its requests; or resumes the stream of
        a request.
        """
        self._find(request, response, self._get)

    def _get(self, session: LegacySession, request: HttpRequest, response: HttpResponse) -> None:
        last_event_id = request.header("last-event-id") or ""
        if is_event_id(last_event_id):
            self._use(session, response, response.headers)
            if not session.resume(last_event_id, response):
                response.refuse(_FORGOTTEN)
        elif session.listens.is_set():
            response.refuse(_LISTENS)
        else:
            self._use(session, response, response.headers)
            session.listen(response)

    def delete(self, request: HttpRequest, response: HttpResponse) -> None:
        """Ends a session."""
        self._find(request, response, self._delete)

    def _delete(self, session: LegacySession, request: HttpRequest, response: HttpResponse) -> None:
        if self._sealed is not None:
            self._sealed.end(session.id)
        self._end(session)
        response.empty(200)

    def _find(self, request: HttpRequest, response: HttpResponse, use: Use) -> None:
        """Uses the session that ``request`` names, or has the replica use it to which it belongs."""
        sealed = None if self._sealed is None else self._sealed.of(request)
        if self._sealed is None or sealed is None:
            self._use_here(None, request, response, use)
        else:
            here = partial(self._use_here, sealed, request, response, use)
            self._sealed.at_home(sealed, request, response, here)

    def _use_here(
        self, sealed: "SealedSession | None", request: HttpRequest, response: HttpResponse, use: Use
    ) -> None:
        session = self._session_of(request)
        if session is not None:
            use(session, request, response)
        elif sealed is None:
            response.refuse(_UNKNOWN if request.session_id else _NO_SESSION)
        elif self._tasks.stopping or not self._has_room(request):
            response.refuse(_STOPPING if self._tasks.stopping else _FULL)
        else:
            use(self._rebuilt(sealed, request), request, response)

    def _rebuilt(self, sealed: "SealedSession", request: HttpRequest) -> LegacySession:
        """A session that this process doesn't have, or not any more, as its id has it."""
        peer = Peer(role=Role.SERVER)
        if self._sealed is not None:  # an answer may come to another replica that went on with the session
            peer.id_suffix = self._sealed.id_suffix(request)
        session = self._new(request, peer, sealed.version, secrets.randbelow(10**12) + 1_000_000)
        session.id, session.began = request.session_id or "", True
        session.client.capabilities, session.client.info = sealed.capabilities, sealed.info
        self._sessions[session.id] = session
        self._endpoint.joined(session.client)
        return session

    def _session_of(self, request: HttpRequest) -> LegacySession | None:
        """The session that ``request`` names; None if there is none, or it is another person's: its id alone
        opens nothing.
        """
        session = self._sessions.get(request.session_id or "")
        if session is None or not session.is_of(request.principal):
            return None
        session.client.principal = request.principal  # whose groups and scopes may be others now
        return session

    def end(self) -> None:
        """Ends all sessions."""
        for session in list(self._sessions.values()):
            self._end(session)

    def _begin(self, request: HttpRequest, response: HttpResponse) -> None:
        peer = Peer(role=Role.SERVER)
        match event := peer.message(request.body):
            case Request(method="initialize", params=params):
                opening = read_opening("initialize", params)
                if opening is None or opening.version is None:
                    response.json(peer.error(event.id, INVALID_PARAMS, _NO_VERSION))
                elif self._tasks.full:
                    response.json(peer.error(event.id, BUSY.code, BUSY.message))
                elif self._tasks.stopping or not self._has_room(request):
                    response.refuse(_STOPPING if self._tasks.stopping else _FULL)
                else:
                    session = self._new(request, peer, opening.version)
                    if self._sealed is not None:
                        session.id = self._sealed.begin(negotiate(opening.version), params, request.principal)
                    self._initialize(session, event, response)
            case Request(id=id, method=method, params=params) if _is_modern(method, params):
                response.json(peer.error(id, HEADER_MISMATCH, _NO_HEADER), 400)
            case Invalid(id=id, code=code, message=message):
                response.json(peer.error(id, code, message), 400)
            case _:
                response.refuse(_NO_SESSION)

    def _new(self, request: HttpRequest, peer: Peer, version: str, streams: int = 0) -> LegacySession:
        store, agreed = None, negotiate(version)
        peer.batches = agreed == BATCHED_VERSION
        if agreed >= RESUMABLE_SINCE:
            store = EventStore(self._replay_budget, self._limits.silence, streams)
        address, principal = request.client_address, request.principal
        rest = address, store, principal, self._challenge
        return LegacySession(self._tasks, peer, self._limits, self._budget, *rest)

    def _initialize(self, session: LegacySession, request: Request, response: HttpResponse) -> None:
        self._sessions[session.id] = session
        self._endpoint.joined(session.client)
        self._use(session, response, response.headers_of_success)
        try:
            session.answer(request, response, lambda success: None if success else self._end(session))
        except BaseException:
            self._end(session)
            raise

    def _has_room(self, request: HttpRequest) -> bool:
        """Whether there can be one session more of whoever makes ``request``, or from its address. If there
        are too many, one that isn't in use is ended for it: one that did nothing but begin, if there is one,
        and of these the one that was unused longest.
        """
        limits, every, address = self._limits, list(self._sessions.values()), request.client_address
        if request.principal is not None:
            of_person = [it for it in every if it.is_of(request.principal)]
            if len(of_person) >= limits.sessions_share:
                return self._evict(of_person)
        elif address and not _is_loopback(address):
            of_it = [it for it in every if it.address == address]
            if len(of_it) >= limits.sessions_share:
                return self._evict(of_it)
        return len(every) < limits.sessions or self._evict(every)

    def _evict(self, sessions: list[LegacySession]) -> bool:
        idle = [it for it in sessions if it.used_until < math.inf]
        if idle:
            self._end(min(idle, key=lambda it: (it.did_something, it.used_until)))
        return bool(idle)

    def _end(self, session: LegacySession) -> None:
        if self._sessions.pop(session.id, None) is not None:
            session.end()
            self._tasks.run_unawaited(self._endpoint.left(session.client))

    def _use(self, session: LegacySession, response: HttpResponse, headers: list[Header]) -> None:
        """Keeps ``session`` from ending until ``response`` has ended."""
        headers.append((b"mcp-session-id", session.id.encode()))
        if session.idle_timer is not None:
            session.idle_timer.cancel()
        session.uses += 1
        response.on_end = partial(self._unuse, session)

    def _unuse(self, session: LegacySession) -> None:
        session.uses -= 1
        if not session.uses and session.id in self._sessions:
            session.last_used = asyncio.get_running_loop().time()
            self._end_if_unused(session)

    def _end_if_unused(self, session: LegacySession) -> None:
        loop = asyncio.get_running_loop()
        session.idle_timer = loop.call_later(self._limits.session_idle, self._idle, session)

    def _idle(self, session: LegacySession) -> None:
        if session.busy:  # with a request whose client hung up
            self._end_if_unused(session)
        else:
            self._end(session)


def _is_loopback(address: str) -> bool:
    """Whether it is this machine. Any client may be behind it, through a reverse proxy."""
    return address.startswith(("127.", "::1", "::ffff:127."))


def _is_modern(method: str, params: bytes | None) -> bool:
    opening = read_opening(method, params)
    return opening is not None and opening.era is Era.MODERN
