"""The OAuth of one server, as the HTTP client of its connections sees it.

The rules:

1. Requests go out side by side: no lock is held while a server works.
2. A new token is requested once for all who wait for it, in this process and in others, by a task that
   outlives whoever asked: a refresh token that rotates is lost with the answer.
3. Nothing here asks a person. Where one is needed the request ends as the server ended it (401, 403), and
   `OAuth.failure` says why.
4. Without a token a request goes out as it is, and what the server answers decides.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping

import httpx
from msgspec.structs import replace

from mcpzip.auth import mcp_remote
from mcpzip.auth.authorization_response import shown_code
from mcpzip.auth.challenge import PROTOCOL_VERSION_HEADER, Challenge
from mcpzip.auth.client import authenticate, client_of, of_this_client
from mcpzip.auth.discovery import Discovered, is_shown_tokens
from mcpzip.auth.errors import ERRORS, BusyError, describe
from mcpzip.auth.failure import FIRST_PAUSE, AuthFailure, is_final, pause
from mcpzip.auth.grant import Grant
from mcpzip.auth.metadata import same_issuer
from mcpzip.auth.responses import oauth_error, read_token
from mcpzip.auth.scopes import union
from mcpzip.auth.store import Store
from mcpzip.auth.token_client import Login, TokenClient, granted, no_metadata
from mcpzip.config.schema import ServerConfig
from mcpzip.model.errors import StoreError
from mcpzip.model.limits import SCOPES_TRIED
from mcpzip.model.quoting import quoted
from mcpzip.model.retry_after import retry_after
from mcpzip.system.threads import in_thread

NOBODY_SIGNED_IN = "nobody has signed in"
HEADER = "Or put an Authorization header under 'headers' in the config."
"""What else can be done where a server wants credentials and doesn't say that it takes OAuth's."""
ENDING = 1.0
"""Seconds that our end waits for a token that was requested."""

NOT_SHOWN = "it is shown no token there: its address in the config has to begin with https"
REFUSED_ANEW = "it refuses the token that it was just granted"


class OAuth(TokenClient, httpx.Auth):
    """Signs the requests to one server, for all its connections in this process.

    failure: why the last request that was refused could not be signed; None while all is well.
    """

    failure: AuthFailure | None

    def __init__(
        self,
        server: ServerConfig,
        store: Store,
        *,
        login: Login | None = None,
        environment: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.time,
    ) -> None:
        """See `TokenClient`."""
        super().__init__(server, store, login=login, environment=environment, now=now)
        self.failure = None
        self._at_work: dict[str, asyncio.Task[None]] = {}
        self._accepted = self._renewed = self._protocol_version = ""
        self._tried: set[str] = set()

    # ---- what the HTTP client drives

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """As `httpx.Auth` has it. Raises McpzipError."""
        self._protocol_version = request.headers.get(PROTOCOL_VERSION_HEADER, "")
        if not is_shown_tokens(str(request.url), self.server.url):
            refused = (yield request).status_code == 401
            self.failure = AuthFailure(NOT_SHOWN, needs_login=False, remedy=HEADER) if refused else None
            return
        await self.catch_up()
        own = request.headers.get("Authorization")  # of an address with a password in it
        if request.method == "DELETE":  # a good-bye is not worth a token that we may not stay to receive
            self._sign(request, own)
            yield request
            return
        if self.grant is not None and self.grant.expired(self.now()):
            await self._renew(self.grant.access_token, None)
        used = self._sign(request, own)
        response = yield request
        if response.status_code == 401 and await self._renew(used, Challenge.of(response)):
            used = self._sign(request, own)
            response = yield request
            if response.status_code == 401:
                self._fail(REFUSED_ANEW)
        if response.status_code != 401:
            self._accepted = used
        if response.status_code == 403:
            challenge = Challenge.of(response)
            if self._widens(challenge) and await self._renew(used, challenge):
                self._sign(request, own)
                response = yield request
                challenge = Challenge.of(response)
            await self._note_scope(challenge)

    def _sign(self, request: httpx.Request, own: str | None) -> str:
        """Puts the token on ``request``, in place of its ``own`` credentials. Returns it, "" for none."""
        token = self._token()
        request.headers.pop("Authorization", None)
        if token or own is not None:
            request.headers["Authorization"] = f"Bearer {token}" if token else str(own)
        return token

    async def catch_up(self) -> None:
        """Reads what is stored, if that has changed: another process may have signed in, or out."""
        if self._store.signature(self.server.url) != self._seen:
            await self._once("reading", self._read)

    async def _read(self) -> None:
        signature = self._store.signature(self.server.url)
        grant = await in_thread(lambda: self._store.load(self.server.url), "auth")
        if grant is None and self._takes_mcp_remote:
            grant = await in_thread(
                lambda: mcp_remote.read(self.server.url, self.server.headers, self.environment), "auth"
            )
        if grant is not None and not of_this_client(grant, self.config):
            grant = None
        self._seen = signature
        self._remember(grant)

    @property
    def _takes_mcp_remote(self) -> bool:
        """Whether a sign-in of mcp-remote may be used, which is that of whoever uses this machine."""
        return self.config.mcp_remote and not self._client_credentials and self._store.person is None

    def _remember(self, grant: Grant | None) -> None:
        self.grant, self.failure = grant, None

    async def _keep(self, grant: Grant) -> None:
        """Takes and stores ``grant``. The caller holds the store's lock."""
        self._remember(grant)
        kept = await in_thread(lambda: self._store.save(grant), "auth")
        if kept is not grant:
            self._remember(kept)  # another process was faster
        self._seen = self._store.signature(self.server.url)

    async def _keep_refused(self, grant: Grant) -> None:
        """Takes and stores that ``grant`` has ended, unless another process has a better one."""
        await self._keep(grant)
        if self.grant is grant:
            self._fail(grant.refused)

    # ---- a new token without a person

    async def _renew(self, used: str, challenge: Challenge | None) -> bool:
        """Whether there is another token now than ``used``, which is refused. challenge: the refusal."""
        if self._token() not in ("", used):
            return True
        if self._is_useless_to_renew(used):
            self._fail(REFUSED_ANEW, needs_login=not self._client_credentials)
        elif self._client_credentials:
            await self._once("sign-in", lambda: self._request_token(used, challenge))
        elif self.grant is not None and self.grant.refresh_token:
            await self._once("refresh", lambda: self._refresh(used, challenge))
        else:
            self._fail_without_token(challenge)
        return self._token() not in ("", used)

    def _is_useless_to_renew(self, used: str) -> bool:
        """Whether ``used`` is new, unexpired and was never accepted: the next one would be refused too."""
        if self.grant is None or not used or used == self._accepted or self.grant.expired(self.now()):
            return False
        return used == self._renewed or self.now() - self.grant.obtained_at < FIRST_PAUSE

    def _fail(self, reason: str, *, needs_login: bool = True, remedy: str = "") -> None:
        self.failure = AuthFailure(reason, needs_login, remedy, self._seen)

    def _fail_without_token(self, challenge: Challenge | None) -> None:
        """There is no token, and no refresh token or credentials to request one with."""
        told = challenge is None or bool(challenge.resource_metadata)
        if self.grant is not None and self.grant.refused:
            self._fail(self.grant.refused)
        elif self.grant is not None and self.grant.access_token:
            self._fail("the sign-in has ended, and there is no refresh token")
        else:
            self._fail(NOBODY_SIGNED_IN, remedy="" if told else HEADER)

    async def _once(self, what: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Does ``work`` once for everybody who waits for it; it goes on when they no longer do."""
        task = self._at_work.get(what)
        if task is None:
            task = self._at_work[what] = asyncio.create_task(work(), name=f"{what}-{self.server.name}")
            task.add_done_callback(lambda _: self._at_work.pop(what))
        await asyncio.shield(task)

    async def _refresh(self, used: str, challenge: Challenge | None) -> None:
        try:
            async with self.locked():
                await (self._read() if self._seen is None else self.catch_up())  # mcp-remote's may be newer
                grant = self.grant
                if grant is None or not grant.refresh_token:
                    self._fail_without_token(challenge)
                elif grant.access_token != used and not grant.expired(self.now()):
                    pass  # another process was faster
                elif client_of(grant, self.config, None) is None:
                    self._fail("what it knows us by is lost")
                elif self._may_ask(grant):
                    await self._refresh_grant(grant, challenge)
        except ERRORS as error:
            await self._failed(error, used)

    async def _refresh_grant(self, grant: Grant, challenge: Challenge | None) -> None:
        """Shows the refresh token of ``grant`` (RFC 6749, 6), and keeps what comes of it. Raises `ERRORS`."""
        found = Discovered.of(grant, self.server.url)
        if found.metadata is None:  # of a store that doesn't keep them
            found = await self.discover(challenge.resource_metadata if challenge is not None else "")
        self.check_server(found, pkce=False)
        issuer = found.expected_issuer if found.metadata is None else found.metadata.issuer
        if grant.issuer and not same_issuer(grant.issuer, issuer):
            if found.metadata is None:
                raise no_metadata(grant.issuer)
            moved = "its authorization server is another one now"
            await self._keep_refused(replace(grant, access_token="", refresh_token="", refused=moved))
            return
        client = client_of(grant, self.config, found.metadata)
        assert client is not None
        form = {
            "grant_type": "refresh_token",
            "refresh_token": grant.refresh_token,
            "client_id": client.client_id,
            **found.resource_parameter(self._protocol_version),
        }
        headers = authenticate(client, form)
        await in_thread(lambda: self._store.about_to_refresh(grant), "auth")
        response = await self.post(found.token_endpoint, form, headers)
        code, description = oauth_error(response)
        if response.status_code == 200:
            token = read_token(response)
            new = granted(found, client, token, grant.scope, self.now(), grant.person)
            kept = token.refresh_token or grant.refresh_token
            new = replace(new, refresh_token=kept, signed_in_at=grant.signed_in_at)
            await self._keep(replace(new, wanted_scope=grant.wanted_scope))
            self._renewed = self._token()
        elif is_final(response.status_code, code):
            said = quoted(description) if description else shown_code(code) or f"HTTP {response.status_code}"
            refused = f"the sign-in has ended ({said})"
            known = {} if code == "invalid_client" else grant.client
            ended = replace(grant, access_token="", refresh_token="", refused=refused, client=known)
            await self._keep_refused(replace(ended, failures=0, retry_at=0.0))
        else:
            asked = retry_after(response.headers.get("Retry-After"), self.now())
            await self._put_off(f"its token endpoint answered HTTP {response.status_code}", asked)

    async def _request_token(self, used: str, challenge: Challenge | None) -> None:
        """Signs in with the machine's own credentials."""
        try:
            async with self.locked():
                await self.catch_up()
                if self._token() not in ("", used) or not self._may_ask(self.grant):
                    return
                await self._keep(
                    await self.authorize(challenge or Challenge(protocol_version=self._protocol_version))
                )
                self._renewed = self._token()
        except ERRORS as error:
            await self._failed(error, used)

    # ---- failures

    def _may_ask(self, grant: Grant | None) -> bool:
        """Whether the token endpoint may be asked already."""
        left = grant.retry_at - self.now() if grant is not None else 0.0
        if left > 0:
            assert grant is not None
            self._fail(_put_off(grant.refused or "it failed", left), needs_login=False)
        return left <= 0

    async def _failed(self, error: BaseException, used: str) -> None:
        """No token came in place of ``used``, for a reason that may pass."""
        reason = describe(error)
        if isinstance(error, (BusyError, StoreError)):  # it says nothing about the token endpoint
            self._fail(reason, needs_login=False)
            return
        try:
            async with self.locked():
                await self.catch_up()
                if self._token() not in ("", used):
                    return  # another process was luckier
                if self.grant is None and not self._client_credentials:
                    self._fail_without_token(None)  # somebody signed out meanwhile
                    return
                await self._put_off(reason, None)
        except (OSError, BusyError) as unwritten:
            also = describe(unwritten)
            more = "" if also == reason else f" (and that can't be written down: {also})"
            self._fail(f"{reason}{more}", needs_login=False)

    async def _put_off(self, reason: str, asked: float | None) -> None:
        grant = self.grant or Grant(url=self.server.url, person=self._store.person)
        failures = grant.failures + 1
        wait = pause(failures, asked)
        failing = replace(grant, failures=failures, retry_at=self.now() + wait, refused=reason)
        await self._keep(failing)
        if self.grant is failing:
            self._fail(_put_off(reason, wait), needs_login=False)

    def _widens(self, challenge: Challenge) -> bool:
        """Whether this machine can request what a call lacked by itself, and has not tried."""
        lacked = challenge.scope
        if not self._client_credentials or not challenge.insufficient_scope or not lacked:
            return False
        if lacked in self._tried or len(self._tried) >= SCOPES_TRIED:
            return False
        if self.config.scope and not set(lacked.split()) <= set(self.config.scope.split()):
            return False  # more than whoever wrote the config wanted it to have
        self._tried.add(lacked)
        return not set(lacked.split()) <= set(self.grant.scope.split() if self.grant is not None else ())

    async def _note_scope(self, challenge: Challenge) -> None:
        """A call was refused with 403. If its token lacked a scope, a person can have that granted."""
        self.failure = None
        grant, lacked = self.grant, challenge.scope
        if not challenge.insufficient_scope:
            return
        if grant is not None:
            wanted = union(grant.scope, grant.wanted_scope, lacked)
            if wanted != grant.wanted_scope:
                await self._once("scope", lambda: self._want(wanted))
        told = "its sign-in allows too little"
        if lacked:
            told = f"what it was asked for needs the scope {quoted(lacked)}"
        self._fail(told, needs_login=not self._client_credentials)

    async def _want(self, scope: str) -> None:
        try:
            async with self.locked():
                await self.catch_up()
                if self.grant is not None:
                    await self._keep(replace(self.grant, wanted_scope=scope))
        except (OSError, BusyError):
            pass  # whoever signs in is asked for it when it is refused again

    async def close(self) -> None:
        """Waits for a token that was requested: the answer may hold the only refresh token there is."""
        if self._at_work:
            await asyncio.wait(self._at_work.values(), timeout=ENDING)


def _put_off(reason: str, seconds: float) -> str:
    return f"no token is to be had: {reason}; it is tried again in {max(seconds, 1):.0f} s"
