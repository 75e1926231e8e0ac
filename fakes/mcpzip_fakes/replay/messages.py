"""Recorded messages, and how their ids are replaced by those of the present client (pure).

The rule: a recorded message is sent as the bytes that it was. Only the values of ids and tokens change, where
they are in the text, and only if the present client's differ from those of the recorded one.
"""

from collections import ChainMap
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from mcpzip.wire import SUBSCRIPTION_ID_KEY, NotAnObject, progress_token
from mcpzip.wire.envelope import ABSENT, UnreadableError, outline, peer_id, text_of
from mcpzip.wire.json_object import members

Kind = Literal["request", "notification", "response", "other"]

_PROGRESS = "notifications/progress"
CANCELLED = "notifications/cancelled"


class Message(Struct, frozen=True, kw_only=True):
    """One message, or (``other``) a line that is none.

    raw: its text. id, method, params: of a JSON-RPC message, as JSON text, b"" if absent. answer: the result
    or the error of a response; failed: whether that is an error.
    """

    kind: Kind
    raw: bytes
    id: bytes = b""
    method: str = ""
    params: bytes = b""
    answer: bytes = b""
    failed: bool = False

    @property
    def id_key(self) -> bytes:
        """The id, the same for every spelling of it."""
        return id_key(self.id)

    @property
    def token(self) -> bytes | None:
        """The progress token that a request carries, as JSON text; None without one."""
        return progress_token(self.params or None)


def id_key(raw: bytes) -> bytes:
    """The JSON text of an id or token, the same for every spelling of it."""
    return peer_id(raw) or raw


def read(raw: bytes) -> Message:
    """The message in ``raw``, one line or one HTTP body. Never raises."""
    envelope = outline(raw)
    if isinstance(envelope, UnreadableError):
        return Message(kind="other", raw=raw)
    id = b"" if envelope.id is ABSENT else bytes(envelope.id)
    params = b"" if envelope.params is ABSENT else bytes(envelope.params)
    if envelope.method is not ABSENT:
        method = text_of(envelope.method)
        if method is None:
            return Message(kind="other", raw=raw)
        return Message(kind="request" if id else "notification", raw=raw, id=id, method=method, params=params)
    for member, failed in ((envelope.result, False), (envelope.error, True)):
        if id and member is not ABSENT:
            return Message(kind="response", raw=raw, id=id, answer=bytes(member), failed=failed)
    return Message(kind="other", raw=raw)


class Ids:
    """The ids and tokens of the recorded client, with those of the present client; and the ids of the
    server's own requests, with those that they are sent with now. All as JSON text.

    shared: those of the whole session, where these are of one exchange, which can be played more than once.
    """

    def __init__(self, shared: "Ids | None" = None) -> None:
        self._shared = shared
        self._requests: ChainMap[bytes, bytes] = ChainMap({})
        self._tokens: ChainMap[bytes, bytes | None] = ChainMap({})
        self._asked: ChainMap[bytes, bytes] = ChainMap({})
        if shared is not None:
            self._requests.maps += shared._requests.maps
            self._tokens.maps += shared._tokens.maps
            self._asked.maps += shared._asked.maps
        self._changed = False

    def meet(self, recorded: Message, present: Message) -> None:
        """``present`` is the client's request now where ``recorded`` was its request then."""
        self._requests[recorded.id_key] = present.id
        self._changed |= recorded.id != present.id
        if (token := recorded.token) is not None:
            self._tokens[id_key(token)] = present.token
            self._changed |= token != present.token
        if self._shared is not None:
            self._shared.meet(recorded, present)

    def renamed(self, recorded: bytes, present: bytes) -> None:
        """The server's request with the recorded id is sent with another one."""
        self._asked[id_key(recorded)] = present
        self._changed = True

    def adapted(self, raw: bytes) -> bytes | None:
        """A recorded message of the server for the present client. None if it must not be sent: progress of a
        request that has no token now.
        """
        if not (self._changed or (self._shared is not None and self._shared._changed)):
            return raw
        message = read(raw)
        match message.kind:
            case "response":
                raw = self._with_id(raw, message, self._requests)
                return self._with_subscription(raw, ("result", "_meta"))
            case "request":
                return self._with_id(raw, message, self._asked)
            case "notification" if message.method == _PROGRESS:
                return self._with_token(raw)
            case "notification" if message.method == CANCELLED:
                both = ChainMap(self._asked, self._requests)
                return self._with_subscription(
                    _replaced(raw, ("params", "requestId"), both), ("params", "_meta")
                )
            case "notification":
                return self._with_subscription(raw, ("params", "_meta"))
            case _:
                return raw

    def _with_id(self, raw: bytes, message: Message, ids: Mapping[bytes, bytes]) -> bytes:
        present = ids.get(message.id_key)
        return raw if present in (None, message.id) else _replaced(raw, ("id",), ids)

    def _with_token(self, raw: bytes) -> bytes | None:
        path = ("params", "progressToken")
        span = _span(raw, path)
        token = None if span is None else id_key(raw[slice(*span)])
        if token is None or token not in self._tokens:
            return raw
        present = self._tokens[token]
        return None if present is None else _replaced(raw, path, {token: present})

    def _with_subscription(self, raw: bytes, path: tuple[str, ...]) -> bytes:
        if SUBSCRIPTION_ID_KEY.encode() not in raw:
            return raw
        return _replaced(raw, (*path, SUBSCRIPTION_ID_KEY), self._requests)


def _replaced(raw: bytes, path: tuple[str, ...], values: Mapping[bytes, bytes]) -> bytes:
    """``raw`` with the value at ``path`` replaced by that of ``values``, if both are there."""
    span = _span(raw, path)
    if span is None:
        return raw
    start, end = span
    present = values.get(id_key(raw[start:end]))
    return raw if present is None else b"".join((raw[:start], present, raw[end:]))


def _span(raw: bytes, path: tuple[str, ...]) -> tuple[int, int] | None:
    """The offsets of the value at ``path``, of which the last of equal keys counts; None if there is none."""
    start, end = 0, len(raw)
    for key in path:
        try:
            found = [member for member in members(raw[start:end]) if member.key == key]
        except NotAnObject:
            return None
        if not found:
            return None
        start, end = start + found[-1].value, start + found[-1].end
    return start, end
