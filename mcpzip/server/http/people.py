"""Which requests are let in where people sign in: a resource server of OAuth 2.1 (spec: basic/authorization).

The rules: every request has a token, a session is none; a token is good only for the configured public URL;
whoever is refused is told where to get a token and what it needs, and nothing else.
"""

from collections.abc import Callable, Sequence

from mcpzip.config import Config
from mcpzip.config.schema import RateLimit
from mcpzip.identity.authenticator import Authenticator
from mcpzip.identity.errors import IssuerUnavailableError, TokenError
from mcpzip.identity.resource_metadata import challenge, metadata, metadata_paths, metadata_url
from mcpzip.model.principal import Principal
from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.request_limits import RequestLimits
from mcpzip.server.http.response import Header, Refusal
from mcpzip.wire import INTERNAL_ERROR

_RETRY = (b"retry-after", b"5")


class People:
    """documents: the public documents, by path. challenge: see `scopes_challenge`."""

    def __init__(self, config: Config, warn: Callable[[str], None]) -> None:
        """config: with people. warn: is told what keeps everybody out. Raises ConfigError."""
        http = config.http
        self._authenticator = Authenticator(http, config.path, warn)
        self._url = metadata_url(http)
        self._first_scopes = http.issuers[0].scopes if http.issuers else ()
        self.documents = dict.fromkeys(metadata_paths(http), metadata(http)) if http.issuers else {}
        self.rate_limits: Callable[[], tuple[RateLimit, ...]] = lambda: config.rate_limits
        """Those of the config in use."""
        self._requests = RequestLimits(lambda: self.rate_limits())
        self._no_token = self._unauthorized("Send a bearer token as Authorization: Bearer TOKEN.")

    def admit(self, request: HttpRequest) -> Refusal | None:
        """Why ``request`` is refused; else it has a principal, or work to be done first that decides this
        (``request.admission``).
        """
        given = request.header("authorization")
        if given is None:
            return self._no_token
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer":
            return self._no_token
        try:
            found = self._authenticator.check(token.strip())
        except TokenError as error:
            return self._invalid(error)
        except IssuerUnavailableError as error:
            return _unavailable(error)
        if isinstance(found, Principal):
            return self._known(request, found)

        async def admission() -> Refusal | None:
            try:
                return self._known(request, await found())
            except TokenError as error:
                return self._invalid(error)
            except IssuerUnavailableError as error:
                return _unavailable(error)

        request.admission = admission
        return None

    def scopes_challenge(self, scopes: Sequence[str], principal: Principal | None) -> Header:
        """The header of a refusal because a token lacks some of ``scopes``, with all that it has to have
        (RFC 6750, 3.1).
        """
        always = () if principal is None else self._authenticator.required_scopes(principal)
        wanted = tuple(dict.fromkeys((*always, *scopes)))
        why = "The token lacks a scope."
        return (
            b"www-authenticate",
            challenge(self._url, error="insufficient_scope", why=why, scopes=wanted),
        )

    async def close(self) -> None:
        """Ends what is under way."""
        await self._authenticator.close()

    def _known(self, request: HttpRequest, principal: Principal) -> Refusal | None:
        required = self._authenticator.required_scopes(principal)
        if principal.scopes.issuperset(required):
            request.principal = principal
            return self._requests.check(principal)
        reason = f"The token lacks a scope; it has to have: {' '.join(required)}."
        return Refusal(403, reason, (self.scopes_challenge((), principal),))

    def _invalid(self, error: TokenError) -> Refusal:
        return self._unauthorized(f"This token is not valid: {error}.", "invalid_token", f"{error}")

    def _unauthorized(self, reason: str, error: str = "", why: str = "") -> Refusal:
        value = challenge(self._url, error=error, why=why, scopes=self._first_scopes)
        return Refusal(401, reason, ((b"www-authenticate", value),))


def _unavailable(error: IssuerUnavailableError) -> Refusal:
    """Not that the token is invalid, for which a client would throw it away."""
    reason = "Tokens can't be checked now, because their issuer can't be asked; try again later."
    return Refusal(503, reason, (_RETRY,), INTERNAL_ERROR)
