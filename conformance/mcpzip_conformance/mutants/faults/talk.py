"""Faults of messages during a call, and of changes between calls."""

import os
from collections.abc import Mapping

from mcpzip.wire import (
    INTERNAL_ERROR,
    LOG_LEVEL_KEY,
    Cancelled,
    Event,
    Request,
    RpcError,
    Unmatched,
    progress_token,
    with_members,
    with_progress_token,
    without_members,
)
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.end import RefusedError
from mcpzip_conformance.mutants.relay.naming import members
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.session import Servers, Session
from mcpzip_conformance.mutants.relay.upstream import Link

PROGRESS, LOG = "notifications/progress", "notifications/message"


class Deaf(Session):
    """Drops notifications. unheard: the beginnings of their methods."""

    unheard: tuple[str, ...] = ()

    def notify(self, method: str, params: bytes | None = None, about: bytes | None = None) -> None:
        if not method.startswith(self.unheard):
            super().notify(method, params, about)


class NoProgress(Deaf):
    unheard = (PROGRESS,)


class NoLogs(Deaf):
    unheard = (LOG,)


class NoChanges(Deaf):
    unheard = tuple(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))


class NoUpdates(Deaf):
    unheard = ("notifications/resources/updated",)


class NoAcknowledgement(Deaf):
    unheard = ("notifications/subscriptions/acknowledged",)


class LateProgress(Session):
    """Sends the progress after the call."""

    late: tuple[tuple[bytes | None, bytes | None], ...] = ()

    def notify(self, method: str, params: bytes | None = None, about: bytes | None = None) -> None:
        if method == PROGRESS:
            self.late = (*self.late, (params, about))
        else:
            super().notify(method, params, about)

    def write(self, line: bytes, about: bytes | None, *, last: bool = False) -> None:
        super().write(line, about, last=last)
        late, self.late = self.late, ()
        for params, of in late if last else ():
            super().notify(PROGRESS, params, of)


class TokensAsText(Session):
    def notify(self, method: str, params: bytes | None = None, about: bytes | None = None) -> None:
        token = members(params).get("progressToken", b"")
        if method == PROGRESS and not token.startswith(b'"'):
            params = with_members(params or b"{}", {"progressToken": b'"%b"' % token})
        super().notify(method, params, about)


class OneToken(Session):
    """Uses the progress token of the latest call for all."""

    token = b'"none"'

    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        self.token = progress_token(params) or self.token
        return await super().sent_on(request, link, params)

    def notify(self, method: str, params: bytes | None = None, about: bytes | None = None) -> None:
        if method == PROGRESS:
            params = with_members(params or b"{}", {"progressToken": self.token})
        super().notify(method, params, about)


class AsksForProgress(Session):
    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        if request.method == "tools/call" and progress_token(params) is None:
            params = with_progress_token(params, b'"relay"')
        return await super().sent_on(request, link, params)


class KeepsCancel(Link):
    def send_cancellation(self, number: int, line: bytes) -> None:
        """Nobody else hears of it."""


class AnswersCancelled(Session):
    def event(self, event: Event) -> None:
        if isinstance(event, Cancelled):
            error = b'{"code":-32800,"message":"cancelled"}'
            self.write(b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (event.id, error), event.id)
        super().event(event)


class CancelsAll(Session):
    def event(self, event: Event) -> None:
        if isinstance(event, Cancelled):
            for task in self.serving.values():
                task.cancel()
        super().event(event)


class DiesOfCancel(Session):
    def event(self, event: Event) -> None:
        if isinstance(event, Unmatched) and event.kind == "cancelled":
            os._exit(1)
        super().event(event)


class KeepsLevel(Session):
    async def level_set(self, request: Request, servers: Servers) -> bytes:
        return b"{}"


class DropsLogLevel(Session):
    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        meta = without_members(members(params).get("_meta", b"{}"), (LOG_LEVEL_KEY,))
        return await super().sent_on(request, link, with_members(params or b"{}", {"_meta": meta}))


class RefusesPings(Link):
    async def handle_request(self, request: Request) -> bytes:
        if request.method == "ping":
            raise RefusedError(RpcError(INTERNAL_ERROR, "Not now."))
        return await super().handle_request(request)


class KeepsUnsubscribe(Session):
    async def passed(self, request: Request, servers: Servers) -> bytes:
        return b"{}" if request.method == "resources/unsubscribe" else await super().passed(request, servers)


class OneListening(Session):
    """Ends all subscriptions when one ends."""

    async def listened(self, request: Request, servers: Servers) -> bytes:
        try:
            return await super().listened(request, servers)
        finally:
            for id in list(self._listens):
                self.serving[id].cancel()


class TellsEverything(Session):
    """Subscribes clients to everything."""

    async def listened(self, request: Request, servers: Servers) -> bytes:
        wanted = b'{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}'
        params = with_members(request.params or b"{}", {"notifications": wanted})
        return await super().listened(Request(request.id, request.method, params), servers)


class Untagged(Session):
    def subscribed(self, method: str, params: bytes | None, id: bytes) -> None:
        super().subscribed(method, params, b"0" if method.endswith("_changed") else id)


FAULTS: Mapping[str, Fault] = {
    "keeps-progress": Fault(
        "passes no progress on",
        "conversation.progress",
        Parts(names=NoProgress),
    ),
    "late-progress": Fault(
        "tells of progress when the call is over",
        "conversation.progress",
        Parts(names=LateProgress),
    ),
    "tokens-as-text": Fault(
        "gives progress tokens back as strings",
        "conversation.progress-token-kinds",
        Parts(names=TokensAsText),
        also=("conversation.progress-of-two-servers",),
    ),
    "one-token": Fault(
        "tells of progress under the token of the latest call",
        "conversation.progress-of-two-calls",
        Parts(names=OneToken),
        also=("conversation.progress-of-two-servers",),
    ),
    "asks-for-progress": Fault(
        "asks for progress that its client did not ask for",
        "conversation.progress-not-asked",
        Parts(names=AsksForProgress),
    ),
    "swallows-cancel": Fault(
        "keeps a cancellation to itself", "conversation.cancel-reaches-server", Parts(link=KeepsCancel)
    ),
    "answers-cancelled": Fault(
        "answers what was cancelled", "conversation.cancel-unanswered", Parts(names=AnswersCancelled)
    ),
    "cancels-all": Fault(
        "cancels every call with one", "conversation.cancel-leaves-others", Parts(names=CancelsAll)
    ),
    "dies-of-cancel": Fault(
        "exits when what isn't there is cancelled", "conversation.cancel-unknown", Parts(names=DiesOfCancel)
    ),
    "refuses-pings": Fault("refuses a server's ping", "conversation.server-ping", Parts(link=RefusesPings)),
    "keeps-logs": Fault("passes no logs on", "conversation.logging", Parts(names=NoLogs)),
    "keeps-level": Fault(
        "keeps the level of logs to itself", "conversation.logging-level", Parts(names=KeepsLevel)
    ),
    "drops-log-level": Fault(
        "keeps the level of a request to itself", "conversation.logging-modern", Parts(names=DropsLogLevel)
    ),
    "keeps-changes": Fault(
        "keeps it to itself that lists change", "conversation.tools-changed", Parts(names=NoChanges)
    ),
    "keeps-updates": Fault(
        "keeps it to itself that resources change", "conversation.subscribe", Parts(names=NoUpdates)
    ),
    "keeps-unsubscribe": Fault(
        "keeps subscriptions that were ended", "conversation.unsubscribe", Parts(names=KeepsUnsubscribe)
    ),
    "one-listening": Fault(
        "ends every listening with one", "conversation.listen-cancelled", Parts(names=OneListening)
    ),
    "acknowledges-nothing": Fault(
        "does not acknowledge a subscription", "conversation.listen", Parts(names=NoAcknowledgement)
    ),
    "tells-everything": Fault(
        "tells of lists that nobody asked for", "conversation.listen", Parts(names=TellsEverything)
    ),
    "untagged": Fault(
        "tells of changes in the name of no subscription",
        "conversation.listen-lists",
        Parts(names=Untagged),
    ),
}
