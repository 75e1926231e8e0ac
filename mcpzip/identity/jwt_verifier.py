"""Checks access tokens that are JWTs (RFC 9068, 4; RFC 8725, 3): signature, issuer, audience, time, type."""

import base64
import binascii

import jwt
import msgspec

from mcpzip.config.schema import IssuerConfig
from mcpzip.identity.claims import LEEWAY, is_for, principal_of
from mcpzip.identity.errors import IssuerUnavailableError, TokenError
from mcpzip.identity.jwks import KeySet
from mcpzip.model.principal import Principal

_REQUIRED = ["exp", "iss", "aud", "sub"]
_TYPES = ("", "jwt", "at+jwt")
"""The types of a token (its ``typ``) that may be an access token, if the config names none."""


class _Header(msgspec.Struct):
    alg: str = ""
    kid: str | None = None
    typ: str = ""
    crit: object = None


class _Issued(msgspec.Struct):
    iss: str = ""


class ParsedToken(msgspec.Struct, frozen=True):
    """What a token says before anything of it is believed."""

    issuer: str
    algorithm: str
    kid: str | None
    type: str
    is_critical: bool


def parsed(token: str) -> ParsedToken | None:
    """What ``token`` says of itself; None if it is no JWT."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        header = msgspec.json.decode(_decoded(parts[0]), type=_Header)
        issued = msgspec.json.decode(_decoded(parts[1]), type=_Issued)
    except (ValueError, RecursionError, binascii.Error):
        return None
    kind = header.typ.lower().removeprefix("application/")
    return ParsedToken(issued.iss, header.alg, header.kid, kind, header.crit is not None)


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class JwtVerifier:
    """Checks the tokens of one issuer for one audience."""

    def __init__(self, issuer: IssuerConfig, audience: str, keys: KeySet) -> None:
        """audience: the configured public URL, without a slash at its end (RFC 8707)."""
        self._issuer, self._audience, self.keys = issuer, audience, keys

    def verify(self, token: str, said: ParsedToken) -> Principal | None:
        """Who has ``token``, of which ``said`` is what it says; None if the keys of the issuer have to be
        fetched first. Raises TokenError, IssuerUnavailableError.
        """
        expected = self._issuer.token_type.lower().removeprefix("application/")
        if said.type not in ((expected,) if expected else _TYPES):
            raise TokenError("it is of another type than access tokens (typ)")
        if said.is_critical:  # PyJWT before 2.12 ignored it (RFC 7515, 4.1.11)
            raise TokenError("it demands extensions that mcpzip doesn't know (crit)")
        key = self.keys.find(said.kid, said.algorithm)
        if key is None:
            if self.keys.may_fetch:
                return None
            if not self.keys.is_known:
                raise IssuerUnavailableError(self.keys.problem)
            raise TokenError("its issuer has no such key for its algorithm")
        try:
            claims = jwt.decode(
                token,
                key.with_algorithm(said.algorithm),
                algorithms=[said.algorithm],  # which is one of this key's
                issuer=self._issuer.issuer,
                leeway=LEEWAY,
                options={"require": _REQUIRED, "verify_aud": False},
            )
        except jwt.ExpiredSignatureError:
            raise TokenError("it has expired") from None
        except (jwt.ImmatureSignatureError, jwt.InvalidIssuedAtError):
            raise TokenError("it is not valid yet") from None
        except jwt.MissingRequiredClaimError as error:
            raise TokenError(f"it lacks the claim {error.claim}") from None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            raise TokenError("its signature or its claims are not valid") from None
        if not is_for(claims, self._audience):
            raise TokenError("it is for another resource (aud)")
        return principal_of(claims, self._issuer)
