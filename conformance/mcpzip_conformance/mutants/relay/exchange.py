"""One exchange of HTTP: its head, its body, its status.

The rule: the head of a modern request must repeat its body (2026-07-28, `basic/transports/streamable-http`,
Server Validation).
"""

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import TypedDict

from mcpzip.wire import HEADER_MISMATCH, METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, quote
from mcpzip_conformance.mutants.relay.naming import members, text

Receive = Callable[[], Awaitable[MutableMapping[str, object]]]
Send = Callable[[MutableMapping[str, object]], Awaitable[None]]
Headers = dict[str, str]


class Scope(TypedDict):
    """The parts of an ASGI scope that are read."""

    method: str
    path: str
    server: tuple[str, int]
    headers: Iterable[tuple[bytes, bytes]]


NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
STATUS = {METHOD_NOT_FOUND: 404, UNSUPPORTED_PROTOCOL_VERSION: 400, HEADER_MISMATCH: 400}
"""What HTTP says to a modern request that is answered with such an error."""
JSON, EVENTS = "application/json", "text/event-stream"


class Refusal(Exception):
    """An exchange that ends with this status. code: of the JSON-RPC error in its body."""

    def __init__(self, status: int, why: str, code: int = -32600, headers: Headers | None = None) -> None:
        self.status, self.headers = status, headers or {}
        self.body = b'{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%b}}' % (code, quote(why))
        super().__init__(why)


def agrees(headers: Headers, method: str, message: dict[str, bytes], version: str) -> None:
    """Raises Refusal unless the headers of a modern request repeat its body."""
    params = members(message.get("params"))
    wanted = {"mcp-protocol-version": version}
    if "id" in message:
        wanted["mcp-method"] = method
    if method in NAMED:
        wanted["mcp-name"] = text(params.get(NAMED[method]))
    for key, value in wanted.items():
        if decoded(headers.get(key, "")) != value:
            raise Refusal(400, f"The header {key} is not what the body says.", HEADER_MISMATCH)


def decoded(value: str) -> str:
    """The text of a header that may be Base64."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value


def status_of(answer: bytes, modern: bool) -> int:
    """The HTTP status for a JSON-RPC answer."""
    error = members(members(answer).get("error"))
    code = error.get("code", b"")
    return STATUS.get(int(code), 200) if modern and code.lstrip(b"-").isdigit() else 200


async def body_of(receive: Receive) -> bytes:
    """The body of a request."""
    whole, more = b"", True
    while more:
        part = await receive()
        data = part.get("body", b"")
        whole += data if isinstance(data, bytes) else b""
        more = bool(part.get("more_body", False))
    return whole


async def reply(send: Send, status: int, body: bytes = b"", headers: Headers | None = None) -> None:
    """Send a response that is not a stream."""
    all_headers = {**(headers or {}), "content-length": str(len(body))}
    await send({"type": "http.response.start", "status": status, "headers": encoded(all_headers)})
    await send({"type": "http.response.body", "body": body})


def encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers as ASGI has them."""
    return [(key.encode(), value.encode()) for key, value in headers.items()]
