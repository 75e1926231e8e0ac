"""How a person signs in to a server with ``auth.per_user``: from their page to the authorization server of
the server, and back.

The rules:

1. Whoever begins a sign-in has to be who ends it: what is granted is kept for the person who began. So nobody
   gets an account by sending somebody else the address of an authorization server (of that the specification
   of MCP warns: client/elicitation, "Phishing"). The browser that comes back has to show a cookie that is one
   of the session of the page which began, and that session has to be one of that person still.
2. That cookie comes along from elsewhere (``SameSite=Lax``), and opens nothing: it is a hash of the session's
   secret.
3. An answer counts with the ``state`` of a sign-in that waits, once, and from the issuer that was asked (RFC
   9207). What else is checked, `auth.token_client` checks, as for a sign-in at a terminal.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

import msgspec

from mcpzip.auth.authorization_request import plain_url
from mcpzip.auth.authorization_response import (
    MOST_PARAMETERS,
    AuthorizationCode,
    AuthorizationDenied,
    InvalidResponse,
    read_response,
)
from mcpzip.auth.login import sign_in, sign_out
from mcpzip.config import ServerConfig
from mcpzip.identity.errors import IssuerUnavailableError, TokenError
from mcpzip.model.errors import LoginError, McpzipError
from mcpzip.model.principal import Principal, PrincipalId
from mcpzip.proxy.person_upstreams import SIGN_INS, PersonUpstreams
from mcpzip.proxy.proxy import Proxy
from mcpzip.system.tasks import cancel, retrieve_exception
from mcpzip.system.threads import in_thread
from mcpzip.ui.team.issuer_session import IssuerSession
from mcpzip.ui.team.issuer_sign_in import SignInError
from mcpzip.ui.team.limits import (
    SIGN_IN_TIME,
    UPSTREAM_BEGIN,
    UPSTREAM_END,
    UPSTREAM_SIGN_INS,
    UPSTREAM_SIGN_INS_OF_PERSON,
)
from mcpzip.ui.team.sessions import PersonSession, Sessions

CALLBACK = f"{SIGN_INS}/callback"
"""The path to which browsers come back from the authorization servers of servers."""


class SignInRow(msgspec.Struct, frozen=True):
    """How a person is signed in to a server. since: Unix s; None if they are not. reason: what is wrong.
    tools: how many.
    """

    name: str
    reason: str
    since: float | None
    tools: int


class Begun(msgspec.Struct, frozen=True):
    """A sign-in that waits for its person. url: where they sign in. cookie: the header ``Set-Cookie``."""

    server: str
    url: str
    cookie: bytes

    @property
    def host(self) -> str:
        """Where the URL leads."""
        return urlsplit(self.url).netloc


class _Pending:
    """One sign-in (`auth.token_client.Login`)."""

    def __init__(self, server: ServerConfig, session: PersonSession, redirect_uri: str) -> None:
        self.server, self.session, self.redirect_uri = server, session, redirect_uri
        self.state = self.url = ""
        self.shown = asyncio.Event()
        self._verdict: asyncio.Future[AuthorizationCode | AuthorizationDenied] = (
            asyncio.get_running_loop().create_future()
        )
        self.task: asyncio.Task[bool] | None = None

    async def show(self, url: str) -> None:
        """See `Login`. Raises LoginError."""
        url = plain_url(url, self.server.name)
        states = [value for name, value in parse_qsl(urlsplit(url).query) if name == "state"]
        if not states:
            raise LoginError(f"The sign-in page of {self.server.name} has no state, so it was not opened.")
        self.state, self.url = states[-1], url
        self.shown.set()

    async def answer(self) -> AuthorizationCode:
        """See `Login`."""
        try:
            async with asyncio.timeout(SIGN_IN_TIME):
                verdict = await self._verdict
        except TimeoutError as error:
            raise LoginError("Nobody came back in time. Begin again.") from error
        if isinstance(verdict, AuthorizationDenied):
            remedy = "Try again later." if verdict.passing else "Begin again to try once more."
            refused = f"The authorization server of {self.server.name} refused"
            raise LoginError(f"{refused}: {verdict.why}. {remedy}")
        return verdict

    def answered(self, verdict: AuthorizationCode | AuthorizationDenied) -> bool:
        """Takes the answer; whether it is the first."""
        if self._verdict.done():
            return False
        self._verdict.set_result(verdict)
        return True


class UpstreamSignIns:
    """Those of all people to the servers of ``proxy``. Everything runs on one event loop."""

    def __init__(self, proxy: Proxy, sessions: Sessions, origin: str, warn: Callable[[str], None]) -> None:
        """origin: of the page, as browsers see it. warn: is told of our defects."""
        self._proxy, self._sessions, self._warn = proxy, sessions, warn
        self.redirect_uri = f"{origin}{CALLBACK}"
        self._waiting: list[_Pending] = []
        parts = urlsplit(origin)
        is_secure = parts.scheme == "https"
        self._cookie_name = "__Host-mcpzip-server" if is_secure else f"mcpzip-server-{parts.port or 80}"
        self._place = "Path=/; Secure" if is_secure else f"Path={CALLBACK}"

    # --- what a person sees

    def servers(self, principal: Principal) -> dict[str, ServerConfig]:
        """The servers to which each person signs in, and that ``principal`` may use."""
        enabled = self._proxy.views.of(principal).enabled
        return {name: server for name, server in enabled.items() if server.per_user}

    async def rows(self, principal: Principal) -> list[SignInRow]:
        """How ``principal`` is signed in to each of them."""
        own = self._own(principal)
        await own.catch_up()
        servers, catalog = self.servers(principal), self._proxy.views.of(principal).catalog
        rows = []
        for name in sorted(servers):
            health, record = own.health(name), catalog.servers.get(name)
            tools = 0 if record is None else len(record.entries)
            since = own.signed_in_since(name)
            is_out = since is None and health.state == "needs login"
            reason = own.ended(name) if is_out else health.reason
            rows.append(SignInRow(name, reason, since, tools))
        return rows

    # --- signing in

    async def begin(self, session: PersonSession, name: str) -> Begun | None:
        """Begins to sign the person of ``session`` in to the server ``name``; None if it wants no sign-in.
        Raises SignInError.
        """
        server = self._server(session.principal, name)
        person = session.principal.id
        await self._end(self._of(person, name))
        await self._end(self._of(person)[: 1 - UPSTREAM_SIGN_INS_OF_PERSON])
        if len(self._waiting) >= UPSTREAM_SIGN_INS:
            text = "Too many people are signing in at once. Try again in a moment."
            raise SignInError(text, is_passing=True)
        pending = _Pending(server, session, self.redirect_uri)
        self._waiting.append(pending)
        pending.task = asyncio.create_task(self._run(pending), name=f"sign-in-{name}")
        pending.task.add_done_callback(lambda _: self._waiting.remove(pending))
        pending.task.add_done_callback(retrieve_exception)
        shown = asyncio.create_task(pending.shown.wait(), name="shown")
        try:
            await asyncio.wait(
                {shown, pending.task}, timeout=UPSTREAM_BEGIN, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            await cancel(shown)
        if pending.shown.is_set():
            return Begun(name, pending.url, self._cookie(_proof(session.secret), SIGN_IN_TIME))
        if not pending.task.done():
            await self._end([pending])
            raise SignInError(f"{name} doesn't say where to sign in. Try again later.", is_passing=True)
        self._outcome(pending)
        return None

    async def finish(self, query: str, cookies: str | None) -> str:
        """A browser came back with ``query``. Returns the name of the server that its person is signed in to
        now. Raises SignInError.
        """
        pending = self._answered_by(query, cookies)
        if pending is None or not await self._is_current(pending):
            text = (
                "This browser has begun no such sign-in here, or it took too long. Begin again on your page."
            )
            raise SignInError(text)
        try:
            await self._ended(pending, query)
        except SignInError as error:
            raise SignInError(str(error), is_passing=error.is_passing, is_answered=True) from error
        return pending.server.name

    async def _ended(self, pending: _Pending, query: str) -> None:
        """When ``pending``, to which ``query`` is the answer, has ended. Raises SignInError if it failed."""
        match read_response(query, pending.state):
            case InvalidResponse(why):
                raise SignInError(f"{why} Begin again on your page.")
            case AuthorizationCode() | AuthorizationDenied() as verdict:
                pass
        if not pending.answered(verdict):
            raise SignInError("This sign-in has been answered already.")
        assert pending.task is not None
        await asyncio.wait({pending.task}, timeout=UPSTREAM_END)
        if not pending.task.done():
            raise SignInError("It takes long. Your page says how it ends.", is_passing=True)
        self._outcome(pending)

    async def end(self, principal: Principal, name: str) -> list[str]:
        """Signs ``principal`` out of the server ``name``. Returns sentences on what could not be done. Raises
        SignInError.
        """
        server, own = self._server(principal, name), self._own(principal)
        await self._end(self._of(principal.id, name))
        try:
            return await sign_out(server, own.sign_ins.store)
        except McpzipError as error:
            raise SignInError(str(error)) from error
        finally:
            await own.catch_up()

    async def close(self) -> None:
        """Ends all."""
        await self._end(list(self._waiting))

    # ---

    async def _run(self, pending: _Pending) -> bool:
        """Whether the person is signed in at the end; else the server wants no sign-in. Raises LoginError."""
        own, server = self._own(pending.session.principal), pending.server
        store = own.sign_ins.store
        before = await in_thread(lambda: store.load(server.url), "auth")
        again = before is not None and bool(before.access_token or before.refresh_token)
        granted = await sign_in(server, store, pending, force=again)
        await self._own(pending.session.principal).catch_up()
        return granted is not None

    def _outcome(self, pending: _Pending) -> None:
        """Raises SignInError if ``pending``, which has ended, failed."""
        assert pending.task is not None
        if pending.task.cancelled():
            raise SignInError("Another sign-in to this server was begun.")
        error = pending.task.exception()
        if isinstance(error, McpzipError):
            raise SignInError(str(error)) from error
        if isinstance(error, OSError):
            raise SignInError(f"The sign-in can't be kept: {error.strerror or error}.") from error
        if error is not None:
            self._warn(f"a sign-in to {pending.server.name} failed: {type(error).__name__}: {error}")
            raise SignInError("mcpzip failed. Its log says why.") from error

    def _own(self, principal: Principal) -> PersonUpstreams:
        own = self._proxy.views.own_upstreams(principal)
        if own is None:  # since an edit of the config
            raise SignInError("There is no server any more to which each person signs in.")
        return own

    def _server(self, principal: Principal, name: str) -> ServerConfig:
        server = self.servers(principal).get(name)
        if server is None:
            raise SignInError(f"There is no server {name!r} to which you can sign in.")
        if server.problem:
            raise SignInError(f"{name}: {server.problem}")
        return server

    def _of(self, person: PrincipalId, server: str | None = None) -> list[_Pending]:
        return [
            one
            for one in self._waiting
            if one.session.principal.id == person and server in (None, one.server.name)
        ]

    async def _end(self, pending: list[_Pending]) -> None:
        for one in pending:
            if one.task is not None:
                await cancel(one.task)

    async def _is_current(self, pending: _Pending) -> bool:
        """Whether the session that began ``pending`` is still one of its person."""
        session = self._sessions.current(pending.session.secret)
        if session is None:
            return False
        principal = session.principal
        if isinstance(session.credential, IssuerSession):
            try:
                principal = await session.credential.check()
            except (TokenError, IssuerUnavailableError):
                return False
        return principal.id == pending.session.principal.id

    def _answered_by(self, query: str, cookies: str | None) -> _Pending | None:
        """The sign-in that a browser with these cookies has begun, and to which ``query`` is an answer."""
        try:
            said = dict(parse_qsl(query, max_num_fields=MOST_PARAMETERS))
        except ValueError:
            return None
        state, proofs = said.get("state", ""), self._proofs(cookies)
        for one in self._waiting:
            mine = any(_same(_proof(one.session.secret), each) for each in proofs)
            if mine and one.state and _same(one.state, state):
                return one
        return None

    def _proofs(self, cookies: str | None) -> list[str]:
        pairs = (pair.strip().partition("=") for pair in (cookies or "").split(";"))
        return [value for name, _, value in pairs if name == self._cookie_name]

    def _cookie(self, value: str, seconds: int) -> bytes:
        name, place = self._cookie_name, self._place
        return f"{name}={value}; {place}; HttpOnly; SameSite=Lax; Max-Age={seconds}".encode()


def _proof(secret: str) -> str:
    """What the browser of a session shows when it comes back. It says nothing of the session's secret."""
    return hashlib.sha256(f"mcpzip server sign-in {secret}".encode()).hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
