"""Every client that comes over HTTP: whose a request is, and how all of them end."""

from mcpzip.server.endpoint import Endpoint
from mcpzip.server.http import routing
from mcpzip.server.http.head import EVENTS, JSON, Head
from mcpzip.server.http.legacy import Legacy
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.modern import Modern
from mcpzip.server.http.outbox import Room
from mcpzip.server.http.reply import Receive, Refusal, Reply
from mcpzip.server.http.work import Work

_VERBS = ("GET", "POST", "DELETE")
_POSTED_ONLY = Refusal(405, "This version of the protocol is spoken by POST only.", ((b"allow", b"POST"),))
_NO_VERB = Refusal(405, "MCP is spoken by GET, POST and DELETE.", ((b"allow", b"GET, POST, DELETE"),))
_BOTH = Refusal(406, f"A POST says Accept: {JSON}, {EVENTS}.")
_STREAM = Refusal(406, f"A GET says Accept: {EVENTS}.")
_UNSERVED = Refusal(400, "This MCP-Protocol-Version is not served.")
_BODY = Refusal(400, "Only a POST has a body.")


class Downstream:
    """The clients of one endpoint."""

    def __init__(self, endpoint: Endpoint, limits: Limits) -> None:
        self._work = Work(limits.calls)
        room = Room(limits.untold, limits.untold_small, limits.untold_by_all)
        self._legacy = Legacy(endpoint, self._work, limits, room)
        self._modern = Modern(endpoint, self._work, limits, room)

    def refusal(self, head: Head) -> Refusal | None:
        """Why a request isn't one, as far as its head tells."""
        if head.is_modern and head.verb != "POST":
            return _UNSERVED if routing.unserved(head) else _POSTED_ONLY
        if head.verb not in _VERBS:
            return _NO_VERB
        if head.verb == "POST" and not head.accepts(JSON, EVENTS):
            return _BOTH
        if head.verb == "GET" and not head.accepts(EVENTS):
            return _STREAM
        return _BODY if head.verb != "POST" and head.has_body else None

    async def post(self, head: Head, body: bytes, reply: Reply, receive: Receive) -> None:
        """Answers a POST with this body."""
        era = self._modern if head.is_modern else self._legacy
        await era.post(head, body, reply, receive)

    async def get(self, head: Head, reply: Reply, receive: Receive) -> None:
        """Opens a session's stream."""
        await self._legacy.get(head, reply, receive)

    async def delete(self, head: Head, reply: Reply, receive: Receive) -> None:
        """Ends a session."""
        await self._legacy.delete(head, reply, receive)

    async def finish(self, patience: float, letting_go: float) -> None:
        """Requests under way get ``patience`` seconds, then are cancelled and get ``letting_go`` to end; then
        so do all sessions.
        """
        await self._work.settle(patience, letting_go)
        self._legacy.end()
        await self._work.finish(letting_go)
