"""First calls of tools, which are kept apart from the calls of other clients.

The rules:

1. A question on a connection that clients share names no call. If calls of two clients are under way there,
   nothing can tell afterwards which of them is asked. So the first call of each tool overlaps with no call of
   another client: it waits, and so do the others while it is under way.
2. Nothing waits longer than `PATIENCE`. After that a client that hasn't used the connection yet gets
   connections of its own. One that has used it stays, because the server may keep what it did.
3. A tool that has once answered a client that can be asked, and asked nothing, is taken not to ask.
"""

from mcpzip.proxy.call import Call, UpstreamRequest
from mcpzip.proxy.client_capabilities import declared
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client
from mcpzip.proxy.shared_binding import SharedBinding
from mcpzip.proxy.tool_usage import is_success

PATIENCE = 1.0
"""Seconds that a call waits for calls of other clients."""
KNOWN_TOOLS = 10_000
"""Tools that are known to have answered. With one more, all are forgotten."""
_ASKED = frozenset({"sampling", "elicitation"})
"""The capabilities whose questions are for a client: its roots are the same in each call."""

_Tool = tuple[str, bytes, frozenset[str]]
"""A server, the name of its tool as JSON text, and what it could ask."""


class FirstCalls:
    """The tools that are known to have answered, since this process started."""

    def __init__(self, current: CurrentConfig) -> None:
        self._current = current
        self._answered: set[_Tool] = set()

    def overlaps(self, binding: SharedBinding, client: Client, request: UpstreamRequest) -> bool:
        """Whether ``request`` of ``client``, made on ``binding`` now, would overlap with a call of another
        client, and a question of the server could be for either.
        """
        if not self._matters(binding, request.server) or binding.callers(request.server) <= {client}:
            return False
        others = [call.request for call in binding.calls_of_others(client, request.server)]
        return any(self._is_first(binding, one) for one in (request, *others))

    def answered(self, binding: SharedBinding, call: Call, result: bytes) -> None:
        """The server answered ``call``, made on ``binding``, with ``result``."""
        request = call.request
        if not self._matters(binding, request.server) or not self._is_first(binding, request):
            return
        if is_success(result):  # an error may come before the question would
            if len(self._answered) >= KNOWN_TOOLS:
                self._answered.clear()
            self._answered.add(_tool(binding, request))

    def _matters(self, binding: SharedBinding, name: str) -> bool:
        """Over HTTP a question comes in the response to its call; see `SharedBinding.asked`."""
        server = self._current.servers.get(name)
        if server is None or server.share == "always" or server.transport == "http":
            return False
        return not declared(binding.capabilities).others.isdisjoint(_ASKED)

    def _is_first(self, binding: SharedBinding, request: UpstreamRequest) -> bool:
        return request.method == "tools/call" and _tool(binding, request) not in self._answered


def _tool(binding: SharedBinding, request: UpstreamRequest) -> _Tool:
    return request.server, request.fields.get("name", b""), declared(binding.capabilities).others & _ASKED
