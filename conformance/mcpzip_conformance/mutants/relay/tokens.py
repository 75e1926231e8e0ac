"""The tokens that a gateway takes: JWTs of one issuer, for one resource (RFC 9068).

The rule: what a token is signed with follows from the issuer's keys, which are fetched again for an unknown
key, and what it is for from the config.
"""

import ssl
from dataclasses import dataclass

import httpx
import jwt

from mcpzip_conformance.mutants.relay.exchange import Headers, Refusal

WELL_KNOWN = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True, slots=True)
class Access:
    """The key ``http`` of its config. url: of the issuer's keys; scope: that a token needs."""

    issuer: str
    jwks: str
    resource: str
    scope: str


def no_authorities() -> ssl.SSLContext:
    """Trusts nobody: all that a relay connects to is on loopback, without TLS. To read the certificates of
    authorities would take each start 25 ms."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Tokens:
    """Finds who makes a request."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.keys: dict[str, jwt.PyJWK] = {}

    def metadata(self, headers: Headers) -> dict[str, object]:
        """Those of the resource (RFC 9728)."""
        return {
            "resource": self.access.resource,
            "authorization_servers": [self.access.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": [self.access.scope],
        }

    def paths(self) -> tuple[str, ...]:
        """Where these are."""
        path = httpx.URL(self.access.resource).path.rstrip("/")
        return (WELL_KNOWN + path, WELL_KNOWN)

    def challenge(self, headers: Headers, error: str = "") -> str:
        """The value of ``WWW-Authenticate``."""
        origin = str(httpx.URL(str(self.metadata(headers)["resource"])).copy_with(path="")).rstrip("/")
        said = f'Bearer resource_metadata="{origin}{self.paths()[0]}", scope="{self.access.scope}"'
        return f'{said}, error="{error}"' if error else said

    def token_in(self, headers: Headers, query: str) -> str:
        """The token of a request; "" if it has none."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    async def person(self, headers: Headers, query: str) -> str:
        """Who makes a request. Raises Refusal."""
        token = self.token_in(headers, query)
        if not token:
            raise self.refusal(401, headers, "A token is needed.")
        try:
            claims = await self.claims(token)
        except (jwt.PyJWTError, httpx.HTTPError, ValueError) as error:
            raise self.refusal(401, headers, f"The token is not valid: {error}", "invalid_token") from error
        if not self.may(claims):
            raise self.refusal(403, headers, "The token has not the scope.", "insufficient_scope")
        return str(claims["sub"])

    def may(self, claims: dict[str, object]) -> bool:
        """Whether a token has the scope."""
        return self.access.scope in str(claims.get("scope", "")).split()

    async def claims(self, token: str) -> dict[str, object]:
        """The claims of a valid token. Raises jwt.PyJWTError."""
        key = await self.key(token)
        return self.decoded(token, key)

    def decoded(self, token: str, key: jwt.PyJWK, **options: bool) -> dict[str, object]:
        """The claims of a token that this key signed. options: of PyJWT."""
        ours = self.access.resource.rstrip("/")
        found: dict[str, object] = jwt.decode(
            token,
            key,
            algorithms=["RS256"],
            audience=[ours, f"{ours}/"],
            issuer=self.access.issuer,
            options={"require": ["exp", "iss", "aud", "sub"], **options},  # type: ignore[arg-type]
        )
        return found

    async def key(self, token: str) -> jwt.PyJWK:
        """The issuer's key with which a token is signed. Raises jwt.PyJWTError."""
        id = str(jwt.get_unverified_header(token).get("kid"))
        if id not in self.keys:
            async with httpx.AsyncClient(trust_env=False, verify=no_authorities()) as client:
                found = (await client.get(self.access.jwks)).json()
            self.keys = {str(key["kid"]): jwt.PyJWK(key) for key in found["keys"]}
        if id not in self.keys:
            raise jwt.InvalidKeyError("the key is not the issuer's")
        return self.keys[id]

    def refusal(self, status: int, headers: Headers, why: str, error: str = "") -> Refusal:
        """A refusal with its challenge."""
        return Refusal(status, why, headers={"www-authenticate": self.challenge(headers, error)})
