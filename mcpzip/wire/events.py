"""The events of a `Peer`: one for each message, independent of the transport.

JSON that a caller may pass on (``id``, ``params``, ``result``, ``data``) is the JSON text as received. Events
are immutable values.
"""

import msgspec


class RpcError(msgspec.Struct, frozen=True, gc=False):
    """A JSON-RPC error object (JSON-RPC 2.0 §5.1).

    data: JSON text, None if missing. more: the JSON text of an object with the members that JSON-RPC doesn't
    define, None if there are none.
    """

    code: int
    message: str
    data: bytes | None = None
    more: bytes | None = None


class ScopeError(RpcError, frozen=True, gc=False):
    """A refusal because the token of who asks lacks scopes (RFC 6750, 3.1), which HTTP has a status and a
    header for. scopes: that it has to have.
    """

    scopes: tuple[str, ...] = ()


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request of the peer. id: JSON text (``b'7'``, ``b'"a"'``). params: None if missing or null."""

    id: bytes
    method: str
    params: bytes | None


class Notification(msgspec.Struct, frozen=True, gc=False):
    """A notification, except progress and cancellation, which have their own events."""

    method: str
    params: bytes | None


class Result(msgspec.Struct, frozen=True, gc=False):
    """The result of our request ``id``, which may be ``b'null'``."""

    id: int
    result: bytes


class Error(msgspec.Struct, frozen=True, gc=False):
    """Our request ``id`` failed.

    ours: False if the peer sent this error. True if it sent an invalid or unreadable response: then ``error``
    is made by us (-32603, with the reason), and the outcome of the request is unknown.
    """

    id: int
    error: RpcError
    ours: bool = False


class Progress(msgspec.Struct, frozen=True, gc=False):
    """`notifications/progress` about our open request ``id``. params: unchanged, with the token."""

    id: int
    params: bytes


class Cancelled(msgspec.Struct, frozen=True, gc=False):
    """The peer cancels its request ``id`` (the same bytes as in its Request); no response may be sent."""

    id: bytes
    reason: str | None


class Invalid(msgspec.Struct, frozen=True, gc=False):
    """An invalid message, which the caller has to answer by `Peer.error` with these values.

    id: None for an error with ``"id":null``, because no id could be read or another open request has it.
    """

    id: bytes | None
    code: int
    message: str


class NotAMessage(msgspec.Struct, frozen=True, gc=False):
    """Output of a server that isn't a message (a banner, a log line), its first 2 KiB. It is not answered."""

    data: bytes
    reason: str


class Unmatched(msgspec.Struct, frozen=True, gc=False):
    """A message about a request that isn't open.

    kind: ``answer``, ``progress`` or ``cancelled``. detail: its text, cut at 200 bytes.
    """

    kind: str
    detail: str


class Batch(msgspec.Struct, frozen=True, gc=False):
    """A JSON-RPC batch. events: one for each message, in order; never Batch or Closed."""

    events: "tuple[Event, ...]"


class Closed(msgspec.Struct, frozen=True, gc=False):
    """The end of the peer's input. ids: our requests that will never be answered, oldest first."""

    ids: tuple[int, ...]


Event = (
    Request
    | Notification
    | Result
    | Error
    | Progress
    | Cancelled
    | Invalid
    | NotAMessage
    | Unmatched
    | Batch
    | Closed
)
