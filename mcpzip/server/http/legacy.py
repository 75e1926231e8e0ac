"""Clients of the legacy era over HTTP: each in a session of its own (2025-11-25
`basic/transports/streamable-http`, "Session Management").

The rules: a session begins with an `initialize` that was answered and ends by DELETE or by not being used;
where there are too many, one that isn't in use makes room.
"""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager

from mcpzip.server.endpoint import BUSY, Endpoint
from mcpzip.server.http.head import Head
from mcpzip.server.http.legacy_session import LegacySession
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.outbox import Room
from mcpzip.server.http.reply import Header, Receive, Refusal, Reply
from mcpzip.server.http.track import Memory, Tracks, is_event_id
from mcpzip.server.http.work import Work
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

RESUMABLE_SINCE = "2025-11-25"
"""The first version whose clients know an event without a message, which an id before the answer takes."""

_NO_SESSION = Refusal(400, "There is no Mcp-Session-Id: begin with initialize.", unread=False)
_UNKNOWN = Refusal(404, "This session has ended, or never was: begin with initialize.", unread=False)
_FULL = Refusal(503, "There are too many sessions; try again later.", code=INTERNAL_ERROR, unread=False)
_STOPPING = Refusal(503, "mcpzip was told to stop.", code=INTERNAL_ERROR, unread=False)
_LISTENS = Refusal(409, "The session has its stream already: one is allowed.", unread=False)
_FORGOTTEN = Refusal(400, "Nothing is known behind this Last-Event-ID any more.", unread=False)
_NO_HEADER = "MCP-Protocol-Version is not the version in _meta: it is not there."
_NO_VERSION = "initialize needs a 'protocolVersion'."


class Legacy:
    """All sessions of an endpoint."""

    def __init__(self, endpoint: Endpoint, work: Work, limits: Limits, room: Room) -> None:
        self._endpoint, self._work, self._limits, self._room = endpoint, work, limits, room
        self._sessions: dict[str, LegacySession] = {}
        self._memory = Memory(limits.replayed, limits.replayed_by_all)

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
        """Says on its own stream what concerns none of a session's requests; or goes on with the stream of a
        request, which broke off.
        """
        session = self._sessions.get(head.session or "")
        last = head.text("Last-Event-ID") or ""
        if session is None:
            await self._refuse(_UNKNOWN if head.session else _NO_SESSION, reply, receive)
        elif is_event_id(last):
            with self._in_use(session, reply.headers):
                if not await session.resume(last, reply, receive):
                    await self._refuse(_FORGOTTEN, reply, receive)
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
                    session = self._begun(head.address, peer, opening.version)
                    await self._open(session, event, reply, receive)
            case Request(id=id, method=method, params=params) if _is_modern(method, params):
                await reply.json(peer.error(id, HEADER_MISMATCH, _NO_HEADER), 400)
            case Invalid(id=id, code=code, message=message):
                await reply.json(peer.error(id, code, message), 400)
            case _:
                await self._refuse(_NO_SESSION, reply, receive)

    def _begun(self, address: str, peer: Peer, version: str) -> LegacySession:
        tracks, agreed = None, negotiate(version)
        peer.batches = agreed == BATCHED_VERSION
        if agreed >= RESUMABLE_SINCE:
            tracks = Tracks(self._memory, self._limits.silence)
        return LegacySession(self._endpoint, self._work, peer, self._limits, self._room, address, tracks)

    async def _open(self, session: LegacySession, request: Request, reply: Reply, receive: Receive) -> None:
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

    def _lets_one_go(self, sessions: list[LegacySession]) -> bool:
        idle = [it for it in sessions if it.used_until < math.inf]
        if idle:
            self._end(min(idle, key=lambda it: (it.did_something, it.used_until)))
        return bool(idle)

    def _unused(self, session: LegacySession) -> None:
        """Has ``session`` end unless it is used again."""
        loop = asyncio.get_running_loop()
        session.clock = loop.call_later(self._limits.session_idle, self._late, session)

    def _late(self, session: LegacySession) -> None:
        if session.busy:  # with what a client asked that hung up
            self._unused(session)
        else:
            self._end(session)

    def _end(self, session: LegacySession) -> None:
        if self._sessions.pop(session.id, None) is not None:
            session.end()
            self._work.aside(self._endpoint.left(session.client))

    @contextmanager
    def _in_use(self, session: LegacySession, headers: list[Header]) -> Iterator[None]:
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


def _is_loopback(address: str) -> bool:
    """Whether it is this machine: there may be anybody behind it, a reverse proxy too."""
    return address.startswith(("127.", "::1", "::ffff:127."))


def _is_modern(method: str, params: bytes | None) -> bool:
    opening = read_opening(method, params)
    return opening is not None and opening.era is Era.MODERN
