"""Faults of several processes."""

import asyncio
from collections.abc import Mapping

import httpx

from mcpzip.wire import MODERN_VERSIONS, join_object, quote
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.exchange import JSON, Headers, Receive, Refusal, Scope, Send, reply
from mcpzip_conformance.mutants.relay.gateway import NOW, Gateway, Team
from mcpzip_conformance.mutants.relay.http import PATH, HttpSession
from mcpzip_conformance.mutants.relay.naming import members, text
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.session import Config, Session

GATEWAY = "names-gateway"
OF_ONE_PROCESS = (
    "replicas.session-of-another-person",
    "replicas.session-ended",
    "replicas.question",
    "replicas.killed",
    "replicas.killed-elsewhere",
    "replicas.drain",
    "replicas.rolling-restart",
    "replicas.lists",
)
"""What else a proxy fails whose sessions are known to one process."""


class KnowsItsOwn(Gateway):
    """Knows the sessions that began here."""

    async def passed_in_session(
        self, verb: str, headers: Headers, body: bytes, receive: Receive | None, send: Send
    ) -> bool:
        self.check_owner(
            self.recall("session", headers.get("mcp-session-id", "")), "There is no such session."
        )
        self.find_session(headers)
        return False


class Greets(Gateway):
    """Makes calls of modern clients that have asked this process something else before."""

    async def post(self, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        message = members(body)
        if headers.get("mcp-protocol-version") in MODERN_VERSIONS:
            known = self.shared / f"greeted-{self.port}"
            if text(message.get("method")) != "tools/call":
                known.touch()
            elif not known.exists():
                raise Refusal(400, "Ask for server/discover first.")
        await super().post(headers, body, receive, send)


class AnySession(Gateway):
    """Begins a session for any id."""

    def find_session(self, headers: Headers) -> HttpSession:
        id = headers.get("mcp-session-id", "")
        if id and id not in self.sessions:
            self.sessions[id] = HttpSession(self.config, self.session)
            self.sessions[id].id = id
            self.remember("session", id, {"home": self.home, "person": NOW.get()[0], "opening": "{}"})
        return super().find_session(headers)


class ForAll(Gateway):
    """Doesn't compare whose a session or a call is."""

    def check_owner(self, known: Mapping[str, str], otherwise: str) -> None:
        pass


class StatesForAll(Gateway):
    """Doesn't compare whose call waits."""

    def check_owner(self, known: Mapping[str, str], otherwise: str) -> None:
        if "opening" in known:
            super().check_owner(known, otherwise)


class EndsHere(Gateway):
    """Ends a session in this process only."""

    async def delete(self, headers: Headers, send: Send) -> None:
        known = self.recall("session", headers.get("mcp-session-id", ""))
        self.check_owner(known, "There is no such session.")
        client = self.sessions.pop(headers.get("mcp-session-id", ""), None)
        await reply(send, 204)
        if client is not None:
            await client.session.end()


class DropsAnswers(Gateway):
    """Takes a client's answers where they come."""

    async def passed_in_session(
        self, verb: str, headers: Headers, body: bytes, receive: Receive | None, send: Send
    ) -> bool:
        here = headers.get("mcp-session-id", "") in self.sessions
        if verb == "POST" and "method" not in members(body) and not here:
            await reply(send, 202)
            return True
        return await super().passed_in_session(verb, headers, body, receive, send)


class KeepsStates(Gateway):
    """Tells nobody of calls that wait."""

    def remember(self, kind: str, id: str, what: Mapping[str, str]) -> None:
        if kind != "state":
            super().remember(kind, id, what)


class ListsHalf(Gateway):
    """Shows the last server in one process only."""

    def new_session(self) -> HttpSession:
        config = self.config
        self.config = self._part(config)
        try:
            return super().new_session()
        finally:
            self.config = config

    def _part(self, config: Config) -> Config:
        first = self.shared / "first"
        try:
            first.open("x").write(self.home)
        except FileExistsError:
            pass
        names = list(config.servers)
        if first.read_text() == self.home or len(names) == 1:
            return config
        return Config({name: config.servers[name] for name in names[:-1]}, config.upstream, config.link)


class MakesAgain(Gateway):
    """Makes a call again whose process has died."""

    async def lost(self, id: bytes, begun: bool, request: httpx.Request, send: Send) -> bool:
        return False


class SaysNothingRan(Gateway):
    """Says of a call whose process has died that nothing ran."""

    async def lost(self, id: bytes, begun: bool, request: httpx.Request, send: Send) -> bool:
        said = join_object({"code": b"-32000", "message": quote("The call was not run; make it again.")})
        line = join_object({"jsonrpc": b'"2.0"', "id": id, "error": said})
        await reply(send, 200, line, {"content-type": JSON})
        return True


class TakesOver(Gateway):
    """Makes the calls again that were under way in a process that has died."""

    _watch: "asyncio.Task[None] | None" = None

    async def post(self, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        if self._watch is None:
            self._watch = asyncio.create_task(self._watching())
        if text(members(body).get("method")) != "tools/call" or "x-relay-from" in headers:
            await super().post(headers, body, receive, send)
            return
        file = self.files("call", body.decode())[0]
        self.remember("call", body.decode(), {"home": self.home, "body": body.decode()})
        try:
            await super().post(headers, body, receive, send)
        finally:
            file.unlink(missing_ok=True)

    async def _watching(self) -> None:
        while True:
            await asyncio.sleep(0.05)
            for file in self.shared.glob("call-*"):
                call = httpx.Response(200, content=file.read_bytes()).json() if file.exists() else {}
                if call.get("home", self.home) != self.home and await self._has_died(call["home"]):
                    file.unlink(missing_ok=True)
                    self._again(call["body"].encode())

    async def _has_died(self, home: str) -> bool:
        try:
            await self._client.options(home + PATH)
        except httpx.ConnectError:
            return True
        return False

    def _again(self, body: bytes) -> None:
        NOW.set(("nobody", body))
        line = body.replace(b"\n", b" ") + b"\n"
        message = members(body)
        if "_meta" in members(message.get("params")):
            self.stateless_session(message).session.received(line)
        else:
            list(self.sessions.values())[-1].session.received(line)


class LetsDie(Gateway):
    """Ends a session with the process in which it began, and doesn't say so."""

    async def begin_again(self, id: str, known: Mapping[str, str]) -> None:
        raise Refusal(502, "The replica of this session is gone.")


class DropsCalls(Gateway):
    """Waits at its end for two calls, and not for more."""

    def __init__(self, config: Config, session: type[Session], team: Team, port: int) -> None:
        super().__init__(config, session, team, port)
        self._posts: set[asyncio.Future[None]] = set()

    def drain(self) -> None:
        super().drain()
        for call in self._posts if len(self._posts) > 2 else ():
            call.cancel()

    async def post(self, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        call = asyncio.ensure_future(super().post(headers, body, receive, send))
        self._posts.add(call)
        try:
            await call
        finally:
            self._posts.discard(call)


class NotYet(Gateway):
    """Takes connections before it can serve, after a restart."""

    _ready_at: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop, began = asyncio.get_running_loop(), self.shared / f"began-{self.port}"
        if self._ready_at is None:
            self._ready_at = loop.time() + (0.5 if began.exists() else 0.0)
            began.touch()
        if loop.time() < self._ready_at:
            await reply(send, 503)
        else:
            await super().__call__(scope, receive, send)


def _fault(about: str, check: str, gateway: type[Gateway], *also: str) -> Fault:
    return Fault(about, f"replicas.{check}", Parts(gateway=gateway), GATEWAY, also)


FAULTS: Mapping[str, Fault] = {
    "knows-its-own": _fault("knows the sessions of one process", "session", KnowsItsOwn, *OF_ONE_PROCESS),
    "greets-first": _fault(
        "serves modern clients that it knows",
        "modern",
        Greets,
        "replicas.question-modern",
        "replicas.rolling-restart",
    ),
    "begins-any-session": _fault(
        "begins a session for any id",
        "forged-session",
        AnySession,
        "protocol.http-session-ended",
        "replicas.session-ended",
    ),
    "sessions-for-all": _fault(
        "lets anybody into a session, and answer a call",
        "session-of-another-person",
        ForAll,
        "replicas.question-of-another-person",
        "resource-server.session-of-another-person",
    ),
    "states-for-all": _fault("lets anybody answer a call", "question-of-another-person", StatesForAll),
    "ends-here": _fault(
        "ends a session in one process", "session-ended", EndsHere, "protocol.http-session-ended"
    ),
    "drops-answers": _fault("drops answers that come elsewhere", "question", DropsAnswers),
    "keeps-states": _fault(
        "knows the calls that wait in one process",
        "question-modern",
        KeepsStates,
        "replicas.question-of-another-person",
    ),
    "lists-half": _fault("lists a server in one process only", "lists", ListsHalf),
    "makes-again": _fault("makes a call again that was lost", "killed-elsewhere", MakesAgain),
    "says-nothing-ran": _fault("says that a lost call did not run", "killed-elsewhere", SaysNothingRan),
    "takes-over": _fault("takes over calls of the dead", "killed", TakesOver),
    "lets-die": _fault("ends sessions with their process", "goes-on", LetsDie, "replicas.rolling-restart"),
    "drops-calls": _fault("ends calls with the process", "drain", DropsCalls),
    "not-yet": _fault("takes connections before it can serve", "rolling-restart", NotYet),
}
