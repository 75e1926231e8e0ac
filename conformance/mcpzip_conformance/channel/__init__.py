"""The transports of a client, one a file.

    stdio        lines on the pipes of a process
    in_process   the same lines to a fake in this process
    http         Streamable HTTP, with and without a session
    sse          HTTP+SSE, the transport of 2024-11-05

The rule: a channel sends messages unchanged and judges none. Failures are reported to its `Sink`.
"""

from typing import Protocol

from mcpzip_conformance.processes import Process


class Sink(Protocol):
    """Receives incoming messages."""

    def line(self, raw: bytes) -> None:
        """One message, or an invalid line."""

    def refused(self, id: bytes, why: str, error: bytes | None) -> None:
        """The request ``id`` (JSON text) will get no answer. error: the error object that came instead."""

    def remark(self, text: str) -> None:
        """A remark for the transcript: a status, the end of a stream."""

    def ended(self) -> None:
        """The connection has ended: no request gets an answer any more."""


class Channel(Protocol):
    """One client's connection. process: the process at the other end."""

    @property
    def process(self) -> Process: ...

    def last_words(self) -> str:
        """The end of a sentence: what the process wrote to stderr, if it has one that did."""

    def write(self, raw: bytes) -> None:
        """Send a message unchanged, after the earlier ones."""

    def cancel(self, id: bytes, notification: bytes) -> bool:
        """Cancel the request ``id`` (JSON text) as transport and era define it. Returns whether
        ``notification`` was sent for that."""

    def pause(self) -> None:
        """Read nothing more."""

    async def leave(self) -> None:
        """End the connection in the orderly way of the transport, as a client that closes does. `end` comes
        later."""

    async def crash(self) -> None:
        """End the connection as the crash of its client, or of the process of its own that serves it, does.
        `end` comes later."""

    async def end(self, grace: float) -> None:
        """Close the connection, and end the process if it is this client's own."""
