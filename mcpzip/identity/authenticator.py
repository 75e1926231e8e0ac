"""Who has a bearer token: one check for JWTs, opaque tokens and API keys.

The rule: what a token says of itself only leads to who is asked about it. A token is sent to nobody but the
issuer that the config names for it, and never to a server.
"""

import os
from collections.abc import Callable, Coroutine, Mapping
from functools import partial

from mcpzip.config.schema import HttpConfig, IssuerConfig
from mcpzip.identity.api_keys import PREFIX, ApiKeys
from mcpzip.identity.errors import IssuerUnavailableError, TokenError
from mcpzip.identity.introspection import Introspector
from mcpzip.identity.jwks import KeySet
from mcpzip.model import limits
from mcpzip.model.errors import ConfigError
from mcpzip.model.principal import Principal

_INSTALL = 'install it: pip install "mcpzip[team]"'


class Authenticator:
    """Checks the tokens of one config. Everything runs on one event loop."""

    def __init__(
        self,
        config: HttpConfig,
        path: str,
        warn: Callable[[str], None],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """path: of the config file. warn: is told what keeps everybody out. environment: may set an HTTP
        proxy. Raises ConfigError if checking tokens needs what isn't installed.
        """
        self._issuers = {each.issuer: each for each in config.issuers}
        self._keys = ApiKeys(config.api_keys, warn) if config.api_keys else None
        self._asked: Introspector | None = None
        self._asking = 0
        by_key: list[IssuerConfig] = []
        for issuer in config.issuers:
            if issuer.introspection is None:
                by_key.append(issuer)
            else:
                asked = Introspector(issuer, issuer.introspection, config.public_url, environment)
                self._asked, self._asked_of = asked, issuer.issuer
        if by_key:
            try:
                from mcpzip.identity.jwt_verifier import JwtVerifier, parsed
            except ImportError:
                raise ConfigError(path, "http.issuers", "checking tokens needs PyJWT", _INSTALL) from None
            self._parsed = parsed
            self._verifiers = {
                each.issuer: JwtVerifier(each, config.public_url, KeySet(each, warn, environment))
                for each in by_key
            }
        else:
            self._verifiers = {}

    def required_scopes(self, principal: Principal) -> tuple[str, ...]:
        """The scopes that every request of ``principal`` needs."""
        issuer = self._issuers.get(principal.issuer)
        return () if issuer is None else issuer.scopes

    def check(self, token: str) -> "Principal | Callable[[], Coroutine[None, None, Principal]]":
        """Who has ``token``, or what begins the work that finds it out, which raises the same. Raises
        TokenError, IssuerUnavailableError.
        """
        if len(token) > limits.BEARER_TOKEN:
            raise TokenError(f"it has more than {limits.BEARER_TOKEN:,} characters")
        if self._keys is not None and token.startswith(PREFIX):
            return self._keys.verify(token)
        if self._verifiers and (said := self._parsed(token)) is not None:
            verifier = self._verifiers.get(said.issuer)
            if verifier is not None:
                found = verifier.verify(token, said)
                return partial(self._after_fetch, token) if found is None else found
            if self._asked is None or said.issuer != self._asked_of:
                raise TokenError("it is of no issuer that is trusted here")
        if self._asked is None:
            raise TokenError("it is of no kind that is accepted here")
        known = self._asked.known(token)
        return partial(self._ask, self._asked, token) if known is None else known

    async def close(self) -> None:
        """Ends what is under way."""
        for verifier in self._verifiers.values():
            await verifier.keys.close()
        if self._asked is not None:
            await self._asked.close()

    async def _after_fetch(self, token: str) -> Principal:
        said = self._parsed(token)
        assert said is not None, "it was read before"
        verifier = self._verifiers[said.issuer]
        await verifier.keys.fetch()  # of all who wait for it, one asks
        found = verifier.verify(token, said)
        if found is not None:
            return found
        if verifier.keys.problem:
            raise IssuerUnavailableError(verifier.keys.problem)
        raise TokenError("its issuer has no such key for its algorithm")

    async def _ask(self, asked: Introspector, token: str) -> Principal:
        with self._turn():
            return await asked.ask(token)

    def _turn(self) -> "_Turn":
        if self._asking >= limits.AUTHENTICATIONS:
            raise IssuerUnavailableError("too many tokens are being checked already")
        return _Turn(self)


class _Turn:
    """Counts a token that is being checked."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def __enter__(self) -> None:
        self._authenticator._asking += 1

    def __exit__(self, *args: object) -> None:
        self._authenticator._asking -= 1
