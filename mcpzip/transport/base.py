"""What every transport offers, whatever carries the bytes.

The rule: a `Channel` moves requests and knows nothing of eras, retries or tools; `connection.Connection`
decides what is said over it. Parameters and results are JSON text on both sides of this line, and pass byte
for byte.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from mcpzip.model.quoting import quoted
from mcpzip.wire import Era, RpcError

if TYPE_CHECKING:
    import httpx

ProgressSink = Callable[[bytes], None]
"""Gets the params (JSON text) of each `notifications/progress` of one request, in the order they arrived."""


class RpcFaultError(Exception):
    """The peer answered with a JSON-RPC error."""

    def __init__(self, error: RpcError) -> None:
        self.error = error
        super().__init__(f"{quoted(error.message)} ({error.code})")


class ChannelClosedError(Exception):
    """The channel is gone, or the request could not be carried.

    sent: whether the request's bytes may have left. remedy: what the user can do, as a sentence, or "".
    fatal: whether the channel is of no further use.
    status: the HTTP status that said so, where there was one. login: the command with which a person can sign
    in, where that is what it takes, else "".
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
    """Who hears what an upstream says without being asked."""

    def notified(self, method: str, params: bytes | None) -> None:
        """A notification that belongs to no request of ours."""

    async def asked(self, method: str, params: bytes | None) -> bytes:
        """A request from the upstream; returns the result's JSON text.

        Raises RpcFaultError with the error to answer with. Cancelled when the upstream cancels its request or
        the channel ends.
        """

    def ended(self, reason: str) -> None:
        """The channel will carry nothing more."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What was agreed in the handshake; HTTP repeats it in every request's headers."""

    era: Era
    version: str


class Signing(Protocol):
    """How the requests to one server over HTTP are signed."""

    @property
    def auth(self) -> "httpx.Auth | None":
        """For the HTTP client; None signs nothing."""

    def refused(self, status: int) -> "ChannelClosedError | None":
        """What the server wants that refused a request with this HTTP status; None when that is no matter of
        signing in.
        """


class Partner(Protocol):
    """A client that has upstream connections of its own in the legacy era, where a connection is a session:
    what a server asks or tells on it belongs to no request.

    key: what tells it from other clients; None where it needs no connections of its own. capabilities: what
    it can be asked, JSON text. log_level: as in `logging/setLevel`, None when it never said.
    """

    @property
    def key(self) -> Hashable: ...

    @property
    def passing(self) -> bool:
        """Whether it is now this client and now that."""

    @property
    def capabilities(self) -> bytes: ...

    @property
    def log_level(self) -> str | None: ...

    def watched(self, server: str) -> Collection[str]:
        """The resources of ``server`` that it subscribed to, by URI."""

    def notified(self, server: str, method: str, params: bytes | None) -> None:
        """What ``server`` says on one of its connections."""

    async def asked(self, server: str, method: str, params: bytes | None) -> bytes:
        """What ``server`` asks on one of its connections. See `Incoming.asked`."""


@dataclass(frozen=True, slots=True)
class Origin:
    """On whose behalf an upstream is asked.

    era: the client's, in which the upstream is spoken to if it can be. owner: what tells one client's
    requests from another's. capabilities, log_level: what a modern upstream is told of the client. modern:
    members of the params that only a modern upstream is sent. on_notice: hears notifications that belong to
    the request as far as can be told.
    """

    era: Era | None = None
    partner: Partner | None = None
    owner: object = None
    capabilities: bytes = b"{}"
    log_level: str | None = None
    modern: Mapping[str, bytes] = field(default_factory=dict)
    on_notice: Callable[[str, bytes | None], None] | None = None


NOBODY = Origin()
"""mcpzip itself."""


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
    ) -> bytes:
        """Sends a request and returns its result's JSON text.

        definition: of the tool that is called, as JSON text; over HTTP its schema may ask for headers.
        With ``on_progress`` the request carries a progress token of our own. Cancelling the awaiting task
        tells the upstream (`notifications/cancelled`, or closing the HTTP stream) unless ``cancellable`` is
        False. Raises RpcFaultError, ChannelClosedError.
        """

    async def notify(self, method: str, params: bytes | None = None) -> None:
        """Sends a notification. Silently does nothing on a closed channel."""

    def diagnosis(self) -> str:
        """The last thing the upstream said outside the protocol (stderr, junk on stdout), one line, or ""."""
