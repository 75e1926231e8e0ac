"""One request as the engine sees it: decoded, with the protocol version it is under and a way back."""

from typing import Protocol

from msgspec import UNSET, Struct

from mcpzip.wire import MODERN_VERSIONS
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.faults import NOTHING, Firing


class Refused(Exception):
    """A JSON-RPC error to answer with. ``data`` is a JSON value, UNSET for none."""

    def __init__(self, code: int, message: str, data: object = UNSET) -> None:
        self.code, self.message, self.data = code, message, data
        super().__init__(f"{message} ({code})")

    def error(self) -> JsonObject:
        """The ``error`` member of the answer."""
        said: JsonObject = {"code": self.code, "message": self.message}
        return said if self.data is UNSET else {**said, "data": self.data}


class Channel(Protocol):
    """The way back to a client."""

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""

    async def ask(self, method: str, params: JsonObject) -> object:
        """Send a request and wait for its result. Legacy only. Refused carries the client's error."""

    async def hang_up(self) -> None:
        """Close the stream of the answer, which its client then resumes. Nothing where there is none, or its
        client can't."""


class Request(Struct, frozen=True, kw_only=True):
    """One request. id: as the client spelt it, decoded; arguments: the JSON text of ``params.arguments`` as
    it came; version: the protocol version it is under; capabilities: what its client declared; channel: the
    way back on which what belongs to this request travels; session: what the transport tells its legacy
    client apart by; firing: the faults that fire on it."""

    method: str
    params: JsonObject
    channel: Channel
    version: str
    id: object = None
    arguments: bytes = b"{}"
    capabilities: JsonObject = {}
    session: object = None
    firing: Firing = NOTHING

    @property
    def modern(self) -> bool:
        """Whether it is under the stateless era."""
        return self.version in MODERN_VERSIONS

    @property
    def meta(self) -> JsonObject:
        """``params._meta``; empty when absent."""
        return as_object(self.params.get("_meta"))


def as_object(value: object) -> JsonObject:
    """``value`` when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}
