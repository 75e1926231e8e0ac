"""A client as upstreams meet it: who is asked, and told, what an upstream says in the middle of a call.

The rule: on a legacy connection nothing says which call a message belongs to. So a client that can be asked
anything has connections of its own, and what comes on one goes to the newest of that client's calls there.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from itertools import count

import msgspec

from mcpzip.model.errors import McpzipError
from mcpzip.proxy.client_capabilities import ALL, ClientCapabilities, has, needed
from mcpzip.proxy.exchange import Client, Exchange, members
from mcpzip.system.tasks import retrieve_exception
from mcpzip.transport.base import Origin, RpcFaultError
from mcpzip.wire import (
    METHOD_NOT_FOUND,
    REQUEST_CANCELLED,
    REQUEST_KEYS,
    Era,
    NotAnObject,
    RpcError,
    join_object,
    with_members,
    without_members,
)

_OF_ONE_LEG = ("progressToken", *REQUEST_KEYS)
"""Keys of ``_meta`` that the client says to us and we say anew to the upstream."""
_OF_NO_CALL = ("roots/list",)
"""What servers ask on their own account, whatever is under way."""
_NOT_OFFERED = "The client does not offer"
_NUMBERS = count(1)
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""From the least to the most severe (RFC 5424)."""


class Request(msgspec.Struct, frozen=True):
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
        kept = {key: value for key, value in members(meta).items() if key not in _OF_ONE_LEG}
        return join_object({**self.fields, "_meta": join_object(kept)} if kept else self.fields)

    def same(self, other: "Request") -> bool:
        """Whether ``other`` is it, asked again; the order of members and the spacing mean nothing."""
        if (self.server, self.method) != (other.server, other.method):
            return False
        if self.fields == other.fields:
            return True
        known = _canonical(self.fields)
        return known is not None and known == _canonical(other.fields)


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


class _CallEndedError(Exception):
    """The call that a question was taken to be of has ended without an answer to it."""


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
        self.lacks: ClientCapabilities | None = None
        """What its upstream asked for first that the client can't be asked."""
        self.questions: dict[str, Question] = {}
        self.shown: frozenset[str] = frozenset()
        """The keys of those that its client is away with."""
        self.over = False
        """Whether it is under way upstream no more."""
        self.news = asyncio.Event()
        """Set when there is something to tell the client: questions, or the task's end."""
        self.waits_since = 0.0
        """When its client was last asked something (the event loop's time)."""
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
            try:
                told = with_members(params, {"progressToken": token})
            except NotAnObject:
                return  # nobody can make anything of it
            exchange.tell("notifications/progress", told)

    @property
    def unanswered(self) -> dict[str, Question]:
        """What the client has yet to be asked, or to answer, by key."""
        return {key: one for key, one in self.questions.items() if not one.answer.done()}

    async def asked(self, method: str, params: bytes | None) -> bytes:
        """Hands on a question of the upstream's. Raises RpcFaultError, _CallEndedError."""
        ability = needed(method, params)
        if self.client.era is not Era.MODERN:
            if ability is not None and not has(self.capabilities, ability[:1]):
                raise _not_offered(method)
            ask = (self.exchange.ask if self.exchange else None) or self.client.ask
            if ask is None:
                raise RpcFaultError(RpcError(METHOD_NOT_FOUND, "The client can't be asked anything."))
            return await ask(method, params)
        if ability is None:
            raise _not_offered(method)
        if not has(self.capabilities, ability):  # many servers ask, and do without an answer
            self.lacks = self.lacks or ability
            raise _not_offered(method)
        key = f"{method.split('/')[0]}-{next(self._numbers)}"
        question = Question(method, params, asyncio.get_running_loop().create_future())
        self.questions[key] = question
        self.news.set()
        try:
            return await question.answer
        finally:
            self.questions.pop(key, None)

    def fails_for_it(self, code: int | None, said: bytes) -> bool:
        """Whether its failure, with this JSON-RPC error code or in a result, comes of what its client lacks:
        it hands on our refusal. Any other failure is told as it is.
        """
        return self.lacks is not None and (code == METHOD_NOT_FOUND or _NOT_OFFERED.encode() in said)

    def parked(self) -> dict[str, Question]:
        """Its client goes away with what is returned, to come back with answers."""
        self.exchange = None
        self.news.clear()
        questions = self.unanswered
        self.shown = frozenset(questions)
        return questions

    def goes_on(self, exchange: Exchange, answers: Mapping[str, bytes]) -> None:
        """Its client has come back, with ``exchange`` and ``answers`` to questions by their keys."""
        self.exchange, self.client, self.capabilities = exchange, exchange.client, exchange.capabilities
        self.shown = frozenset()
        for key, answer in answers.items():
            self.questions[key].answer.set_result(answer)
        if self.over:
            self.end()
        if self.unanswered:
            self.news.set()  # some are still open: they are asked again

    def done(self, task: "asyncio.Task[bytes]") -> None:
        """``task`` is, which makes it."""
        self.news.set()
        retrieve_exception(task)

    def end(self, *, answered: bool = True) -> None:
        """It is under way no more: what is still asked in it is some other call's. Where the client is away
        with it, it is answered when the client comes back, not asked again: nobody likes to be asked twice.
        """
        self.over = True
        for key, question in self.unanswered.items():
            if not answered or key not in self.shown:
                question.answer.set_exception(_CallEndedError())

    def given_up(self) -> None:
        """Its client won't come back."""
        self.shown = frozenset()
        if self.over:
            self.end()
        if self.task is not None:
            self.task.cancel()


class ClientBinding:
    """A client as legacy upstreams see it (`transport.base.BoundClient`).

    gone: whether it has left; nothing is opened for it any more.
    """

    def __init__(self, client: Client, key: Hashable = None) -> None:
        self.client = client
        self.gone = False
        self.resources: dict[str, set[str]] = defaultdict(set)
        """What it subscribed to on connections of its own, by server."""
        self._key = key
        self._number = next(_NUMBERS)
        self._calls: dict[str, list[Call]] = defaultdict(list)
        self._asking: dict[str, set[asyncio.Task[bytes]]] = defaultdict(set)

    @property
    def key(self) -> Hashable:
        """None where it can share: nothing is asked of it, and nothing it said concerns a connection."""
        if self.gone:
            return None
        if self._key is not None:
            return self._key
        client = self.client
        own = client.alone or (client.lasting and (client.answers or client.log_level is not None))
        # A modern client says with each request what it can be asked; a legacy server hears it once.
        said = client.capabilities if client.era is Era.MODERN else b""
        return ("client", self._number, said) if own else None

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

    def began(self, call: Call) -> None:
        """``call`` is under way from now on."""
        self._calls[call.request.server].append(call)

    def ended(self, call: Call, *, answered: bool = True) -> None:
        """It no longer is. Unless it was ``answered``, its client needn't answer what was asked in it."""
        server = call.request.server
        self._calls[server].remove(call)
        call.end(answered=answered)
        if not answered and not self._calls[server]:
            for asking in self._asking[server]:
                asking.cancel()

    def leave(self) -> None:
        """Its client has left."""
        self.gone = True
        self.resources.clear()

    def notified(self, server: str, method: str, params: bytes | None) -> None:
        if calls := self._calls.get(server):
            calls[-1].tell(method, params)
        elif method != "notifications/message" or _wanted(None, self.client, params):
            self.client.tell(method, params)

    async def asked(self, server: str, method: str, params: bytes | None) -> bytes:
        while calls := self._calls.get(server):
            # Better not one whose client is away: it would have to come back first.
            call = next((one for one in reversed(calls) if one.exchange is not None), calls[-1])
            try:
                return await self._asked_in(call, method, params)
            except _CallEndedError:
                pass
        ability, client = needed(method, params), self.client
        if client.ask is None:
            raise RpcFaultError(RpcError(METHOD_NOT_FOUND, "Nobody is there to be asked."))
        if ability is not None and not has(client.capabilities, ability[:1]):
            raise _not_offered(method)
        return await client.ask(method, params)

    async def _asked_in(self, call: Call, method: str, params: bytes | None) -> bytes:
        if call.client.era is Era.MODERN or method in _OF_NO_CALL:
            return await call.asked(method, params)
        asking = asyncio.create_task(call.asked(method, params))
        asking.add_done_callback(retrieve_exception)
        others = self._asking[call.request.server]
        others.add(asking)
        try:
            await asyncio.wait({asking})
        finally:
            others.discard(asking)
            asking.cancel()
        if asking.cancelled():
            raise RpcFaultError(RpcError(REQUEST_CANCELLED, "The call in which this was asked has ended."))
        return asking.result()


def anybody() -> Origin:
    """On whose behalf servers are listed where clients come and go: some list the tools that ask something
    only to a client that can be asked, so it is one that says it can. It answers nothing, and calls nothing.
    """
    client = Client(capabilities=ALL, lasting=False)
    return Origin(bound_client=ClientBinding(client, "anybody"), capabilities=ALL)


def _not_offered(method: str) -> RpcFaultError:
    return RpcFaultError(RpcError(METHOD_NOT_FOUND, f"{_NOT_OFFERED} {method}."))


def _canonical(fields: Mapping[str, bytes]) -> str | None:
    try:
        read = {key: json.loads(text) for key, text in fields.items()}
        return json.dumps(read, sort_keys=True)
    except (ValueError, RecursionError):
        return None


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
