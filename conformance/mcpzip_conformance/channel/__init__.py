"""How a client's messages travel: one transport a file.

    stdio    lines on the pipes of a process
    http     Streamable HTTP, with and without a session

The rule: a channel carries messages as they are and judges none. What it can't deliver it tells its `Sink`.
"""

from typing import Protocol

from mcpzip_conformance.processes import Process


class Sink(Protocol):
    """Who gets what comes in."""

    def line(self, raw: bytes) -> None:
        """One message, or what stands where one should."""

    def refused(self, id: bytes, why: str, error: bytes | None) -> None:
        """The request ``id`` (JSON text) will get no answer. error: the error object that came instead."""

    def remark(self, text: str) -> None:
        """What happened beneath the messages: a status, an end of a stream. For the transcript."""

    def ended(self) -> None:
        """Nothing more will come, on any request."""


class Channel(Protocol):
    """One client's connection. process: the one at the other end."""

    @property
    def process(self) -> Process: ...

    def write(self, raw: bytes) -> None:
        """Send a message as it is, after those before it."""

    def cancel(self, id: bytes, notification: bytes) -> bool:
        """Take back the request ``id`` (JSON text) in the way of the transport and era; whether that was by
        sending ``notification``, and not without words."""

    async def end(self, grace: float) -> None:
        """Leave politely, and end the process if it is this client's own."""
