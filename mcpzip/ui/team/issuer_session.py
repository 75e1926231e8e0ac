"""A browser that is signed in at the issuer: its tokens, which never leave this process.

The rules:

1. Its access token is checked at every request, as that of a client is. When it has expired, it is refreshed.
2. Whose browser it is never changes: a refreshed token of somebody else is refused.
3. Of several requests at once, one refreshes, and it goes on when its browser has gone: an issuer that
   rotates refresh tokens takes a second use of one for theft (RFC 9700, 4.14.2).
"""

import asyncio
from typing import Self

from mcpzip.auth.authorization_request import Proof
from mcpzip.auth.authorization_response import AuthorizationCode
from mcpzip.auth.responses import Token
from mcpzip.identity.authenticator import Authenticator
from mcpzip.identity.code_flow import CodeFlow
from mcpzip.identity.errors import TokenError
from mcpzip.model.errors import LoginError
from mcpzip.model.principal import Principal


class IssuerSession:
    """Belongs to one event loop. principal: whose it is, as the last check said."""

    def __init__(self, flow: CodeFlow, authenticator: Authenticator, token: Token) -> None:
        self._flow, self._authenticator, self._token = flow, authenticator, token
        self._refreshing: asyncio.Task[None] | None = None
        self.principal = Principal("", "")

    @classmethod
    async def of(
        cls, flow: CodeFlow, authenticator: Authenticator, answer: AuthorizationCode, proof: Proof
    ) -> Self:
        """The one that a browser begins that brought ``answer`` back. Raises LoginError, TokenError,
        IssuerUnavailableError.
        """
        made = cls(flow, authenticator, await flow.redeem(answer, proof))
        made.principal = await made._checked()
        return made

    async def check(self) -> Principal:
        """Whose it is now. Raises TokenError if the sign-in has ended, IssuerUnavailableError."""
        token = self._token
        try:
            found = await self._checked()
        except TokenError:
            if not token.refresh_token:
                raise
            if token is self._token:  # else another request has refreshed it meanwhile
                await self._refresh()
            found = await self._checked()
        if found.id != self.principal.id:
            raise TokenError("it is of another person now")
        self.principal = found
        return found

    async def _checked(self) -> Principal:
        found = self._authenticator.check(self._token.access_token)
        principal = found if isinstance(found, Principal) else await found()
        missing = set(self._authenticator.required_scopes(principal)) - principal.scopes
        if missing:
            raise TokenError(f"it lacks the scope {' '.join(sorted(missing))}")
        return principal

    async def _refresh(self) -> None:
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refreshed(), name="refresh-page-token")
            self._refreshing.add_done_callback(self._over)
        await asyncio.shield(self._refreshing)

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._refreshing = None
        if not task.cancelled():
            task.exception()  # whoever waited for it got it

    async def _refreshed(self) -> None:
        before = self._token.refresh_token
        try:
            token = await self._flow.refresh(before)
        except LoginError as error:
            raise TokenError("it can't be refreshed any more") from error
        # An issuer that doesn't rotate them says nothing of the refresh token (RFC 6749, 6).
        self._token = Token(token.access_token, token.refresh_token or before, token.expires_in, token.scope)
