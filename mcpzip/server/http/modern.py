"""Clients of the modern era over HTTP: each request is a client of its own (2026-07-28
`basic/transports/streamable-http`).

The rules: what a request's headers repeat of its body has to be the same (`routing`); whoever hangs up has
cancelled; an error that comes before anything else was said sets the HTTP status.
"""

from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.workers import Asker
from mcpzip.server.endpoint import BUSY, Endpoint
from mcpzip.server.http import routing
from mcpzip.server.http.head import Head
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.outbox import Answer, Outbox, Room
from mcpzip.server.http.reply import Receive, Refusal, Reply
from mcpzip.server.http.work import Outcome, Work
from mcpzip.wire import (
    CLIENT_CAPABILITIES_KEY,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LOG_LEVEL_KEY,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    Cancelled,
    Era,
    Invalid,
    Notification,
    Peer,
    Request,
    Role,
    RpcError,
    Unmatched,
)
from mcpzip.wire.envelope import text_of

STATUS = {
    METHOD_NOT_FOUND: 404,
    **dict.fromkeys(
        (
            PARSE_ERROR,
            INVALID_REQUEST,
            INVALID_PARAMS,
            HEADER_MISMATCH,
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            UNSUPPORTED_PROTOCOL_VERSION,
        ),
        400,
    ),
}
"""The HTTP status of an error, by its code (`basic/transports/streamable-http`); of any other it is 200."""

_NO_ANSWERS = Refusal(400, "In this version of the protocol nothing is asked of clients.", unread=False)


class Modern:
    """All requests of an endpoint's modern clients."""

    def __init__(self, endpoint: Endpoint, work: Work, limits: Limits, room: Room) -> None:
        self._endpoint, self._work, self._limits, self._room = endpoint, work, limits, room

    async def post(self, head: Head, body: bytes, reply: Reply, receive: Receive) -> None:
        """Answers a POST with this body."""
        peer = Peer(role=Role.SERVER)
        match event := peer.message(body):
            case Request():
                await self._answer(peer, event, head, reply, receive)
            case Invalid(id=id, code=code, message=message):
                await reply.json(peer.error(id, code, message), STATUS[code])
            case Notification() | Cancelled() | Unmatched(kind="progress" | "cancelled"):
                # None is defined for this direction; a request isn't cancelled by an id that anyone may name.
                error = routing.unserved(head)
                if error is None:
                    await reply.empty(202)
                else:
                    await reply.json(peer.error(None, error.code, error.message, error.data, error.more), 400)
            case _:
                await reply.refuse(_NO_ANSWERS, receive, self._limits.linger)

    async def _answer(self, peer: Peer, request: Request, head: Head, reply: Reply, receive: Receive) -> None:
        outbox = Outbox(self._room)

        def tell(method: str, params: bytes | None) -> None:
            outbox.tell(peer.notify(method, params))

        client = Client(Era.MODERN, lasting=False, tell=tell)
        exchange = Exchange(client, request.id, request.params, tell)
        error = routing.misrouted(head, request.method, exchange)
        if error is None and self._work.full_for(head.address):
            error = BUSY
        if error is None and request.method == "tools/call":
            error = await routing.mismirrored(head, exchange, self._endpoint.mirrored)
        if error is not None:
            await reply.json(*_answer(peer, request.id, error))
            return
        meta = exchange.meta_fields
        client.capabilities = exchange.capabilities = meta[CLIENT_CAPABILITIES_KEY]
        exchange.log_level = text_of(meta.get(LOG_LEVEL_KEY, b""))

        def settled(outcome: Outcome) -> None:
            outbox.finish(Answer(*_answer(peer, request.id, outcome)))

        work = self._endpoint.answer(request.method, exchange)
        task = self._work.answer(work, settled, Asker(head.address))
        delivered = False
        try:
            delivered = await reply.deliver(outbox, receive)
        finally:
            if not delivered:
                outbox.close()
                task.cancel()


def _answer(peer: Peer, id: bytes, outcome: Outcome) -> tuple[bytes, int]:
    """The line that answers request ``id``, and its HTTP status."""
    if isinstance(outcome, RpcError):
        line = peer.error(id, outcome.code, outcome.message, outcome.data, outcome.more)
        return line, STATUS.get(outcome.code, 200)
    return peer.result(id, outcome), 200
