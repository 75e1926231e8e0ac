"""Streamable HTTP for a team, from several processes: people have tokens, and replicas share a folder.

The rule: what each replica has to know of a session or of a call that waits lies in a file, with whose it is
and at which replica, its home; the file's name is an HMAC with a key that they share. Any other replica
passes a request on to there; if that has died, a session is begun again here from its `initialize`, and a
request that was passed on is never sent again.
"""

import asyncio
import contextvars
import hmac
import json
import os
import secrets
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from mcpzip.wire import MODERN_VERSIONS, Era, join_object, quote, read_opening
from mcpzip_conformance.mutants.relay.counter import Counter
from mcpzip_conformance.mutants.relay.exchange import (
    JSON,
    Headers,
    Receive,
    Refusal,
    Scope,
    Send,
    encoded,
    reply,
)
from mcpzip_conformance.mutants.relay.http import PATH, HttpSession, Line, Web
from mcpzip_conformance.mutants.relay.naming import members, text
from mcpzip_conformance.mutants.relay.session import Config, Session
from mcpzip_conformance.mutants.relay.tokens import Access, Tokens, no_authorities

LOST = "The replica that had this call has died. The call may have run."
_HOP = "x-relay-from"
_KEPT = ("authorization", "content-type", "accept", "mcp-", "last-event-id", "origin")

Now = tuple[str, bytes]
"""Of the request at hand: who makes it, and its body."""
NOW: contextvars.ContextVar[Now] = contextvars.ContextVar("request")


@dataclass(frozen=True, slots=True)
class Team:
    """What makes the relay a gateway, in its config. shared: the folder; keys: the first one names files, all
    find them; layout: of the files that are written, 1 or 2; store: the address of the one that counts calls,
    "" for none."""

    access: Access
    shared: Path
    keys: tuple[str, ...] = ("",)
    layout: int = 1
    store: str = ""


class Parking(HttpSession):
    """The session of a modern request, which remembers the calls that wait."""

    gateway: "Gateway"

    def write(self, line: bytes, about: bytes | None, last: bool) -> None:
        """See `Write`."""
        if b'"requestState"' in line and (
            state := text(members(members(line).get("result")).get("requestState"))
        ):
            self.gateway.remember("state", state, {"home": self.gateway.home, "person": NOW.get()[0]})
        super().write(line, about, last)


class Gateway(Web):
    """The ASGI application. home: the URL of this replica for the others."""

    drains = True
    tokens = Tokens
    parking = Parking
    counter = Counter

    def __init__(self, config: Config, session: type[Session], team: Team, port: int) -> None:
        super().__init__(config, session)
        self.access, self.shared, self.home = (
            self.tokens(team.access),
            team.shared,
            f"http://127.0.0.1:{port}",
        )
        self.team, self.port = team, port
        self._calls = self.counter(team.store)
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=5.0), trust_env=False, verify=no_authorities()
        )
        self._streams: set[asyncio.Task[None]] = set()

    def drain(self) -> None:
        """End the streams on which no call is under way."""
        for stream in self._streams:
            stream.cancel()

    async def end(self) -> None:
        """End every session."""
        await self._client.aclose()
        await super().end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI 3.0."""
        headers = {key.decode().lower(): value.decode("latin-1") for key, value in scope["headers"]}
        try:
            if scope["path"] in self.access.paths():
                body = json.dumps(self.access.metadata(headers)).encode()
                await reply(send, 200, body, {"content-type": JSON})
                return
            self.check_access(scope, headers)
            query = dict(scope).get("query_string", b"")
            person = await self.person(scope, headers, query.decode() if isinstance(query, bytes) else "")
        except Refusal as refusal:
            await reply(send, refusal.status, refusal.body, {"content-type": JSON, **refusal.headers})
            return
        NOW.set((person, b""))
        await super().__call__(scope, receive, send)

    async def person(self, scope: Scope, headers: Headers, query: str) -> str:
        """Who makes a request. Raises Refusal."""
        return await self.access.person(headers, query)

    # Methods of HTTP

    async def post(self, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        """See `Web.post`."""
        NOW.set((NOW.get()[0], body))
        message = members(body)
        method = text(message.get("method"))
        if method == "tools/call":
            await self._calls.count()
        opened = read_opening(method, message.get("params")) if method else None
        state = text(members(message.get("params")).get("requestState"))
        if (opened and opened.era is Era.MODERN) or headers.get("mcp-protocol-version") in MODERN_VERSIONS:
            known = self.recall("state", state) if state else {}
            self.check_owner(known, "This requestState is not, or no longer, known.")
            elsewhere = known.get("home", self.home) != self.home
            if elsewhere and await self.passed(known["home"], "POST", headers, body, receive, send):
                return
        elif method != "initialize" and await self.passed_in_session("POST", headers, body, receive, send):
            return
        answered = super().post(headers, body, receive, send)
        if method == "subscriptions/listen":
            await self.until_drained(answered, send)
        else:
            await answered

    async def get(self, headers: Headers, receive: Receive, send: Send) -> None:
        """See `Web.get`."""
        await self.until_drained(self.stream(headers, receive, send), send)

    async def until_drained(self, work: Coroutine[None, None, None], send: Send) -> None:
        """A response that has no end of its own."""
        stream = asyncio.ensure_future(work)
        self._streams.add(stream)
        try:
            await asyncio.wait({stream})
            if stream.cancelled():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            else:
                stream.result()
        finally:
            stream.cancel()
            self._streams.discard(stream)

    async def stream(self, headers: Headers, receive: Receive, send: Send) -> None:
        """The client's own stream."""
        if not await self.passed_in_session("GET", headers, b"", receive, send):
            await super().get(headers, receive, send)

    async def delete(self, headers: Headers, send: Send) -> None:
        """See `Web.delete`."""
        if await self.passed_in_session("DELETE", headers, b"", None, send):
            return
        self.forget("session", headers["mcp-session-id"])
        await super().delete(headers, send)

    # Sessions

    def new_session(self) -> HttpSession:
        """See `Web.new_session`."""
        client = super().new_session()
        person, body = NOW.get()
        self.remember("session", client.id, {"home": self.home, "person": person, "opening": body.decode()})
        return client

    def stateless_session(self, message: dict[str, bytes]) -> HttpSession:
        """See `Web.stateless_session`."""
        made = super().stateless_session(message)
        client = self.parking(self.config, self.session, made.session.servers)
        client.gateway = self
        return client

    async def passed_in_session(
        self, verb: str, headers: Headers, body: bytes, receive: Receive | None, send: Send
    ) -> bool:
        """Whether a request was passed on to the home of its session. If it has died, the session is here
        after that. Raises Refusal."""
        id = headers.get("mcp-session-id", "")
        known = self.recall("session", id)
        if not known:
            self.sessions.pop(id, None)
            self.find_session(headers)  # refuses it
        self.check_owner(known, "There is no such session; initialize again.")
        if id in self.sessions:
            return False
        home = known.get("home", self.home)
        if home != self.home and await self.passed(home, verb, headers, body, receive, send):
            return True
        await self.begin_again(id, known)
        return False

    async def begin_again(self, id: str, known: Mapping[str, str]) -> None:
        """Have a session here whose home has died."""
        client = HttpSession(self.config, self.session)
        client.id = id
        self.sessions[id] = client
        self.remember("session", id, {**known, "home": self.home})
        opening = known["opening"].encode()
        number = members(opening)["id"]
        answer = client.exchanges[number] = asyncio.Queue[Line]()
        client.session.received(opening.replace(b"\n", b" ") + b"\n")
        await answer.get()
        del client.exchanges[number]

    def check_owner(self, known: Mapping[str, str], otherwise: str) -> None:
        """Raises Refusal if what is known is another person's."""
        if known.get("person", NOW.get()[0]) != NOW.get()[0]:
            raise Refusal(404, otherwise)

    # What replicas share

    def files(self, kind: str, id: str) -> list[Path]:
        """Where that is known: a file for each key."""
        names = [hmac.new(key.encode(), id.encode(), "sha256").hexdigest() for key in self.team.keys]
        return [self.shared / f"{kind}-{name}" for name in names]

    def recall(self, kind: str, id: str) -> dict[str, str]:
        """What is known of a session or a state; {} for nothing."""
        for file in self.files(kind, id):
            try:
                return self.read(kind, json.loads(file.read_bytes()))
            except FileNotFoundError:
                continue
        return {}

    def read(self, kind: str, found: dict[str, object]) -> dict[str, str]:
        """What a file of either layout says."""
        inner = found.get("of", found)
        return {key: str(value) for key, value in inner.items()} if isinstance(inner, dict) else {}

    def remember(self, kind: str, id: str, what: Mapping[str, str]) -> None:
        """Tell all replicas."""
        written = self.shared / secrets.token_hex(8)
        layout = self.team.layout
        written.write_text(json.dumps(what if layout == 1 else {"layout": layout, "of": what}), "utf-8")
        files = self.files(kind, id)
        os.replace(written, next((file for file in files if file.exists()), files[0]))

    def forget(self, kind: str, id: str) -> None:
        """Tell all replicas that there is no such thing any more."""
        for file in self.files(kind, id):
            file.unlink(missing_ok=True)

    async def passed(
        self, home: str, verb: str, headers: Headers, body: bytes, receive: Receive | None, send: Send
    ) -> bool:
        """Pass a request on, and its response back. Returns whether that replica took the connection."""
        kept = {key: value for key, value in headers.items() if key.startswith(_KEPT)}
        request = self._client.build_request(
            verb, home + PATH, headers={**kept, _HOP: self.home}, content=body
        )
        passing = asyncio.ensure_future(self._passed(request, body, send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait((passing, leaving), return_when=asyncio.FIRST_COMPLETED)
            return await passing if passing.done() else True
        finally:
            passing.cancel()
            leaving.cancel()

    async def _passed(self, request: httpx.Request, body: bytes, send: Send) -> bool:
        begun = False
        id = members(body).get("id", b"null")
        try:
            response = await self._client.send(request, stream=True)
            try:
                told = {
                    key: value
                    for key, value in response.headers.items()
                    if key.startswith(("content-type", "mcp-", "www-"))
                }
                await send(
                    {"type": "http.response.start", "status": response.status_code, "headers": encoded(told)}
                )
                begun = True
                async for piece in response.aiter_raw():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            finally:
                await response.aclose()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except httpx.ConnectError:
            return False
        except httpx.HTTPError:
            return await self.lost(id, begun, request, send)
        return True

    async def lost(self, id: bytes, begun: bool, request: httpx.Request, send: Send) -> bool:
        """The replica died in the middle of a request. Returns whether it is answered."""
        error = join_object({"code": b"-32000", "message": quote(LOST)})
        line = join_object({"jsonrpc": b'"2.0"', "id": id, "error": error})
        if begun:
            event = b"event: message\ndata: %b\n\n" % line
            await send({"type": "http.response.body", "body": event, "more_body": False})
        else:
            await reply(send, 200, line, {"content-type": JSON})
        return True


async def _left(receive: Receive | None) -> None:
    """Wait until the client hangs up."""
    if receive is None:
        await asyncio.Event().wait()
    else:
        while (await receive())["type"] != "http.disconnect":
            pass
