"""The requests of clients that are under way: how many may run, for whom, and how they end.

Whatever happens, every request has exactly one outcome. One that can be answered at once takes no task.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING

from mcpzip.model import limits
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.input_required import is_input_required
from mcpzip.proxy.tool_usage import is_success
from mcpzip.proxy.workers import REQUESTER, Requester
from mcpzip.server.endpoint import Endpoint, PendingResult, error_response
from mcpzip.system.direct_steps import begin_at_once
from mcpzip.system.tasks import retrieve_exception
from mcpzip.wire import RpcError

if TYPE_CHECKING:
    from mcpzip.telemetry.traces import Recorder

Outcome = bytes | RpcError | None
"""The result of a request, as JSON text, or why there is none; None if the request was cancelled."""
Settled = Callable[[Outcome], object]


class TaskTracker:
    """Runs the requests and notifications of clients. limit: requests at once. stopping: whether whatever
    begins now is cancelled.
    """

    def __init__(self, endpoint: Endpoint, limit: int, *, over_http: bool = False) -> None:
        self._endpoint, self._limit, self._over_http = endpoint, limit, over_http
        self._requests: dict[Exchange, asyncio.Task[None]] = {}
        self._count_by_client: dict[object, int] = {}
        self._unawaited: set[asyncio.Task[None]] = set()
        self.stopping = False

    def run(
        self,
        method: str,
        exchange: Exchange,
        settled: Settled,
        requester: Requester | None = None,
        begin: Callable[[str, Exchange], PendingResult] | None = None,
        *,
        at_once: bool = False,
    ) -> "asyncio.Task[None] | None":
        """Answers a request; calls ``settled`` with what came of it, perhaps before this returns. Returns the
        task that does it, None if it is done. requester: for whom. begin: instead of the endpoint's. at_once:
        whether its first step is taken before this returns, and not in the next turn of the event loop.
        """
        endpoint = self._endpoint
        if (recorder := endpoint.recorder) is not None:
            settled = traced(recorder, method, exchange, settled, over_http=self._over_http)
        try:
            result = (begin or endpoint.begin)(method, exchange)
            if isinstance(result, bytes):
                result = endpoint.finished(method, exchange, result)
        except Exception as failure:
            settled(error_response(failure))
            return None
        if isinstance(result, bytes):
            settled(result)
            return None
        if self.stopping:  # it came while the last connections were being closed
            result.close()
            settled(None)
            return None
        context, client = contextvars.copy_context(), None
        if requester is not None:
            client = requester.key
            context.run(REQUESTER.set, requester)
        work = self._settle(method, exchange, result, settled, client)
        if at_once:
            task, has_begun = begin_at_once(work, context)
            if task.done():
                return None
        else:
            task, has_begun = asyncio.get_running_loop().create_task(work, context=context), False
        self._requests[exchange] = task
        self._count_by_client[client] = self._count_by_client.get(client, 0) + 1
        if not has_begun:
            task.add_done_callback(partial(self._never_begun, exchange, result, settled, client))
        return task

    async def _settle(
        self,
        method: str,
        exchange: Exchange,
        work: Coroutine[None, None, bytes],
        settled: Settled,
        client: object,
    ) -> None:
        outcome: Outcome
        try:
            outcome = self._endpoint.finished(method, exchange, await work)
        except asyncio.CancelledError:
            self._ended(exchange, client)
            settled(None)
            raise
        except Exception as failure:
            outcome = error_response(failure)
        self._ended(exchange, client)
        settled(outcome)

    def _ended(self, exchange: Exchange, client: object) -> bool:
        """Forgets a request of ``client``. Returns whether it was under way, which one isn't that ends in its
        first step.
        """
        if self._requests.pop(exchange, None) is None:
            return False
        left = self._count_by_client[client] = self._count_by_client[client] - 1
        if not left:
            del self._count_by_client[client]
        return True

    def _never_begun(
        self,
        exchange: Exchange,
        work: Coroutine[None, None, bytes],
        settled: Settled,
        client: object,
        task: "asyncio.Task[None]",
    ) -> None:
        """``task`` was cancelled before its first step, so that nothing of `_settle` has run; unless it has
        ended as others do.
        """
        if self._ended(exchange, client):
            work.close()
            settled(None)

    @property
    def full(self) -> bool:
        """Whether there are as many requests as there may be."""
        return len(self._requests) >= self._limit

    def full_for(self, client: object) -> bool:
        """Whether ``client`` has as many requests as it may: as many as it leaves for all others."""
        running = len(self._requests)
        return running >= self._limit or self._count_by_client.get(client, 0) > self._limit - running

    def notified(self, client: Client, method: str, params: bytes | None) -> None:
        """Passes on a notification of ``client``, unless too many are under way."""
        if len(self._unawaited) >= limits.NOTICES:
            return
        if work := self._endpoint.notified(client, method, params):
            self.run_unawaited(work)

    def run_unawaited(self, work: Coroutine[None, None, None]) -> None:
        """Runs ``work``, whose outcome nobody waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._unawaited.add(task)
        task.add_done_callback(self._unawaited.discard)
        task.add_done_callback(retrieve_exception)

    async def settle(self, patience: float, cancel_time: float) -> None:
        """Requests get ``patience`` seconds, then are cancelled and get ``cancel_time`` to end."""
        if self._requests:
            await asyncio.wait(list(self._requests.values()), timeout=patience)
        self.stopping = True
        await _cancel(self._requests.values(), cancel_time)

    async def finish(self, patience: float) -> None:
        """All else gets ``patience`` seconds, then is cancelled and gets as many to end."""
        if self._unawaited:
            await asyncio.wait(list(self._unawaited), timeout=patience)
        await _cancel(self._unawaited, patience)


def traced(
    recorder: "Recorder", method: str, exchange: Exchange, settled: Settled, *, over_http: bool
) -> Settled:
    """Begins the trace of a request. Returns ``settled``, which ends it too."""
    trace = exchange.trace = recorder.request(
        method, exchange.id, exchange.fields, exchange.meta_fields, over_http=over_http
    )

    def ended(outcome: Outcome) -> object:
        failed = (
            method == "tools/call"
            and isinstance(outcome, bytes)
            and not (is_success(outcome) or is_input_required(outcome))
        )
        trace.end(outcome, failed=failed)
        return settled(outcome)

    return ended


async def _cancel(tasks: "Iterable[asyncio.Task[None]]", patience: float) -> None:
    left = list(tasks)
    for each in left:
        each.cancel()
    if left:
        await asyncio.wait(left, timeout=patience)
