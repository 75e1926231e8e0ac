"""An HTTP request: its head, as far as MCP needs it, its era by ``MCP-Protocol-Version``, and its body."""

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mcpzip.model.principal import Principal
from mcpzip.wire import LEGACY_VERSIONS, Era

if TYPE_CHECKING:
    from mcpzip.server.http.response import Refusal

Admission = Callable[[], Coroutine[None, None, "Refusal | None"]]
"""Decides whether a request is let in: why it is refused, or None."""

PATH = "/mcp"
HEALTH_PATH = "/health"
JSON = "application/json"
EVENT_STREAM = "text/event-stream"
_SINGLE = {
    name.lower(): name
    for name in (
        *("Host", "Origin", "Authorization", "Content-Type", "Content-Length"),
        *("Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID"),
    )
}
"""Headers that are checked, or that name a session. With two of one name, a proxy in front of us may have
used the other one."""


class HttpRequest:
    """One request.

    headers: the values by header name in lower case, in order. host, path, raw_path, query: of the request
    target; the last two as they were written. session_id:
    the Mcp-Session-Id, None for none. era: Era.MODERN if MCP-Protocol-Version names anything but a legacy
    version. client_address: the IP address of the client, "" if unknown. body: complete once it is handled.
    is_preflight: whether a web page only asks if it may send a request; is_health_check: whether it asks if
    mcpzip runs (both set by `Middleware.check`). is_anonymous: whether it is answered though nobody has
    proved who sent it, so that its connection gives way to others (set by an application's ``check``).
    principal: who makes it, None where nobody signs in. admission: what decides whether it is let in, and by
    whom it is made, if that takes a while; before that no byte of its body is accepted. document: what is
    answered to anybody who asks for it, None for no such request. forwarded: for a request that another
    replica has sent here, whether its body is the one that was sent; None for any other.
    """

    def __init__(
        self, method: str, target: str, headers: Iterable[tuple[bytes, bytes]], client_address: str = ""
    ) -> None:
        self.method, self.client_address = method, client_address
        self.headers: dict[str, list[str]] = {}
        for name, value in headers:
            self.headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        self.host, self.raw_path = _host_and_path(target, self.header("host") or "")
        self.path = unquote(self.raw_path)
        self.session_id = self.header("mcp-session-id")
        version = self.header("mcp-protocol-version")
        self.era = Era.LEGACY if version is None or version in LEGACY_VERSIONS else Era.MODERN
        self.body = b""
        self.query = target.partition("?")[2]
        self.is_preflight = self.is_health_check = self.is_anonymous = False
        self.principal: Principal | None = None
        self.admission: Admission | None = None
        self.document: bytes | None = None
        self.forwarded: Callable[[], bool] | None = None

    def header(self, name: str) -> str | None:
        """The first value of the header ``name`` (lower case); None for none."""
        values = self.headers.get(name)
        return values[0] if values else None

    @property
    def repeated_header(self) -> str | None:
        """The first header that occurs more than once but must not; None for none."""
        return next((_SINGLE[name] for name in _SINGLE if len(self.headers.get(name, ())) > 1), None)

    def headers_starting_with(self, prefix: str) -> list[tuple[str, str]]:
        """Every header whose name starts with ``prefix`` (any case): its name in lower case, its value."""
        prefix = prefix.lower()
        found = (item for item in self.headers.items() if item[0].startswith(prefix))
        return [(name, value) for name, values in found for value in values]

    def accepts(self, *media_types: str) -> bool:
        """Whether the response may have each of these media types (RFC 9110, 12.5.1); weights are ignored."""
        given = ",".join(self.headers.get("accept", ())).split(",")
        ranges = {each.partition(";")[0].strip().lower() for each in given}
        return all(
            not ranges.isdisjoint({"*/*", media_type, f"{media_type.partition('/')[0]}/*"})
            for media_type in media_types
        )

    @property
    def is_chunked(self) -> bool:
        """Whether its body comes in chunks (RFC 9112, 7.1)."""
        return "transfer-encoding" in self.headers

    @property
    def has_body(self) -> bool:
        """Whether a body follows the head (RFC 9112, 6.3)."""
        return self.is_chunked or self.headers.get("content-length", ["0"]) != ["0"]

    @property
    def is_json(self) -> bool:
        """Whether its Content-Type is JSON."""
        return (self.header("content-type") or "").partition(";")[0].strip().lower() == JSON


def _host_and_path(target: str, host: str) -> tuple[str, str]:
    """The host and path of a request target. One in absolute form, as sent to a proxy, names a host of its
    own, which takes precedence over the Host header (RFC 9112, 3.2.2).
    """
    target = target.partition("?")[0]
    scheme, slashes, rest = target.partition("://")
    if slashes and scheme.lower() in ("http", "https"):
        host, slash, path = rest.partition("/")
        return host, slash + path
    return host, target
