"""The interfaces between a connection and its transport.

The rule: a `Channel` sends requests and knows nothing of eras, retries or tools; `connection.Connection`
decides what is sent. Parameters and results are JSON text on both sides of the interface and pass byte for
byte.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import msgspec

from mcpzip.wire import (
    Era,
)

if TYPE_CHECKING:
    import httpx

    from mcpzip.config import ServerConfig

ProgressSink = Callable[[bytes], None]
"""Receives the params (JSON text) of each `notifications/progress` for one request, in order of arrival."""


class ChannelClosedError(Exception):
    """The channel is closed, or one request could not be sent or got no answer.

    sent: whether the request's bytes may have reached the upstream. remedy: what the user can do, as a
    sentence, or "". fatal: whether the channel can't be used any more.
    status: the HTTP status that caused it, if any. login: the command that signs a person in, where that is
    the remedy, else "".
    """

    def __init__(
        self,
        reason: str,
        *,
        sent: bool,
        remedy: str = "",
        fatal: bool = True,
        status: int | None = None,
        login: str = "",
    ) -> None:
        self.reason, self.sent, self.remedy, self.fatal, self.status = reason, sent, remedy, fatal, status
        self.login = login
        super().__init__(reason)


class Incoming(Protocol):
    """Handles the notifications and requests that an upstream sends on its own.

    origin: whose request it is about: that in whose HTTP response it came (spec 2025-11-25:
    basic/transports, "Sending Messages to the Server"). None where the transport doesn't say.
    """

    def notified(self, method: str, params: bytes | None, origin: "Origin | None") -> None:
        """Handles a notification that isn't progress or cancellation of a request."""

    async def asked(self, method: str, params: bytes | None, origin: "Origin | None") -> bytes:
        """Handles a request from the upstream and returns the result's JSON text.

        Raises JsonRpcError with the error to answer with. Cancelled when the upstream cancels its request or
        the channel closes.
        """

    def ended(self, reason: str) -> None:
        """Called once when the channel has closed."""


class Dialect(msgspec.Struct, frozen=True):
    """The era and protocol version agreed in the handshake; over HTTP every request repeats the version."""

    era: Era
    version: str


class Signing(Protocol):
    """Signs the HTTP requests to one server."""

    @property
    def auth(self) -> "httpx.Auth | None":
        """The HTTP client's authentication; None sends requests unsigned."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment in which requests are made; it may set an HTTP proxy."""

    def refused(self, status: int) -> "ChannelClosedError | None":
        """The sign-in problem behind a refusal with this HTTP status; None when it is no sign-in problem."""


class BoundClient(Protocol):
    """A client with upstream connections of its own. A legacy connection is a session: what a server sends
    on it unasked names no request, so clients that can be asked something must not share one.

    key: identifies the client; None when it needs no connections of its own. capabilities: the client
    capabilities that servers are given, JSON text. log_level: of its last `logging/setLevel`; None without.
    call: the `Origin.call` of the request that a message is about; None where that isn't known.
    """

    @property
    def key(self) -> Hashable: ...

    @property
    def is_isolated(self) -> bool:
        """Whether it has connections of its own to modern servers, too."""

    @property
    def is_reused(self) -> bool:
        """Whether different clients use it one after another."""

    @property
    def capabilities(self) -> bytes: ...

    @property
    def log_level(self) -> str | None: ...

    def watched(self, server: str) -> Collection[str]:
        """The resources of ``server`` that it subscribed to, by URI."""

    def notified(self, server: str, method: str, params: bytes | None, call: object) -> None:
        """Handles a notification that ``server`` sent on one of its connections."""

    async def asked(self, server: str, method: str, params: bytes | None, call: object) -> bytes:
        """Handles a request that ``server`` sent on one of its connections. See `Incoming.asked`."""


class Origin(msgspec.Struct, frozen=True):
    """The client on whose behalf a request is sent upstream.

    era: the client's; the upstream is spoken to in the same era if it can be. owner: identifies the client
    among the senders of open requests. capabilities, log_level: the client's, sent to modern upstreams.
    modern: params members for modern upstreams only. on_notice: called with notifications that belong to the
    request, as far as can be determined. folder: the client's working folder, in which a server is started
    whose config names none; None for ours. call: identifies the request for ``bound_client``. on_sent: called
    each time that the request is handed to a connection.
    """

    era: Era | None = None
    bound_client: BoundClient | None = None
    owner: object = None
    capabilities: bytes = b"{}"
    log_level: str | None = None
    modern: Mapping[str, bytes] = MappingProxyType({})
    on_notice: Callable[[str, bytes | None], None] | None = None
    folder: str | None = None
    call: object = None
    on_sent: Callable[[], None] | None = None


NOBODY = Origin()
"""No client: mcpzip sends the request on its own behalf."""


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
        definition: bytes | None = None,
        origin: Origin | None = None,
    ) -> bytes:
        """Sends a request and returns its result's JSON text.

        definition: of the called tool, as JSON text; its schema may require headers over HTTP.
        origin: is handed to `Incoming` with what the upstream says about this request.
        With ``on_progress`` the request carries a progress token of our own. Cancelling the awaiting task
        cancels the request upstream (by `notifications/cancelled`, or by closing the HTTP stream) unless
        ``cancellable`` is False. Raises JsonRpcError, ChannelClosedError.
        """

    async def notify(self, method: str, params: bytes | None = None) -> None:
        """Sends a notification. Does nothing on a closed channel."""

    def diagnosis(self) -> str:
        """What the upstream wrote outside the protocol that may say why it fails, as clauses that continue a
        sentence; "" if it wrote nothing.
        """


class ProcessTap(Protocol):
    """Records one process; it gets all bytes as they are, in pieces of any size."""

    def client(self, data: bytes) -> None:
        """What it is sent."""

    def client_closed(self) -> None:
        """Its input was closed."""

    def server(self, data: bytes) -> None:
        """What it writes to stdout."""

    def stderr(self, data: bytes) -> None:
        """What it writes to stderr."""

    def ended(self, code: int | None) -> None:
        """It has ended."""


class Recorder(Protocol):
    """Records the conversations with all servers (`mcpzip record`)."""

    def process(self, server: "ServerConfig", argv: Sequence[str]) -> ProcessTap:
        """What records a process that was started."""

    def requests(
        self, server: "ServerConfig", connections: "httpx.AsyncBaseTransport"
    ) -> "httpx.AsyncBaseTransport":
        """``connections``, with what passes recorded."""


_recorder: Recorder | None = None


def record_with(recorder: Recorder | None) -> None:
    """From now on, the conversations of new connections are recorded; None: not recorded."""
    global _recorder
    _recorder = recorder


def recorder() -> Recorder | None:
    """What records new connections; None, which is usual, if they are not recorded."""
    return _recorder
