"""The `requestState` of modern clients where there are replicas, and what they name by a handle.

A state is sealed for whom it is and for which request. What waits for it, and what a handle names, is at one
replica, which answers the requests that bring them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mcpzip.proxy.approvals import APPROVAL_PREFIX
from mcpzip.proxy.exchange import Exchange, members
from mcpzip.proxy.input_required import is_input_required
from mcpzip.proxy.parking import HANDLE_PREFIX
from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.response import HttpResponse
from mcpzip.server.replicas.replica import request_digest
from mcpzip.wire import INTERNAL_ERROR, INVALID_PARAMS, Request, RpcError, quote, unquote, with_members

if TYPE_CHECKING:
    from mcpzip.server.replicas.forwarding import Forwarder
    from mcpzip.server.replicas.replica import Owner

_STATE = "requestState"
_OF_OURS, _OF_APPROVALS = (b'"' + prefix.encode() for prefix in (HANDLE_PREFIX, APPROVAL_PREFIX))
_UNKNOWN = RpcError(
    INVALID_PARAMS,
    "This requestState is none of mcpzip's, is too old, or is another request's or person's. Make the "
    "request again without it.",
)
_GONE = RpcError(
    INVALID_PARAMS,
    "The replica of mcpzip at which this waited has ended, or can't be reached. The call may have run: check "
    "that before you make it again without requestState.",
)
_NOT_APPROVED = RpcError(
    INVALID_PARAMS,
    "The replica of mcpzip that asked whether the call may run has ended, or can't be reached. Nothing ran: "
    "make the request again without requestState.",
)
_TOO_LONG = RpcError(INTERNAL_ERROR, "The server's requestState is too long to be sealed.")


class SealedStates:
    """Those of one replica."""

    def __init__(self, forwarder: "Forwarder") -> None:
        self._forwarder, self._replica = forwarder, forwarder.replica

    def at_owner(
        self, event: Request, request: HttpRequest, response: HttpResponse, here: Callable[[], object]
    ) -> None:
        """Has the replica answer a request to which what it brings belongs. here: answers it in this
        process.
        """
        owner = None
        if request.forwarded is None and event.params is not None:
            opened = self._opened(event, request)
            if isinstance(opened, tuple):
                owner = opened[0]
            elif opened is None and event.method in ("tools/call", "resources/read"):
                owner = self._replica.owner_in(event.params, request.principal)
        if owner is not None and self._forwarder.reaches(owner):
            self._forwarder.forward(request, response, owner, here)
        else:
            here()

    def unsealed(self, event: Request, request: HttpRequest) -> Request | RpcError:
        """The request with its state as it was before it was sealed; the error if that is of no use."""
        opened = self._opened(event, request)
        if opened is None or isinstance(opened, RpcError):
            return opened or event
        owner, state = opened
        if owner != self._replica.owner and state.startswith(_OF_OURS):
            return _NOT_APPROVED if state.startswith(_OF_APPROVALS) else _GONE
        assert event.params is not None
        return Request(event.id, event.method, with_members(event.params, {_STATE: state}))

    def sealed(self, result: bytes, method: str, exchange: Exchange) -> bytes | RpcError:
        """``result``, with its state sealed if it has one."""
        if b'"requestState"' not in result or not is_input_required(result):
            return result
        state = members(result).get(_STATE)
        if state is None:
            return result
        asked = request_digest(method, members(exchange.params))
        try:
            token = self._replica.seal_state(state, asked, exchange.principal)
        except ValueError:
            return _TOO_LONG
        return with_members(result, {_STATE: quote(token)})

    def _opened(self, event: Request, request: HttpRequest) -> "tuple[Owner, bytes] | RpcError | None":
        """Who has sealed the state of a request, and what it was; None if it has none."""
        if event.params is None or b'"requestState"' not in event.params:
            return None
        fields = members(event.params)
        if _STATE not in fields:
            return None
        try:
            token = unquote(fields[_STATE])
        except ValueError:
            return _UNKNOWN
        asked = request_digest(event.method, fields)
        return self._replica.open_state(token, asked, request.principal) or _UNKNOWN
