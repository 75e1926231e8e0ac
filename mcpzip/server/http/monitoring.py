"""What monitors a process: `/metrics` for Prometheus, `/healthz` and `/readyz` for a service manager.

It has an address of its own, because who may read metrics need not be who may use mcpzip, and a path of the
MCP server could not be kept from others by a firewall. It answers GET only, and tells no text of a server or
client but the names of servers and tools.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.server.http.access import LOOPBACK_NAMES, Address
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.response import HttpResponse, Refusal

if TYPE_CHECKING:
    from mcpzip.telemetry.provider import Telemetry

METRICS, HEALTH, READY = "/metrics", "/healthz", "/readyz"
LIMITS = Limits(body=0, connections=64, turned_away=8, keep_alive=120.0)
"""A scraper or two, and probes every few seconds."""
_NOT_HERE = Refusal(404, f"There is nothing here; {METRICS}, {HEALTH} and {READY} are served.")
_GET_ONLY = Refusal(405, "Only GET is served here, without a body.", ((b"allow", b"GET"),))
_WRONG_HOST = Refusal(421, "This address is on loopback, and not reached by this Host.")
_PORT = lazy_pattern(r":[0-9]{1,5}$")
_NO_STORE = (b"cache-control", b"no-store")
_TEXT = (b"content-type", b"text/plain; charset=utf-8")


class Monitoring:
    """The application. why_not_ready: the reason why no client should be sent here now; "" for none."""

    too_large, headers = _GET_ONLY, ()

    def __init__(
        self,
        telemetry: "Telemetry",
        address: Address,
        why_not_ready: Callable[[], str],
        warn: Callable[[str], None],
    ) -> None:
        self._telemetry, self._address = telemetry, address
        self._why_not_ready, self.warn = why_not_ready, warn

    def check(self, request: HttpRequest, response: HttpResponse) -> Refusal | None:
        """See `server.http.connection.Application`."""
        if request.method != "GET" or request.has_body:
            return _GET_ONLY
        if request.path not in (METRICS, HEALTH, READY):
            return _NOT_HERE
        # A web page could read metrics of this machine by a name of its own for 127.0.0.1 (DNS rebinding).
        name = _PORT.sub("", request.host)
        if self._address.is_loopback and name.lower() not in (*LOOPBACK_NAMES, self._address.host.lower()):
            return _WRONG_HOST
        return None

    def handle(self, request: HttpRequest, response: HttpResponse) -> None:
        """Answers a request."""
        if request.path == METRICS:
            body, kind = self._telemetry.exposition()
            response.send(200, body, (b"content-type", kind), _NO_STORE)
            return
        why_not = self._why_not_ready() if request.path == READY else ""
        response.send(503 if why_not else 200, (why_not or "ok").encode() + b"\n", _TEXT, _NO_STORE)
