"""Requests of the modern era over HTTP (2026-07-28 `basic/transports/streamable-http`).

Each request is a client of its own. What its headers repeat of its body must be the same. Closing the
connection cancels the request. An error that nothing preceded sets the HTTP status.
"""

from functools import partial
from typing import TYPE_CHECKING

from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.workers import Requester
from mcpzip.server.endpoint import BUSY, STOPPED, Endpoint
from mcpzip.server.http.header_validation import argument_mismatch, header_mismatch, unsupported_version
from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.response import HttpResponse, Refusal, ScopesChallenge
from mcpzip.server.http.send_queue import FinalMessage, QueueBudget, SendQueue
from mcpzip.server.task_tracker import Outcome, TaskTracker
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
    JsonRpcError,
    Notification,
    Peer,
    Request,
    Role,
    RpcError,
    ScopeError,
    Unmatched,
)
from mcpzip.wire.envelope import text_of

if TYPE_CHECKING:
    from mcpzip.server.http.sealed_states import SealedStates
    from mcpzip.server.replicas.forwarding import Forwarder

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
"""The HTTP status by error code (`basic/transports/streamable-http`); it is 200 for any other."""

_NO_RESPONSES = Refusal(400, "In this version of the protocol nothing is asked of clients.")


class ModernRequests:
    """Answers the requests of an endpoint's modern clients."""

    _states: "SealedStates | None" = None

    def __init__(
        self,
        endpoint: Endpoint,
        tasks: TaskTracker,
        budget: QueueBudget,
        challenge: ScopesChallenge | None = None,
        forwarder: "Forwarder | None" = None,
    ) -> None:
        """challenge: where people sign in. forwarder: where there are replicas."""
        self._endpoint, self._tasks, self._budget = endpoint, tasks, budget
        self._challenge = challenge
        if forwarder is not None:
            from mcpzip.server.http.sealed_states import SealedStates  # most have no replicas

            self._states = SealedStates(forwarder)

    def post(self, request: HttpRequest, response: HttpResponse) -> None:
        """Answers a POST."""
        peer = Peer(role=Role.SERVER)
        match event := peer.message(request.body):
            case Request():
                if self._states is None:
                    self._answer(peer, event, request, response)
                else:
                    self._answer_or_forward(self._states, peer, event, request, response)
            case Invalid(id=id, code=code, message=message):
                response.json(peer.error(id, code, message), STATUS[code])
            case Notification() | Cancelled() | Unmatched(kind="progress" | "cancelled"):
                # None is defined for this direction, and no id cancels a request: anyone could name it.
                if error := unsupported_version(request):
                    response.json(*_message(peer, None, error))
                else:
                    response.empty(202)
            case _:
                response.refuse(_NO_RESPONSES)

    def _answer_or_forward(
        self,
        states: "SealedStates",
        peer: Peer,
        event: Request,
        request: HttpRequest,
        response: HttpResponse,
    ) -> None:
        """Answers a request that may belong to another replica."""

        def here() -> None:
            unsealed = states.unsealed(event, request)
            if isinstance(unsealed, RpcError):
                response.json(*_message(peer, event.id, unsealed))
            else:
                self._answer(peer, unsealed, request, response)

        states.at_owner(event, request, response, here)

    def _answer(self, peer: Peer, event: Request, request: HttpRequest, response: HttpResponse) -> None:
        queue = SendQueue(self._budget)

        def notify(method: str, params: bytes | None) -> None:
            queue.put_if_room(peer.notify(method, params))

        client = Client(Era.MODERN, has_session=False, notify=notify, principal=request.principal)
        asker = client.owner or request.client_address
        exchange = Exchange(client, event.id, event.params, notify)
        error = header_mismatch(request, event.method, exchange)
        if error is None and self._tasks.full_for(asker):
            error = BUSY
        if error is not None:
            response.json(*_message(peer, event.id, error))
            return
        meta = exchange.meta_fields
        client.capabilities = exchange.capabilities = meta[CLIENT_CAPABILITIES_KEY]
        exchange.log_level = text_of(meta.get(LOG_LEVEL_KEY, b""))

        def settled(outcome: Outcome) -> None:
            if self._states is not None and isinstance(outcome, bytes):
                outcome = self._states.sealed(outcome, event.method, exchange)
            if isinstance(outcome, ScopeError) and self._challenge is not None:
                line, _ = _message(peer, event.id, outcome)
                header = self._challenge(outcome.scopes, request.principal)
                queue.finish(FinalMessage(line, 403, failed=True, headers=(header,)))
            else:
                queue.finish(FinalMessage(*_message(peer, event.id, outcome or STOPPED)))

        def delivered(complete: bool) -> None:
            if not complete:
                queue.close()
                if task is not None:
                    task.cancel()

        requester = Requester(asker)
        begin = partial(self._call, request) if event.method == "tools/call" else None
        task = self._tasks.run(event.method, exchange, settled, requester, begin)
        response.deliver(queue, delivered)

    async def _call(self, request: HttpRequest, method: str, exchange: Exchange) -> bytes:
        schema_of = partial(self._endpoint.mirrored, principal=request.principal)
        if error := await argument_mismatch(request, exchange, schema_of):
            raise JsonRpcError(error)
        result = self._endpoint.begin(method, exchange)
        return result if isinstance(result, bytes) else await result


def _message(peer: Peer, id: bytes | None, outcome: bytes | RpcError) -> tuple[bytes, int]:
    """The line that answers request ``id``, and its HTTP status."""
    if isinstance(outcome, RpcError):
        line = peer.error(id, outcome.code, outcome.message, outcome.data, outcome.more)
        return line, STATUS.get(outcome.code, 200)
    assert id is not None
    return peer.result(id, outcome), 200
