"""A client as upstreams meet it: who is asked, and told, what an upstream says in the middle of a call.

The rule: on a legacy connection nothing says which call a message belongs to. So a client that can be asked
anything has connections of its own, and what comes on one goes to the newest of that client's calls there.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from mcpzip.model.errors import McpzipError
from mcpzip.proxy.exchange import Client, Exchange, members
from mcpzip.transport.base import RpcFaultError
from mcpzip.wire import (
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    REQUEST_KEYS,
    Era,
    RpcError,
    join_object,
    split_object,
    with_members,
    without_members,
)

LANES = 16
"""How many calls of modern clients that can't be told apart may have a legacy connection of their own."""

_CAPABILITY = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
_OF_ONE_LEG = ("progressToken", *REQUEST_KEYS)
"""Keys of ``_meta`` that the client says to us and we say anew to the upstream."""
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""From the least to the most severe (RFC 5424)."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask of an upstream.

    fields: the members of its params but ``_meta``, each as JSON text. timeout: seconds. repeatable: twice
    does no harm. definition: of the tool that is called.
    """

    server: str
    method: str
    fields: dict[str, bytes]
    timeout: float
    repeatable: bool = False
    definition: bytes | None = None

    def params(self, meta: bytes | None) -> bytes:
        """The params: the client's ``_meta`` goes along, less what is of its leg."""
        if meta is not None:
            kept = without_members(meta, _OF_ONE_LEG)
            if split_object(kept):
                return join_object({**self.fields, "_meta": kept})
        return join_object(self.fields)

    def same(self, other: "Request") -> bool:
        """Whether ``other`` is it, asked again."""
        return (self.server, self.method, self.fields) == (other.server, other.method, other.fields)


class RefusedError(McpzipError):
    """A request of the client's that is answered with this error."""

    def __init__(self, error: RpcError) -> None:
        self.error = error
        super().__init__(error.message)


@dataclass(frozen=True, slots=True)
class Question:
    """What an upstream wants to know in the middle of a call, and where the answer goes."""

    method: str
    params: bytes | None
    answer: "asyncio.Future[bytes]"


class Call:
    """A request of a client while it is under way upstream. exchange: the client's latest request for it;
    None while it waits for one.
    """

    def __init__(self, exchange: Exchange, request: Request) -> None:
        self.exchange: Exchange | None = exchange
        self.request = request
        self.client = exchange.client
        self.capabilities = exchange.capabilities
        self.task: asyncio.Task[bytes] | None = None
        self.refusal: RpcError | None = None
        self.questions: dict[str, Question] = {}
        self.news = asyncio.Event()
        self._numbers = count(1)

    def tell(self, method: str, params: bytes | None) -> None:
        """Hands on a notification of the upstream's, in this call or close to it."""
        exchange = self.exchange
        if method == "notifications/message" and not _wanted(exchange, self.client, params):
            return
        (self.client if exchange is None else exchange).tell(method, params)

    def progress(self, params: bytes) -> None:
        """Hands on progress, under the client's own token."""
        exchange = self.exchange
        if exchange is not None and (token := exchange.progress_token) is not None:
            exchange.tell("notifications/progress", with_members(params, {"progressToken": token}))

    async def asked(self, method: str, params: bytes | None) -> bytes:
        """Hands on a question of the upstream's. Raises RpcFaultError."""
        if self.client.era is not Era.MODERN:
            ask = (self.exchange.ask if self.exchange else None) or self.client.ask
            if ask is None:
                raise RpcFaultError(RpcError(METHOD_NOT_FOUND, "The client can't be asked anything."))
            return await ask(method, params)
        needed = _CAPABILITY.get(method)
        if needed is None:
            raise RpcFaultError(RpcError(METHOD_NOT_FOUND, f"The client does not offer {method}."))
        if needed not in members(self.capabilities):
            self.refusal = lacking(needed)
            self.news.set()
            raise RpcFaultError(RpcError(METHOD_NOT_FOUND, f"The client does not offer {method}."))
        key = f"{method.split('/')[0]}-{next(self._numbers)}"
        question = Question(method, params, asyncio.get_running_loop().create_future())
        self.questions[key] = question
        self.news.set()
        try:
            return await question.answer
        finally:
            self.questions.pop(key, None)


class Counterpart:
    """A client as legacy upstreams see it (`transport.base.Partner`)."""

    def __init__(self, client: Client, key: Hashable = None) -> None:
        self.client = client
        self.resources: dict[str, set[str]] = defaultdict(set)
        """What it subscribed to on connections of its own, by server."""
        self._key = key
        self._calls: dict[str, list[Call]] = defaultdict(list)

    @property
    def key(self) -> Hashable:
        """None where it can share: nothing is asked of it, and nothing it said concerns a connection."""
        if self._key is not None:
            return self._key
        client = self.client
        own = client.alone or (client.lasting and (client.answers or client.log_level is not None))
        return id(self) if own else None

    @property
    def passing(self) -> bool:
        return not self.client.lasting

    @property
    def capabilities(self) -> bytes:
        """What a legacy upstream is told that it can ask."""
        return without_members(self.client.capabilities, ("tasks",))

    @property
    def log_level(self) -> str | None:
        return self.client.log_level

    def watched(self, server: str) -> Collection[str]:
        return self.resources.get(server, ())

    @contextmanager
    def calling(self, call: Call) -> Iterator[None]:
        """For as long as ``call`` is under way."""
        calls = self._calls[call.request.server]
        calls.append(call)
        try:
            yield
        finally:
            calls.remove(call)

    def notified(self, server: str, method: str, params: bytes | None) -> None:
        if calls := self._calls.get(server):
            calls[-1].tell(method, params)
        elif method != "notifications/message" or _wanted(None, self.client, params):
            self.client.tell(method, params)

    async def asked(self, server: str, method: str, params: bytes | None) -> bytes:
        if calls := self._calls.get(server):
            return await calls[-1].asked(method, params)
        if self.client.ask is None:
            raise RpcFaultError(RpcError(METHOD_NOT_FOUND, "Nobody is there to be asked."))
        return await self.client.ask(method, params)


Work = Callable[[Counterpart], Awaitable[bytes]]


class Lanes:
    """Legacy connections for requests of modern clients that can't be told apart: one call has one to itself
    for as long as it lasts, so that what is asked in it is asked of nobody else.
    """

    def __init__(self) -> None:
        self._free: dict[tuple[bytes, str | None], list[Counterpart]] = defaultdict(list)
        self._room = asyncio.Semaphore(LANES)
        self._numbers = count(1)

    @contextmanager
    def _taken(self, exchange: Exchange) -> Iterator[Counterpart]:
        free = self._free[(exchange.capabilities, exchange.log_level)]
        lane = free.pop() if free else None
        if lane is None:
            client = Client(Era.MODERN, exchange.capabilities, lasting=False, log_level=exchange.log_level)
            lane = Counterpart(client, ("lane", next(self._numbers)))
        try:
            yield lane
        finally:
            free.append(lane)

    async def run(self, exchange: Exchange, work: Work) -> bytes:
        """What ``work`` returns, given a lane."""
        async with self._room:
            with self._taken(exchange) as lane:
                return await work(lane)


def lacking(capability: str) -> RpcError:
    """What a modern client is told whose call needs more than it declared (spec 2026-07-28: basic/index)."""
    needed = join_object({"requiredCapabilities": join_object({capability: b"{}"})})
    return RpcError(
        MISSING_REQUIRED_CLIENT_CAPABILITY, f"The call needs a client that offers {capability}.", needed
    )


def _wanted(exchange: Exchange | None, client: Client, params: bytes | None) -> bool:
    """Whether a log message is to be sent to the client: a modern one hears only what it asked for in the
    very request; a legacy one everything until it set a level.
    """
    if client.era is Era.MODERN:
        level = None if exchange is None else exchange.log_level
        if level is None:
            return False
    else:
        level = client.log_level
    said = members(params).get("level", b'""').strip(b'"').decode("utf-8", "replace")
    if level not in LOG_LEVELS or said not in LOG_LEVELS:
        return True
    return LOG_LEVELS.index(said) >= LOG_LEVELS.index(level)
