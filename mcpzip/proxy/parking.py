"""Calls that wait upstream for a modern client to come back with answers.

The rules: a call is parked under a handle that nobody can guess, which is good once, for the same request of
the same client. So many are parked and no more, and none for ever.
"""

import asyncio
import secrets

from mcpzip.model import limits
from mcpzip.model.quoting import shortened
from mcpzip.proxy.call import ModernCall, UpstreamRequest
from mcpzip.proxy.exchange import Client, Exchange, members
from mcpzip.proxy.input_required import input_required
from mcpzip.wire import (
    INVALID_PARAMS,
    JsonRpcError,
    RpcError,
    unquote,
)

PARKING_TIME = 600.0
"""Seconds a call is parked at most."""
HANDLE_PREFIX = "mcpzip-"
"""How a `requestState` of ours begins, or of another mcpzip's."""

NOT_PARKED = RpcError(
    INVALID_PARAMS,
    "This requestState is of no call that waits: it was answered, it waited too long, newer ones took its "
    "place, or it is another request's. Make the request again without it.",
)


class ParkedCalls:
    """The parked calls of all clients, the oldest first."""

    def __init__(self) -> None:
        # An mcpzip behind this one has handles, too.
        self._prefix = f"{HANDLE_PREFIX}{secrets.token_urlsafe(6)}-"
        self._calls: dict[str, tuple[ModernCall, asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def has_any(self, client: Client | None = None) -> bool:
        """Whether a call of ``client`` (default: of any) is parked."""
        return any(client in (None, call.client) for call, _ in self._calls.values())

    def is_handle(self, state: bytes) -> bool:
        """Whether this `requestState` (JSON text) is one of ours."""
        return state.startswith(b'"' + self._prefix.encode())

    def park(self, call: ModernCall) -> bytes:
        """The result with which the client of ``call`` is asked what the upstream wants to know."""
        questions = call.park()
        self._evict_for(call.client)
        handle = self._prefix + secrets.token_urlsafe(24)
        timer = asyncio.get_running_loop().call_later(PARKING_TIME, self._abandon, handle)
        self._calls[handle] = call, timer
        return input_required(questions, handle)

    def resumed(self, exchange: Exchange, request: UpstreamRequest) -> ModernCall:
        """The call to whose questions ``exchange`` brings answers. Raises JsonRpcError."""
        handle = unquote(exchange.fields["requestState"])
        call, timer = self._calls.get(handle, (None, None))
        # Whoever can't have been asked learns nothing, not even that there was a question.
        if call is None or timer is None or not _may_answer(exchange.client, call, request):
            raise JsonRpcError(NOT_PARKED)
        responses = members(exchange.fields.get("inputResponses"))
        answers = {key: responses[key] for key in call.unanswered if key in responses}
        for key, answer in answers.items():
            if not answer.startswith(b"{"):
                reason = f"inputResponses.{shortened(key)} must be an object."
                raise JsonRpcError(RpcError(INVALID_PARAMS, reason))
        del self._calls[handle]
        timer.cancel()
        call.resume(exchange, answers)
        return call

    def make_room(self, server: str, seconds: float) -> None:
        """Gives up the call to ``server`` that has waited longest for a client of one request, if it has for
        ``seconds``.
        """
        now = asyncio.get_running_loop().time()
        for handle, (call, _) in self._calls.items():
            if call.request.server == server and not call.client.has_session:
                if now - call.parked_at >= seconds:
                    self._abandon(handle)
                return

    def abandon_calls(self, client: Client | None = None) -> "list[asyncio.Task[bytes]]":
        """Gives up the calls of ``client`` (default: all). Returns their tasks, which end."""
        abandoned = {
            handle: call for handle, (call, _) in self._calls.items() if client in (None, call.client)
        }
        for handle in abandoned:
            self._abandon(handle)
        return [call.task for call in abandoned.values() if call.task is not None]

    def _evict_for(self, client: Client) -> None:
        """Gives up what has waited longest where one call more would be too many."""
        owner = client.owner
        of_client = [handle for handle, (call, _) in self._calls.items() if call.client.owner == owner]
        if owner is not None and len(of_client) >= limits.PARKED_CLIENT:
            self._abandon(of_client[0])
        if len(self._calls) >= limits.PARKED:
            self._abandon(next(iter(self._calls)))

    def _abandon(self, handle: str) -> None:
        call, timer = self._calls.pop(handle)
        timer.cancel()
        call.abandon()


def _may_answer(client: Client, call: ModernCall, request: UpstreamRequest) -> bool:
    return call.client.owner == client.owner and call.request.same(request)
