"""From the claims of an issuer about a token to a principal (pure).

The claims are those of a JWT (RFC 7519, 4.1; RFC 9068, 2.2) or of an introspection (RFC 7662, 2.2). They are
believed by now; here it is checked that they are of the form that they should have, and not too large.
"""

from collections.abc import Mapping

from mcpzip.config.schema import IssuerConfig
from mcpzip.identity.errors import TokenError
from mcpzip.model import limits
from mcpzip.model.principal import Principal
from mcpzip.model.quoting import one_line

Claims = Mapping[str, object]

LEEWAY = 60.0
"""Seconds by which the clocks of the issuer and of this machine may differ."""

_NAMES = ("preferred_username", "email", "name", "username")
"""Claims that name a person, unless the config says which does (OpenID Connect Core 1.0, 5.1; RFC 7662)."""


def principal_of(claims: Claims, issuer: IssuerConfig) -> Principal:
    """Who ``claims`` are about. Raises TokenError."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject or len(subject) > limits.SUBJECT:
        raise TokenError("it says of nobody that it is theirs (sub)")
    if claims.get("cnf") is not None:  # RFC 7800: it is good only with proof of a key, and none is asked for
        raise TokenError("it is bound to a key of its client (cnf), which mcpzip can't check")
    names = (issuer.name_claim,) if issuer.name_claim else _NAMES
    found = (claim_at(claims, name) for name in names)
    name = next((each for each in found if isinstance(each, str) and each.strip()), subject)
    scope = claims.get("scope", claims.get("scp"))
    return Principal(
        issuer.issuer,
        subject,
        one_line(name[: limits.PERSON_NAME]),
        _words(claim_at(claims, issuer.groups_claim), "groups"),
        _words(scope.split() if isinstance(scope, str) else scope, "scopes"),
    )


def claim_at(claims: Claims, path: str) -> object:
    """The claim called ``path``, or at it: ``a.b`` is the member ``b`` of the claim ``a``."""
    if path in claims:  # such as https://example.org/groups
        return claims[path]
    found: object = claims
    for part in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def is_for(claims: Claims, audience: str) -> bool:
    """Whether ``claims`` say that their token is for ``audience`` (a URL without a slash at its end), and
    perhaps for others too (RFC 8707). A slash at the end makes no difference.
    """
    said = claims.get("aud")
    audiences = [said] if isinstance(said, str) else said
    return isinstance(audiences, list) and bool({audience, f"{audience}/"}.intersection(_texts(audiences)))


def _words(value: object, what: str) -> frozenset[str]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list):
        return frozenset()
    if len(words) > limits.GROUPS or any(len(each) > limits.GROUP for each in _texts(words)):
        raise TokenError(f"it has more than {limits.GROUPS:,} {what}, or one that is too long")
    return frozenset(filter(None, _texts(words)))


def _texts(values: list[object]) -> list[str]:
    return [each for each in values if isinstance(each, str)]
