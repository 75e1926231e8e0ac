"""One request for the engine: decoded, with its protocol version and a channel to its client."""

from typing import Protocol

from msgspec import UNSET, Struct

from mcpzip.wire import MODERN_VERSIONS
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.faults import NOTHING, Firing


class Refused(Exception):
    """A JSON-RPC error as the answer. ``data`` is a JSON value, UNSET for none."""

    def __init__(self, code: int, message: str, data: object = UNSET) -> None:
        self.code, self.message, self.data = code, message, data
        super().__init__(f"{message} ({code})")

    def error(self) -> JsonObject:
        """The ``error`` member of the answer."""
        said: JsonObject = {"code": self.code, "message": self.message}
        return said if self.data is UNSET else {**said, "data": self.data}


class Channel(Protocol):
    """Sends to a client."""

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""

    async def ask(self, method: str, params: JsonObject) -> object:
        """Send a request and wait for its result. Legacy only. Raises Refused with the client's error."""

    async def hang_up(self) -> None:
        """Close the stream of the answer, which its client then resumes. Does nothing without a stream, or if
        the client can't resume."""


class Request(Struct, frozen=True, kw_only=True):
    """One request. id: decoded; arguments: the received JSON text of ``params.arguments``; version: its
    protocol version; capabilities, client (name and version): of its client; channel: for notifications and
    questions of this request; session: the transport's key of a legacy session; firing: the faults that fire
    on it."""

    method: str
    params: JsonObject
    channel: Channel
    version: str
    id: object = None
    arguments: bytes = b"{}"
    capabilities: JsonObject = {}
    client: JsonObject = {}
    session: object = None
    firing: Firing = NOTHING

    @property
    def modern(self) -> bool:
        """Whether it belongs to the modern, stateless era."""
        return self.version in MODERN_VERSIONS

    @property
    def meta(self) -> JsonObject:
        """``params._meta``; empty when absent."""
        return as_object(self.params.get("_meta"))


def as_object(value: object) -> JsonObject:
    """``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}
