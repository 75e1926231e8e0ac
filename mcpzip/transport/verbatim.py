"""What passes below the SDK's HTTP transports as it is.

The SDK reads JSON into Python's values and writes it anew, and what its parser doesn't take (lone surrogates,
depth beyond 200, numbers beyond a double) it loses or takes for no answer at all. The rule: of a message it
is shown an envelope; the params go out, and the answer comes in, as text; what a server tells it doesn't see.
So nothing of a message's size is ever made into Python's values on the event loop.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import httpx2

from mcpzip.auth.bodies import pieces, with_body
from mcpzip.model.limits import ASIDE, MESSAGE, RETRY_LONGEST, RETRY_SHORTEST
from mcpzip.system.threads import in_thread
from mcpzip.wire import NotAnObject, join_object, split_object, unquote, with_members
from mcpzip.wire.eventstream import EventReader, EventTooLongError, StreamEvent
from mcpzip.wire.inflating import UnfitAnswerError

_SHOWN = {"result": b"{}", "error": b'{"code":0,"message":""}'}
_CANCELLED = "notifications/cancelled"
_TURN = 200
"""Lines and events of a stream after which others have their turn."""
_STEP = 8 * 1024
"""Bytes of a stream that are cut into events at a time."""
_LARGE = 1 << 20
"""Bytes of a message that is read in a thread."""
_SET_ASIDE = "mcpzip/aside"

NOT_OURS = "its answer is not JSON-RPC"


class Answer(NamedTuple):
    """kind: ``result`` or ``error``. text: that member, as it came."""

    kind: str
    text: bytes


class Verbatim:
    """The texts of the messages under way.

    params: what is to be sent, by the numbers of the requests; one that isn't there is the SDK's alone.
    answers: what came, by the same. heard: is called with each notification's method and params. deaf:
    whether no request of the server is taken just now.
    """

    def __init__(self) -> None:
        self.params: dict[int, bytes] = {}
        self.answers: dict[int, Answer] = {}
        self.heard: Callable[[str, bytes | None], None] = lambda _method, _params: None
        self.deaf: Callable[[], bool] = lambda: False
        self._aside: dict[int, bytes] = {}
        self._next_aside = 0

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

    async def shown(self, message: bytes) -> bytes | None:
        """What the SDK is shown of ``message``: b"" is nothing, None that nobody can make anything of it."""
        small = message if len(message) <= ASIDE else None
        try:
            if len(message) < _LARGE:
                fields = split_object(message)
            else:
                fields = await in_thread(lambda: split_object(message), "split")
        except NotAnObject:
            return small
        if "method" in fields:
            return self._told(message, fields) if "id" not in fields else self._asked(message, fields)
        number = fields.get("id", b"")
        if not number.isdigit() or len(number) > 18 or int(number) not in self.params:
            return small
        kinds = [kind for kind in _SHOWN if fields.get(kind, b"null") != b"null"]
        if len(kinds) != 1:
            return small
        self.answers[int(number)] = Answer(kinds[0], fields[kinds[0]])
        return join_object({"jsonrpc": b'"2.0"', "id": number, kinds[0]: _SHOWN[kinds[0]]})

    def refused(self, body: bytes, number: int | str | None) -> bytes:
        """What the SDK is shown of the ``body`` of an HTTP error that answers the call ``number``: what a
        server says as JSON-RPC is its answer (spec 2026-07-28: basic/transports/streamable-http).
        """
        try:
            fields = split_object(body)
            error = split_object(fields.get("error", b""))
        except NotAnObject:
            return b""
        if fields.get("jsonrpc") != b'"2.0"' or "result" in fields or "method" in fields:
            return b""
        if not isinstance(number, int) or number not in self.params or "code" not in error:
            return b""
        self.answers[number] = Answer("error", fields["error"])
        return join_object({"jsonrpc": b'"2.0"', "id": b"%d" % number, "error": _SHOWN["error"]})

    def taken_up(self, params: dict[str, object]) -> bytes | None:
        """The text of what was set aside, of which the SDK was shown ``params``."""
        number = params.get(_SET_ASIDE)
        return self._aside.pop(number, None) if isinstance(number, int) and len(params) == 1 else None

    def _told(self, message: bytes, fields: dict[str, bytes]) -> bytes | None:
        try:
            method = unquote(fields["method"])
        except ValueError:
            return None
        params: bytes | None = fields.get("params", b"null")
        if params == b"null":
            params = None
        if fields.get("jsonrpc") != b'"2.0"' or (params is not None and not params.startswith(b"{")):
            return None
        if method == _CANCELLED:  # the SDK keeps what the server asked
            return message if len(message) <= ASIDE else None
        self.heard(method, params)
        return b""

    def _asked(self, message: bytes, fields: dict[str, bytes]) -> bytes | None:
        if self.deaf():
            return b""
        if len(message) <= ASIDE:
            return message
        params, rest = fields.get("params", b""), len(message) - len(fields.get("params", b""))
        if rest > ASIDE or sum(map(len, self._aside.values())) + len(params) > MESSAGE:
            return None
        self._next_aside += 1
        self._aside[self._next_aside] = params
        return with_members(message, {"params": b'{"%b":%d}' % (_SET_ASIDE.encode(), self._next_aside)})

    def events(
        self, response: httpx2.Response, failed: Callable[[str], None], *, answer: bool
    ) -> httpx2.Response:
        """``response``, an event stream, as the SDK is to see it. failed: is told why it can't go on. answer:
        whether it is one request's answer, and fails with what can't be read.
        """
        seen = with_body(response, _Events(response, self.shown, failed, answer))
        seen.headers["content-type"] = "text/event-stream"  # always UTF-8, whatever the server says
        return seen


class _NotOursError(ValueError):
    """What came can't be an answer."""


class _Events(httpx2.AsyncByteStream):
    """An event stream, event by event, each with what is shown of its data.

    One that goes beyond the limit ends there: with what it has of it, no later event can be found.
    """

    def __init__(
        self,
        response: httpx2.Response,
        shown: Callable[[bytes], Awaitable[bytes | None]],
        failed: Callable[[str], None],
        answer: bool,
    ) -> None:
        self._response, self._shown, self._failed, self._answer = response, shown, failed, answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        reader, rested = EventReader(MESSAGE), 0
        try:
            async for piece in pieces(self._response):
                for at in range(0, len(piece), _STEP):
                    for event in reader.feed(piece[at : at + _STEP]):
                        shown = await self._event(event)
                        del event  # it may be large, and the next may be hours away
                        if shown:
                            yield shown
                        reader.work += 10
                        if reader.work - rested > _TURN:
                            rested = reader.work
                            await asyncio.sleep(0)
                    if reader.work - rested > _TURN:
                        rested = reader.work
                        await asyncio.sleep(0)
        except EventTooLongError as error:
            reason = too_long(error.size_at_least)
        except (UnfitAnswerError, _NotOursError) as error:
            reason = str(error)
        else:
            return
        await self._response.aclose()
        self._failed(reason)
        raise httpx2.SSEError(reason)

    async def _event(self, event: StreamEvent) -> bytes:
        fields = [line for line in map(_bearable, event.fields) if line]
        named = next((line[6:].strip() for line in fields if line.startswith(b"event:")), b"")
        ours = named in (b"", b"message")
        data = await self._shown(event.data) if event.data and ours else event.data[:ASIDE]
        if data is None:
            if self._answer:
                raise _NotOursError(NOT_OURS)
            data = b""
        if not data and not fields:
            return b""
        lines = b"\ndata: ".join(data.split(b"\n"))
        return b"\n".join([*fields, b"data: " + lines, b"", b""])

    async def aclose(self) -> None:
        await self._response.aclose()


def too_long(most: int) -> str:
    """Why an answer is lost that was longer than ``most`` bytes."""
    return f"the answer can't be read: a message of more than {most} bytes is too long"


def _bearable(field: bytes) -> bytes:
    """A line of an event that is no data. How long we are to wait is brought within limits."""
    if not field.startswith(b"retry:"):
        return field
    said = field[6:].strip()
    if not said.isdigit() or len(said) > 18:
        return b""
    wait = min(max(int(said) / 1000, RETRY_SHORTEST), RETRY_LONGEST)
    return b"retry: %d" % (wait * 1000)
