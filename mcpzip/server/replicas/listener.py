"""The private address of a replica, at which others forward requests to it.

The rule: a request is let in by what another replica has sealed for it, before any byte of its body is
accepted, and by nothing else. Who makes it was checked there.
"""

from collections.abc import Callable

from mcpzip.server.http.limits import LIMITS
from mcpzip.server.http.request import PATH, HttpRequest
from mcpzip.server.http.response import HttpResponse, Refusal
from mcpzip.server.replicas.forwarding import NOT_HERE_HEADER, TOKEN_HEADER
from mcpzip.server.replicas.replica import Replica, is_body
from mcpzip.wire import INTERNAL_ERROR, Batch, Era, Peer, Request, Role

_NOT_TAKEN = ((NOT_HERE_HEADER.encode(), b"1"),)
_REFUSED = Refusal(403, "This address is for replicas of mcpzip only.", _NOT_TAKEN)
_TOO_LARGE = Refusal(413, f"The body is larger than {LIMITS.body:,} bytes.")
_NOT_HERE = Refusal(503, "mcpzip was told to stop.", _NOT_TAKEN, INTERNAL_ERROR)


class Listener:
    """The application. ending: whether this replica takes nothing new."""

    too_large, headers = _TOO_LARGE, ()

    def __init__(
        self,
        replica: Replica,
        handle: Callable[[HttpRequest, HttpResponse], None],
        warn: Callable[[str], None],
    ) -> None:
        """handle: answers a request that was checked."""
        self._replica, self._handle, self.warn = replica, handle, warn
        self.ending = False

    def check(self, request: HttpRequest, response: HttpResponse) -> Refusal | None:
        """See `server.http.connection.Application`."""
        if request.path != PATH or request.is_chunked or request.method not in ("GET", "POST", "DELETE"):
            return _REFUSED
        said = self._replica.open_forward(request.header(TOKEN_HEADER) or "", request.method)
        if said is None:
            return _REFUSED
        request.forwarded = lambda: is_body(said, request.body)
        request.principal, request.client_address = said.principal, said.client
        declared = request.header("content-length") or "0"
        return self.too_large if not declared.isdecimal() or int(declared) > LIMITS.body else None

    def handle(self, request: HttpRequest, response: HttpResponse) -> None:
        """Answers a request whose body is complete."""
        assert request.forwarded is not None
        if not request.forwarded():
            response.refuse(_REFUSED)
        elif self.ending and _is_new(request):
            response.refuse(_NOT_HERE)
        else:
            self._handle(request, response)


def _is_new(request: HttpRequest) -> bool:
    """Whether it begins something, and doesn't belong to what is under way."""
    if request.method == "GET":
        return request.header("last-event-id") is None
    if request.method != "POST" or request.era is Era.MODERN:
        return False
    peer = Peer(role=Role.SERVER)
    peer.batches = True
    event = peer.message(request.body)
    events = event.events if isinstance(event, Batch) else (event,)
    return any(isinstance(each, Request) for each in events)
