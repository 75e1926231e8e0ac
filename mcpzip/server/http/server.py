"""The HTTP server: takes connections, hands each request to the code of its era, and ends them all."""

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcpzip.server.endpoint import Endpoint
from mcpzip.server.http.access import Access
from mcpzip.server.http.connection import Connection
from mcpzip.server.http.connections import Connections
from mcpzip.server.http.legacy import LegacySessions
from mcpzip.server.http.limits import LIMITS, Limits
from mcpzip.server.http.middleware import (
    Middleware,
    answer_document,
    answer_health_check,
    answer_preflight,
)
from mcpzip.server.http.modern import ModernRequests
from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.response import HttpResponse
from mcpzip.server.http.send_queue import QueueBudget
from mcpzip.server.task_tracker import TaskTracker
from mcpzip.system.descriptors import raise_descriptor_limit
from mcpzip.wire import Era

if TYPE_CHECKING:
    from mcpzip.server.http.people import People
    from mcpzip.server.replicas.forwarding import Forwarder

SHUTDOWN_TIME = 0.5
"""Seconds that requests under way are given after we were told to stop."""
CANCEL_TIME = 0.3
"""Seconds that a cancelled request may take to tell its server, and the last responses to be sent."""


class HttpServer:
    """Serves one endpoint over HTTP to the clients that ``access`` admits. warn: is told of our defects.
    people: who may ask; None where nobody signs in. forwarder: where there are replicas.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        access: Access,
        warn: Callable[[str], None],
        limits: Limits = LIMITS,
        people: "People | None" = None,
        forwarder: "Forwarder | None" = None,
    ) -> None:
        self.warn, self._limits, self._people = warn, limits, people
        middleware = Middleware(access, limits, people)
        self.check, self.too_large = middleware.check, middleware.too_large
        self.headers = ()
        self._tasks = TaskTracker(endpoint, limits.calls, over_http=True)
        challenge = None if people is None else people.scopes_challenge
        budget = QueueBudget(limits.untold, limits.untold_small, limits.untold_by_all)
        self._forwarder = forwarder
        self._legacy = LegacySessions(endpoint, self._tasks, limits, budget, challenge, forwarder)
        self._modern = ModernRequests(endpoint, self._tasks, budget, challenge, forwarder)

    def handle(self, request: HttpRequest, response: HttpResponse) -> None:
        """Answers a request that passed the checks, now that its body is complete."""
        if request.is_preflight:
            answer_preflight(request, response)
        elif request.is_health_check:
            answer_health_check(response)
        elif request.document is not None:
            answer_document(request.document, response)
        elif request.method == "POST":
            era = self._modern if request.era is Era.MODERN else self._legacy
            era.post(request, response)
        elif request.method == "GET":
            self._legacy.get(request, response)
        else:
            self._legacy.delete(request, response)

    async def serve(
        self,
        listening: socket.socket,
        done: asyncio.Event,
        ready: Callable[[], None],
        leaving: Callable[[], None],
        over: Callable[[], None] = lambda: None,
    ) -> None:
        """Serves until ``done``; closes ``listening``. ready: is called once connections are taken; leaving:
        when no more are, to end what would not end by itself; over: when no request is under way any more,
        while the last responses are sent.
        """
        loop, limits = asyncio.get_running_loop(), self._limits
        room = max(1, raise_descriptor_limit(limits.connections + limits.turned_away) - limits.turned_away)
        connections = Connections(limits, room)
        server = await loop.create_server(
            lambda: Connection(self, connections, limits), sock=listening, backlog=limits.backlog
        )
        try:
            ready()
            await done.wait()
        finally:
            try:
                await connections.stop(server)
                leaving()
                await self._settle()
                self._legacy.end()
                await self._tasks.finish(CANCEL_TIME)
                over()
            finally:
                await connections.close(CANCEL_TIME)
                if self._forwarder is not None:
                    await self._forwarder.close()
                if self._people is not None:
                    await self._people.close()

    async def _settle(self) -> None:
        """Lets requests under way end. Those of replicas get longer, because new ones go to the others."""
        if self._forwarder is None:
            await self._tasks.settle(SHUTDOWN_TIME, CANCEL_TIME)
            return
        patience = max(SHUTDOWN_TIME, self._forwarder.replica.drain)
        await asyncio.gather(
            self._tasks.settle(patience, CANCEL_TIME), self._forwarder.settle(patience + CANCEL_TIME)
        )
