"""One end of a JSON-RPC 2.0 conversation, without I/O: bytes in, events out; commands in, bytes out.

The rules kept here:
- Every request we send has exactly one outcome: `Result`, `Error`, `Closed`, or our own `Peer.cancel`. What
  comes later is `Unmatched`.
- Every request we are sent is answered at most once, and never after its sender cancelled it.
- No input raises. What a client sent and can't be read is `Invalid` and is answered; what a server wrote and
  isn't a message is `NotAMessage` and isn't (JSON-RPC 2.0 §5.1; MCP `basic/transports/stdio`).
"""

from enum import Enum

from mcpzip.model import limits
from mcpzip.wire.envelope import (
    ABSENT,
    Envelope,
    UnreadableError,
    outline,
    own_id,
    peer_id,
    read_error,
    salvage,
    shown,
    text_of,
)
from mcpzip.wire.error_codes import INTERNAL_ERROR, INVALID_REQUEST, REQUEST_CANCELLED
from mcpzip.wire.events import (
    Batch,
    Cancelled,
    Closed,
    Error,
    Event,
    Invalid,
    NotAMessage,
    Notification,
    Progress,
    Request,
    Result,
    RpcError,
    Unmatched,
)
from mcpzip.wire.framing import MAX_FRAME, Frame, FrameTooLong, LineFramer
from mcpzip.wire.json_iter import TooManyError, elements_of
from mcpzip.wire.json_object import NotAnObject, quote, split_object

JUNK_SHOWN = 2048

_PROGRESS = "notifications/progress"
_CANCELLED = "notifications/cancelled"
_LISTEN = "subscriptions/listen"
_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


class Role(Enum):
    """Which end we are. A server answers what it can't read; a client can't, it may be a mere log line."""

    CLIENT = "client"
    SERVER = "server"


class PeerClosedError(RuntimeError):
    """A request after the end of input: no answer can come. Open a new connection."""


class Peer:
    """One connection's state: which of our requests are open, and which of theirs.

    role: which end we are. max_frame: the longest line taken, in bytes. first_id: the id of our first
    request; the others count up from it.
    """

    def __init__(self, *, role: Role, max_frame: int = MAX_FRAME, first_id: int = 1) -> None:
        self._serves = role is Role.SERVER
        self._framer = LineFramer(max_frame)
        self._next_id = first_id
        self._asked: dict[int, str] = {}  # ours that are open: id -> method
        self._owed: dict[bytes, bytes] = {}  # theirs that are open: key -> id as they spelt it
        self._closed = False
        self.batches = False
        """Whether an array is a batch of messages."""

    @property
    def next_id(self) -> int:
        """The id the coming `request` will have; it may serve as its progress token."""
        return self._next_id

    @property
    def open_requests(self) -> tuple[int, ...]:
        """Our requests without an outcome, oldest first."""
        return tuple(self._asked)

    @property
    def owed(self) -> tuple[bytes, ...]:
        """The peer's requests without an answer, oldest first, as it spelt their ids."""
        return tuple(self._owed.values())

    @property
    def dropped(self) -> int:
        """Bytes of the line under way that have been dropped because it is too long; 0 for any other."""
        return self._framer.dropped

    # Bytes in, events out

    def receive(self, data: bytes) -> list[Event]:
        """The events that ``data`` completes, in order. Input after `eof` is ignored."""
        if self._closed:
            return []
        return [self._event(frame) for frame in self._framer.feed(data)]

    def message(self, text: bytes, envelope: Envelope | UnreadableError | None = None) -> Event:
        """The event of a message that came by itself, such as the body of an HTTP request, in any layout.

        envelope: what `outline` says of ``text``, for whoever has asked it in another thread.
        """
        return self._event(text, envelope)

    def eof(self) -> list[Event]:
        """The end of input: an unterminated last message if any, then Closed. Nothing the second time."""
        if self._closed:
            return []
        last = self._framer.eof()
        events = [] if last is None else [self._event(last)]
        self._closed = True
        events.append(Closed(self.open_requests))
        self._asked.clear()
        return events

    # Commands in, bytes out

    def request(self, method: str, params: bytes | None = None) -> tuple[int, bytes]:
        """A request: its id and its line. Raises PeerClosedError after `eof`."""
        if self._closed:
            raise PeerClosedError(f"{method} can't be asked: the connection is closed; open a new one.")
        number = self._next_id
        self._next_id = number + 1
        self._asked[number] = method
        if params is None:
            return number, b'{"jsonrpc":"2.0","id":%d,"method":%b}\n' % (number, quote(method))
        return number, b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b}\n' % (
            number,
            quote(method),
            _one_line(params),
        )

    def notify(self, method: str, params: bytes | None = None) -> bytes:
        """A notification's line."""
        if params is None:
            return b'{"jsonrpc":"2.0","method":%b}\n' % quote(method)
        return b'{"jsonrpc":"2.0","method":%b,"params":%b}\n' % (quote(method), _one_line(params))

    def result(self, id: bytes, result: bytes) -> bytes:
        """The answer to the peer's request ``id``; empty when it is answered already or was cancelled."""
        if not self._settle(id):
            return b""
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id, _one_line(result))

    def error(
        self, id: bytes | None, code: int, message: str, data: bytes | None = None, more: bytes | None = None
    ) -> bytes:
        """An error as the answer to a request of the peer's or an Invalid; empty when `result` would be.

        more: as in `RpcError`.
        """
        if id is not None and not self._settle(id):
            return b""
        extra = b"" if data is None else b',"data":%b' % _one_line(data)
        if more is not None:
            extra += b",%b" % _one_line(more)[1:-1]
        return b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":%b%b}}\n' % (
            b"null" if id is None else id,
            code,
            quote(message),
            extra,
        )

    def cancel(self, id: int, reason: str | None = None) -> bytes | None:
        """The cancellation of our request ``id``, which is then forgotten; None when it isn't open.

        MCP forbids to cancel `initialize`; that is the caller's to know.
        """
        if not self.drop(id):
            return None
        why = b"" if reason is None else b',"reason":%b' % quote(reason)
        return self.notify(_CANCELLED, b'{"requestId":%d%b}' % (id, why))

    def drop(self, id: int) -> bool:
        """Forgets our request ``id`` without a word to the peer. Returns whether it was open."""
        return self._asked.pop(id, None) is not None

    # From frame to event

    def _event(self, frame: Frame, envelope: Envelope | UnreadableError | None = None) -> Event:
        if self.batches and isinstance(frame, bytes) and frame.lstrip()[:1] == b"[":
            return self._batch(frame)
        return self._single(frame, envelope)

    def _batch(self, frame: bytes) -> Event:
        try:
            texts = elements_of(frame, limits.BATCH)
        except TooManyError:
            return Invalid(None, INVALID_REQUEST, f"a batch has up to {limits.BATCH} messages")
        except (ValueError, RecursionError):
            return self._single(frame)
        if not texts:
            return Invalid(None, INVALID_REQUEST, "a batch has one message at least")
        return Batch(tuple(map(self._single, texts)))

    def _single(self, frame: Frame, envelope: Envelope | UnreadableError | None = None) -> Event:
        if envelope is None:
            envelope = outline(frame)
        if isinstance(envelope, UnreadableError):
            return self._unreadable(frame, envelope)
        if envelope.result is not ABSENT or envelope.error is not ABSENT:
            return self._answer(frame, envelope)
        return self._call(frame, envelope)

    def _call(self, frame: Frame, envelope: Envelope) -> Event:
        if envelope.method is ABSENT:
            if envelope.params is ABSENT and (number := self._settled_by(envelope)) is not None:
                return _failed(number, "the answer has neither result nor error")
            return self._refuse(frame, envelope, INVALID_REQUEST, "a request has a method")
        method = text_of(envelope.method)
        if method is None:
            return self._refuse(frame, envelope, INVALID_REQUEST, "method is a string")
        if text_of(envelope.jsonrpc) != "2.0":
            return self._refuse(frame, envelope, INVALID_REQUEST, 'jsonrpc is "2.0"')
        params = None if envelope.params is ABSENT else bytes(envelope.params)
        if params == b"null":
            params = None  # what serializers write for none
        elif params is not None and params[0] not in b"{[":
            return self._refuse(frame, envelope, INVALID_REQUEST, "params is an object")
        if envelope.id is ABSENT:
            return self._notice(method, params)
        id = bytes(envelope.id)
        key = peer_id(id)
        if key is None:
            long = len(id) > limits.ID
            why = f"an id has up to {limits.ID} bytes" if long else "an id is a string or an integer"
            return self._refuse(frame, envelope, INVALID_REQUEST, why)
        if key in self._owed:
            return Invalid(None, INVALID_REQUEST, f"another request is open under the id {shown(id)}")
        self._owed[key] = id
        return Request(id, method, params)

    def _notice(self, method: str, params: bytes | None) -> Event:
        if method == _PROGRESS:
            return self._progress(params or b"")
        if method == _CANCELLED:
            return self._cancelled(params or b"")
        return Notification(method, params)

    def _progress(self, params: bytes) -> Event:
        number = own_id(_members(params).get("progressToken", b""))
        if number is None or number not in self._asked:
            return Unmatched("progress", shown(params))
        return Progress(number, params)

    def _cancelled(self, params: bytes) -> Event:
        fields = _members(params)
        id = fields.get("requestId", b"")
        reason = text_of(fields.get("reason", b""))
        key = peer_id(id)
        if key is not None and key in self._owed:
            return Cancelled(self._owed.pop(key), reason)
        number = own_id(id)
        # A modern server sends no requests and ends a subscription so (`basic/patterns/cancellation`).
        if number is not None and self._asked.get(number) == _LISTEN:
            del self._asked[number]
            return Error(number, RpcError(REQUEST_CANCELLED, reason or "the peer ended the subscription"))
        return Unmatched("cancelled", shown(params))

    def _answer(self, frame: Frame, envelope: Envelope) -> Event:
        number = self._settled_by(envelope)
        if number is None:
            if envelope.method is not ABSENT:
                return self._refuse(frame, envelope, INVALID_REQUEST, "a request has no result and no error")
            return Unmatched("answer", _told(frame))
        result, error = bytes(envelope.result), bytes(envelope.error)
        # JSON-RPC 1.0, and serializers that write every field, put null for the one that doesn't apply.
        if result and error in (b"", b"null"):
            return Result(number, result)
        if error not in (b"", b"null") and result in (b"", b"null"):
            return Error(number, read_error(error))
        return _failed(number, "the answer has both result and error" if result else "the error is null")

    def _unreadable(self, frame: Frame, error: UnreadableError) -> Event:
        envelope = salvage(frame)
        if envelope.result is not ABSENT or envelope.error is not ABSENT:
            number = self._settled_by(envelope)
            if number is not None:
                return _failed(number, f"the answer can't be read: {error}")
        return self._refuse(frame, envelope if error.outlined else Envelope(), error.code, str(error))

    def _refuse(self, frame: Frame, envelope: Envelope, code: int, reason: str) -> Event:
        id = bytes(envelope.id)
        # A fractional number is no id, but its sender knows it by that.
        number = len(id) <= limits.ID and (id[:1].isdigit() or id[:1] == b"-")
        key = peer_id(id) or (id if number else None)
        call = envelope.method is not ABSENT and text_of(envelope.jsonrpc) == "2.0"
        if not self._serves and not (call and key):
            return NotAMessage(
                (frame.head if isinstance(frame, FrameTooLong) else frame)[:JUNK_SHOWN], reason
            )
        if key is None or key in self._owed:
            return Invalid(None, code, reason)
        self._owed[key] = id
        return Invalid(id, code, reason)

    def _settle(self, id: bytes) -> bool:
        return self._owed.pop(peer_id(id) or id, None) is not None

    def _settled_by(self, envelope: Envelope) -> int | None:
        """The open request of ours that ``envelope`` answers, now open no more; None when there is none."""
        number = own_id(bytes(envelope.id))
        return None if number is None or self._asked.pop(number, None) is None else number


def _failed(number: int, reason: str) -> Error:
    return Error(number, RpcError(INTERNAL_ERROR, reason), ours=True)


def _members(raw: bytes) -> dict[str, bytes]:
    try:
        return split_object(raw)
    except NotAnObject:
        return {}


def _told(frame: Frame) -> str:
    return shown(frame.head if isinstance(frame, FrameTooLong) else frame)


def _one_line(raw: bytes) -> bytes:
    """``raw`` with its line breaks as spaces: in JSON they can only stand between tokens."""
    return raw.translate(_ONE_LINE) if b"\n" in raw or b"\r" in raw else raw
