"""The way of a client's request to an upstream and of the answer back.

The rule: what is done with a question in the middle of a call depends on the eras of both sides; the states
that a call goes through are the table in `call_states`. On stdio a legacy upstream doesn't say in which call
it asks: it is taken to be the newest.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from mcpzip.model.errors import (
    UpstreamError,
    UpstreamTimeoutError,
    UpstreamUnavailableError,
)
from mcpzip.model.principal import Principal, PrincipalId
from mcpzip.proxy.bindings import Bindings
from mcpzip.proxy.call import Call, ModernCall, UpstreamRequest
from mcpzip.proxy.call_states import Event
from mcpzip.proxy.client_binding import ClientBinding
from mcpzip.proxy.client_capabilities import missing_capability
from mcpzip.proxy.client_roots import ROOTS_CHANGED
from mcpzip.proxy.exchange import CONTINUATION_MEMBERS, Client, Exchange, members
from mcpzip.proxy.exclusive_connections import ExclusiveConnections
from mcpzip.proxy.first_calls import FirstCalls
from mcpzip.proxy.heard import Heard
from mcpzip.proxy.input_required import for_modern_client, input_requests, is_input_required
from mcpzip.proxy.log_levels import LogLevelSetter
from mcpzip.proxy.parking import NOT_PARKED, ParkedCalls
from mcpzip.proxy.shared_binding import SharedBinding
from mcpzip.proxy.sharing import Sharing
from mcpzip.proxy.tool_usage import is_success
from mcpzip.system.backoff import Backoff
from mcpzip.transport.base import Origin
from mcpzip.transport.pool import Pool
from mcpzip.wire import (
    Era,
    JsonRpcError,
    UpstreamRpcError,
    join_object,
)

if TYPE_CHECKING:
    from mcpzip.telemetry.traces import RequestTrace

ROUNDS = 10
"""How often an upstream may ask before its call is abandoned; the SDK's client has the same limit."""
FIRST_PAUSE, LAST_PAUSE = 0.05, 1.0
"""Seconds before a modern upstream is called again that asks for nothing else: doubling from one to the
other.
"""

_NONE: Mapping[str, bytes] = MappingProxyType({})


class CallPipeline:
    """Makes the requests of clients to upstreams. Everything runs on one event loop.

    bindings: which connections each client uses.
    """

    def __init__(self, pool: Pool, sharing: Sharing, heard: Heard, person: PrincipalId | None = None) -> None:
        """sharing: what is known of the servers. heard: is told of the errors and questions of servers.
        person: whose requests go this way to servers to which each person signs in; None: of whoever uses
        this machine.
        """
        first_calls = FirstCalls(sharing.current)
        self._heard, self._current, self._person = heard, sharing.current, person
        self._pool, self.bindings = pool, Bindings(pool, sharing, first_calls)
        self._first_calls = first_calls
        self.parked = ParkedCalls()
        self._exclusive = ExclusiveConnections(pool.forget, self.parked.make_room)
        self._levels = LogLevelSetter(pool)

    async def origin(self, client: Client, server: str) -> Origin:
        """On whose behalf what is not part of a request of ``client`` is done for it at ``server``. Raises
        UpstreamUnavailableError.
        """
        self._check_whose(client.principal, server)
        return self.origin_with(
            client, await self.bindings.to(client, server) if client.has_session else None
        )

    def origin_with(self, client: Client, binding: ClientBinding | None) -> Origin:
        """The same, on the connections of ``binding``; None for the one that all share."""
        return Origin(
            client.era, binding, client, client.capabilities, client.log_level, folder=client.folder
        )

    async def upstream_era(self, client: Client, server: str) -> Era:
        """The era in which ``server`` is spoken to for ``client``, connecting if that isn't known. Raises
        UpstreamUnavailableError.
        """
        known = self._pool.speaks(server, client.era)
        return known or (await self._pool.server_info(server, await self.origin(client, server))).dialect.era

    async def set_level(self, client: Client) -> None:
        """Tells the servers to which ``client`` has connections of its own which log messages it wants."""
        self.bindings.reconsider(client)
        await self._levels.set(self.bindings.own(client))

    async def remove_client(self, client: Client) -> None:
        """``client`` is gone: what waits for it ends, and so do connections of its own."""
        self.parked.abandon_calls(client)
        await self.bindings.remove_client(client)

    async def notify_servers(
        self, servers: Iterable[str], client: Client, method: str, params: bytes | None
    ) -> None:
        """Passes a notification of ``client`` on to those of ``servers`` to which it has a connection of its
        own, and that its roots have changed also to others.
        """
        if method == ROOTS_CHANGED:
            await self.bindings.roots_changed(client)
        own = self.bindings.own(client)
        notified = (self._pool.notify(name, one, method, params) for name in servers for one in own)
        await asyncio.gather(*notified)

    async def close(self) -> None:
        """Ends the calls that wait for clients to come back."""
        tasks = self.parked.abandon_calls()
        await self._levels.close()
        await self.bindings.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def send(self, exchange: Exchange, request: UpstreamRequest) -> bytes:
        """Makes ``request`` and returns the upstream's result, untouched, or the question that it asks.

        Raises UpstreamError and its kinds, JsonRpcError.
        """
        client = exchange.client
        if exchange.principal is not None or self._person is not None:
            self._check_whose(exchange.principal, request.server)
        if client.era is Era.MODERN:
            return await self._for_modern(exchange, request)
        binding = await self.bindings.to(
            client, request.server, exchange.request, self._asks_about(client, request)
        )
        call = Call(exchange, request)
        result = await self._upstream(call, binding, exchange, _NONE, request.timeout)
        # One of the legacy era can't ask so: a long result of it is not looked through.
        if self._pool.speaks(request.server, client.era) is Era.LEGACY or not is_input_required(result):
            return result
        return await self._ask_and_repeat(call, binding, exchange, result)

    def _check_whose(self, principal: Principal | None, server: str) -> None:
        """Raises UpstreamUnavailableError for somebody who has not signed in to ``server`` for this way."""
        person = None if principal is None else principal.id
        if person != self._person and server in self._current.per_user:
            raise UpstreamUnavailableError(
                server, "each person signs in to it, and this is the way of another"
            )

    def _upstream(
        self,
        call: Call,
        binding: ClientBinding | None,
        exchange: Exchange,
        continuation: Mapping[str, bytes],
        timeout: float,
    ) -> Awaitable[bytes]:
        """As `_once`, in a span of its own if there is telemetry."""
        if exchange.trace is None:
            return self._once(call, binding, exchange, continuation, timeout, exchange.meta_fields)
        return self._traced(exchange.trace, call, binding, exchange, continuation, timeout)

    async def _traced(
        self,
        trace: "RequestTrace",
        call: Call,
        binding: ClientBinding | None,
        exchange: Exchange,
        continuation: Mapping[str, bytes],
        timeout: float,
    ) -> bytes:
        request = call.request
        is_listed = request.definition is not None
        span = trace.upstream(request.server, request.method, request.fields, is_listed=is_listed)
        meta = span.meta(exchange.meta_fields)
        try:
            result = await self._once(call, binding, exchange, continuation, timeout, meta)
        except BaseException as error:
            span.end(error)
            raise
        is_tool = request.method == "tools/call"
        span.end(failed=is_tool and not is_success(result) and not is_input_required(result))
        return result

    async def _once(
        self,
        call: Call,
        binding: ClientBinding | None,
        exchange: Exchange,
        continuation: Mapping[str, bytes],
        timeout: float,
        meta: Mapping[str, bytes],
    ) -> bytes:
        """Makes the request once. binding: whose connection it is made on in the legacy era, None for a
        shared one. continuation: what is added to its params for a modern upstream. timeout: seconds. meta:
        the members of its ``_meta``.
        """
        client, request = call.client, call.request
        if request.check is not None:
            request.check()
        call.happens(Event.SEND)
        if binding is not None:
            binding.begin(call)
        outcome, may_go_on = Event.LOSS, False
        try:
            result = await self._pool.request(
                request.server,
                request.method,
                request.params(meta),
                timeout=timeout,
                on_progress=None if exchange.progress_token is None else call.progress,
                repeatable=request.repeatable,
                origin=Origin(
                    client.era,
                    binding,
                    client if client.has_session else call,
                    exchange.capabilities,
                    exchange.log_level,
                    continuation,
                    call.notify,
                    client.folder,
                    call,
                    None if call.record is None else call.sent,
                ),
                definition=request.definition,
            )
            outcome = Event.RESULT
            if isinstance(binding, SharedBinding):
                self._first_calls.answered(binding, call, result)
            if self._pool.speaks(request.server, client.era) is Era.MODERN and is_input_required(result):
                self._heard.asked_by_result(exchange, request.server, result)
            return result
        except UpstreamRpcError as error:
            outcome = Event.RESULT
            self._heard.refused(exchange, request.server, request.tool, error.error)
            raise
        except (UpstreamTimeoutError, asyncio.CancelledError):
            may_go_on = True
            raise
        finally:
            if binding is not None:
                binding.end(call, outcome, may_go_on=may_go_on)
            call.ends(outcome)

    def _asks_about(self, client: Client, request: UpstreamRequest) -> UpstreamRequest | None:
        """``request``, unless the upstream is modern and so names the call in which it asks."""
        return None if self._pool.speaks(request.server, client.era) is Era.MODERN else request

    # --- a legacy client, and a modern upstream that asks ---

    async def _ask_and_repeat(
        self, call: Call, binding: ClientBinding, exchange: Exchange, result: bytes
    ) -> bytes:
        """Asks the client what a modern upstream wants to know, and calls again, until that is content."""
        request, backoff = call.request, Backoff(FIRST_PAUSE, LAST_PAUSE)
        for _ in range(ROUNDS):
            call.happens(Event.INPUT_REQUIRED)
            asked = members(result)
            continuation = {}
            if questions := input_requests(call, asked.get("inputRequests", b"{}")):
                continuation["inputResponses"] = await _answers(call, questions)
            else:
                await asyncio.sleep(backoff.next())
            if "requestState" in asked:
                continuation["requestState"] = asked["requestState"]
            result = await self._upstream(call, binding, exchange, continuation, request.timeout)
            if not is_input_required(result):
                return result
        raise UpstreamError(
            request.server, f"it asked for more input {ROUNDS} times and is still not content"
        )

    # --- a modern client ---

    async def _for_modern(self, exchange: Exchange, request: UpstreamRequest) -> bytes:
        """The outcome of a new call, or of one that the client comes back to; or its questions."""
        if self.parked.is_handle(exchange.fields.get("requestState", b"")):
            call = self.parked.resumed(exchange, request)
        else:
            call = ModernCall(exchange, request)
            call.start(self._modern_call(call, exchange))
        task = call.task
        assert task is not None
        try:
            while not (task.done() or call.unanswered):
                call.news.clear()
                await call.news.wait()
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        return task.result() if task.done() else self.parked.park(call)

    async def _modern_call(self, call: ModernCall, exchange: Exchange) -> bytes:
        """The upstream's result, and its errors as the client's era has them. Where the call fails for want
        of what the client can't be asked, that is the error (spec 2026-07-28: basic/index "Error codes").
        """
        try:
            result = await self._connected(call, exchange)
        except UpstreamRpcError as error:
            if self._pool.speaks(call.request.server, Era.MODERN) is Era.MODERN:
                raise  # it knows its era's errors itself
            response = error.error
            if (translated := for_modern_client(response, call)) is not None:
                return translated
            message = response.message.encode("utf-8", "replace")
            if call.unmet and call.fails_for_unmet(response.code, message):
                raise JsonRpcError(missing_capability(call.unmet)) from error
            raise
        finally:
            call.news.set()  # a turn of the event loop before the task's callbacks would
        if call.unmet and call.fails_for_unmet(None, result) and members(result).get("isError") == b"true":
            raise JsonRpcError(missing_capability(call.unmet))
        return result

    async def _connected(self, call: ModernCall, exchange: Exchange) -> bytes:
        """Makes the request on the connection that the client is to have: see `docs/conversation.md`,
        "Dedicated connections".
        """
        client, server, timeout = exchange.client, call.request.server, call.request.timeout
        continuation = {key: exchange.fields[key] for key in CONTINUATION_MEMBERS if key in exchange.fields}
        if "requestState" in continuation and await self.upstream_era(client, server) is Era.LEGACY:
            raise JsonRpcError(NOT_PARKED)  # the server never gave it out: this would be another call
        if client.has_session:
            await self._levels.lower(client, self.bindings.own(client), exchange.log_level, server)
            self.bindings.reconsider(client)
            binding = await self.bindings.to(client, server, None, self._asks_about(client, call.request))
            return await self._upstream(call, binding, exchange, continuation, timeout)
        shares = exchange.log_level is None and not client.is_interactive
        if shares or await self.upstream_era(client, server) is Era.MODERN:
            return await self._upstream(call, None, exchange, continuation, timeout)
        now = asyncio.get_running_loop().time
        until = now() + timeout  # the wait for a connection counts
        async with self._exclusive.connection(server, exchange, timeout) as binding:
            return await self._upstream(call, binding, exchange, continuation, until - now())


async def _answers(call: Call, questions: Mapping[str, tuple[str, bytes | None]]) -> bytes:
    """The client's answers to ``questions``, by their keys. Raises JsonRpcError."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {key: group.create_task(call.ask(*question)) for key, question in questions.items()}
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return join_object({key: task.result() for key, task in tasks.items()})
