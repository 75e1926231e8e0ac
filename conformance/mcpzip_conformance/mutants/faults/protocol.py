"""Faults of the messages themselves."""

import os
from collections.abc import Mapping

from mcpzip.wire import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MODERN_VERSION,
    Event,
    Invalid,
    Request,
    RpcError,
    quote,
    read_opening,
    split_object,
    stamp_request,
    with_members,
    without_members,
)
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.end import RefusedError
from mcpzip_conformance.mutants.relay.naming import members
from mcpzip_conformance.mutants.relay.relay import Parts, Stdio
from mcpzip_conformance.mutants.relay.session import Session


class SpellsIds(Stdio):
    def write(self, line: bytes, about: bytes | None, last: bool) -> None:
        if line and last and about is not None and not about.startswith(b'"'):
            line = with_members(line.rstrip(b"\n"), {"id": b'"%b"' % about}) + b"\n"
        super().write(line, about, last)


class AnswersTwice(Stdio):
    def write(self, line: bytes, about: bytes | None, last: bool) -> None:
        super().write(line, about, last)
        if last:
            super().write(line, about, last)


class LogsToStdout(Stdio):
    async def serve(self) -> None:
        self.write(b"relay 1.0 listening on stdio\n", None, False)
        await super().serve()


class DiesOfJunk(Session):
    def event(self, event: Event) -> None:
        if isinstance(event, Invalid):
            os._exit(1)
        super().event(event)


class SilentOnJunk(Session):
    def event(self, event: Event) -> None:
        if not isinstance(event, Invalid):
            super().event(event)


class DiesOfBatches(Stdio):
    def received(self, data: bytes) -> None:
        if data.startswith(b"["):
            os._exit(1)
        super().received(data)


class AnswersNotifications(Session):
    def handle_notification(self, method: str, params: bytes | None) -> None:
        self.write(b'{"jsonrpc":"2.0","id":null,"result":{}}\n', None)
        super().handle_notification(method, params)


class AnswersAnything(Session):
    async def answered(self, request: Request) -> bytes:
        try:
            return await super().answered(request)
        except RefusedError as refused:
            if refused.error.code != METHOD_NOT_FOUND:
                raise
            return b"{}"


class Unanswered(Session):
    async def answered(self, request: Request) -> bytes:
        if request.method == "ping":
            raise self.unknown("ping")
        return await super().answered(request)


class Old(Session):
    def greeting(self, request: Request) -> bytes:
        return with_members(super().greeting(request), {"protocolVersion": quote("2025-06-18")})


class Nameless(Session):
    def greeting(self, request: Request) -> bytes:
        return without_members(super().greeting(request), ("serverInfo",))


class AnyVersion(Session):
    def greeting(self, request: Request) -> bytes:
        asked = members(request.params).get("protocolVersion", b'""')
        return with_members(super().greeting(request), {"protocolVersion": asked})


class AnyModernVersion(Session):
    async def handle_request(self, request: Request) -> bytes:
        opened = read_opening(request.method, request.params)
        if opened is not None and opened.version == "2099-01-01":
            params = stamp_request(request.params, MODERN_VERSION, b"{}", b"{}")
            request = Request(request.id, request.method, params)
        return await super().handle_request(request)


class Unstamped(Session):
    async def handle_request(self, request: Request) -> bytes:
        return without_members(await super().handle_request(request), ("resultType",))


class WantsDiscovery(Session):
    async def handle_request(self, request: Request) -> bytes:
        if self.servers is None and request.method not in ("initialize", "ping", "server/discover"):
            raise RefusedError(RpcError(INVALID_REQUEST, "Discover first."))
        return await super().handle_request(request)


class OneCode(Session):
    def write(self, line: bytes, about: bytes | None, *, last: bool = False) -> None:
        if line and last and "error" in split_object(line):
            error = with_members(split_object(line)["error"], {"code": b"-32603"})
            line = with_members(line.rstrip(b"\n"), {"error": error}) + b"\n"
        super().write(line, about, last=last)


FAULTS: Mapping[str, Fault] = {
    "spells-ids": Fault("answers number ids as strings", "protocol.ids", Parts(stdio=SpellsIds)),
    "dies-of-junk": Fault(
        "exits on a line that is not JSON", "protocol.malformed-line", Parts(names=DiesOfJunk)
    ),
    "silent-on-junk": Fault(
        "does not answer what it can't read", "protocol.malformed-line-answered", Parts(names=SilentOnJunk)
    ),
    "dies-of-batches": Fault("exits on a batch", "protocol.batch", Parts(stdio=DiesOfBatches)),
    "answers-notifications": Fault(
        "answers notifications", "protocol.notification-unanswered", Parts(names=AnswersNotifications)
    ),
    "answers-anything": Fault(
        "answers unknown methods with {}", "protocol.unknown-method", Parts(names=AnswersAnything)
    ),
    "one-code": Fault(
        "gives all its errors one code",
        "protocol.unknown-method",
        Parts(names=OneCode),
        also=(
            "fidelity.error",
            "protocol.unknown-version-modern",
        ),
    ),
    "answers-twice": Fault("answers every request twice", "protocol.answers-once", Parts(stdio=AnswersTwice)),
    "logs-to-stdout": Fault("logs to stdout", "protocol.stdout-is-messages", Parts(stdio=LogsToStdout)),
    "knows-no-ping": Fault(
        "refuses a ping",
        "protocol.ping",
        Parts(names=Unanswered),
        also=(
            "resilience.crash-before-answer",
            "resilience.crash-within-answer",
        ),
    ),
    "old": Fault("answers in 2025-06-18 always", "protocol.version-2025-11-25", Parts(names=Old)),
    "nameless": Fault("says not who it is", "protocol.version-2025-11-25", Parts(names=Nameless)),
    "any-version": Fault("speaks any version", "protocol.unknown-version", Parts(names=AnyVersion)),
    "any-modern-version": Fault(
        "speaks any version per request", "protocol.unknown-version-modern", Parts(names=AnyModernVersion)
    ),
    "unstamped": Fault(
        "leaves resultType out",
        "protocol.version-2026-07-28",
        Parts(names=Unstamped),
        also=("conversation.mrtr",),
    ),
    "wants-discovery": Fault(
        "wants server/discover first",
        "protocol.first-request-modern",
        Parts(names=WantsDiscovery),
        also=("protocol.unknown-version-modern",),
    ),
}
