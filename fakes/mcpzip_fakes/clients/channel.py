"""What a client and a transport expect of each other."""

from collections.abc import Mapping
from typing import Protocol

from mcpzip_fakes.answer import JsonObject


class Sink(Protocol):
    """A client, as its transport sees it. Called from the transport's threads."""

    def took(self, raw: bytes) -> None:
        """A message, or something that is none."""

    def unanswered(self, id: object, why: str) -> None:
        """The request ``id`` gets no answer any more."""

    def ended(self, why: str) -> None:
        """The connection has ended."""


class Channel(Protocol):
    """A transport, as its client sees it."""

    def send(self, message: JsonObject) -> None:
        """Send a message, without waiting. Messages that are no requests keep their order."""

    def send_text(self, text: bytes, id: object = None, headers: Mapping[str, str] | None = None) -> None:
        """`send`, for the JSON text of a message. id: of a request, None for other messages. headers: those
        of this message; HTTP only."""

    def opened(self) -> None:
        """The handshake is over."""

    def close(self) -> None:
        """End the connection in the orderly way of the transport, and wait until it has ended."""

    def kill(self) -> None:
        """End it at once, as a crash does. Can be called again."""
