"""Who calls a subject: people, and the authorization server that gives them tokens. The runner plays both.

The rule: a token has what RFC 9068 asks for, and a check changes one thing of it. Keys and tokens are new in
every check.
"""

import base64
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from mcpzip_conformance.declaration import Authorization
from mcpzip_conformance.errors import NotPlayableError

if TYPE_CHECKING:
    from mcpzip_fakes.oauth.signing import Signer

PEOPLE = ("anna", "ben")
_SECONDS = 600


class Issuer:
    """An authorization server that runs as soon as it is made. url: its identifier; jwks: the URL of its
    keys; resource: the URL for which its tokens are. Raises NotPlayableError if tokens can't be signed."""

    def __init__(self, declared: Authorization, resource: str) -> None:
        self._declared, self.resource = declared, resource
        try:
            import jwt  # noqa: F401  # only tokens need it, and it takes long to import
        except ImportError:
            raise NotPlayableError(
                "Signing tokens needs the extra jwt: pip install 'mcpzip[conformance,jwt]'."
            ) from None
        from mcpzip_fakes.oauth.server import FakeAuth  # imports the SDK

        scopes = [declared.scope] if declared.scope else []
        self._auth = FakeAuth(access_tokens="jwt", scopes=scopes)
        self.url = self._auth.issuer
        self.jwks = f"{self.url}/jwks"

    @property
    def fetched(self) -> int:
        """How often its keys were fetched."""
        return len(self._auth.requests("jwks"))

    def claims(self, person: str = PEOPLE[0], **claims: object) -> dict[str, object]:
        """The claims of a good token of ``person``, with ``claims`` instead; None leaves one out."""
        now = int(time.time())
        good: dict[str, object] = {
            "iss": self.url,
            "sub": person,
            "aud": self.resource,
            "client_id": "conformance",
            "jti": secrets.token_hex(8),
            "iat": now,
            "exp": now + _SECONDS,
            **self._declared.claims,
        }
        if self._declared.scope:
            good["scope"] = self._declared.scope
        return {name: value for name, value in (good | claims).items() if value is not None}

    def token(
        self, person: str = PEOPLE[0], *, header: Mapping[str, object] | None = None, **claims: object
    ) -> str:
        """A token of ``person``, which is good but for ``claims`` and what ``header`` has."""
        said = self.claims(person, **claims)
        told = {"typ": self._declared.typ, **(header or {})}
        return self._signer.sign(said, told)

    def unsigned(self, algorithm: str) -> str:
        """A token that names ``algorithm`` and has no signature."""
        return f"{self._head(alg=algorithm)}."

    def signed_by_public_key(self, of: str) -> str:
        """A token with HS256, for which the public key is the secret: as ``pem``, or as its ``jwk``."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
        from jwt import PyJWK

        jwk = json.dumps(self._keys()[0])
        pem = PyJWK.from_json(jwk).key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        head = self._head(alg="HS256")
        mac = hmac.new(pem if of == "pem" else jwk.encode(), head.encode(), sha256).digest()
        return f"{head}.{_base64(mac)}"

    def by_a_stranger(self, **header: object) -> str:
        """A good token but for its signature, which is by a key that isn't the issuer's."""
        from mcpzip_fakes.oauth.signing import Signer

        told = {"typ": self._declared.typ, "kid": self.kid, **header}
        return Signer("RS256").sign(self.claims(), told)

    def with_its_own_key(self) -> str:
        """A token by a key that is in its header (RFC 7515, section 4.1.3)."""
        from mcpzip_fakes.oauth.signing import Signer

        signer = Signer("RS256")
        keys = signer.key_set["keys"]
        assert isinstance(keys, list)
        told = {"typ": self._declared.typ, "kid": None, "jwk": keys[0]}
        return signer.sign(self.claims(), told)

    def changed(self) -> str:
        """The token of one person, in which another name was written after it was signed."""
        head, body, signature = self.token().split(".")
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return f"{head}.{_base64(json.dumps(claims | {'sub': PEOPLE[1]}).encode())}.{signature}"

    @property
    def kid(self) -> str:
        """The id of its key."""
        return str(self._keys()[0]["kid"])

    def rotate(self) -> None:
        """Sign with a new key, and publish the former one no more."""
        self._auth.rotate_keys()

    def stop(self) -> None:
        """Stop listening."""
        self._auth.stop()

    @property
    def _signer(self) -> "Signer":
        return self._auth.authority.signer

    def _keys(self) -> list[dict[str, object]]:
        keys = self._signer.key_set["keys"]
        assert isinstance(keys, list)
        return [dict(key) for key in keys if isinstance(key, dict)]

    def _head(self, **header: object) -> str:
        """Header and claims, as they are signed."""
        told = {"kid": self.kid, "typ": self._declared.typ, **header}
        return ".".join(_base64(json.dumps(part).encode()) for part in (told, self.claims()))


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
