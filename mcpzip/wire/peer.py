"""One end of a JSON-RPC 2.0 connection, without I/O: bytes in, events out; commands in, bytes out.

- Every request that we send has exactly one outcome: `Result`, `Error`, `Closed`, or our own `Peer.cancel`.
  A response after that is `Unmatched`.
- Every request that we receive is answered at most once, and never after its sender cancelled it.
- No input raises. Unreadable input of a client is `Invalid` and is answered; unreadable output of a server is
  `NotAMessage` and is not (JSON-RPC 2.0 §5.1; MCP `basic/transports/stdio`).
"""

from enum import Enum

from mcpzip.model import limits
from mcpzip.wire.envelope import (
    ABSENT,
    Envelope,
    UnreadableError,
    own_id,
    peer_id,
    read,
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

_JUNK_KEPT = 2048
"""Bytes of a frame that a NotAMessage keeps."""

_PROGRESS = "notifications/progress"
_CANCELLED = "notifications/cancelled"
_LISTEN = "subscriptions/listen"
_TEXTS = {method: quote(method) for method in ("tools/call", _PROGRESS, "notifications/message")}
"""The usual methods as JSON text, which needn't be written and read again and again."""
_METHODS = {text: method for method, text in _TEXTS.items()}
_DIGITS = 18
"""Of the number of a request of ours. Python refuses to read a number of some thousand."""
_VERSION = b'"2.0"'
_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
_NEWLINE, _RETURN = b"\n\r"  # as numbers they are looked for three times as fast


class Role(Enum):
    """Our end. A server answers unreadable input; a client doesn't, because it may be a log line."""

    CLIENT = "client"
    SERVER = "server"


class PeerClosedError(RuntimeError):
    """A request after the end of the input, which can't be answered. Open a new connection."""


class Peer:
    """The state of a connection: our open requests, and the peer's.

    role: our end. max_frame: the maximum length of a line in bytes. first_id: the id of our first request;
    later ids count up from it.
    """

    def __init__(self, *, role: Role, max_frame: int = MAX_FRAME, first_id: int = 1) -> None:
        self._is_server = role is Role.SERVER
        self._framer = LineFramer(max_frame)
        self._next_id = first_id
        self._open: dict[int, str] = {}  # our open requests: id -> method
        self._unanswered: dict[bytes, bytes] = {}  # the peer's open requests: `peer_id` -> id as received
        self._closed = False
        self.batches = False
        """Whether JSON-RPC batches are accepted."""
        self.id_suffix = b""
        """If it is set, the ids of our requests are the strings ``q1-SUFFIX``, ``q2-SUFFIX``, …, and a
        response under any other id is none to them. ASCII that needs no escape in JSON."""

    @property
    def next_id(self) -> int:
        """The id of the next `request`, which may also be its progress token."""
        return self._next_id

    @property
    def open_requests(self) -> tuple[int, ...]:
        """The ids of our requests without an outcome, oldest first."""
        return tuple(self._open)

    @property
    def unanswered(self) -> tuple[bytes, ...]:
        """The ids of the peer's open requests as received, oldest first."""
        return tuple(self._unanswered.values())

    @property
    def dropped(self) -> int:
        """Bytes of the incomplete line that were dropped because it is too long; 0 if it is not too long."""
        return self._framer.dropped

    # Bytes in, events out

    def receive(self, data: bytes) -> list[Event]:
        """The events that ``data`` completes, in order. Input after `eof` is ignored."""
        if self._closed:
            return []
        frames, event = self._framer.feed(data), self._event if self.batches else self._single
        if len(frames) == 1:  # which is usual
            return [event(frames[0])]
        return [event(frame) for frame in frames]

    def message(self, text: bytes, envelope: Envelope | UnreadableError | None = None) -> Event:
        """The event of one whole message, such as the body of an HTTP request; it may have line breaks.

        envelope: the result of `outline` for ``text``, if it was called in another thread.
        """
        return self._event(text, envelope)

    def eof(self) -> list[Event]:
        """The end of the input: a last message without a newline, if any, then Closed. [] if called again."""
        if self._closed:
            return []
        last = self._framer.eof()
        events = [] if last is None else [self._event(last)]
        self._closed = True
        events.append(Closed(self.open_requests))
        self._open.clear()
        return events

    # Commands in, bytes out

    def request(self, method: str, params: bytes | None = None) -> tuple[int, bytes]:
        """Opens a request. Returns its id and its line. Raises PeerClosedError after `eof`."""
        if self._closed:
            raise PeerClosedError(f"{method} can't be sent: the connection is closed; open a new one.")
        number = self._next_id
        self._next_id = number + 1
        self._open[number] = method
        if params is None:
            return number, b'{"jsonrpc":"2.0","id":%b,"method":%b}\n' % (self._text_of(number), quote(method))
        return number, b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}\n' % (
            self._text_of(number),
            _TEXTS.get(method) or quote(method),
            _one_line(params),
        )

    def notify(self, method: str, params: bytes | None = None) -> bytes:
        """A notification's line."""
        if params is None:
            return b'{"jsonrpc":"2.0","method":%b}\n' % quote(method)
        return b'{"jsonrpc":"2.0","method":%b,"params":%b}\n' % (quote(method), _one_line(params))

    def result(self, id: bytes, result: bytes) -> bytes:
        """The line of the response to the peer's request ``id``; b"" if it was answered or cancelled."""
        if not self._close_request(id):
            return b""
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id, _one_line(result))

    def error(
        self, id: bytes | None, code: int, message: str, data: bytes | None = None, more: bytes | None = None
    ) -> bytes:
        """The line of the error response to a request or an Invalid; b"" if it was answered or cancelled.

        more: as in `RpcError`.
        """
        if id is not None and not self._close_request(id):
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
        """Closes our request ``id``. Returns the line of the cancellation; None if the request isn't open.

        The caller must not cancel `initialize` (MCP forbids it).
        """
        if not self.drop(id):
            return None
        member = b"" if reason is None else b',"reason":%b' % quote(reason)
        return self.notify(_CANCELLED, b'{"requestId":%b%b}' % (self._text_of(id), member))

    def drop(self, id: int) -> bool:
        """Closes our request ``id`` without a message to the peer. Returns whether it was open."""
        return self._open.pop(id, None) is not None

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
            try:
                envelope = read(frame)
            except UnreadableError as error:
                return self._unreadable(frame, error)
        elif isinstance(envelope, UnreadableError):
            return self._unreadable(frame, envelope)
        if envelope.result is not ABSENT or envelope.error is not ABSENT:
            return self._response(frame, envelope)
        return self._request_or_notification(frame, envelope)

    def _request_or_notification(self, frame: Frame, envelope: Envelope) -> Event:
        if envelope.method is ABSENT:
            if envelope.params is ABSENT and (number := self._closed_by(envelope)) is not None:
                return _failed(number, "the answer has neither result nor error")
            return self._refuse(frame, envelope, INVALID_REQUEST, "a request has a method")
        method = _METHODS.get(bytes(envelope.method)) or text_of(envelope.method)
        if method is None:
            return self._refuse(frame, envelope, INVALID_REQUEST, "method is a string")
        if bytes(envelope.jsonrpc) != _VERSION and text_of(envelope.jsonrpc) != "2.0":
            return self._refuse(frame, envelope, INVALID_REQUEST, 'jsonrpc is "2.0"')
        params = None if envelope.params is ABSENT else bytes(envelope.params)
        if params == b"null":
            params = None  # serializers that write every field write null
        elif params is not None and params[0] not in b"{[":
            return self._refuse(frame, envelope, INVALID_REQUEST, "params is an object")
        if envelope.id is ABSENT:
            return self._notification(method, params)
        id = bytes(envelope.id)
        key = id if id.isdigit() and len(id) <= limits.ID else peer_id(id)
        if key is None:
            too_long = len(id) > limits.ID
            reason = f"an id has up to {limits.ID} bytes" if too_long else "an id is a string or an integer"
            return self._refuse(frame, envelope, INVALID_REQUEST, reason)
        if key in self._unanswered:
            return Invalid(None, INVALID_REQUEST, f"another request is open under the id {shown(id)}")
        self._unanswered[key] = id
        return Request(id, method, params)

    def _notification(self, method: str, params: bytes | None) -> Event:
        if method == _PROGRESS:
            return self._progress(params or b"")
        if method == _CANCELLED:
            return self._cancelled(params or b"")
        return Notification(method, params)

    def _progress(self, params: bytes) -> Event:
        number = self._own_id(_members(params).get("progressToken", b""))
        if number is None or number not in self._open:
            return Unmatched("progress", shown(params))
        return Progress(number, params)

    def _cancelled(self, params: bytes) -> Event:
        fields = _members(params)
        id = fields.get("requestId", b"")
        reason = text_of(fields.get("reason", b""))
        key = peer_id(id)
        if key is not None and key in self._unanswered:
            return Cancelled(self._unanswered.pop(key), reason)
        number = self._own_id(id)
        # A modern server cancels a subscription of its client to end it (`basic/patterns/cancellation`).
        if number is not None and self._open.get(number) == _LISTEN:
            del self._open[number]
            return Error(number, RpcError(REQUEST_CANCELLED, reason or "the peer ended the subscription"))
        return Unmatched("cancelled", shown(params))

    def _response(self, frame: Frame, envelope: Envelope) -> Event:
        number = self._closed_by(envelope)
        if number is None:
            if envelope.method is not ABSENT:
                return self._refuse(frame, envelope, INVALID_REQUEST, "a request has no result and no error")
            return Unmatched("answer", shown(_head(frame)))
        result, error = bytes(envelope.result), bytes(envelope.error)
        # JSON-RPC 1.0, and serializers that write every field, write null for the one that doesn't apply.
        if result and error in (b"", b"null"):
            return Result(number, result)
        if error not in (b"", b"null") and result in (b"", b"null"):
            return Error(number, read_error(error))
        return _failed(number, "the answer has both result and error" if result else "the error is null")

    def _unreadable(self, frame: Frame, error: UnreadableError) -> Event:
        envelope = salvage(frame)
        if envelope.result is not ABSENT or envelope.error is not ABSENT:
            number = self._closed_by(envelope)
            if number is not None:
                return _failed(number, f"the answer can't be read: {error}")
        return self._refuse(frame, envelope if error.outlined else Envelope(), error.code, str(error))

    def _refuse(self, frame: Frame, envelope: Envelope, code: int, reason: str) -> Event:
        id = bytes(envelope.id)
        # A fractional number is no valid id, but the error repeats it so that the sender can match it.
        number = len(id) <= limits.ID and (id[:1].isdigit() or id[:1] == b"-")
        key = peer_id(id) or (id if number else None)
        request = envelope.method is not ABSENT and text_of(envelope.jsonrpc) == "2.0"
        if not self._is_server and not (request and key):
            return NotAMessage(_head(frame)[:_JUNK_KEPT], reason)
        if key is None or key in self._unanswered:
            return Invalid(None, code, reason)
        self._unanswered[key] = id
        return Invalid(id, code, reason)

    def _close_request(self, id: bytes) -> bool:
        """Closes the peer's request ``id``. Returns whether it was open."""
        return self._unanswered.pop(id if id.isdigit() else peer_id(id) or id, None) is not None

    def _text_of(self, number: int) -> bytes:
        """The id of our request ``number``, JSON text."""
        return b'"q%d-%b"' % (number, self.id_suffix) if self.id_suffix else b"%d" % number

    def _own_id(self, raw: bytes) -> int | None:
        """The number of a request of ours by its id; None for any other id."""
        if not self.id_suffix:
            return own_id(raw)
        number = raw.removeprefix(b'"q').removesuffix(b'-%b"' % self.id_suffix)
        if not number.isdigit() or len(number) > _DIGITS:
            return None
        return int(number) if self._text_of(int(number)) == raw else None

    def _closed_by(self, envelope: Envelope) -> int | None:
        """Closes our request that ``envelope`` answers. Returns its id; None if there is none."""
        raw = bytes(envelope.id)
        number = self._own_id(raw) if self.id_suffix else own_id(raw)
        return None if number is None or self._open.pop(number, None) is None else number


def _failed(number: int, reason: str) -> Error:
    return Error(number, RpcError(INTERNAL_ERROR, reason), ours=True)


def _members(raw: bytes) -> dict[str, bytes]:
    try:
        return split_object(raw)
    except NotAnObject:
        return {}


def _head(frame: Frame) -> bytes:
    return frame.head if isinstance(frame, FrameTooLong) else frame


def _one_line(raw: bytes) -> bytes:
    """``raw`` with spaces for line breaks, which JSON allows only between tokens."""
    return raw.translate(_ONE_LINE) if _NEWLINE in raw or _RETURN in raw else raw
