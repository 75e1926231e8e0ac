"""The OAuth of one server, as the HTTP client of its connections sees it. Imports the SDK.

The rules:

1. Requests go out side by side: no lock is held while a server works.
2. A token is had anew once for all who wait for it, in this process and in others, by a task that outlives
   whoever asked: a refresh token that rotates is lost with the answer.
3. Nothing here asks a person; where one is needed the request ends as the server ended it (401, 403), and
   `OAuth.trouble` says why.

The SDK's provider does the protocol. Three things in it are done otherwise (mcp 2.3.0): it holds its lock
while a request is answered, it believes any token it is started with, and it answers every 401 with a whole
new sign-in, refresh token or not.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine

import httpx
import httpx2
from mcp.client.auth.utils import (
    extract_field_from_www_auth,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    issuers_match,
    union_scopes,
)
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from msgspec.structs import replace

from mcpzip.auth import mcp_remote
from mcpzip.auth.answer import worded
from mcpzip.auth.discovery import (
    check_metadata,
    find_resource,
    find_server,
    is_shown_tokens,
    send,
)
from mcpzip.auth.failures import FAILURES, BusyError, plainly
from mcpzip.auth.grant import Grant
from mcpzip.auth.memory import check_issuer, granted, of_this_client, recall
from mcpzip.auth.provider import Person, Provider
from mcpzip.auth.replies import oauth_error, token_reply
from mcpzip.auth.scopes import well_formed
from mcpzip.auth.sdk_messages import for_sdk
from mcpzip.auth.store import Store
from mcpzip.auth.trouble import FIRST_PAUSE, Trouble, is_final, pause
from mcpzip.config.schema import ServerConfig
from mcpzip.model.limits import SCOPES_TRIED
from mcpzip.model.quoting import quoted
from mcpzip.model.retry_after import retry_after
from mcpzip.system.threads import in_thread

NOBODY_SIGNED_IN = "nobody has signed in"
HEADER = "Or put an Authorization header under 'headers' in the config."
"""What else can be done where a server wants credentials and doesn't say that it takes OAuth's."""
ENDING = 1.0
"""Seconds that our end waits for a token that is being had."""

NOT_SHOWN = "it is shown no token there: its address in the config has to begin with https"
REFUSED_ANEW = "it refuses the token that it was just granted"


class OAuth(Provider):
    """Signs the requests to one server, for all its connections in this process.

    trouble: why the last request that was refused could not be signed; None while all is well.
    """

    def __init__(
        self,
        server: ServerConfig,
        store: Store,
        *,
        person: Person | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """See `Provider`. Raises LoginError."""
        super().__init__(server, store, person=person, now=now)
        self.trouble = None
        self._at_work: dict[str, asyncio.Task[None]] = {}
        self._accepted = self._renewed = ""
        self._tried: set[str] = set()

    trouble: Trouble | None

    # ---- what the HTTP client drives

    async def flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """As `httpx.Auth.async_auth_flow`; a response that refuses has been read."""
        self.context.protocol_version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if not is_shown_tokens(str(request.url), self.server.url):
            request.headers.pop("Authorization", None)
            refused = (yield request).status_code == 401
            self.trouble = Trouble(NOT_SHOWN, person=False, remedy=HEADER) if refused else None
            return
        await self.catch_up()
        if request.method == "DELETE":  # a good-bye is not worth a token that we may not stay to receive
            self._sign(request)
            yield request
            return
        if self.grant is not None and self.grant.expired(self.now()):
            await self._renew(self.grant.access_token, None)
        used = self._sign(request)
        response = yield request
        if response.status_code == 401 and await self._renew(used, await for_sdk(response)):
            used = self._sign(request)
            response = yield request
            if response.status_code == 401:
                self._fail(REFUSED_ANEW)
        if response.status_code != 401:
            self._accepted = used
        if response.status_code == 403:
            challenge = await for_sdk(response)
            lacked = _lacked(challenge)
            if self._widens(lacked) and await self._renew(used, challenge):
                self._sign(request)
                response = yield request
                lacked = _lacked(await for_sdk(response)) if response.status_code == 403 else None
            await self._note_scope(lacked)

    def _sign(self, request: httpx.Request) -> str:
        """Puts the token on ``request``. Returns it, "" when there is none."""
        request.headers.pop("Authorization", None)
        token = self._token()
        if token:
            request.headers["Authorization"] = f"Bearer {token}"
        return token

    async def catch_up(self) -> None:
        """Reads what is stored, if that has changed: another process may have signed in, or out."""
        if self._store.signature(self.server.url) != self._seen:
            await self._together("reading", self._read)

    async def _read(self) -> None:
        signature = self._store.signature(self.server.url)
        grant = await in_thread(lambda: self._store.load(self.server.url), "auth")
        if grant is None and self.config.mcp_remote and self._machine is None:
            grant = await in_thread(
                lambda: mcp_remote.read(self.server.url, self.server.headers, os.environ), "auth"
            )
        if grant is not None and not of_this_client(grant, self.config):
            grant = None
        self._seen = signature
        self._remember(grant)

    def _remember(self, grant: Grant | None) -> None:
        self.grant, self.trouble = grant, None
        recall(self.context, grant, self.config)

    async def _keep(self, grant: Grant) -> None:
        """``grant`` is what holds now, here and for everybody. The caller holds the store's lock."""
        self._remember(grant)
        await in_thread(lambda: self._store.save(grant), "auth")
        self._seen = self._store.signature(self.server.url)

    # ---- a new token without a person

    async def _renew(self, used: str, challenge: httpx2.Response | None) -> bool:
        """Whether there is another token now than ``used``, which is refused. challenge: the refusal."""
        if self._token() not in ("", used):
            return True
        if self._is_of_no_use_anew(used):
            self._fail(REFUSED_ANEW, person=self._machine is None)
        elif self._machine is not None:
            await self._together("sign-in", lambda: self._as_machine(used, challenge))
        elif self.grant is not None and self.grant.refresh_token:
            await self._together("refresh", lambda: self._refresh(used, challenge))
        else:
            self._fail_without_token(challenge)
        return self._token() not in ("", used)

    def _is_of_no_use_anew(self, used: str) -> bool:
        """Whether ``used`` was had anew, here or elsewhere a moment ago, was never accepted, and should be
        good: another would fare no better.
        """
        if self.grant is None or not used or used == self._accepted or self.grant.expired(self.now()):
            return False
        return used == self._renewed or self.now() - self.grant.obtained_at < FIRST_PAUSE

    def _fail(self, reason: str, *, person: bool = True, remedy: str = "") -> None:
        self.trouble = Trouble(reason, person, remedy, self._seen)

    def _fail_without_token(self, challenge: httpx2.Response | None) -> None:
        """There is nothing to show the server, and nothing to have a token with."""
        told = challenge is None or extract_resource_metadata_from_www_auth(challenge) is not None
        if self.grant is not None and self.grant.refused:
            self._fail(self.grant.refused)
        elif self.grant is not None and self.grant.access_token:
            self._fail("the sign-in has ended, and there is no refresh token")
        else:
            self._fail(NOBODY_SIGNED_IN, remedy="" if told else HEADER)

    async def _together(self, what: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Does ``work`` once for everybody who waits for it; it goes on when they no longer do."""
        task = self._at_work.get(what)
        if task is None:
            task = self._at_work[what] = asyncio.create_task(work(), name=f"{what}-{self.server.name}")
            task.add_done_callback(lambda _: self._at_work.pop(what))
        await asyncio.shield(task)

    async def _refresh(self, used: str, challenge: httpx2.Response | None) -> None:
        try:
            async with self.alone():
                await (self._read() if self._seen is None else self.catch_up())  # mcp-remote's may be newer
                grant = self.grant
                if grant is None or not grant.refresh_token:
                    self._fail_without_token(challenge)
                elif grant.access_token != used and not grant.expired(self.now()):
                    pass  # another process was faster
                elif self.context.client_info is None:
                    self._fail("what it knows us by is lost")
                elif self._may_ask(grant):
                    await self._discover(challenge)
                    if self._has_moved(grant):
                        moved = "its authorization server is another one now"
                        await self._keep(replace(grant, access_token="", refresh_token="", refused=moved))
                        self._fail(moved)
                    else:
                        await self._judge(await send(await self._refresh_token(), self.near), grant)
        except FAILURES as error:
            await self._failed(error, used)

    async def _judge(self, response: httpx2.Response, grant: Grant) -> None:
        """Takes in what the token endpoint answered to the refresh token of ``grant``."""
        code, description = oauth_error(response)
        if response.status_code == 200:
            await self._handle_refresh_response(token_reply(response))
            await self._keep(replace(self._granted(), wanted_scope=grant.wanted_scope))
            self._renewed = self._token()
        elif is_final(response.status_code, code):
            said = quoted(description) if description else worded(code) or f"HTTP {response.status_code}"
            refused = f"the sign-in has ended ({said})"
            client = {} if code == "invalid_client" else grant.client
            ended = replace(grant, access_token="", refresh_token="", refused=refused, client=client)
            await self._keep(replace(ended, failures=0, retry_at=0.0))
            self._fail(refused)
        else:
            asked = retry_after(response.headers.get("Retry-After"), self.now())
            await self._put_off(f"its token endpoint answered HTTP {response.status_code}", asked)

    async def _discover(self, challenge: httpx2.Response | None) -> None:
        """Finds the token endpoint of a sign-in that was taken from a store which doesn't say it."""
        context, url = self.context, self.server.url
        if context.oauth_metadata is None:
            told = extract_resource_metadata_from_www_auth(challenge) if challenge is not None else None
            resource = context.protected_resource_metadata = await find_resource(url, told)
            if resource is not None:
                advertised = [str(server) for server in resource.authorization_servers]
                context.auth_server_url = self._select_authorization_server(advertised)
            context.oauth_metadata = await find_server(context.auth_server_url, url, self.near)
        if context.oauth_metadata is not None:
            check_metadata(context.oauth_metadata, self.near, person=False)
            check_issuer(self.grant, context.oauth_metadata, self.config)

    def _has_moved(self, grant: Grant) -> bool:
        """Whether the authorization server that was found is not the one that made ``grant``."""
        metadata = self.context.oauth_metadata
        found = "" if metadata is None else str(metadata.issuer)
        return bool(grant.issuer and found) and not issuers_match(grant.issuer, found)

    def _granted(self) -> Grant:
        return granted(self.context, self.server.url, self.now())

    async def _as_machine(self, used: str, challenge: httpx2.Response | None) -> None:
        """Signs in with the machine's own credentials."""
        try:
            async with self.alone():
                await self.catch_up()
                if self._token() not in ("", used) or not self._may_ask(self.grant):
                    return
                refusal = challenge or httpx2.Response(401, request=httpx2.Request("POST", self.server.url))
                await self.run(refusal)
                await self._keep(self._granted())
                self._renewed = self._token()
        except FAILURES as error:
            await self._failed(error, used)

    # ---- troubles

    def _may_ask(self, grant: Grant | None) -> bool:
        """Whether the token endpoint may be asked already."""
        left = grant.retry_at - self.now() if grant is not None else 0.0
        if left > 0:
            assert grant is not None
            self._fail(_put_off(grant.refused or "it failed", left), person=False)
        return left <= 0

    async def _failed(self, error: BaseException, used: str) -> None:
        """No token was to be had in the place of ``used``, and the reason may pass."""
        reason = plainly(error)
        if isinstance(error, BusyError):
            self._fail(reason, person=False)
            return
        try:
            async with self.alone():
                await self.catch_up()
                if self._token() not in ("", used):
                    return  # another process was luckier
                if self.grant is None and self._machine is None:
                    self._fail_without_token(None)  # somebody signed out meanwhile
                    return
                await self._put_off(reason, None)
        except (OSError, BusyError) as unwritten:
            self._fail(f"{reason} (and that can't be written down: {unwritten})", person=False)

    async def _put_off(self, reason: str, asked: float | None) -> None:
        grant = self.grant or Grant(url=self.server.url)
        failures = grant.failures + 1
        wait = pause(failures, asked)
        await self._keep(replace(grant, failures=failures, retry_at=self.now() + wait, refused=reason))
        self._fail(_put_off(reason, wait), person=False)

    def _widens(self, lacked: str | None) -> bool:
        """Whether this machine can have what a call lacked granted by itself, and has not tried."""
        if self._machine is None or not lacked or lacked in self._tried or len(self._tried) >= SCOPES_TRIED:
            return False
        if self.config.scope and not set(lacked.split()) <= set(self.config.scope.split()):
            return False  # more than whoever wrote the config wanted it to have
        self._tried.add(lacked)
        return not set(lacked.split()) <= set(self.grant.scope.split() if self.grant is not None else ())

    async def _note_scope(self, lacked: str | None) -> None:
        """A call was refused; ``lacked``: see `_lacked`. A person can have a scope granted."""
        self.trouble = None
        grant = self.grant
        if lacked is None:
            return
        if grant is not None:
            wanted = union_scopes(union_scopes(grant.scope, grant.wanted_scope), lacked) or ""
            if wanted != grant.wanted_scope:
                await self._together("scope", lambda: self._want(wanted))
        told = "its sign-in allows too little"
        if lacked:
            told = f"what it was asked for needs the scope {quoted(lacked)}"
        self._fail(told, person=self._machine is None)

    async def _want(self, scope: str) -> None:
        try:
            async with self.alone():
                await self.catch_up()
                if self.grant is not None:
                    await self._keep(replace(self.grant, wanted_scope=scope))
        except (OSError, BusyError):
            pass  # whoever signs in is asked for it when it is refused again

    async def close(self) -> None:
        """Waits for a token that is being had: the answer may hold the only refresh token there is."""
        if self._at_work:
            await asyncio.wait(self._at_work.values(), timeout=ENDING)


def _lacked(response: httpx2.Response) -> str | None:
    """The scope that ``response`` says was lacking, which may be ""; None when it was refused for something
    else (RFC 6750, 3.1).
    """
    if extract_field_from_www_auth(response, "error") != "insufficient_scope":
        return None
    return well_formed(extract_scope_from_www_auth(response) or "")


def _put_off(reason: str, seconds: float) -> str:
    return f"no token is to be had: {reason}; it is tried again in {max(seconds, 1):.0f} s"
