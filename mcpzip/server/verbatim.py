"""Messages that pass the SDK's HTTP layer as they are.

The SDK parses what it carries and writes it anew: nulls go, numbers are respelt, a lone surrogate is an
error. The rule: it is shown what it needs to do its work and never the message itself. On the way out it
carries a stand-in under a key that nobody else knows, and what is sent is the message; on the way in it gets
what it routes by, and the params stay with us as text.

In the modern era the SDK judges requests by their params (versions, headers that repeat them), so there it
gets them whole; what is acted upon is still the text.
"""

import re
import secrets
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mcpzip.wire import NotAnObject, RpcError, join_object, quote, split_object, unquote
from mcpzip.wire.envelope import read_error

JsonObject = dict[str, object]

_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
_LINE_ENDS = {"\u0085".encode(): rb"\u0085", "\u2028".encode(): rb"\u2028", "\u2029".encode(): rb"\u2029"}
_NOBODY = b'{"name":"-","version":"-"}'
_ANSWER = b"!"  # no base64
_MEMBERS = ("jsonrpc", "id", "method")


@dataclass(slots=True)
class Received:
    """A request or notification as it came. id: JSON text, empty for a notification; params: JSON text, None
    for none. answer: the message that answers it, once there is one. running: whether it is being worked on;
    after: is called when it no longer is.
    """

    id: bytes
    method: str
    params: bytes | None
    answer: bytes = b""
    running: bool = False
    after: Callable[[], None] = field(default=lambda: None, compare=False)


class Seal:
    """Stand-ins, and what they stand for: a message sealed in them, or the answer to the request at hand."""

    def __init__(self) -> None:
        self._key = f"mcpzip/verbatim-{secrets.token_hex(16)}"
        mark = b'"%b":"' % self._key.encode()
        self._mark = mark
        self._event = re.compile(rb"data: [^\r\n]*?%b([^\"]*)[^\r\n]*" % re.escape(mark))

    def closed(self, text: bytes) -> JsonObject:
        """The stand-in for ``text``."""
        return {self._key: b2a_base64(text, newline=False).decode()}

    def opened(self, value: object) -> bytes | None:
        """What ``value`` stands for; None when it stands for nothing but itself."""
        sealed = value.get(self._key) if isinstance(value, Mapping) else None
        return a2b_base64(sealed) if isinstance(sealed, str) else None

    @property
    def answer(self) -> JsonObject:
        """The stand-in for the answer to the request at hand."""
        return {self._key: _ANSWER.decode()}

    def answers(self, body: bytes) -> bool:
        """Whether the answer to the request at hand is in ``body``."""
        return self._mark + _ANSWER in body

    def body(self, body: bytes, received: Received | None) -> bytes:
        """A JSON body with the answer in the place of its stand-in."""
        return received.answer if received is not None and self.answers(body) else body

    def events(self, body: bytes, received: Received | None) -> bytes:
        """A piece of an event stream, which holds whole events, with the messages in their places."""
        if self._mark not in body:
            return body

        def message(found: re.Match[bytes]) -> bytes:
            text = received.answer if received and found[1] == _ANSWER else a2b_base64(found[1])
            return b"data: " + _one_event_line(text)

        return self._event.sub(message, body)

    def received(self, body: bytes, *, legacy: bool) -> tuple[bytes, Received | None]:
        """What the SDK is to be given of a POSTed message, and the message if it is no response.

        What isn't JSON-RPC the SDK gets as it is, to refuse it.
        """
        try:
            fields = split_object(body)
            method = unquote(fields["method"]) if "method" in fields else None
        except (NotAnObject, ValueError, RecursionError):
            return body, None
        answers = [key for key in ("result", "error") if key in fields]
        if method is None and legacy and len(answers) == 1:
            return self._answer(fields, answers[0]), None
        if method is None or answers:
            return body, None
        params = fields.get("params", b"null")
        received = Received(fields.get("id", b""), method, None if params == b"null" else params)
        if not legacy or not (received.params is None or params.startswith(b"{")):
            return body, received
        routed = {key: fields[key] for key in _MEMBERS if key in fields}
        return join_object(routed | _routed_by(method, params)), received

    def _answer(self, fields: dict[str, bytes], kind: str) -> bytes:
        sealed = b'{%b%b"}' % (self._mark, b2a_base64(fields[kind], newline=False))
        if kind == "error":
            sealed = b'{"code":0,"message":"","data":%b}' % sealed
        kept = {key: value for key, value in fields.items() if key in ("jsonrpc", "id")}
        return join_object({**kept, kind: sealed})

    def error(self, data: object) -> RpcError | None:
        """The error whose ``data``, as the SDK has it, came sealed; None when it is the SDK's own."""
        sealed = self.opened(data)
        return None if sealed is None else read_error(sealed)


def _routed_by(method: str, params: bytes) -> dict[str, bytes]:
    if method == "initialize":
        version = split_object(params).get("protocolVersion") if params != b"null" else None
        asked = {} if version is None else {"protocolVersion": version}
        return {"params": join_object({**asked, "capabilities": b"{}", "clientInfo": _NOBODY})}
    if method == "notifications/cancelled" and params != b"null":
        given = split_object(params)
        return {"params": join_object({key: given[key] for key in ("requestId",) if key in given})}
    return {}


def _one_event_line(message: bytes) -> bytes:
    """``message`` with those characters escaped that some clients take for the end of a line (httpx does):
    they can only stand in strings.
    """
    for character, escaped in _LINE_ENDS.items():
        if character in message:
            message = message.replace(character, escaped)
    return message


def result(id: bytes, result: bytes) -> bytes:
    """The message that answers request ``id``."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, _one_line(result))


def error(id: bytes, error: RpcError) -> bytes:
    """The message that answers request ``id`` with an error."""
    data = b"" if error.data is None else b',"data":%b' % _one_line(error.data)
    told = b'{"code":%d,"message":%b%b}' % (error.code, quote(error.message), data)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, told)


def request(id: int | None, method: str, params: bytes | None) -> bytes:
    """A request, or with no id a notification."""
    number = b"" if id is None else b'"id":%d,' % id
    given = b"" if params is None else b',"params":%b' % _one_line(params)
    return b'{"jsonrpc":"2.0",%b"method":%b%b}' % (number, quote(method), given)


def _one_line(text: bytes) -> bytes:
    """``text`` with spaces for line breaks: JSON has them between tokens only, an event can't have them."""
    return text.translate(_ONE_LINE) if b"\n" in text or b"\r" in text else text
