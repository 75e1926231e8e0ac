"""What passes below the SDK's HTTP transports as it is.

The SDK reads JSON into Python's values and writes it anew, and what its parser doesn't take (lone surrogates,
depth beyond 200, numbers beyond a double) it loses or takes for no answer at all. The rule: of a call it is
shown an envelope; the params go out, and the answer comes in, as text.
"""

import re
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import httpx2

from mcpzip.wire import NotAnObject, join_object, split_object, with_members

_TWO_LINE_ENDS = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_SHOWN = {"result": b"{}", "error": b'{"code":0,"message":""}'}


class Answer(NamedTuple):
    """kind: ``result`` or ``error``. text: that member, as it came."""

    kind: str
    text: bytes


class Verbatim:
    """The texts of the calls under way, by the numbers of their requests.

    params: what is to be sent. answers: what came. A request that isn't in ``params`` is the SDK's alone.
    """

    def __init__(self) -> None:
        self.params: dict[int, bytes] = {}
        self.answers: dict[int, Answer] = {}

    def sent(self, request: httpx2.Request, number: int | str | None) -> httpx2.Request:
        """``request``, which carries the call ``number``, with its params."""
        params = self.params.get(number) if isinstance(number, int) else None
        if params is None:
            return request
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
        body = with_members(request.content, {"params": params})
        return httpx2.Request(
            request.method, request.url, headers=headers, content=body, extensions=request.extensions
        )

    async def received(self, response: httpx2.Response) -> httpx2.Response:
        """``response`` as the SDK is to see it. One that is compressed is left alone."""
        if response.status_code >= 400 or "content-encoding" in response.headers:
            return response
        kind = response.headers.get("content-type", "").lower()
        headers = [(name, value) for name, value in response.headers.raw if name.lower() != b"content-length"]
        if kind.startswith("application/json"):
            body = self._shown(await response.aread())
            return httpx2.Response(response.status_code, headers=headers, content=body)
        if kind.startswith("text/event-stream"):
            stream = _Events(response, self._shown)
            return httpx2.Response(
                response.status_code, headers=headers, stream=stream, extensions=response.extensions
            )
        return response

    def _shown(self, message: bytes) -> bytes:
        try:
            fields = split_object(message)
        except NotAnObject:
            return message
        number = fields.get("id", b"")
        if "method" in fields or not number.isdigit() or int(number) not in self.params:
            return message
        kinds = [kind for kind in _SHOWN if fields.get(kind, b"null") != b"null"]
        if len(kinds) != 1:
            return message
        self.answers[int(number)] = Answer(kinds[0], fields[kinds[0]])
        return join_object({"jsonrpc": b'"2.0"', "id": number, kinds[0]: _SHOWN[kinds[0]]})


class _Events(httpx2.AsyncByteStream):
    """An event stream, event by event, each with what is shown of its data."""

    def __init__(self, response: httpx2.Response, shown: Callable[[bytes], bytes]) -> None:
        self._response, self._shown = response, shown

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held, looked_at = bytearray(), 0
        assert isinstance(self._response.stream, httpx2.AsyncByteStream)
        async for piece in self._response.stream:
            held += piece
            while end := _event_end(held, max(looked_at - 3, 0)):
                event = bytes(held[:end])
                del held[:end]
                looked_at = 0
                yield self._event(event)
            looked_at = len(held)
        if held:
            yield bytes(held)

    def _event(self, event: bytes) -> bytes:
        lines = event.splitlines()
        data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
        whole = b"\n".join(data)
        if not data or (shown := self._shown(whole)) == whole:
            return event
        others = [line for line in lines if line and not line.startswith(b"data:")]
        return b"\n".join([*others, b"data: " + shown, b"", b""])

    async def aclose(self) -> None:
        await self._response.aclose()


def _event_end(held: bytearray, start: int) -> int:
    """Where the first event ends whose end comes after ``start`` (HTML standard, server-sent events: any of
    three line ends, twice); 0 where none does yet.
    """
    # An event may be one line of megabytes: line ends are found at memory speed, and looked at then.
    feed = held.find(b"\n", start)
    back = held.find(b"\r", start)
    while feed >= 0 or back >= 0:
        at = min(place for place in (feed, back) if place >= 0)
        if found := _TWO_LINE_ENDS.match(held, at):
            return found.end()
        if at == feed:
            feed = held.find(b"\n", at + 1)
        else:
            back = held.find(b"\r", at + 1)
    return 0
