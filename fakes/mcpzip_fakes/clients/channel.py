"""What a client and a transport expect of each other."""

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

    def opened(self) -> None:
        """The handshake is over."""

    def close(self) -> None:
        """End the connection in the orderly way of the transport, and wait until it has ended."""

    def kill(self) -> None:
        """End it at once, as a crash does. Can be called again."""
