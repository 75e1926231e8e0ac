"""What a request of a client brings about upstream, and how a question in the middle of it is answered.

The rules (spec 2026-07-28: basic/patterns/mrtr; 2025-11-25: client/sampling, client/elicitation):

| client | upstream | a question of the upstream's |
|---|---|---|
| legacy | legacy | is a request to the client, on the stream of the call it came in |
| modern | modern | is a result like any other, and so are the answers: nothing of it is looked at |
| legacy | modern | is asked as a request, and the call made again with the answers, ten times at most |
| modern | legacy | ends the client's request with `input_required`; the call waits upstream under a handle \
that nobody can guess, until the client comes back with it and the answers |

On stdio a legacy upstream doesn't say in which call it asks: it is taken to be the newest.
"""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from types import MappingProxyType

from mcpzip.model import limits
from mcpzip.model.errors import UpstreamError, UpstreamRpcError
from mcpzip.model.quoting import shortened
from mcpzip.proxy.client_binding import LOG_LEVELS, Call, ClientBinding, RefusedError, Request
from mcpzip.proxy.client_capabilities import URLS, has, lacking, needed
from mcpzip.proxy.exchange import Client, Exchange, members
from mcpzip.proxy.exclusive_connections import ExclusiveConnections
from mcpzip.system.backoff import Backoff
from mcpzip.transport.base import Origin, ProgressSink, RpcFaultError
from mcpzip.transport.pool import Pool
from mcpzip.wire import (
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    Era,
    NotAnObject,
    RpcError,
    join_object,
    quote,
    split_object,
    unquote,
)
from mcpzip.wire.json_iter import elements_of

NONE: Mapping[str, bytes] = MappingProxyType({})

ROUNDS = 10
"""How often an upstream may ask before its call is given up; the SDK's client has the same limit."""
PATIENCE = 600.0
"""Seconds a call waits upstream for a modern client to come back with its answers."""
HANDLE = "mcpzip-"
"""How the states begin that are ours, or another mcpzip's."""
SETTING = 2.0
"""Seconds a server may take to set a log level."""
FIRST_PAUSE, LAST_PAUSE = 0.05, 1.0
"""Seconds before a modern upstream that asks nothing, but to be called again, is: doubling from one to the
other.
"""

_ROUND = ("inputResponses", "requestState")
_NOT_WAITING = RpcError(
    INVALID_PARAMS,
    "This requestState is of no call that waits: it was answered, it waited too long, newer ones took its "
    "place, or it is another request's. Make the request again without it.",
)


class Caller:
    """Makes requests of clients to upstreams. Everything runs on one event loop."""

    def __init__(self, pool: Pool, *, patience: float | None = None) -> None:
        """patience: seconds that a call waits for its client (default: PATIENCE)."""
        self._pool, self._patience = pool, patience
        self._lanes = ExclusiveConnections(pool.forget, self._make_room)
        # Another mcpzip behind this one has handles, too.
        self._handle = f"{HANDLE}{secrets.token_urlsafe(6)}-"
        self._ours = b'"' + self._handle.encode()
        self._setting: set[asyncio.Task[None]] = set()
        self._parked: dict[str, tuple[Call, asyncio.TimerHandle]] = {}
        self._bindings: dict[Client, ClientBinding] = {}

    def binding(self, client: Client) -> ClientBinding:
        """The one of a lasting client."""
        if client not in self._bindings:
            self._bindings[client] = ClientBinding(client)
        return self._bindings[client]

    def knows(self, client: Client) -> bool:
        """Whether anything was ever done for ``client``."""
        return client in self._bindings

    def origin(self, client: Client) -> Origin:
        """On whose behalf what is not part of a request of ``client`` is done for it."""
        bound_client = self.binding(client) if client.lasting else None
        return Origin(client.era, bound_client, client, client.capabilities, client.log_level)

    async def speaks(self, client: Client, server: str) -> Era:
        """The era in which ``server`` is spoken to for ``client``, connecting if that isn't known. Raises
        UpstreamUnavailableError.
        """
        known = self._pool.speaks(server, client.era)
        return known or (await self._pool.server_info(server, self.origin(client))).dialect.era

    async def left(self, client: Client) -> None:
        """``client`` is gone: what waits for it ends, and so do connections of its own."""
        for handle, (call, _) in list(self._parked.items()):
            if call.client is client:
                self._give_up(handle)
        if binding := self._bindings.pop(client, None):
            await self._pool.forget(binding)
            binding.leave()

    async def close(self) -> None:
        """Ends the calls that wait for clients to come back."""
        tasks = [call.task for call, _ in self._parked.values() if call.task is not None]
        for handle in list(self._parked):
            self._give_up(handle)
        for task in self._setting:
            task.cancel()
        await asyncio.gather(*tasks, *self._setting, return_exceptions=True)

    async def send(self, exchange: Exchange, request: Request) -> bytes:
        """Makes ``request`` and returns the upstream's result, untouched, or the question that it asks.

        Raises UpstreamError and its kinds, RefusedError.
        """
        state = exchange.fields.get("requestState", b"")
        modern = exchange.client.era is Era.MODERN
        if modern and state.startswith(self._ours):
            return await self._resumed(exchange, request, unquote(state))
        call = Call(exchange, request)
        if not modern:
            return await self._for_legacy(call, exchange)
        # A task of its own: it may go on when the client's request is answered.
        call.task = asyncio.create_task(self._for_modern_able(call, exchange))
        call.task.add_done_callback(call.done)
        return await self._outcome(call)

    async def _for_modern_able(self, call: Call, exchange: Exchange) -> bytes:
        """The same as `_for_modern`; where the call fails for want of what the client can't be asked, that is
        said (spec 2026-07-28: basic/index "Error codes").
        """
        try:
            result = await self._for_modern(call, exchange)
        except UpstreamRpcError as error:
            if call.lacks and call.fails_for_it(error.code, error.message.encode("utf-8", "replace")):
                raise RefusedError(lacking(call.lacks)) from error
            raise
        if call.lacks and call.fails_for_it(None, result) and members(result).get("isError") == b"true":
            raise RefusedError(lacking(call.lacks))
        return result

    async def _for_modern(self, call: Call, exchange: Exchange) -> bytes:
        client, server = exchange.client, call.request.server
        try:
            if "requestState" in exchange.fields:
                greeting = await self._pool.server_info(server, self.origin(client))
                if greeting.dialect.era is Era.LEGACY:  # it never gave one out: this would be another call
                    raise RefusedError(_NOT_WAITING)
            if client.lasting:
                binding = self.binding(client)
                await self._say_level(binding, exchange.log_level, server)
                return await self._once(call, binding, exchange)
            if exchange.log_level is None and not client.answers:
                return await self._once(call, None, exchange)
            if await self._speaks(server) is Era.MODERN:
                return await self._once(call, None, exchange)
            now, timeout = asyncio.get_running_loop().time, call.request.timeout
            until = now() + timeout
            async with self._lanes.lane(server, exchange, timeout) as lane:
                return await self._once(call, lane, exchange, timeout=until - now())
        except UpstreamRpcError as error:
            if self._pool.speaks(server, Era.MODERN) is Era.MODERN:
                raise  # it knows its era's errors itself
            if (translated := _for_modern_client(error, call)) is None:
                raise
            if isinstance(translated, RpcError):
                raise RefusedError(translated) from error
            return translated

    async def _speaks(self, server: str) -> Era:
        """What ``server`` speaks to a modern client."""
        known = self._pool.speaks(server, Era.MODERN)
        return known or (await self._pool.server_info(server, Origin(Era.MODERN))).dialect.era

    async def _say_level(self, binding: ClientBinding, level: str | None, server: str) -> None:
        """Has servers tell what is wanted from ``level`` on, if they don't yet; waits for ``server`` only.
        What they tell more than a request wants isn't handed on.
        """
        client = binding.client
        if level not in LOG_LEVELS:
            return
        if client.log_level is not None and LOG_LEVELS.index(client.log_level) <= LOG_LEVELS.index(level):
            return
        client.log_level = level
        task = asyncio.create_task(self.set_level(binding, SETTING, lambda name: name != server))
        self._setting.add(task)
        task.add_done_callback(self._setting.discard)
        await self.set_level(binding, SETTING, lambda name: name == server)

    async def set_level(
        self, binding: ClientBinding, timeout: float, to: Callable[[str], bool] = lambda server: True
    ) -> None:
        """Says the client's log level on the connections it has to these servers."""
        params = join_object({"level": quote(binding.log_level or "info")})
        await self._pool.set_level(binding, params, timeout, to)

    async def _once(
        self,
        call: Call,
        binding: ClientBinding | None,
        exchange: Exchange,
        answers: Mapping[str, bytes] = NONE,
        timeout: float | None = None,
    ) -> bytes:
        """timeout: what is left of it, where a part was spent waiting for a lane."""
        client, request = call.client, call.request
        modern = client.era is Era.MODERN
        rounds = (
            {key: exchange.fields[key] for key in _ROUND if key in exchange.fields} if modern else answers
        )
        origin = Origin(
            client.era,
            binding,
            client if client.lasting else call,
            exchange.capabilities,
            exchange.log_level,
            rounds,
            call.tell,
        )
        wants_progress: ProgressSink | None = call.progress if exchange.progress_token is not None else None
        asking = self._pool.request(
            request.server,
            request.method,
            request.params(exchange.meta),
            timeout=request.timeout if timeout is None else timeout,
            on_progress=wants_progress,
            repeatable=request.repeatable,
            origin=origin,
            definition=request.definition,
        )
        if binding is None:
            return await asking
        binding.began(call)
        answered = False
        try:
            result = await asking
            answered = True
        except UpstreamRpcError:
            answered = True
            raise
        finally:
            binding.ended(call, answered=answered)
        return result

    async def _for_legacy(self, call: Call, exchange: Exchange) -> bytes:
        """Asks the client what a modern upstream wants to know, and calls again."""
        binding = self.binding(exchange.client)
        server = call.request.server
        answers: Mapping[str, bytes] = NONE
        backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
        for turn in range(ROUNDS + 1):
            result = await self._once(call, binding, exchange, answers)
            if self._pool.speaks(server, exchange.client.era) is Era.LEGACY:
                return result  # it can't ask so: a long result is not looked through
            if not asks(result):
                return result
            said = members(result)
            if turn == ROUNDS:
                break
            answers = {}
            if questions := _questions(server, said.get("inputRequests", b"{}")):
                answers["inputResponses"] = await self._answers(call, questions)
            else:
                await asyncio.sleep(backoff.next())
            if "requestState" in said:
                answers["requestState"] = said["requestState"]
        raise UpstreamError(server, f"it asked for more input {ROUNDS} times and is still not content")

    async def _answers(self, call: Call, questions: Mapping[str, bytes]) -> bytes:
        """What the client answers, by the keys of the questions."""
        asked = {key: _read(call, question) for key, question in questions.items()}

        async def one(method: str, params: bytes | None) -> bytes:
            try:
                return await call.asked(method, params)
            except RpcFaultError as fault:
                error = fault.error
                raise UpstreamRpcError(
                    call.request.server, error.code, error.message, error.data, error.more
                ) from fault

        try:
            async with asyncio.TaskGroup() as group:
                tasks = {key: group.create_task(one(*question)) for key, question in asked.items()}
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return join_object({key: task.result() for key, task in tasks.items()})

    # Calls that wait for their client

    async def _outcome(self, call: Call) -> bytes:
        """The result of ``call``, or the questions that it waits with."""
        task = call.task
        assert task is not None
        try:
            await call.news.wait()
            while not (task.done() or call.unanswered):  # a question was taken back
                call.news.clear()
                await call.news.wait()
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        if task.done():
            return task.result()
        return self._park(call)

    def _park(self, call: Call) -> bytes:
        parked = call.parked()
        handle = self._handle + secrets.token_urlsafe(24)
        loop = asyncio.get_running_loop()
        call.waits_since = loop.time()
        self._make_place(call.client)
        patience = PATIENCE if self._patience is None else self._patience
        self._parked[handle] = call, loop.call_later(patience, self._give_up, handle)
        questions = {
            key: join_object({"method": quote(question.method)} | _params(question.params))
            for key, question in parked.items()
        }
        return join_object(
            {
                "resultType": b'"input_required"',
                "inputRequests": join_object(questions),
                "requestState": quote(handle),
            }
        )

    async def _resumed(self, exchange: Exchange, request: Request, handle: str) -> bytes:
        parked = self._parked.get(handle)
        # Whoever can't have been asked learns nothing, not even that there was a question.
        if parked is None or not _may_answer(exchange.client, parked[0], request):
            raise RefusedError(_NOT_WAITING)
        call, timer = parked
        responses = members(exchange.fields.get("inputResponses"))
        answers = {key: responses[key] for key in call.unanswered if key in responses}
        for key, answer in answers.items():
            if not answer.startswith(b"{"):
                told = f"inputResponses.{shortened(key)} must be an object."
                raise RefusedError(RpcError(INVALID_PARAMS, told))
        del self._parked[handle]
        timer.cancel()
        call.goes_on(exchange, answers)
        return await self._outcome(call)

    def _make_room(self, server: str, seconds: float) -> None:
        """Ends the call to ``server`` that has waited longest for its client, if it has for ``seconds``."""
        now = asyncio.get_running_loop().time()
        for handle, (call, _) in self._parked.items():
            if call.request.server == server and not call.client.lasting:
                if now - call.waits_since >= seconds:
                    self._give_up(handle)
                return

    def _make_place(self, client: Client) -> None:
        """Gives up what has waited longest where one call more would be too many."""
        of_client = [handle for handle, (call, _) in self._parked.items() if call.client is client]
        if client.lasting and len(of_client) >= limits.PARKED_CLIENT:
            self._give_up(of_client[0])
        if len(self._parked) >= limits.PARKED:
            self._give_up(next(iter(self._parked)))

    def _give_up(self, handle: str) -> None:
        call, timer = self._parked.pop(handle)
        timer.cancel()
        call.given_up()


def _questions(server: str, requests: bytes) -> Mapping[str, bytes]:
    """What a modern server wants to know, by its keys. Raises UpstreamError for more than may be asked."""
    try:
        found = split_object(requests)
    except NotAnObject as error:
        if not requests.startswith(b"{"):
            return NONE
        raise UpstreamError(server, f"it asked for input in a way that can't be read: {error}") from None
    if len(found) > limits.ASKED:
        raise UpstreamError(server, f"it asked for more than {limits.ASKED} things at once")
    return found


def _read(call: Call, question: bytes) -> tuple[str, bytes | None]:
    """Method and params of a question that the client can be asked. Raises RefusedError, UpstreamError."""
    said = members(question)
    try:
        method, params = unquote(said.get("method", b"")), said.get("params")
    except ValueError:
        server = call.request.server
        raise UpstreamError(server, "it asked for input in a way that makes no sense") from None
    ability = needed(method, params)
    if ability is not None and not has(call.capabilities, ability[:1]):
        raise RefusedError(lacking(ability))
    return method, params


def _may_answer(client: Client, call: Call, request: Request) -> bool:
    same = call.client is client or not (call.client.lasting or client.lasting)
    return same and call.request.same(request)


def _elements(text: bytes | None) -> list[bytes]:
    try:
        return elements_of(text or b"[]", limits.ASKED)
    except ValueError:
        return []


def _params(params: bytes | None) -> dict[str, bytes]:
    return {} if params is None else {"params": params}


def _for_modern_client(error: UpstreamRpcError, call: Call) -> RpcError | bytes | None:
    """What a modern client is answered in the place of a legacy server's error that its era doesn't have:
    another error, or a result (spec 2026-07-28: basic/index "Error codes"). None where it is like any other.
    """
    if error.code == RESOURCE_NOT_FOUND and call.request.method == "resources/read":
        said = members(error.data)
        uri = call.request.fields.get("uri", b'""')
        return RpcError(INVALID_PARAMS, error.message, join_object({"uri": uri} | said), error.more)
    if error.code != URL_ELICITATION_REQUIRED:
        return None
    if not has(call.capabilities, URLS):
        return lacking(URLS)
    questions = {}
    for number, elicitation in enumerate(_elements(members(error.data).get("elicitations")), 1):
        questions[f"elicitation-{number}"] = join_object(
            {"method": b'"elicitation/create"', "params": elicitation}
        )
    if not questions:
        return None
    return join_object({"resultType": b'"input_required"', "inputRequests": join_object(questions)})


def asks(result: bytes) -> bool:
    """Whether ``result`` is a question to the client instead of one."""
    if b'"input_required"' not in result:  # a result may be long, and is seldom one
        return False
    return members(result).get("resultType") == b'"input_required"'
