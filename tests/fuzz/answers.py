"""What must hold of the HTTP client for every answer: bodies and event streams, bent, coded, cut anywhere.

The rules: a request has an outcome when its answer has ended; that is a JSON text, or one of the two errors
that a channel has; nothing is left behind. No socket is opened and no time passes: the loop's clock skips
what would be waited for.
"""

import asyncio
import gzip
import json
import selectors
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from random import Random
from typing import Any, cast

import httpx
import mutations

from mcpzip.http.connections import Connections
from mcpzip.model import limits
from mcpzip.transport import http_errors
from mcpzip.transport.base import ChannelClosedError, Dialect
from mcpzip.transport.http import StreamableHttpChannel
from mcpzip.transport.signing import Unsigned
from mcpzip.wire import (
    Era,
    JsonRpcError,
)

STUCK = 20.0
"""Seconds without anything to do after which a request has no outcome any more."""
ASKED = ("tools/call", "initialize", "tools/list")
STREAM, JSON = "text/event-stream", "application/json"
LEGACY, MODERN = Dialect(Era.LEGACY, "2025-11-25"), Dialect(Era.MODERN, "2026-07-28")

_STATUSES = (*(200,) * 40, 201, 202, 204, 301, 307, 400, 401, 403, 404, 404, 500, 503, 799)
_TYPES = (
    *(STREAM,) * 8,
    *(JSON,) * 8,
    "Text/Event-Stream; charset=utf-8",
    "application/json;x",
    "text/html",
    "",
)
_FIELDS = (
    *(b"id: 7", b"id:", b"id: a\x00", b"id: \xc3\xa9", b"retry: 0", b"retry: 99999999", b"retry: -1"),
    *(b"event: message", b"event: endpoint", b"event:", b": ping", b"data", b"unknown: x", b""),
)
_CODINGS: dict[str, Callable[[bytes], bytes]] = {"": bytes, "gzip": gzip.compress, "deflate": zlib.compress}
_ENDS = (b"\n", b"\n", b"\r\n", b"\r")


class _Selector(selectors.DefaultSelector):
    """Nothing is waited for that only time brings. skipped: seconds."""

    skipped = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(STUCK if timeout is None else 0)
        assert ready or timeout is not None, "a request has no outcome"
        if timeout and not ready:
            self.skipped += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = _Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        return super().time() + self.selector.skipped


class _Body(httpx.AsyncByteStream):
    def __init__(self, pieces: Iterable[bytes], error: Exception | None = None) -> None:
        self._pieces, self._error = pieces, error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._error is not None:
            raise self._error


class _Silent:
    """Who hears what a server says unasked, and answers nothing of sense."""

    def notified(self, method: str, params: bytes | None, origin: object = None) -> None:
        pass

    async def asked(self, method: str, params: bytes | None, origin: object = None) -> bytes:
        await asyncio.sleep(0)
        return b"null"

    def ended(self, reason: str) -> None:
        pass


Answering = Callable[[httpx.Request], httpx.Response]
Play = Callable[[StreamableHttpChannel], Awaitable[None]]


def _played(answering: Answering, dialect: Dialect, play: Play) -> None:
    """Plays with a channel whose requests are answered so; nothing is left of it then."""
    heard: list[dict[str, Any]] = []

    async def handle(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        return answering(request)

    async def whole() -> None:
        loop.set_exception_handler(lambda loop, context: heard.append(context))
        channel = StreamableHttpChannel("http://127.0.0.1:9/", {}, Unsigned(), _Silent())
        connections: Connections = channel._client._connections
        cast(Any, connections).handle_async_request = handle
        channel.dialect = dialect
        await play(channel)
        assert not channel._rpc.waits
        assert channel._rpc.peer.open_requests == ()
        await channel.aclose()
        assert not channel._tasks

    loop = _Loop()
    try:
        loop.run_until_complete(whole())
        left = asyncio.all_tasks(loop)
        assert not left, left
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
    assert not heard, heard
    assert loop.selector.skipped <= 10 * limits.RETRY_LONGEST


# ---- one execution


def check(random: Random, seen: Counter[str]) -> int:
    """One execution: requests at a time, each answered with what ``random`` makes up. Its size in bytes."""
    size = 0
    streams = random.randrange(4)

    def answering(request: httpx.Request) -> httpx.Response:
        nonlocal size, streams
        if request.method == "GET":
            streams -= 1
            if streams < 0:
                return httpx.Response(random.choice((405, 404, 500, 202)), stream=_Body(()))
        response, length = _made_up(random)
        size += length
        return response

    async def play(channel: StreamableHttpChannel) -> None:
        asked = (channel.request(method, b"{}", on_progress=lambda params: None) for method in ASKED)
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        seen.update(map(_kind, outcomes))

    dialect = random.choice((LEGACY, MODERN))
    _played(answering, dialect, play)
    return size + check_answer(random, dialect)


def check_answer(random: Random, dialect: Dialect) -> int:
    """An answer comes out as it went in, however it is coded and cut, and whatever stands before it."""
    result = json.dumps({"text": random.choice(("x", "é", '"')) * random.choice((0, 10, 10_000))}).encode()
    kind = random.choice((STREAM, JSON))
    coding = random.choice(tuple(_CODINGS))
    size = 0

    def answering(request: httpx.Request) -> httpx.Response:
        nonlocal size
        id = json.loads(request.content)["id"]
        body = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (id, result)
        if kind == STREAM:
            before = random.choices((b"data: log\n\n", *(field + b"\n" for field in _FIELDS[:-1])), k=5)
            body = b"%b\n\nevent: message\ndata: %b\n\n" % (b"".join(before), body)
        size = len(body)
        sent = _CODINGS[coding](body)
        headers = {"content-type": kind, "content-encoding": coding}
        return httpx.Response(200, headers=headers, stream=_Body(mutations.pieces(random, sent)))

    async def play(channel: StreamableHttpChannel) -> None:
        assert await channel.request("tools/call", b"{}") == result

    _played(answering, dialect, play)
    return size


def _kind(outcome: bytes | BaseException) -> str:
    """What an outcome is, as finely as coverage is counted. Raises what is none."""
    if isinstance(outcome, bytes):
        try:
            json.loads(outcome, parse_int=str)
        except RecursionError:
            pass
        return "HTTP: a result"
    if isinstance(outcome, JsonRpcError):
        return "HTTP: an error"
    if not isinstance(outcome, ChannelClosedError):
        raise outcome
    kinds = (kind for kind, words in _REASONS.items() if outcome.reason.startswith(words))
    return f"HTTP: {next(kinds, outcome.reason)}"


_REASONS: dict[str, tuple[str, ...]] = {
    "lost": (http_errors.LOST,),
    "not JSON-RPC": (http_errors.NOT_OURS,),
    "neither": (http_errors.NEITHER,),
    "refused": ("it answered HTTP",),
    "redirected": ("it redirects to",),
    "unfit": ("its answer is not valid", "its answer has a content coding", "its answer is compressed"),
    "no outcome in it": ("the answer has ", "the error is null"),
    "unreadable": ("the answer can't be read",),
}
KINDS = frozenset(f"HTTP: {kind}" for kind in ("a result", "an error", *_REASONS))
"""Every kind of outcome there is."""


def _made_up(random: Random) -> tuple[httpx.Response, int]:
    """An answer, and the length of its body."""
    kind = random.choice(_TYPES)
    lines = mutations.lines(random)
    body = _stream(random, lines) if kind == STREAM or random.random() < 0.1 else random.choice(lines)
    if random.random() < 0.1:
        body = mutations.bent(random, body)
    headers = [(b"Content-Type", kind.encode())] if kind else []
    coding = random.choice((*("",) * 12, "gzip", "gzip", "br", "deflate", "identity"))
    if coding:
        headers.append((b"Content-Encoding", coding.encode()))
    sent = gzip.compress(body) if coding == "gzip" and random.random() < 0.8 else body
    if random.random() < 0.1:
        sent = sent[: random.randrange(len(sent) + 1)]
    if random.random() < 0.2:
        target = random.choice(("/x", "https://evil.example/", "//[", "", "\xff"))
        headers.append((b"Location", target.encode("latin-1")))
    error = random.choice((None, None, None, httpx.ReadError("cut"), httpx.RemoteProtocolError("cut")))
    stream = _Body(mutations.pieces(random, sent), error)
    return httpx.Response(random.choice(_STATUSES), headers=headers, stream=stream), len(body)


def _stream(random: Random, lines: list[bytes]) -> bytes:
    """Events with ``lines`` as their data, and with fields good and bad."""
    made = bytearray(b"\xef\xbb\xbf" if random.random() < 0.1 else b"")
    for line in lines:
        end = random.choice(_ENDS)
        while random.random() < 0.3:
            made += random.choice(_FIELDS) + end
        made += random.choice((b"data: ", b"data:")) + line + end
        if random.random() < 0.9:
            made += end
    return bytes(made)


# ---- long answers


def as_body(text: bytes) -> None:
    """``text`` is the JSON answer to a request."""
    _at_length(JSON, text)


def as_stream(text: bytes) -> None:
    """``text`` is the one event that answers a request."""
    _at_length(STREAM, b"data: " + text + b"\n\n")


def as_events(text: bytes) -> None:
    """``text`` is an event stream."""
    _at_length(STREAM, text)


STREAMS: dict[str, bytes] = {
    "events": b"data: {}\n\n",
    "lines of data": b"data:\n",
    "ids": b"id: 7\n",
    "events with ids alone": b"id: 7\nretry: 1\n\n",
    "comments": b": x\r",
    "ends of lines": b"\r\n",
    "a line without an end": b"data",
    "notifications": b'data: {"jsonrpc":"2.0","method":"a"}\n\n',
    "requests": b'data: {"jsonrpc":"2.0","id":1,"method":"a"}\n\n',
    "answers to nobody": b'data: {"jsonrpc":"2.0","id":99,"error":{"code":1}}\n\n',
}
"""What long event streams are made of, by name."""


def _at_length(kind: str, body: bytes) -> None:
    def answering(request: httpx.Request) -> httpx.Response:
        if request.method == "GET" or b'"method":"tools/call"' not in request.content:
            return httpx.Response(405, stream=_Body(()))
        pieces = (body[at : at + 4096] for at in range(0, len(body), 4096))
        return httpx.Response(200, headers={"content-type": kind}, stream=_Body(pieces))

    async def play(channel: StreamableHttpChannel) -> None:
        try:
            await channel.request("tools/call", b"{}")
        except (ChannelClosedError, JsonRpcError):
            pass

    _played(answering, LEGACY, play)
