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
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from mcpzip.model.errors import UpstreamError, UpstreamRpcError
from mcpzip.proxy.counterpart import Call, Counterpart, Lanes, RefusedError, Request, lacking
from mcpzip.proxy.exchange import Client, Exchange, members
from mcpzip.transport.base import Origin, ProgressSink, RpcFaultError
from mcpzip.transport.pool import Pool
from mcpzip.wire import (
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    Era,
    RpcError,
    join_object,
    quote,
    unquote,
)

NONE: Mapping[str, bytes] = MappingProxyType({})

ROUNDS = 10
"""How often an upstream may ask before its call is given up; the SDK's client has the same limit."""
PATIENCE = 600.0
"""Seconds a call waits upstream for a modern client to come back with its answers."""
HANDLE = "mcpzip-"
"""How the states begin that are ours."""

_ROUND = ("inputResponses", "requestState")


class Caller:
    """Makes requests of clients to upstreams. Everything runs on one event loop."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._lanes = Lanes()
        self._parked: dict[str, tuple[Call, asyncio.TimerHandle]] = {}
        self._counterparts: dict[Client, Counterpart] = {}

    def counterpart(self, client: Client) -> Counterpart:
        """The one of a lasting client."""
        if client not in self._counterparts:
            self._counterparts[client] = Counterpart(client)
        return self._counterparts[client]

    def origin(self, client: Client) -> Origin:
        """On whose behalf what is not part of a request of ``client`` is done for it."""
        partner = self.counterpart(client) if client.lasting else None
        return Origin(client.era, partner, client, client.capabilities, client.log_level)

    async def left(self, client: Client) -> None:
        """``client`` is gone: what waits for it ends, and so do connections of its own."""
        for handle, (call, _) in list(self._parked.items()):
            if call.client is client:
                self._give_up(handle)
        if counterpart := self._counterparts.pop(client, None):
            await self._pool.forget(counterpart)

    async def close(self) -> None:
        """Ends the calls that wait for clients to come back."""
        tasks = [call.task for call, _ in self._parked.values() if call.task is not None]
        for handle in list(self._parked):
            self._give_up(handle)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def send(self, exchange: Exchange, request: Request) -> bytes:
        """Makes ``request`` and returns the upstream's result, untouched, or the question that it asks.

        Raises UpstreamError and its kinds, RefusedError.
        """
        state = exchange.fields.get("requestState", b"")
        modern = exchange.client.era is Era.MODERN
        if modern and state.startswith(b'"' + HANDLE.encode()):
            return await self._resumed(exchange, request, unquote(state))
        call = Call(exchange, request)
        if not modern:
            return await self._rounds(call, self.counterpart(exchange.client))
        # A task of its own: it may go on when the client's request is answered.
        call.task = asyncio.create_task(self._for_modern(call, exchange))
        return await self._outcome(call)

    async def _for_modern(self, call: Call, exchange: Exchange) -> bytes:
        client = exchange.client
        try:
            if client.lasting:
                counterpart = self.counterpart(client)
                if exchange.log_level is not None and exchange.log_level != client.log_level:
                    await self._set_level(counterpart, exchange.log_level, call.request.timeout)
                return await self._once(call, counterpart, exchange)
            if exchange.log_level is None and not client.answers:
                return await self._once(call, None, exchange)
            return await self._lanes.run(exchange, lambda lane: self._once(call, lane, exchange))
        except UpstreamRpcError as error:
            if (translated := _for_modern_client(error, call)) is None:
                raise
            if isinstance(translated, RpcError):
                raise RefusedError(translated) from error
            return translated

    async def _set_level(self, counterpart: Counterpart, level: str, timeout: float) -> None:
        counterpart.client.log_level = level
        await self.set_level(counterpart, timeout)

    async def set_level(self, counterpart: Counterpart, timeout: float) -> None:
        """Says the client's log level on the connections it has."""
        params = join_object({"level": quote(counterpart.log_level or "info")})
        await self._pool.ask_open(counterpart, "logging/setLevel", params, timeout)

    async def _once(
        self,
        call: Call,
        counterpart: Counterpart | None,
        exchange: Exchange,
        answers: Mapping[str, bytes] = NONE,
    ) -> bytes:
        client, request = call.client, call.request
        modern = client.era is Era.MODERN
        rounds = (
            {key: exchange.fields[key] for key in _ROUND if key in exchange.fields} if modern else answers
        )
        origin = Origin(
            client.era,
            counterpart,
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
            timeout=request.timeout,
            on_progress=wants_progress,
            repeatable=request.repeatable,
            origin=origin,
            definition=request.definition,
        )
        if counterpart is None:
            return await asking
        with counterpart.calling(call):
            return await asking

    async def _rounds(self, call: Call, counterpart: Counterpart) -> bytes:
        """For a legacy client: asks what a modern upstream wants to know, and calls again."""
        assert call.exchange is not None
        answers: dict[str, bytes] = {}
        for _ in range(ROUNDS + 1):
            result = await self._once(call, counterpart, call.exchange, answers)
            if b'"input_required"' not in result:
                return result
            said = members(result)
            if said.get("resultType") != b'"input_required"':
                return result
            answers = await self._answers(call, said.get("inputRequests"))
            if "requestState" in said:
                answers["requestState"] = said["requestState"]
        server = call.request.server
        raise UpstreamError(server, f"it asked for more input {ROUNDS} times and is still not content")

    async def _answers(self, call: Call, questions: bytes | None) -> dict[str, bytes]:
        asked = members(questions)
        if not asked:
            return {}

        async def one(question: bytes) -> bytes:
            said = members(question)
            try:
                return await call.asked(unquote(said.get("method", b'""')), said.get("params"))
            except RpcFaultError as fault:
                error = fault.error
                raise UpstreamRpcError(call.request.server, error.code, error.message, error.data) from fault

        try:
            async with asyncio.TaskGroup() as group:
                tasks = {key: group.create_task(one(question)) for key, question in asked.items()}
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return {"inputResponses": join_object({key: task.result() for key, task in tasks.items()})}

    # Calls that wait for their client

    async def _outcome(self, call: Call) -> bytes:
        """The result of ``call``, or the questions that it waits with."""
        task = call.task
        assert task is not None
        news = asyncio.ensure_future(call.news.wait())
        try:
            await asyncio.wait({task, news}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        finally:
            news.cancel()
        if call.refusal is not None:
            task.cancel()
            await asyncio.wait({task})
            raise RefusedError(call.refusal)
        if task.done():
            return task.result()
        return self._park(call)

    def _park(self, call: Call) -> bytes:
        call.exchange = None
        call.news.clear()
        handle = HANDLE + secrets.token_urlsafe(24)
        timer = asyncio.get_running_loop().call_later(PATIENCE, self._give_up, handle)
        self._parked[handle] = call, timer
        questions = {
            key: join_object({"method": quote(question.method)} | _params(question.params))
            for key, question in call.questions.items()
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
            raise RefusedError(
                RpcError(
                    INVALID_PARAMS,
                    "This requestState is of no call that waits: it was answered, it waited too long, or it "
                    "is another request's. Make the request again without it.",
                )
            )
        call, timer = self._parked.pop(handle)
        timer.cancel()
        call.exchange = exchange
        responses = members(exchange.fields.get("inputResponses"))
        for key, question in call.questions.items():
            if key in responses and not question.answer.done():
                question.answer.set_result(responses[key])
        if any(not question.answer.done() for question in call.questions.values()):
            call.news.set()  # some are still open: they are asked again
        return await self._outcome(call)

    def _give_up(self, handle: str) -> None:
        call, timer = self._parked.pop(handle)
        timer.cancel()
        if call.task is not None:
            call.task.cancel()


def _may_answer(client: Client, call: Call, request: Request) -> bool:
    same = call.client is client or not (call.client.lasting or client.lasting)
    return same and call.request.same(request)


def _elements(text: bytes | None) -> list[bytes]:
    try:
        return [bytes(one) for one in msgspec.json.decode(text or b"[]", type=list[msgspec.Raw])]
    except msgspec.DecodeError:
        return []


def _params(params: bytes | None) -> dict[str, bytes]:
    return {} if params is None else {"params": params}


def _for_modern_client(error: UpstreamRpcError, call: Call) -> RpcError | bytes | None:
    """What a modern client is answered in the place of an error that its era doesn't have: another error, or
    a result (spec 2026-07-28: basic/index "Error codes"). None where it is an error like any other.
    """
    if error.code == RESOURCE_NOT_FOUND and call.request.method == "resources/read":
        said = members(error.data)
        uri = call.request.fields.get("uri", b'""')
        return RpcError(INVALID_PARAMS, error.message, join_object({"uri": uri} | said))
    if error.code != URL_ELICITATION_REQUIRED:
        return None
    if "elicitation" not in members(call.capabilities):
        return lacking("elicitation")
    questions = {}
    for number, elicitation in enumerate(_elements(members(error.data).get("elicitations")), 1):
        questions[f"elicitation-{number}"] = join_object(
            {"method": b'"elicitation/create"', "params": elicitation}
        )
    if not questions:
        return None
    return join_object({"resultType": b'"input_required"', "inputRequests": join_object(questions)})
