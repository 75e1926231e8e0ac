"""How a person signs in at an issuer with a browser: the authorization code flow (RFC 6749, 4.1) with PKCE,
for an access token that is for mcpzip (RFC 8707).

The rules:

1. What comes out is a token as clients send it with their requests, and is checked as theirs are
   (`Authenticator`). So a person is the same one, with the same groups and scopes, on the page and in a
   client.
2. Nothing of a sign-in is registered to be redacted (`model.redaction`): anybody can begin one, and choose
   the code that it ends with. So no text of a sign-in goes where it would have to be redacted.
3. Only a clear no of the issuer ends a sign-in. Whatever else it answers may be passing.
"""

import os
import time
from collections.abc import Callable, Mapping

import httpx

from mcpzip.auth.authorization_request import (
    Proof,
    authorization_url,
    check_answering_issuer,
    code_form,
    new_proof,
    plain_url,
)
from mcpzip.auth.authorization_response import AuthorizationCode
from mcpzip.auth.client import Client, authenticate, configured_client
from mcpzip.auth.discovery import check_metadata, find_server, send
from mcpzip.auth.errors import ERRORS, describe
from mcpzip.auth.metadata import ServerMetadata
from mcpzip.auth.responses import Token, oauth_error, read_token
from mcpzip.auth.url_policy import check_resolved_url
from mcpzip.config.schema import AuthConfig, PageConfig
from mcpzip.identity.errors import IssuerUnavailableError
from mcpzip.model.errors import LoginError

_OVER = "invalid_grant"
"""The error that says that a refresh token is not valid any more (RFC 6749, 5.2)."""
METADATA_KEPT = 900.0
"""Seconds for which the issuer's metadata are used."""


class CodeFlow:
    """The page as a client of its issuer. Everything runs on one event loop."""

    def __init__(
        self,
        page: PageConfig,
        resource: str,
        redirect_uri: str,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """page: with a client. resource: what tokens are to be for. redirect_uri: where browsers come back
        to. environment: may set an HTTP proxy. clock: seconds.
        """
        self._page, self._resource, self._redirect_uri = page, resource, redirect_uri
        self._environment, self._clock = environment, clock
        self._trusted = (page.issuer,)
        self._metadata: ServerMetadata | None = None
        self._read_at = 0.0

    async def begin(self) -> tuple[str, Proof]:
        """Where to send a browser, and the proof that it has to bring back. Raises IssuerUnavailableError."""
        try:
            metadata = await self._found()
            page = metadata.authorization_endpoint
            await check_resolved_url("the page to sign in on", page, self._trusted)
            proof, scopes = new_proof(), " ".join(self._page.scopes)
            more = {"resource": self._resource, **({"scope": scopes} if scopes else {})}
            url = authorization_url(page, self._page.client_id, self._redirect_uri, proof, more)
            return plain_url(url, self._page.issuer), proof
        except ERRORS as error:
            raise IssuerUnavailableError(describe(error)) from error

    async def redeem(self, answer: AuthorizationCode, proof: Proof) -> Token:
        """The token for a code, whose state is that of ``proof``. Raises LoginError if there is none,
        IssuerUnavailableError.
        """
        metadata = await self._known()
        check_answering_issuer(answer.iss, metadata)
        form = code_form(answer.code, self._page.client_id, self._redirect_uri, proof)
        response, _ = await self._ask(metadata, form)
        return read_token(response, registers=False)

    async def refresh(self, refresh_token: str) -> Token:
        """A new token (RFC 6749, 6). Raises LoginError if there is none any more, IssuerUnavailableError."""
        form = {
            "grant_type": "refresh_token",
            "refresh_token": refresh_token,
            "client_id": self._page.client_id,
        }
        response, error = await self._ask(await self._known(), form)
        try:
            return read_token(response, registers=False)
        except LoginError as refused:
            if error == _OVER:
                raise
            raise IssuerUnavailableError("its token endpoint answers with something else") from refused

    async def _ask(self, metadata: ServerMetadata, form: dict[str, str]) -> tuple[httpx.Response, str]:
        """The answer of the token endpoint to ``form``, and its error code, "" for none. Raises
        IssuerUnavailableError.
        """
        headers = authenticate(self._client(metadata), form)
        request = httpx.Request(
            "POST", metadata.token_endpoint, data=form | {"resource": self._resource}, headers=headers
        )
        try:
            response = await send(request, self._trusted, self._environment)
        except ERRORS as error:
            raise IssuerUnavailableError(describe(error)) from error
        code, _ = oauth_error(response, registers=False)
        if response.status_code not in (200, 201) and code in ("", "temporarily_unavailable"):
            raise IssuerUnavailableError(f"its token endpoint answers HTTP {response.status_code}")
        return response, code

    def _client(self, metadata: ServerMetadata) -> Client:
        of_page = AuthConfig(client_id=self._page.client_id, client_secret=self._page.client_secret)
        client = configured_client(of_page, metadata)
        assert client is not None, "it has an id"
        return client

    async def _known(self) -> ServerMetadata:
        try:
            return await self._found()
        except ERRORS as error:
            raise IssuerUnavailableError(describe(error)) from error

    async def _found(self) -> ServerMetadata:
        """The issuer's metadata. Raises `ERRORS`."""
        if self._metadata is not None and self._clock() < self._read_at + METADATA_KEPT:
            return self._metadata
        issuer = self._page.issuer
        found = await find_server(issuer, issuer, (), self._environment)
        if found is None:
            raise LoginError("it publishes no metadata (RFC 8414), or they can't be read")
        # A client with a secret has that as its proof; some issuers know PKCE and don't say so.
        check_metadata(found, self._trusted, pkce=self._page.client_secret is None)
        self._metadata, self._read_at = found, self._clock()
        return found
