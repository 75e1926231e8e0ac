"""Faults with misbehaving servers, shutdown and secrets."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping

from mcpzip.wire import Closed, Event, NotAMessage, Request
from mcpzip_conformance.channel import Channel
from mcpzip_conformance.channel.stdio import StdioChannel
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.end import GoneError, RefusedError
from mcpzip_conformance.mutants.relay.relay import Parts, Stdio
from mcpzip_conformance.mutants.relay.session import Config, Servers, Session, Write
from mcpzip_conformance.mutants.relay.upstream import Link, Upstream


class HangsOnJunk(Link):
    deaf = False

    def event(self, event: Event) -> None:
        self.deaf = self.deaf or isinstance(event, NotAMessage)
        super().event(event)

    def line(self, raw: bytes) -> None:
        if not self.deaf:
            super().line(raw)


class ReadsInPieces(Link):
    async def connected(self) -> Channel:
        channel = await super().connected()
        assert isinstance(channel, StdioChannel)
        received = channel.process._received

        def in_pieces(data: bytes) -> None:
            received(data if not data or data.endswith(b"\n") else data + b"\n")

        channel.process._received = in_pieces
        return channel


class ReadsNoStderr(Link):
    async def connected(self) -> Channel:
        channel = await super().connected()
        stderr = channel.process._transport.get_pipe_transport(2)
        assert isinstance(stderr, asyncio.ReadTransport)
        stderr.pause_reading()
        return channel


class MixesAnswers(Link):
    """Uses an answer for the oldest open request."""

    def settle(self, number: int, result: bytes) -> None:
        waiting = [id for id, sent in self.sent.items() if sent.origin is not None and not sent.answer.done()]
        super().settle(min(waiting) if number in waiting else number, result)


class WaitsForEver(Link):
    def event(self, event: Event) -> None:
        if not isinstance(event, Closed):
            super().event(event)


class NeverReconnects(Upstream):
    async def link(self) -> Link:
        if self.up is not None and self.up.dead:
            raise GoneError(f"The server {self.name} has ended.")
        return await super().link()


class AllOrNone(Upstream):
    async def started(self) -> bool:
        if not await super().started():
            os._exit(1)
        return True


class OneAtATime(Session):
    turn: asyncio.Lock | None = None

    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        if request.method != "tools/call":
            return await super().sent_on(request, link, params)
        self.turn = self.turn or asyncio.Lock()
        async with self.turn:
            return await super().sent_on(request, link, params)


class OneRequestAtATime(Session):
    turn: asyncio.Lock | None = None

    async def handle_request(self, request: Request) -> bytes:
        self.turn = self.turn or asyncio.Lock()
        async with self.turn:
            return await super().handle_request(request)


class WaitsForAll(Session):
    async def answered(self, request: Request) -> bytes:
        result = await super().answered(request)
        if request.method == "initialize" and self.servers is not None:
            await asyncio.gather(*(upstream.started() for upstream in self.servers.by_name.values()))
        return result


class RunsWithAll(Session):
    async def run_tool(self, request: Request, upstream: Upstream, params: bytes) -> bytes:
        others = self.servers.by_name.values() if self.servers is not None else ()
        while not all([await other.started() or other.failure for other in others]):
            pass  # each takes its time to say so
        return await super().run_tool(request, upstream, params)


class ListsAllOrNone(Session):
    """Neither lists nor calls work until all servers are listed."""

    async def answered(self, request: Request) -> bytes:
        for upstream in self.servers.by_name.values() if self.servers is not None else ():
            if request.method.startswith("tools/"):
                await (await upstream.link()).ask("tools/list")
        return await super().answered(request)


# The end


class Stays(Stdio):
    def received(self, data: bytes) -> None:
        if data:
            super().received(data)


class Finishing(Session):
    async def end(self) -> None:
        await asyncio.gather(*self.serving.values(), return_exceptions=True)
        await super().end()


class IgnoresSigterm(Stdio):
    async def serve(self) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        await super().serve()


class LeavesServers(Link):
    async def end(self) -> None:
        if self._guard is not None:
            self._guard.kill()
            self._guard.wait()


class Leaves(Stdio):
    async def serve(self) -> None:
        await super().serve()
        os._exit(0)


# Secrets


class Inherits(Upstream):
    def environment(self) -> dict[str, str]:
        return {**os.environ, **super().environment()}


class KeepsTokens(Upstream):
    def environment(self) -> dict[str, str]:
        every = super().environment()
        return {key: value for key, value in every.items() if not key.endswith("_TOKEN")}


class SharesEnvironment(Session):
    def __init__(self, config: Config, write: Write, shared: Servers | None = None) -> None:
        given = [entry.get("env") for entry in config.servers.values()]
        every = {key: value for env in given if isinstance(env, dict) for key, value in env.items()}
        servers = {name: {**entry, "env": every} for name, entry in config.servers.items()}
        super().__init__(Config(servers, config.upstream, config.link), write, shared)


class TellsSecrets(Upstream):
    async def link(self) -> Link:
        try:
            return await super().link()
        except GoneError as error:
            raise GoneError(f"{error} Its environment: {self.environment()}") from error


class LogsSecrets(Upstream):
    async def link(self) -> Link:
        try:
            return await super().link()
        except RefusedError:
            print(f"{self.name} is down; its environment: {self.environment()}", file=sys.stderr, flush=True)
            raise


FAULTS: Mapping[str, Fault] = {
    "hangs-on-junk": Fault(
        "stops reading a server that writes junk", "resilience.junk-on-stdout", Parts(link=HangsOnJunk)
    ),
    "reads-in-pieces": Fault(
        "takes what it reads at a time for a message",
        "resilience.torn-answer",
        Parts(link=ReadsInPieces),
        also=(
            "fidelity.large-result",
            "fidelity.resource-text",
        ),
    ),
    "reads-no-stderr": Fault(
        "does not read a server's stderr", "resilience.stderr-flood", Parts(link=ReadsNoStderr)
    ),
    "mixes-answers": Fault(
        "answers calls in the order they came",
        "resilience.concurrent-calls",
        Parts(link=MixesAnswers),
        also=("conversation.listen",),
    ),
    "waits-for-ever": Fault(
        "leaves a call open when its server dies",
        "resilience.crash-before-answer",
        Parts(link=WaitsForEver),
        also=("resilience.crash-within-answer",),
    ),
    "never-reconnects": Fault(
        "never starts a server again", "resilience.reconnect", Parts(upstream=NeverReconnects)
    ),
    "all-or-none": Fault(
        "exits when a server does",
        "resilience.dead-server",
        Parts(upstream=AllOrNone),
        also=("resilience.missing-command",),
    ),
    "one-at-a-time": Fault(
        "makes calls wait for each other",
        "resilience.slow-call-other-server",
        Parts(names=OneAtATime),
    ),
    "one-request-at-a-time": Fault(
        "makes requests wait for each other",
        "conversation.ping-during-call",
        Parts(names=OneRequestAtATime),
        also=(
            "conversation.listen",
            "resilience.slow-call-other-server",
        ),
    ),
    "waits-for-all": Fault(
        "answers initialize when all servers are up", "resilience.slow-start", Parts(names=WaitsForAll)
    ),
    "runs-with-all": Fault(
        "runs a tool when all servers are up",
        "resilience.slow-start-others",
        Parts(names=RunsWithAll),
        also=("resilience.silent-server",),
    ),
    "lists-all-or-none": Fault(
        "fails a listing when one server does",
        "resilience.failing-listing",
        Parts(names=ListsAllOrNone),
        also=(
            "resilience.dead-server",
            "resilience.missing-command",
            "resilience.silent-server",
            "resilience.slow-start-others",
        ),
    ),
    "stays": Fault(
        "stays when its input ends",
        "resilience.exit-on-eof",
        Parts(stdio=Stays),
        also=("resilience.exit-on-eof-mid-call",),
    ),
    "finishes-first": Fault(
        "stays until every call is answered", "resilience.exit-on-eof-mid-call", Parts(names=Finishing)
    ),
    "ignores-sigterm": Fault("ignores SIGTERM", "resilience.exit-on-sigterm", Parts(stdio=IgnoresSigterm)),
    "leaves-servers": Fault(
        "leaves its servers running", "resilience.no-orphan", Parts(link=LeavesServers, stdio=Leaves)
    ),
    "inherits": Fault(
        "gives servers its own environment", "security.environment-of-the-proxy", Parts(upstream=Inherits)
    ),
    "keeps-tokens": Fault(
        "gives servers no variable that looks like a secret",
        "security.own-environment",
        Parts(upstream=KeepsTokens),
    ),
    "shares-environment": Fault(
        "gives every server every env", "security.environment-of-others", Parts(names=SharesEnvironment)
    ),
    "tells-secrets": Fault(
        "puts a server's env into its errors", "security.secrets-in-messages", Parts(upstream=TellsSecrets)
    ),
    "logs-secrets": Fault(
        "puts a server's env into its log", "security.secrets-on-stderr", Parts(upstream=LogsSecrets)
    ),
}
