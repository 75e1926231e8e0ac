"""The SDK's sign-in, with everything that it sends sent, and looked at, by us. Imports the SDK.

The rules: the SDK decides what comes next; nobody, and nothing secret, is sent to a server that was not
looked at first; what a server answers is taken apart before the SDK sees it.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from mcpzip import __version__
from mcpzip.auth.discovery import check_metadata, send
from mcpzip.auth.failures import BusyError
from mcpzip.auth.grant import Grant
from mcpzip.auth.machine import machine
from mcpzip.auth.memory import check_issuer
from mcpzip.auth.places import check_place, check_way
from mcpzip.auth.replies import registration_reply, token_reply
from mcpzip.auth.store import Store
from mcpzip.config.schema import AuthConfig, ServerConfig
from mcpzip.model.errors import LoginError
from mcpzip.model.redaction import register
from mcpzip.system.threads import in_thread

_NOTHING_READ = object()


class Person(Protocol):
    """Somebody who can sign in. redirect_uri: where their browser comes back to; it is listened to."""

    redirect_uri: str

    async def show(self, url: str) -> None:
        """Leads them to ``url``."""

    async def answer(self) -> AuthorizationCodeResult:
        """What they came back with. Raises LoginError."""


class Provider(OAuthClientProvider):
    """How one server is signed in to. grant: what is known to be granted. near: see `places.check_place`.
    now: Unix s.
    """

    def __init__(
        self,
        server: ServerConfig,
        store: Store,
        *,
        person: Person | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """now: Unix s. Raises LoginError for a config that can't be followed."""
        self.config = server.auth or AuthConfig()
        alone = self.config.grant == "client_credentials"
        redirect = person.redirect_uri if person is not None else "http://127.0.0.1/callback"
        asked = OAuthClientMetadata(
            redirect_uris=None if alone else [AnyUrl(redirect)],
            client_name="mcpzip",
            software_id="mcpzip",
            software_version=__version__,
            scope=self.config.scope,
            grant_types=["client_credentials"] if alone else ["authorization_code", "refresh_token"],
        )
        try:
            super().__init__(
                server.url,
                asked,
                _Told(self),
                person.show if person is not None else None,
                person.answer if person is not None else None,
                client_metadata_url=self.config.client_metadata_url or None,
            )
        except ValueError as error:
            raise LoginError(f"{server.name}: {error}.") from error
        self.server = server
        self.near = (server.url, *([self.config.issuer] if self.config.issuer else []))
        self.grant: Grant | None = None
        self._store, self.now = store, now
        self._seen: object = _NOTHING_READ
        self._machine = machine(self.config, server.url, _Told(self), self.context) if alone else None

    def _token(self) -> str:
        return self.grant.access_token if self.grant is not None else ""

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Holds the store's lock. Raises BusyError when another process does, for too long."""
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(self._store.locked(self.server.url))
            except TimeoutError as error:
                raise BusyError("another process has been signing in to it for too long") from error
            yield

    async def run(self, challenge: httpx2.Response) -> None:
        """Signs in from scratch, as the SDK does it: all that has to be sent for it is sent here. Raises
        `FAILURES`. challenge: the server's refusal, which was read.
        """
        request = challenge.request
        # What it sees as a token of unknown age it neither refreshes nor shows anybody.
        scope = self.grant.scope if self.grant is not None else None
        self.context.current_tokens = OAuthToken(access_token="-", scope=scope or None)
        self.context.token_expiry_time = None
        self.context.oauth_metadata = self.context.protected_resource_metadata = None
        self.context.auth_server_url = None
        self._initialized = True
        flow = super()._auth_flow(request)
        try:
            outgoing = await flow.__anext__()
            response = challenge
            while (outgoing := await flow.asend(response)) is not request:
                response = await self._sent(outgoing)
        except ValidationError as error:
            raise LoginError(
                "what its authorization server answers is not as the standards have it."
            ) from error
        finally:
            request.headers.pop("Authorization", None)
            await flow.aclose()

    async def _sent(self, outgoing: httpx2.Request) -> httpx2.Response:
        """What comes back for ``outgoing``, fit to be read by the SDK."""
        if outgoing.method == "GET":
            check_place("what tells of its sign-in", str(outgoing.url), self.near)
            return await send(outgoing, self.near)
        self._check_server()
        response = await send(outgoing, self.near)
        registering = outgoing.headers["Content-Type"] == "application/json"
        return registration_reply(response) if registering else token_reply(response)

    def _check_server(self) -> None:
        """Raises LoginError for an authorization server to which nobody, and nothing secret, may be sent."""
        metadata, issuer = self.context.oauth_metadata, self.context.auth_server_url
        if metadata is not None:
            check_metadata(metadata, self.near, person=self._machine is None)
            check_issuer(self.grant, metadata, self.config)
        elif issuer is not None or self.config.issuer:
            named = issuer or self.config.issuer
            raise LoginError(f"{named} publishes no metadata (RFC 8414) of use; tell whoever runs it.")

    def _select_authorization_server(self, advertised: list[str]) -> str:
        known = (server for server in advertised if issuers_match(server, self.config.issuer))
        return next(known, advertised[0])

    async def _perform_authorization(self) -> httpx2.Request:
        self._check_server()
        if self._machine is not None:
            if self.config.scope:  # nobody is there to say yes to another, whatever the server asks for
                self.context.client_metadata.scope = self.config.scope
            return await self._machine._perform_authorization()
        metadata = self.context.oauth_metadata
        if metadata is not None:  # a browser goes there, and asks nobody
            await check_way("the page to sign in on", str(metadata.authorization_endpoint), self.near)
        return await super()._perform_authorization()

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        code, verifier = await super()._perform_authorization_code_grant()
        register(code, passing=True)
        register(verifier, passing=True)
        return code, verifier

    async def _initialize(self) -> None:
        self._initialized = True

    async def registered(self, client: OAuthClientInformationFull) -> None:
        """We were registered. Kept at once: a person who gives up is not to cost a registration each time."""
        if self.config.client_id or client.client_id == self.config.client_metadata_url:
            return
        said = client.model_dump(mode="json", exclude_none=True, exclude={"issuer"})
        grant = Grant(url=self.server.url, client=said, issuer=client.issuer or "")
        if self._token():
            return  # what there is was granted to another registration, and may still be good
        try:
            async with self.alone():
                await in_thread(lambda: self._store.save(grant), "auth")
                self._seen = self._store.signature(self.server.url)
        except (OSError, BusyError):
            pass  # the sign-in goes on, and is kept whole or reported


class _Told:
    """What the SDK takes for its storage (`mcp.client.auth.TokenStorage`)."""

    def __init__(self, auth: Provider) -> None:
        self._auth = auth

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        pass  # the whole grant is kept once it is whole

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await self._auth.registered(client_info)
