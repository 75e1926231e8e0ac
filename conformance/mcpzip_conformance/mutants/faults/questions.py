"""Faults of questions to clients, within an era and between eras."""

from collections.abc import Mapping

from mcpzip.wire import (
    CLIENT_CAPABILITIES_KEY,
    INTERNAL_ERROR,
    Request,
    RpcError,
    join_object,
    with_members,
    without_members,
)
from mcpzip.wire import (
    Opening as Opened,
)
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.end import RefusedError
from mcpzip_conformance.mutants.relay.naming import members
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.session import Servers, Session
from mcpzip_conformance.mutants.relay.upstream import Link

EVERYTHING = b'{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}'


class Claims(Session):
    """Declares all client capabilities to servers."""

    def opened(self, request: Request, opened: Opened, modern: bool) -> Servers:
        if not modern:
            params = with_members(request.params or b"{}", {"capabilities": EVERYTHING})
            request = Request(request.id, request.method, params)
        return super().opened(request, opened, modern)


class ClaimsModern(Session):
    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        meta = members(members(params).get("_meta"))
        if CLIENT_CAPABILITIES_KEY in meta:
            meta = {**meta, CLIENT_CAPABILITIES_KEY: EVERYTHING}
            params = with_members(params or b"{}", {"_meta": join_object(meta)})
        return await super().sent_on(request, link, params)


class Answering(Link):
    """Answers the server's requests instead of the client."""

    answer = b"{}"

    async def handle_request(self, request: Request) -> bytes:
        return self.answer if request.method != "ping" else await super().handle_request(request)


class Declines(Answering):
    answer = b'{"action":"decline"}'


class NoRoots(Answering):
    answer = b'{"roots":[]}'


class AnswersRefused(Link):
    async def handle_request(self, request: Request) -> bytes:
        try:
            return await super().handle_request(request)
        except RefusedError:
            return b"{}"


class ForgetsState(Session):
    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        return without_members(await super().sent_on(request, link, params), ("requestState",))


class KeepsResponses(Session):
    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        return await super().sent_on(request, link, without_members(params or b"{}", ("inputResponses",)))


class LegacyOnly(Link):
    async def _discover(self) -> bytes:
        raise RefusedError(RpcError(INTERNAL_ERROR, "It speaks another language."))


class ModernOnly(Link):
    async def _initialize(self) -> bytes:
        if not self.upstream.opening.modern:
            return await super()._initialize()
        raise RefusedError(RpcError(INTERNAL_ERROR, "It speaks another language."))


FAULTS: Mapping[str, Fault] = {
    "claims": Fault(
        "says that its client can do everything", "conversation.capabilities-told", Parts(names=Claims)
    ),
    "claims-modern": Fault(
        "says with each request that its client can do everything",
        "conversation.capabilities-told-modern",
        Parts(names=ClaimsModern),
    ),
    "declines": Fault(
        "declines forms in its client's place", "conversation.elicitation-form", Parts(link=Declines)
    ),
    "samples": Fault("answers sampling with {}", "conversation.sampling", Parts(link=Answering)),
    "no-roots": Fault("says that there are no roots", "conversation.roots", Parts(link=NoRoots)),
    "answers-refused": Fault(
        "answers {} where its client refuses", "conversation.question-refused", Parts(link=AnswersRefused)
    ),
    "forgets-state": Fault("drops requestState", "conversation.mrtr", Parts(names=ForgetsState)),
    "keeps-responses": Fault("drops inputResponses", "conversation.mrtr", Parts(names=KeepsResponses)),
    "legacy-only": Fault(
        "knows only initialize towards servers", "conversation.modern-server", Parts(link=LegacyOnly)
    ),
    "modern-only": Fault(
        "knows no initialize towards servers when its client is modern",
        "conversation.legacy-server",
        Parts(link=ModernOnly),
    ),
}
