"""How a browser goes to the issuer, and comes back from there.

The rules:

1. What a browser has to bring back lies in a cookie of its own (RFC 9700, 4.7.1): so nobody is signed in by
   the link of somebody else, and nothing is remembered here of those who never come back.
2. That cookie comes along from the issuer (``SameSite=Lax``), and opens nothing. The session's cookie doesn't
   (``SameSite=Strict``): so the answer is a page that goes on by itself, and no redirect.
3. An answer to what the cookie is for takes it away, and counts once. Any other answer leaves it: it may be
   that of another tab, or no answer of the issuer at all.
4. Anybody can begin, and come back with anything. So a person waits for their turn behind others, and isn't
   refused; and the page says nothing of our network: that is told to whoever runs mcpzip.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
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
from mcpzip.model.quoting import shortened
from mcpzip.ui.team.issuer_session import IssuerSession
from mcpzip.ui.team.limits import SIGN_IN_TIME, SIGN_INS, SIGN_INS_REMEMBERED, SIGN_INS_WAITING

BEGIN, CALLBACK = "/sign-in/issuer", "/sign-in/callback"
_LONGEST_COOKIE = 400


class SignInError(Exception):
    """Nobody is signed in. Its text is a sentence for the person. is_passing: whether to try again later.
    is_answered: whether what the browser brought was an answer to its cookie.
    """

    def __init__(self, text: str, *, is_passing: bool = False, is_answered: bool = False) -> None:
        super().__init__(text)
        self.is_passing, self.is_answered = is_passing, is_answered


class Turns:
    """Lets so many do something at a time; the others wait in the order in which they came."""

    def __init__(self, most: int, waiting: int) -> None:
        """most: at a time. waiting: how many may wait."""
        self._free, self._most = asyncio.Semaphore(most), most + waiting
        self._there = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits for a turn. Raises SignInError if too many wait."""
        if self._there >= self._most:
            text = "Too many people are signing in at once. Try again in a moment."
            raise SignInError(text, is_passing=True)
        self._there += 1
        try:
            async with self._free:
                yield
        finally:
            self._there -= 1


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
        self.issuer, self._warn, self._warned = page.issuer, warn, ""
        self._beginning, self._ending = Turns(SIGN_INS, SIGN_INS_WAITING), Turns(SIGN_INS, SIGN_INS_WAITING)
        self._answered: OrderedDict[str, None] = OrderedDict()
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
        async with self._beginning.turn():
            try:
                url, proof = await self._flow.begin()
            except IssuerUnavailableError as error:
                raise self.unavailable(error) from error
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
                why = f"The issuer did not sign you in: {why}."
                raise SignInError(why, is_passing=passing, is_answered=True)
            case AuthorizationCode() as answer:
                pass
        if proof.state in self._answered:
            raise SignInError("This sign-in has been tried already. Begin again.", is_answered=True)
        self._answered[proof.state] = None
        if len(self._answered) > SIGN_INS_REMEMBERED:
            self._answered.popitem(last=False)
        async with self._ending.turn():
            return await self._session(answer, proof)

    async def _session(self, answer: AuthorizationCode, proof: Proof) -> IssuerSession:
        try:
            return await IssuerSession.of(self._flow, self._authenticator, answer, proof)
        except LoginError as error:
            raise SignInError(f"The issuer gives no token: {error}", is_answered=True) from error
        except TokenError as error:
            why = f"The token of the issuer is not valid here: {error}. Tell whoever runs mcpzip."
            raise SignInError(why, is_answered=True) from error
        except IssuerUnavailableError as error:
            raise self.unavailable(error) from error

    async def close(self) -> None:
        """Ends what is under way."""
        await self._authenticator.close()

    def unavailable(self, error: IssuerUnavailableError) -> SignInError:
        """The error for a person, and a warning for whoever runs mcpzip: once for each reason in a row."""
        reason = shortened(str(error).rstrip("."))
        if reason != self._warned:
            self._warned = reason
            self._warn(f"Nobody can sign in to the page at {self.issuer}: {reason}.")
        text = f"{self.issuer} can't be asked now. Try again later, or tell whoever runs mcpzip."
        return SignInError(text, is_passing=True, is_answered=True)

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
