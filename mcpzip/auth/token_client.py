"""Getting tokens for one server: with the authorization code that a person's browser brings back, or with the
machine's own credentials (OAuth 2.1; MCP, basic/authorization).

The rule: nobody, and nothing secret, is sent to an authorization server whose metadata were not checked.
"""

import hmac
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

import httpx

from mcpzip.auth.authorization_request import (
    authorization_url,
    check_answering_issuer,
    code_form,
    new_proof,
)
from mcpzip.auth.authorization_response import AuthorizationCode
from mcpzip.auth.challenge import Challenge
from mcpzip.auth.client import (
    Client,
    authenticate,
    check_registered,
    configured_client,
    read_client,
    registration,
)
from mcpzip.auth.client_credentials import token_form
from mcpzip.auth.discovery import (
    Discovered,
    check_metadata,
    choose_issuer,
    find_resource,
    find_server,
    other_issuer,
    send,
)
from mcpzip.auth.errors import BusyError
from mcpzip.auth.grant import Grant
from mcpzip.auth.metadata import ServerMetadata, as_dict, endpoint, same_issuer
from mcpzip.auth.responses import Token, read_registration, read_token
from mcpzip.auth.scopes import union, well_formed
from mcpzip.auth.store import Store
from mcpzip.auth.url_policy import check_resolved_url
from mcpzip.config.schema import AuthConfig, ServerConfig
from mcpzip.model.errors import LoginError
from mcpzip.model.principal import PrincipalId
from mcpzip.model.quoting import shortened
from mcpzip.model.redaction import register
from mcpzip.system.threads import in_thread

_NOTHING_READ = object()
_OFFLINE = "offline_access"


class Login(Protocol):
    """A person who can sign in. redirect_uri: where their browser comes back to, which is listened to."""

    redirect_uri: str

    async def show(self, url: str) -> None:
        """Sends them to ``url``."""

    async def answer(self) -> AuthorizationCode:
        """What they came back with. Raises LoginError."""


class TokenClient:
    """The OAuth client of one server. grant: what is known to be granted. server_urls: see
    `url_policy.check_url`. environment: in which requests are made; it may set an HTTP proxy. now: Unix s.
    """

    def __init__(
        self,
        server: ServerConfig,
        store: Store,
        *,
        login: Login | None = None,
        environment: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.time,
    ) -> None:
        """now: Unix s."""
        self.server, self.config = server, server.auth or AuthConfig()
        self.server_urls = (server.url, *([self.config.issuer] if self.config.issuer else []))
        self.grant: Grant | None = None
        self.environment = environment
        self.now = now
        self._store, self._login = store, login
        self._client_credentials = self.config.grant == "client_credentials"
        self._seen: object = _NOTHING_READ
        self._asked_scope = ""

    def _token(self) -> str:
        return self.grant.access_token if self.grant is not None else ""

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Holds the store's lock. Raises BusyError when another process does, for too long."""
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(self._store.locked(self.server.url))
            except TimeoutError as error:
                raise BusyError("another process has been signing in to it for too long") from error
            yield

    async def authorize(self, challenge: Challenge) -> Grant:
        """Signs in from the beginning. challenge: the server's refusal. Raises `errors.ERRORS`."""
        found = await self.discover(challenge.resource_metadata)
        if found.metadata is not None and not same_issuer(found.metadata.issuer, found.expected_issuer):
            raise other_issuer(found.metadata, found.expected_issuer)
        self.check_server(found, pkce=not self._client_credentials)
        scope = self._asked_scope = self._scope(challenge, found)
        client = self._known_client(found) or await self._register(found, scope)
        if self._client_credentials:
            form, headers = await token_form(self.config, client, found.metadata)
            form |= {"scope": scope} if scope else {}
        else:
            form, headers = await self._sign_in(found, client, scope, challenge.protocol_version)
        form |= found.resource_parameter(challenge.protocol_version)
        token = read_token(await self.post(found.token_endpoint, form, headers))
        return granted(found, client, token, scope, self.now(), self._store.person)

    async def discover(self, metadata_url: str) -> Discovered:
        """Finds the authorization server. metadata_url: where the server said that its metadata are, or "".
        Raises LoginError, httpx.HTTPError.
        """
        url = self.server.url
        resource = await find_resource(url, metadata_url, self.server_urls, environment=self.environment)
        issuer = None if resource is None else choose_issuer(resource, self.config.issuer)
        metadata = await find_server(issuer, url, self.server_urls, self.environment)
        return Discovered(url, resource, issuer, metadata)

    def check_server(self, found: Discovered, *, pkce: bool) -> None:
        """Raises LoginError for an authorization server to which nobody, and nothing secret, may be sent.
        pkce: see `check_metadata`.
        """
        if found.metadata is not None:
            check_metadata(found.metadata, self.server_urls, pkce=pkce)
            self._check_issuer(found.metadata)
        elif named := found.issuer or self.config.issuer:
            raise no_metadata(named)

    def _check_issuer(self, metadata: ServerMetadata) -> None:
        """Raises LoginError for another issuer than the one in the config, or where there is none, than the
        one to which a secret out of the config was shown before: a server names its issuer, and the secret
        isn't the server's.
        """
        config, now = self.config, shortened(metadata.issuer)
        before = self.grant.issuer if self.grant is not None else ""
        if config.issuer:
            if not same_issuer(config.issuer, metadata.issuer):
                raise LoginError(
                    f"it names {now} as its authorization server, and the config {config.issuer}."
                )
        elif config.client_secret is not None and before and not same_issuer(before, metadata.issuer):
            raise LoginError(
                f"its authorization server was {shortened(before)} and is now {now}, which is not shown the "
                "client secret in the config; if that is right, sign out of it first: mcpzip auth logout."
            )

    async def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> httpx.Response:
        """Sends ``form`` to an endpoint of the authorization server. Raises LoginError, httpx.HTTPError."""
        return await send(
            httpx.Request("POST", url, data=dict(form), headers=dict(headers)),
            self.server_urls,
            self.environment,
        )

    def _scope(self, challenge: Challenge, found: Discovered) -> str:
        """The scope to ask for: what the server asks for, else what it, or its authorization server, supports
        (spec basic/authorization, "Scope Selection Strategy"); and a refresh token, where there are such.
        """
        if self._client_credentials and self.config.scope:  # nobody is there to say yes to another
            return self.config.scope
        supported = (found.metadata.scopes_supported if found.metadata is not None else None) or ()
        offered = found.resource.scopes_supported if found.resource is not None else None
        scope = challenge.scope or well_formed(" ".join(supported if offered is None else offered))
        if not self._client_credentials and _OFFLINE in supported:
            scope = union(scope, _OFFLINE)
        if challenge.insufficient_scope:
            scope = union(self._asked_scope, self.grant.scope if self.grant is not None else "", scope)
        return scope

    def _known_client(self, found: Discovered) -> Client | None:
        """The client that we are there already: the config's, that of our metadata document, or the one that
        this very authorization server has registered.
        """
        config, grant, own = self.config, self.grant, self.config.client_metadata_url
        client = configured_client(config, found.metadata)
        if client is not None:
            return client
        client = read_client(grant.client) if grant is not None else None
        if client is not None and grant is not None:
            of_another = grant.issuer and not same_issuer(grant.issuer, found.expected_issuer)
            elsewhere = self._login is not None and self._login.redirect_uri not in client.redirect_uris
            if not elsewhere and (not of_another or client.client_id == own):
                return client
        if own and found.metadata is not None and found.metadata.client_id_metadata_document_supported:
            return Client(own, token_endpoint_auth_method="none", redirect_uris=[self._redirect_uri])
        return None

    async def _register(self, found: Discovered, scope: str) -> Client:
        """Registers us (RFC 7591), and keeps that at once: a person who gives up needs no second one."""
        url, metadata = self.server.url, found.metadata
        where = metadata.registration_endpoint if metadata is not None else None
        body = registration(self._redirect_uri, scope)
        fallback = endpoint(url, "/register")
        client = read_registration(
            await send(
                httpx.Request("POST", where or fallback, json=body), self.server_urls, self.environment
            )
        )
        check_registered(client)
        bound = metadata is not None and (where or endpoint(metadata.issuer, "/register") == fallback)
        issuer = metadata.issuer if metadata is not None and bound else ""
        if not self._token():  # what was granted to another registration may still be valid
            try:
                async with self.locked():
                    grant = Grant(url=url, client=client.as_dict(), issuer=issuer, person=self._store.person)
                    await in_thread(lambda: self._store.save(grant), "auth")
                    self._seen = self._store.signature(url)
            except (OSError, BusyError):
                pass  # the sign-in goes on, and is kept whole or reported
        return client

    @property
    def _redirect_uri(self) -> str:
        assert self._login is not None, "only people are registered"
        return self._login.redirect_uri

    async def _sign_in(
        self, found: Discovered, client: Client, scope: str, protocol_version: str
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Has a person sign in. Returns the form that asks for their token, and its headers (RFC 6749, 4.1;
        RFC 7636; RFC 9207). Raises LoginError.
        """
        assert self._login is not None
        page, metadata = endpoint(self.server.url, "/authorize"), found.metadata
        if metadata is not None:  # a browser goes there, and asks nobody
            page = metadata.authorization_endpoint
            await check_resolved_url("the page to sign in on", page, self.server_urls)
        proof, uri = new_proof(), self._redirect_uri
        register(proof.verifier, passing=True)
        more = {
            **found.resource_parameter(protocol_version),
            **({"scope": scope} if scope else {}),
            # OpenID Connect Core 1.0, 11
            **({"prompt": "consent"} if _OFFLINE in scope.split() else {}),
        }
        await self._login.show(authorization_url(page, client.client_id, uri, proof, more))
        answer = await self._login.answer()
        if not hmac.compare_digest(answer.state.encode(), proof.state.encode()):
            raise LoginError("the browser came back with the state of another login.")
        check_answering_issuer(answer.iss, metadata)
        if self._store.person is None:  # anybody with a page can bring whatever code they like
            register(answer.code, passing=True)
        form = code_form(answer.code, client.client_id, uri, proof)
        return form, authenticate(client, form)


def granted(
    found: Discovered, client: Client, token: Token, scope: str, now: float, person: PrincipalId | None
) -> Grant:
    """The grant that ``token`` is. scope: what was asked for. now: Unix s. person: whose it is."""
    return Grant(
        url=found.server_url,
        resource=found.token_resource,
        issuer="" if found.metadata is None else found.metadata.issuer,
        client=client.as_dict(),
        access_token=token.access_token,
        refresh_token=token.refresh_token,
        scope=well_formed(scope) if token.scope is None else token.scope,
        expires_at=None if token.expires_in is None else now + token.expires_in,
        obtained_at=now,
        server_metadata=as_dict(found.metadata),
        resource_metadata=as_dict(found.resource),
        person=person,
        signed_in_at=now,
    )


def no_metadata(issuer: str) -> LoginError:
    """The error for an authorization server that says nothing about itself."""
    return LoginError(f"{shortened(issuer)} publishes no metadata (RFC 8414) of use; tell whoever runs it.")
