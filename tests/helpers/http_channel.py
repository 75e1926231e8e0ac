"""A channel over Streamable HTTP to a `raw_http_server`, and who listens to it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from helpers.driver import LEGACY, MODERN, PATIENCE, Json
from helpers.raw_http_server import Asked, Raw, Say, event, head

from mcpzip.transport.base import ChannelClosedError, Dialect
from mcpzip.transport.http import StreamableHttpChannel, open_http
from mcpzip.transport.signing import Unsigned
from mcpzip.wire import Era

OLD, NEW = Dialect(Era.LEGACY, LEGACY), Dialect(Era.MODERN, MODERN)
STREAM = head(200, "content-type: text/event-stream")


@dataclass
class Listener:
    """What an upstream said unasked."""

    notices: "asyncio.Queue[tuple[str, Json]]" = field(default_factory=asyncio.Queue)
    questions: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def notified(self, method: str, params: bytes | None, origin: object = None) -> None:
        self.notices.put_nowait((method, json.loads(params or b"{}")))

    async def asked(self, method: str, params: bytes | None, origin: object = None) -> bytes:
        self.questions.append(method)
        return b"{}"

    def ended(self, reason: str) -> None:
        self.reasons.append(reason)


@dataclass
class Stage:
    """A channel, and who listens to it."""

    channel: StreamableHttpChannel
    listener: Listener

    async def call(self, name: str = "pay") -> Json:
        """What a tool gives."""
        params = json.dumps({"name": name}).encode()
        found: Json = json.loads(await self.channel.request("tools/call", params))
        return found

    async def failure(self, name: str = "pay") -> ChannelClosedError:
        """What a call of a tool fails with."""
        try:
            async with asyncio.timeout(PATIENCE):
                result = await self.call(name)
        except ChannelClosedError as error:
            return error
        raise AssertionError(result)

    async def list_tools(self, times: int = 1) -> None:
        """Asks politely, so that whatever else is under way comes a good way further."""
        for _ in range(times):
            await self.channel.request("tools/list", None)

    async def begin_session(self) -> None:
        """The handshake of the legacy era."""
        await self.channel.request("initialize", b"{}", cancellable=False)
        self.channel.dialect = OLD
        await self.channel.notify("notifications/initialized")


@asynccontextmanager
async def connected(server: Raw, dialect: Dialect | None = OLD, **headers: str) -> AsyncIterator[Stage]:
    """A channel to ``server``; in a legacy session where there is no ``dialect``."""
    listener = Listener()
    async with open_http(server.url, headers, Unsigned(), listener) as channel:
        stage = Stage(channel, listener)
        if dialect is None:
            await stage.begin_session()
        channel.dialect = dialect or OLD
        yield stage


class Held:
    """A turn that says ``said`` and then nothing more until ``gate`` is open. begun: it was asked so."""

    def __init__(self, *said: bytes, then: bytes = b"") -> None:
        self.begun, self.gate, self.closed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._said, self._then = said, then

    async def __call__(self, asked: Asked, say: Say) -> None:
        for piece in self._said:
            await say(piece)
        self.begun.set()
        await self.gate.wait()
        await say(self._then)


class Pinging:
    """A turn that goes on with comments until nobody listens. begun: it does; closed: nobody does."""

    def __init__(self) -> None:
        self.begun, self.closed = asyncio.Event(), asyncio.Event()

    async def __call__(self, asked: Asked, say: Say) -> None:
        try:
            await say(STREAM)
            self.begun.set()
            while True:
                await say(b": ping\n")
        finally:
            self.closed.set()


async def soon(awaited: asyncio.Event) -> None:
    """Waits for it, not for ever."""
    async with asyncio.timeout(PATIENCE):
        await awaited.wait()


def answered(asked: Asked, result: object) -> bytes:
    """An event that answers ``asked``."""
    return event({"jsonrpc": "2.0", "id": asked.message["id"], "result": result})


def told(method: str, **params: object) -> bytes:
    """An event that is a notification."""
    return event({"jsonrpc": "2.0", "method": method, "params": params})
