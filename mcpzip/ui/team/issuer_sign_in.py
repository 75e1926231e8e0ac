"""How a browser goes to the issuer, and comes back from there.

The rules:

1. What a browser has to bring back lies in a cookie of its own (RFC 9700, 4.7.1): so nobody is signed in by
   the link of somebody else, and nothing is remembered here of those who never come back.
2. That cookie comes along from the issuer (``SameSite=Lax``), and opens nothing. The session's cookie doesn't
   (``SameSite=Strict``): so the answer is a page that goes on by itself, and no redirect.
3. Any answer takes the first cookie away: each of them can be tried once.
"""

import os
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from msgspec.structs import replace

from mcpzip.auth.authorization_request import Proof
from mcpzip.auth.authorization_response import (
    AuthorizationCode,
    AuthorizationDenied,
    InvalidResponse,
    read_response,
)
from mcpzip.config import Config
from mcpzip.config.schema import PageConfig
from mcpzip.identity.authenticator import Authenticator
from mcpzip.identity.code_flow import CodeFlow
from mcpzip.identity.errors import IssuerUnavailableError, TokenError
from mcpzip.model.errors import LoginError
from mcpzip.ui.team.issuer_session import IssuerSession
from mcpzip.ui.team.limits import SIGN_IN_TIME

BEGIN, CALLBACK = "/sign-in/issuer", "/sign-in/callback"
_LONGEST_COOKIE = 400


class SignInError(Exception):
    """Nobody is signed in. Its text is a sentence for the person. is_passing: whether to try again later."""

    def __init__(self, text: str, *, is_passing: bool = False) -> None:
        super().__init__(text)
        self.is_passing = is_passing


class IssuerSignIn:
    """The sign-ins to the page at ``origin``, which has a client at its issuer. issuer: its identifier."""

    def __init__(
        self,
        config: Config,
        page: PageConfig,
        origin: str,
        warn: Callable[[str], None],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """warn: is told what keeps everybody out. environment: may set an HTTP proxy. Raises ConfigError."""
        self.issuer = page.issuer
        only = replace(
            config.http,
            issuers=tuple(each for each in config.http.issuers if each.issuer == page.issuer),
            api_keys="",
        )
        self._authenticator = Authenticator(only, config.path, warn, environment)
        self._flow = CodeFlow(page, config.http.public_url, f"{origin}{CALLBACK}", environment)
        parts = urlsplit(origin)
        is_secure = parts.scheme == "https"
        self._cookie_name = "__Host-mcpzip-sign-in" if is_secure else f"mcpzip-sign-in-{parts.port or 80}"
        self._place = "Path=/; Secure" if is_secure else f"Path={CALLBACK}"

    async def begin(self) -> tuple[str, bytes]:
        """Where to send a browser, and the header ``Set-Cookie`` with what it has to bring back. Raises
        SignInError.
        """
        try:
            url, proof = await self._flow.begin()
        except IssuerUnavailableError as error:
            raise self._unavailable(error) from error
        return url, self._cookie(f"{proof.state}.{proof.verifier}", SIGN_IN_TIME)

    @property
    def end_of_cookie(self) -> bytes:
        """The header ``Set-Cookie`` that takes the cookie away."""
        return self._cookie("", 0)

    async def finish(self, query: str, cookies: str | None) -> IssuerSession:
        """The session of a browser that came back with ``query``. Raises SignInError."""
        proof = self._proof(cookies)
        if proof is None:
            raise SignInError("This browser has not begun to sign in here, or took too long. Begin again.")
        match read_response(query, proof.state):
            case InvalidResponse(why):
                raise SignInError(f"{why} Begin again.")
            case AuthorizationDenied(why, passing):
                raise SignInError(f"The issuer did not sign you in: {why}.", is_passing=passing)
            case AuthorizationCode() as answer:
                pass
        try:
            return await IssuerSession.of(self._flow, self._authenticator, answer, proof)
        except LoginError as error:
            raise SignInError(f"The issuer gives no token: {error}") from error
        except TokenError as error:
            raise SignInError(
                f"The token of the issuer is not valid here: {error}. Tell whoever runs mcpzip."
            ) from error
        except IssuerUnavailableError as error:
            raise self._unavailable(error) from error

    async def close(self) -> None:
        """Ends what is under way."""
        await self._authenticator.close()

    def _unavailable(self, error: IssuerUnavailableError) -> SignInError:
        return SignInError(
            f"{self.issuer} can't sign you in now: {str(error).rstrip('.')}. Try again later.",
            is_passing=True,
        )

    def _proof(self, cookies: str | None) -> Proof | None:
        for pair in (cookies or "").split(";"):
            name, _, value = pair.strip().partition("=")
            state, dot, verifier = value.partition(".")
            if name == self._cookie_name and dot and state and verifier and len(value) <= _LONGEST_COOKIE:
                return Proof(state, verifier)
        return None

    def _cookie(self, value: str, seconds: int) -> bytes:
        name, place = self._cookie_name, self._place
        return f"{name}={value}; {place}; HttpOnly; SameSite=Lax; Max-Age={seconds}".encode()
