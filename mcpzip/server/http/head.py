"""The head of an HTTP request, as far as we read it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from mcpzip.wire import LEGACY_VERSIONS

Scope = Mapping[str, Any]
"""See ASGI 3.0, "HTTP Connection Scope"."""

JSON = "application/json"
EVENTS = "text/event-stream"
_ONCE = (
    *("Host", "Origin", "Authorization", "Content-Type", "Content-Length"),
    *("Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID"),
)
"""Headers that are judged, or say whose a request is: of two, another may have gone by the other."""


@dataclass(slots=True)
class Arrival:
    """What its connection knows of a request. let_in: is called when it is let in. raw: bytes of its body
    that have come, with what frames its chunks; 0 where it isn't in chunks. blocked: is told how many bytes
    of its response are to be written, and returns what to wait for before they can be; None for nothing.
    """

    let_in: Callable[[], object] = lambda: None
    raw: int = 0
    blocked: Callable[[int], Awaitable[None] | None] = lambda size: None


class Head:
    """A request's head. verb: its method; host, path: of its target; session: its Mcp-Session-Id, None for
    none; address: of whom it came from, "" where that isn't known; arrival: what its connection
    knows of it.
    """

    def __init__(self, scope: Scope) -> None:
        self.verb: str = scope["method"]
        self._headers = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in scope["headers"]]
        self.host, self.path = _target(scope["raw_path"].decode("latin-1"), self.text("Host") or "")
        self.session = self.text("Mcp-Session-Id")
        self.arrival: Arrival = scope.get("state", {}).get("arrival") or Arrival()
        client = scope.get("client")
        self.address: str = client[0] if client else ""

    def all(self, name: str) -> list[str]:
        """The values under ``name``, in order."""
        return [value for key, value in self._headers if key == name.lower()]

    def text(self, name: str) -> str | None:
        """The first value under ``name``; None for none."""
        return next(iter(self.all(name)), None)

    @property
    def repeated(self) -> str | None:
        """The first header that stands more than once and must not; None for none."""
        return next((name for name in _ONCE if len(self.all(name)) > 1), None)

    def starting(self, prefix: str) -> list[tuple[str, str]]:
        """Every header whose name starts so: its name, in lower case, and value."""
        return [header for header in self._headers if header[0].startswith(prefix.lower())]

    @property
    def is_modern(self) -> bool:
        """Whether it is for the modern era to judge: it names a version that isn't a legacy one."""
        version = self.text("MCP-Protocol-Version")
        return version is not None and version not in LEGACY_VERSIONS

    def accepts(self, *kinds: str) -> bool:
        """Whether every one of these media types may be sent (RFC 9110, 12.5.1), whatever their weight."""
        given = ",".join(self.all("Accept")).split(",")
        ranges = {each.partition(";")[0].strip().lower() for each in given}
        return all(not ranges.isdisjoint({"*/*", kind, f"{kind.partition('/')[0]}/*"}) for kind in kinds)

    @property
    def has_body(self) -> bool:
        """Whether a body follows (RFC 9112, 6.3)."""
        return bool(self.all("Transfer-Encoding")) or self.all("Content-Length") not in ([], ["0"])

    @property
    def carries_json(self) -> bool:
        """Whether its body is said to be JSON."""
        return (self.text("Content-Type") or "").partition(";")[0].strip().lower() == JSON


def _target(written: str, host: str) -> tuple[str, str]:
    """The host and path of a request's target, as it was written. One in absolute form, as to a proxy, has a
    host of its own, which is the one that counts (RFC 9112, 3.2.2).
    """
    scheme, slashes, rest = written.partition("://")
    if slashes and scheme.lower() in ("http", "https"):
        host, slash, path = rest.partition("/")
        return host, unquote(slash + path)
    return host, unquote(written)
