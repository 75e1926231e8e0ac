"""The public keys of an issuer (JWK Set, RFC 7517), fetched when they are needed and kept for a while.

The rules:

1. What a key may be used for follows from the key and the config, never from a token.
2. A token with an unknown key has the keys fetched once, because the issuer may have a new one; after that
   not again for some time, whatever tokens say.
3. Keys are renewed in the background. If that fails, the last ones stay for a day, so that a short outage of
   the issuer is none of ours; a key that the issuer has withdrawn is gone with the next success.
"""

import asyncio
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import httpx
import msgspec

from mcpzip.auth.codec import normalized
from mcpzip.auth.discovery import send
from mcpzip.auth.metadata import server_metadata_urls
from mcpzip.config.schema import IssuerConfig
from mcpzip.identity.errors import IssuerUnavailableError
from mcpzip.model import limits
from mcpzip.model.errors import LoginError
from mcpzip.model.quoting import one_line, shortened

RENEWED_AFTER = 900.0
"""Seconds after which the keys are fetched again: for so long a key that was withdrawn may still be used."""
KEPT = 86_400.0
"""Seconds for which keys are used while the issuer can't be reached."""
COOL_DOWN = 30.0
"""Seconds between two fetches for keys that aren't known, and after a failure. The first fetch, when no key
is known yet, doesn't count: the issuer may have a new one a moment later."""
FETCH_TIME = 10.0
"""Seconds that the issuer has to answer while a client waits."""

_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_BY_CURVE = {"P-256": ("ES256",), "P-384": ("ES384",), "P-521": ("ES512",), "Ed25519": ("EdDSA",)}
_LEAST_RSA = 2_048
"""Bits of a key (RFC 7518, 3.3)."""

_ERRNO = re.compile(r"^\[Errno -?\d+\] ")

Member = Annotated[str, msgspec.Meta(max_length=limits.KEY_MEMBER)]


class _Jwk(msgspec.Struct):
    kty: Member
    kid: Member | None = None
    use: Member | None = None
    key_ops: Annotated[list[Member], msgspec.Meta(max_length=20)] | None = None
    alg: Member | None = None
    crv: Member | None = None
    n: Member | None = None
    e: Member | None = None
    x: Member | None = None
    y: Member | None = None


class _JwkSet(msgspec.Struct):
    keys: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=limits.KEYS)]


class _ServerMetadata(msgspec.Struct):
    issuer: Annotated[str, msgspec.Meta(max_length=8_192)]
    jwks_uri: Annotated[str, msgspec.Meta(max_length=8_192)]


class Key:
    """A public key of an issuer. kid: its name, None without one. algorithms: that it may be used with."""

    def __init__(self, jwk: Mapping[str, str], algorithms: tuple[str, ...]) -> None:
        self.kid, self.algorithms = jwk.get("kid"), algorithms
        self._jwk = dict(jwk)
        self._made: dict[str, Any] = {}

    def with_algorithm(self, algorithm: str) -> Any:
        """It as PyJWT takes it, for one of its algorithms. Raises jwt.PyJWTError for one that is no key."""
        if algorithm not in self._made:
            from jwt import PyJWK

            self._made[algorithm] = PyJWK(self._jwk, algorithm)
        return self._made[algorithm]


class KeySet:
    """The keys of one issuer. Everything runs on one event loop."""

    def __init__(
        self,
        issuer: IssuerConfig,
        warn: Callable[[str], None],
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """warn: is told, once for each reason in a row, that the keys can't be fetched. environment: may set
        an HTTP proxy. clock: seconds.
        """
        self._issuer, self._warn, self._environment, self._clock = issuer, warn, environment, clock
        self._keys: tuple[Key, ...] = ()
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._problem = ""

    @property
    def is_known(self) -> bool:
        """Whether there are keys to check a token with."""
        return self._fetched_at is not None and self._clock() < self._fetched_at + KEPT

    @property
    def problem(self) -> str:
        """Why the last fetch failed; "" if it didn't."""
        return self._problem

    def find(self, kid: str | None, algorithm: str) -> Key | None:
        """The key called ``kid``, or the only one if that is None, if it is for ``algorithm``; None if there
        is none. Old keys are renewed in the background.
        """
        if not self.is_known:
            return None
        is_old = self._fetched_at is not None and self._clock() > self._fetched_at + RENEWED_AFTER
        if is_old and self.may_fetch:
            self._begin()
        fitting = [key for key in self._keys if algorithm in key.algorithms and kid in (None, key.kid)]
        return fitting[0] if len(fitting) == 1 or (fitting and kid is not None) else None

    @property
    def may_fetch(self) -> bool:
        """Whether it is worth while to fetch the keys, or they are being fetched."""
        tried = self._tried_at
        return self._fetching is not None or tried is None or self._clock() >= tried + COOL_DOWN

    async def fetch(self) -> None:
        """Fetches the keys; of several at once, one does. Never raises for what the issuer does."""
        await asyncio.shield(self._begin())

    async def close(self) -> None:
        """Ends a fetch that is under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait({self._fetching})

    def _begin(self) -> "asyncio.Task[None]":
        if self._fetching is None:
            self._tried_at = self._clock()
            self._fetching = asyncio.create_task(self._fetch(), name="jwks")
        return self._fetching

    async def _fetch(self) -> None:
        is_first = not self.is_known
        try:
            async with asyncio.timeout(FETCH_TIME):
                uri = self._issuer.jwks_uri or await self._discovered()
                self._keys = keys_in(await self._get(uri), self._issuer)
            self._fetched_at, self._problem = self._clock(), ""
            if is_first:
                self._tried_at = None
        except TimeoutError:
            self._failed(f"it has not answered within {FETCH_TIME:g} s")
        except (IssuerUnavailableError, LoginError, httpx.HTTPError, OSError, ValueError) as error:
            self._failed(str(error) or type(error).__name__)
        finally:
            self._fetching = None

    def _failed(self, reason: str) -> None:
        reason = one_line(_ERRNO.sub("", reason).rstrip("."))
        if reason != self._problem:
            self._problem = reason
            self._warn(f"The keys of the issuer {self._issuer.issuer} can't be fetched: {shortened(reason)}.")

    async def _discovered(self) -> str:
        """The URL of the keys, from the issuer's metadata (RFC 8414, 3; OpenID Connect Discovery 1.0, 4).
        Raises IssuerUnavailableError.
        """
        issuer = self._issuer.issuer
        for url in server_metadata_urls(issuer, issuer):
            try:
                found = msgspec.json.decode(await self._get(url), type=_ServerMetadata)
            except (IssuerUnavailableError, msgspec.DecodeError):
                continue
            if normalized(found.issuer) != normalized(issuer):  # RFC 8414, 3.3
                raise IssuerUnavailableError(f"its metadata are of {shortened(found.issuer)}")
            return found.jwks_uri
        raise IssuerUnavailableError(
            "it publishes no metadata with a jwks_uri; write jwks_uri into the config"
        )

    async def _get(self, url: str) -> bytes:
        request = httpx.Request("GET", url, headers={"accept": "application/json"})
        trusted = (self._issuer.issuer, *filter(None, [self._issuer.jwks_uri]))
        response = await send(request, trusted, self._environment)
        if response.status_code != 200:
            raise IssuerUnavailableError(f"it answers HTTP {response.status_code}")
        return response.content


def keys_in(document: bytes, issuer: IssuerConfig) -> tuple[Key, ...]:
    """The keys in a JWK Set that can be used here. Raises IssuerUnavailableError if it is none, or has no
    such key.
    """
    try:
        raws = msgspec.json.decode(document, type=_JwkSet).keys
    except (ValueError, RecursionError):
        most = f"with {limits.KEYS} keys at most"
        raise IssuerUnavailableError(f"what is at its jwks_uri is no set of keys {most}") from None
    found = []
    for raw in raws:
        try:
            jwk = msgspec.json.decode(raw, type=_Jwk)
        except (ValueError, RecursionError):
            continue  # of a kind that is not known here
        if algorithms := _algorithms(jwk, issuer.algorithms):
            members = msgspec.to_builtins(jwk)
            found.append(Key({key: each for key, each in members.items() if each is not None}, algorithms))
    if not found:
        raise IssuerUnavailableError("none of its keys is for checking signatures")
    return tuple(found)


def _algorithms(jwk: _Jwk, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The algorithms that a key may be used with. wanted: by the config; () for any."""
    if jwk.use not in (None, "sig") or (jwk.key_ops is not None and "verify" not in jwk.key_ops):
        return ()
    match jwk.kty:
        case "RSA":
            # Base64 has six bits a character.
            known: tuple[str, ...] = _RSA if jwk.n and jwk.e and len(jwk.n) * 6 >= _LEAST_RSA else ()
        case "EC":
            known = _BY_CURVE.get(jwk.crv or "", ()) if jwk.x and jwk.y else ()
        case "OKP":
            known = _BY_CURVE.get(jwk.crv or "", ()) if jwk.x else ()
        case _:  # "oct": a shared secret, with which whoever checks a token can make one
            known = ()
    return tuple(each for each in known if jwk.alg in (None, each) and (not wanted or each in wanted))
