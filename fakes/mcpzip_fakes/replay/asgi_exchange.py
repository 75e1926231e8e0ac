"""What players need of an HTTP request and its response (ASGI 3.0)."""

from collections.abc import Mapping

from starlette.types import Message, Receive, Send


def raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI has them."""
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]


async def respond(send: Send, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    """Send a whole response."""
    fields = {**(headers or {}), "content-length": str(len(body))}
    await send({"type": "http.response.start", "status": status, "headers": raw(fields)})
    await send({"type": "http.response.body", "body": body})


async def whole_body(receive: Receive) -> bytes:
    """The body of a request."""
    pieces: list[bytes] = []
    while True:
        part = await receive()
        pieces.append(part.get("body", b""))
        if not part.get("more_body", False):
            return b"".join(pieces)


async def gone(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Again:
    """``receive`` as before the body was read."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        return await self._receive()
