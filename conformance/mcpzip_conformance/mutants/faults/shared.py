"""Faults of a relay with several clients: one client's messages reach another, or one harms another."""

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import ClassVar

from mcpzip.wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Cancelled,
    Event,
    Request,
    RpcError,
    join_object,
    quote,
    with_members,
)
from mcpzip.wire import (
    Opening as Opened,
)
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.faults.questions import EVERYTHING
from mcpzip_conformance.mutants.faults.web import HTTP, OF_ONE_CONNECTION, OneConnection
from mcpzip_conformance.mutants.relay.end import Party, RefusedError
from mcpzip_conformance.mutants.relay.exchange import Headers, Receive, Scope, Send, reply
from mcpzip_conformance.mutants.relay.http import HttpSession, Line, Web
from mcpzip_conformance.mutants.relay.naming import items, members, text
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.session import Servers, Session

ELICIT, SAMPLE, LIST_ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"


class Guest(Session):
    """A session that knows the sessions of all clients. every: these, in the order in which they came."""

    every: ClassVar[list["Guest"]] = []

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)  # type: ignore[arg-type]
        if not arguments[2:] or arguments[2] is None:  # modern requests have sessions of a moment
            self.every.append(self)

    @property
    def others(self) -> list["Guest"]:
        """The other sessions."""
        return [guest for guest in self.every if guest is not self]

    async def end(self) -> None:
        self.every.remove(self)
        await super().end()


# What one client gets, and another should not


class ByIdAlone(Web):
    """Finds the client that an answer belongs to by the request's id. latest: by id, the client that used it
    last."""

    latest: ClassVar[dict[bytes | None, HttpSession]] = {}

    def new_session(self) -> HttpSession:
        client = super().new_session()

        def write(line: bytes, about: bytes | None, last: bool) -> None:
            self.latest.get(about, client).write(line, about, last)

        client.session._write = write
        return client

    async def exchange(
        self, client: HttpSession, id: bytes, line: bytes, modern: bool, receive: Receive, send: Send
    ) -> None:
        if not modern:
            self.latest[id] = client
        await super().exchange(client, id, line, modern, receive, send)


class Broadcasts(Guest):
    """Sends notifications to all clients. told: the beginning of their methods."""

    told = ""

    def notify(self, method: str, params: bytes | None = None, about: bytes | None = None) -> None:
        super().notify(method, params, about)
        for guest in self.others if method.startswith(self.told) else ():
            Session.notify(guest, method, params)


class BroadcastsProgress(Broadcasts):
    told = "notifications/progress"


class BroadcastsUpdates(Broadcasts):
    told = "notifications/resources/updated"


class BroadcastsOthers(Broadcasts):
    told = "notifications/x-"


class LogsToLatest(Guest):
    """Sends logs to the client that came last."""

    def notify(self, method: str, params: bytes | None = None, about: bytes | None = None) -> None:
        if method == "notifications/message":
            Session.notify(self.every[-1], method, params)
        else:
            super().notify(method, params, about)


class OneLevel(Guest):
    """Sets the log level of all clients with one."""

    async def level_set(self, request: Request, servers: Servers) -> bytes:
        for guest in self.others:
            if guest.servers is not None:
                await Session.level_set(guest, request, guest.servers)
        return await super().level_set(request, servers)


class OneError(Guest):
    """Answers all calls with the same id with the error of one."""

    async def answered(self, request: Request) -> bytes:
        try:
            return await super().answered(request)
        except RefusedError as refused:
            error = refused.error
            for guest in self.others:
                if task := guest.serving.get(request.id):
                    line = guest.peer.error(request.id, error.code, error.message, error.data)
                    guest.write(line, request.id, last=True)
                    task.cancel()
            raise


class CancelsForAll(Guest):
    """Cancels the requests of all clients that have the id."""

    def event(self, event: Event) -> None:
        super().event(event)
        if isinstance(event, Cancelled):
            for guest in self.others:
                if task := guest.serving.get(event.id):
                    task.cancel()


class UnsubscribesAll(Guest):
    """Ends the subscriptions of all clients with one."""

    async def passed(self, request: Request, servers: Servers) -> bytes:
        for guest in self.others if request.method == "resources/unsubscribe" else ():
            if guest.servers is not None:
                await Session.passed(guest, request, guest.servers)
        return await super().passed(request, servers)


# Questions


class Asked(Guest):
    """A session whose questions can be asked in another way."""

    async def request(
        self,
        method: str,
        params: bytes | None = None,
        *,
        about: bytes | None = None,
        progress: Callable[[bytes], None] | None = None,
        origin: tuple[Party, bytes] | None = None,
    ) -> bytes:
        return await self.ask(method, params, about)

    async def ask(self, method: str, params: bytes | None, about: bytes | None) -> bytes:
        """The answer to a question of a server."""
        return await Session.request(self, method, params, about=about)


class AsksLatest(Asked):
    """Asks the client that came last."""

    async def ask(self, method: str, params: bytes | None, about: bytes | None) -> bytes:
        if method == ELICIT:
            return await Session.request(self.every[-1], method, params)
        return await super().ask(method, params, about)


class Remembers(Asked):
    """Answers a question with the answer that any client gave to it before. method: of such questions."""

    method = ""
    known: ClassVar[dict[bytes | None, asyncio.Future[bytes]]] = {}

    async def ask(self, method: str, params: bytes | None, about: bytes | None) -> bytes:
        if method != self.method:
            return await super().ask(method, params, about)
        if params not in self.known:
            self.known[params] = asyncio.ensure_future(super().ask(method, params, about))
        return await asyncio.shield(self.known[params])


class RemembersSampled(Remembers):
    method = SAMPLE


class RemembersRoots(Remembers):
    method = LIST_ROOTS


class KeepsRoots(Asked):
    """Tells servers the roots that its client had at first. roots: these, once they were asked for."""

    roots: asyncio.Future[bytes] | None = None

    async def ask(self, method: str, params: bytes | None, about: bytes | None) -> bytes:
        if method != LIST_ROOTS:
            return await super().ask(method, params, about)
        if self.roots is None:
            self.roots = asyncio.ensure_future(super().ask(method, params, about))
        return await asyncio.shield(self.roots)


class OneQuestion(Asked):
    """Refuses questions while another one is open."""

    open: ClassVar[list[str]] = []

    async def ask(self, method: str, params: bytes | None, about: bytes | None) -> bytes:
        if self.open:
            raise RefusedError(RpcError(INTERNAL_ERROR, "Another client is being asked."))
        self.open.append(method)
        try:
            return await super().ask(method, params, about)
        finally:
            self.open.remove(method)


class AsksWhoCan(Asked):
    """Asks another client if its own can't be asked."""

    declared: Mapping[str, bytes] = {}

    def opened(self, request: Request, opened: Opened, modern: bool) -> Servers:
        if not modern:
            self.declared = members(members(request.params).get("capabilities"))
            params = with_members(request.params or b"{}", {"capabilities": EVERYTHING})
            request = Request(request.id, request.method, params)
        return super().opened(request, opened, modern)

    async def ask(self, method: str, params: bytes | None, about: bytes | None) -> bytes:
        for guest in (self, *self.others):
            if isinstance(guest, AsksWhoCan) and method.partition("/")[0] in guest.declared:
                return await Session.request(guest, method, params)
        return await super().ask(method, params, about)


class AsksWhoIsThere(Asked):
    """Asks another client if its own has no request open."""

    async def ask(self, method: str, params: bytes | None, about: bytes | None) -> bytes:
        for guest in (self, *self.others):
            if guest.serving:
                return await Session.request(guest, method, params)
        return await super().ask(method, params, about)


class FirstName(Guest):
    """Tells servers the name of the client that came first."""

    first: ClassVar[list[bytes]] = []

    def opened(self, request: Request, opened: Opened, modern: bool) -> Servers:
        if not modern:
            self.first.append(members(request.params).get("clientInfo", b"{}"))
            params = with_members(request.params or b"{}", {"clientInfo": self.first[0]})
            request = Request(request.id, request.method, params)
        return super().opened(request, opened, modern)


# Lists


class OneUseCursors(Session):
    """Lists tools in pages, whose cursors work once, for all clients together."""

    pages: ClassVar[dict[str, list[bytes]]] = {}

    async def answered(self, request: Request) -> bytes:
        if request.method != "tools/list":
            return await super().answered(request)
        cursor = text(members(request.params).get("cursor"))
        if cursor and cursor not in self.pages:
            raise RefusedError(RpcError(INVALID_PARAMS, "There is no such page."))
        if cursor:
            tools = self.pages.pop(cursor)
        else:
            tools = [bytes(raw) for raw in items(members(await super().answered(request))["tools"])]
        page = {"tools": b"[%b]" % b",".join(tools[:2])}
        if tools[2:]:
            following = f"page-{len(self.pages)}-{id(self)}-{len(tools)}"
            self.pages[following] = tools[2:]
            page["nextCursor"] = quote(following)
        return join_object(page)


class TellsFirst(Guest):
    """Tells only the client that came first that a list has changed."""

    def notify(self, method: str, params: bytes | None = None, about: bytes | None = None) -> None:
        if not method.endswith("/list_changed") or self is self.every[0]:
            super().notify(method, params, about)


# Harm


class DiesOfHangingUp(Web):
    """Exits when a client that has a session hangs up."""

    async def next(self, lines: asyncio.Queue[Line], receive: Receive, client: HttpSession | None) -> Line:
        try:
            return await super().next(lines, receive, client)
        except ConnectionError:
            if client is None or client.id in self.sessions:
                os._exit(1)
            raise


class EndsAll(Web):
    """Ends what all clients have open when one ends its session."""

    async def delete(self, headers: Headers, send: Send) -> None:
        for client in self.sessions.values():
            client.session.close()
        await super().delete(headers, send)


class ForgetsOnly(Web):
    """Forgets a session that is ended, and lets its calls go on."""

    async def delete(self, headers: Headers, send: Send) -> None:
        client = self.find_session(headers)
        del self.sessions[client.id]
        await reply(send, 204)


class SendsInTurn(Web):
    """Sends to one client after another, and waits until each has read."""

    turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_turn(message: object) -> None:
            async with self.turn:
                await send(message)  # type: ignore[arg-type]

        await super().__call__(scope, receive, send_in_turn)


class FewAtATime(Web):
    """Answers sixty-four requests at a time, whichever client's they are."""

    turns = asyncio.Semaphore(64)

    async def exchange(
        self, client: HttpSession, id: bytes, line: bytes, modern: bool, receive: Receive, send: Send
    ) -> None:
        async with self.turns:
            await super().exchange(client, id, line, modern, receive, send)


FAULTS: Mapping[str, Fault] = {
    "answers-by-id-alone": Fault(
        "answers the client that used an id last",
        "shared.results",
        Parts(web=ByIdAlone),
        HTTP,
        also=(
            "security.sessions-apart",
            "shared.progress",
            "shared.logs",
            "shared.notifications",
            "shared.errors",
            "shared.cancel",
            "shared.elicitation",
        ),
    ),
    "progress-to-all": Fault(
        "tells every client of progress",
        "shared.progress",
        Parts(names=BroadcastsProgress),
        HTTP,
        also=(
            "conversation.progress-of-two-clients",
            "security.sessions-apart",
        ),
    ),
    "logs-to-latest": Fault(
        "tells the latest client what servers log",
        "shared.logs",
        Parts(names=LogsToLatest),
        HTTP,
        also=("security.sessions-apart",),
    ),
    "one-level": Fault("has one log level for all", "shared.log-level", Parts(names=OneLevel), HTTP),
    "notifies-all": Fault(
        "passes unknown notifications to every client",
        "shared.notifications",
        Parts(names=BroadcastsOthers),
        HTTP,
    ),
    "one-error": Fault(
        "answers every call of an id with the error of one", "shared.errors", Parts(names=OneError), HTTP
    ),
    "cancels-for-all": Fault(
        "cancels the calls of other clients", "shared.cancel", Parts(names=CancelsForAll), HTTP
    ),
    "updates-to-all": Fault(
        "tells every client that a resource changed", "shared.updates", Parts(names=BroadcastsUpdates), HTTP
    ),
    "unsubscribes-all": Fault(
        "ends every client's subscription", "shared.unsubscribe", Parts(names=UnsubscribesAll), HTTP
    ),
    "asks-latest": Fault(
        "asks the latest client for a form",
        "shared.elicitation",
        Parts(names=AsksLatest),
        HTTP,
        also=(
            "conversation.questions-stay-apart",
            "shared.capabilities",
        ),
    ),
    "remembers-sampled": Fault(
        "answers a question as another client's model did",
        "shared.sampling",
        Parts(names=RemembersSampled),
        HTTP,
    ),
    "remembers-roots": Fault(
        "has the roots of the first client for all", "shared.roots", Parts(names=RemembersRoots), HTTP
    ),
    "keeps-roots": Fault(
        "asks a client for its roots once for all", "shared.roots-changed", Parts(names=KeepsRoots), HTTP
    ),
    "one-question": Fault(
        "refuses a question while another client is asked",
        "shared.questions-at-a-time",
        Parts(names=OneQuestion),
        HTTP,
    ),
    "asks-who-can": Fault(
        "asks another client if its own can't be asked",
        "shared.capabilities",
        Parts(names=AsksWhoCan),
        HTTP,
    ),
    "asks-who-is-there": Fault(
        "asks another client what a cancelled call still asks",
        "shared.left-behind",
        Parts(names=AsksWhoIsThere),
        HTTP,
    ),
    "first-name": Fault(
        "calls itself by the name of the first client", "shared.client-info", Parts(names=FirstName), HTTP
    ),
    "one-use-cursors": Fault(
        "gives cursors that work once for all clients", "shared.cursors", Parts(names=OneUseCursors), HTTP
    ),
    "tells-first": Fault(
        "tells only the first client of changed lists", "shared.list-changed", Parts(names=TellsFirst), HTTP
    ),
    "dies-of-hanging-up": Fault(
        "exits when a client hangs up", "shared.crash", Parts(web=DiesOfHangingUp), HTTP
    ),
    "ends-all": Fault(
        "ends every client's calls with one session", "shared.disconnect", Parts(web=EndsAll), HTTP
    ),
    "forgets-only": Fault(
        "lets the calls of an ended session go on", "shared.disconnect-cancels", Parts(web=ForgetsOnly), HTTP
    ),
    "sends-in-turn": Fault(
        "waits for a client that does not read", "shared.hang", Parts(web=SendsInTurn), HTTP
    ),
    "few-at-a-time": Fault(
        "answers sixty-four requests at a time", "shared.flood", Parts(web=FewAtATime), HTTP
    ),
    "one-process": Fault(
        "has one process of a server for all clients",
        "shared.processes",
        Parts(web=OneConnection),
        HTTP,
        also=("conversation.questions-stay-apart", *OF_ONE_CONNECTION),
    ),
}
