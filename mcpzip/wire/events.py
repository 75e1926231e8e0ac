"""What comes out of a `Peer`: one event a message, and nothing of how it travelled.

The rule: JSON the caller may want to pass on (`id`, `params`, `result`, `data`) is the JSON text exactly as
it was received; an event holds no state and no reference to the peer.
"""

import msgspec


class RpcError(msgspec.Struct, frozen=True, gc=False):
    """A JSON-RPC error object (JSON-RPC 2.0 §5.1). ``data`` is its JSON text, or None when there is none.
    ``more`` is the JSON text of an object: the members that JSON-RPC doesn't know; None when there are none.
    """

    code: int
    message: str
    data: bytes | None = None
    more: bytes | None = None


class Request(msgspec.Struct, frozen=True, gc=False):
    """The peer asks. ``id`` is JSON text (``b'7'``, ``b'"a"'``), ``params`` None when absent or null."""

    id: bytes
    method: str
    params: bytes | None


class Notification(msgspec.Struct, frozen=True, gc=False):
    """The peer tells. Progress and cancellation have events of their own."""

    method: str
    params: bytes | None


class Result(msgspec.Struct, frozen=True, gc=False):
    """The answer to our request ``id``; ``b'null'`` is an answer too."""

    id: int
    result: bytes


class Error(msgspec.Struct, frozen=True, gc=False):
    """Our request ``id`` failed.

    ours: False when the peer said so; True when it answered and that is no answer or can't be read, so that
    ``error`` (-32603, saying why) is of our own making and what became of the request isn't known.
    """

    id: int
    error: RpcError
    ours: bool = False


class Progress(msgspec.Struct, frozen=True, gc=False):
    """`notifications/progress` about our outstanding request ``id``; ``params`` whole, its token included."""

    id: int
    params: bytes


class Cancelled(msgspec.Struct, frozen=True, gc=False):
    """The peer takes back its request ``id`` (spelt as in its Request); no answer may be sent."""

    id: bytes
    reason: str | None


class Invalid(msgspec.Struct, frozen=True, gc=False):
    """Not a proper message, and its sender is owed `Peer.error` with these values.

    id: None when the error must carry ``"id":null``: none could be read, or it is that of another request
    still open.
    """

    id: bytes | None
    code: int
    message: str


class NotAMessage(msgspec.Struct, frozen=True, gc=False):
    """What a server wrote that isn't a message (a banner, a log line), its first 2 KiB. Never answered."""

    data: bytes
    reason: str


class Unmatched(msgspec.Struct, frozen=True, gc=False):
    """A message about nothing that is open.

    kind: ``answer``, ``progress`` or ``cancelled``. detail: what it said, cut at 200 bytes.
    """

    kind: str
    detail: str


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Several messages at once, in their order: what each of them is, but for Batch and Closed."""

    events: "tuple[Event, ...]"


class Closed(msgspec.Struct, frozen=True, gc=False):
    """The peer will send no more: our requests that will never be answered, oldest first."""

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
