"""What every transport offers, whatever carries the bytes.

The rule: a `Channel` moves requests and knows nothing of eras, retries or tools; `connection.Connection`
decides what is said over it. Parameters and results are JSON text on both sides of this line: stdio passes
them byte for byte, the HTTP transports parse and re-encode them because the SDK does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mcpzip.wire import Era, RpcError

ProgressSink = Callable[[bytes], None]
"""Gets the params (JSON text) of each `notifications/progress` of one request, in the order they arrived."""


class RpcFaultError(Exception):
    """The peer answered with a JSON-RPC error."""

    def __init__(self, error: RpcError) -> None:
        self.error = error
        super().__init__(f"{error.message} ({error.code})")


class ChannelClosedError(Exception):
    """The channel is gone, or the request could not be carried.

    sent: whether the request's bytes may have left. remedy: what the user can do, as a sentence, or "".
    fatal: whether the channel is of no further use.
    status: the HTTP status that said so, where there was one.
    """

    def __init__(
        self,
        reason: str,
        *,
        sent: bool,
        remedy: str = "",
        fatal: bool = True,
        status: int | None = None,
    ) -> None:
        self.reason, self.sent, self.remedy, self.fatal, self.status = reason, sent, remedy, fatal, status
        super().__init__(reason)


class Incoming(Protocol):
    """Who hears what an upstream says without being asked."""

    def notified(self, method: str, params: bytes | None) -> None:
        """A notification that belongs to no request of ours."""

    def asked(self, method: str, params: bytes | None) -> bytes | RpcError:
        """A request from the upstream: the result's JSON text, or the error to answer with."""

    def ended(self, reason: str) -> None:
        """The channel will carry nothing more."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What was agreed in the handshake; HTTP repeats it in every request's headers."""

    era: Era
    version: str


class Channel(Protocol):
    """One open byte stream or HTTP client."""

    dialect: Dialect | None

    async def request(
        self,
        method: str,
        params: bytes | None,
        *,
        on_progress: ProgressSink | None = None,
        cancellable: bool = True,
    ) -> bytes:
        """Sends a request and returns its result's JSON text.

        With ``on_progress`` the request carries a progress token of our own. Cancelling the awaiting task
        tells the upstream (`notifications/cancelled`, or closing the HTTP stream) unless ``cancellable`` is
        False. Raises RpcFaultError, ChannelClosedError.
        """

    async def notify(self, method: str, params: bytes | None = None) -> None:
        """Sends a notification. Silently does nothing on a closed channel."""

    def diagnosis(self) -> str:
        """The last thing the upstream said outside the protocol (stderr, junk on stdout), one line, or ""."""
