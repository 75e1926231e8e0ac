"""The messages of a cassette, decoded.

The rule: a recorded message may be anything, because servers and clients with faults are recorded too. So
nothing here raises for a message that is wrong.
"""

import json
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from mcpzip.cassettes.cassette import CLOSE, Exchange
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.request import as_object

NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "logging/setLevel": "level",
}
"""The member of the params that says what a request is about, by method."""
HANDSHAKE = ("initialize", "server/discover")
"""The requests with which a client begins."""
INPUT_REQUIRED = "input_required"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"


class Message(Struct, frozen=True, kw_only=True):
    """A JSON-RPC message. id: None if it has none; error: None if it has none."""

    method: str = ""
    id: object = None
    params: JsonObject = {}
    result: object = None
    error: JsonObject | None = None

    @property
    def is_request(self) -> bool:
        """Whether it wants an answer."""
        return bool(self.method) and self.id is not None

    @property
    def name(self) -> str:
        """What it is about: of a call the tool, of a resource the URI; "" if it says nothing."""
        value = self.params.get(NAMED_BY.get(self.method, ""))
        return value if isinstance(value, str) else ""

    @property
    def title(self) -> str:
        """The method and the name."""
        return f"{self.method} {self.name}".rstrip()


def decoded(raw: bytes) -> object:
    """The value of the JSON ``raw``. Raises ValueError if it is none, or nested too deeply."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # msgspec takes no lone surrogates and no number beyond a double, which JSON has
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    try:
        value: object = json.loads(raw)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def read_message(raw: bytes) -> Message | None:
    """The message ``raw``; None if it is none, or a batch."""
    try:
        value = decoded(raw)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    method, error = value.get("method"), value.get("error")
    return Message(
        method=method if isinstance(method, str) else "",
        id=value.get("id"),
        params=as_object(value.get("params")),
        result=value.get("result"),
        error=as_object(error) if error is not None else None,
    )


def server_info_of(result: JsonObject) -> JsonObject:
    """The name and version of the server in a result: of ``initialize``, or of any modern request."""
    return as_object(result.get("serverInfo") or as_object(result.get("_meta")).get(SERVER_INFO))


class Heard(Struct, frozen=True, kw_only=True):
    """An exchange, decoded. number: its place in the cassette, from 1. request, reply: None if there was
    none, or it is no message. took: the seconds to the reply, None without one.
    """

    number: int
    exchange: Exchange
    request: Message | None
    reply: Message | None
    took: float | None

    @property
    def title(self) -> str:
        """What its request is."""
        if self.request is not None:
            return self.request.title or ("an answer" if self.request.id is not None else "no method")
        if self.exchange.request:
            return "a batch" if self.exchange.request.lstrip()[:1] == b"[" else "no message"
        if self.exchange.verb == CLOSE:
            return "(the client closed the input)"
        return self.exchange.verb if self.exchange.verb not in ("", "POST") else "(the server on its own)"


def heard(exchanges: tuple[Exchange, ...]) -> Iterator[Heard]:
    """The exchanges of a cassette, decoded one by one."""
    for number, exchange in enumerate(exchanges, 1):
        reply = next((event for event in exchange.events if event.kind == "reply"), None)
        yield Heard(
            number=number,
            exchange=exchange,
            request=read_message(exchange.request) if exchange.request else None,
            reply=read_message(reply.data) if reply else None,
            took=reply.after if reply else None,
        )
