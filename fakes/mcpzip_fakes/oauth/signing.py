"""Signed access tokens (JWT, RFC 9068) and the keys to check them with (JWK Set, RFC 7517).

The rule: the keys are made when they are needed, and are new in every run; `rotate` makes another one, and
takes the former one out of the set, as an issuer does whose key was stolen.
"""

import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from mcpzip_fakes.answer import JsonObject

ALGORITHMS = ("RS256", "ES256", "EdDSA")


class Signer:
    """The keys of one issuer. algorithm: of the next key."""

    def __init__(self, algorithm: str) -> None:
        self._algorithm = algorithm
        self._private: Any = None
        self._number = 0

    def rotate(self, algorithm: str = "") -> str:
        """Use a new key, of another ``algorithm`` if one is given. Returns its ``kid``."""
        self._algorithm = algorithm or self._algorithm
        self._private = {
            "RS256": lambda: rsa.generate_private_key(public_exponent=65_537, key_size=2_048),
            "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
            "EdDSA": ed25519.Ed25519PrivateKey.generate,
        }[self._algorithm]()
        self._number += 1
        return self._kid

    def sign(self, claims: JsonObject, header: JsonObject) -> str:
        """A JWT with these claims; ``header`` overrides its header, and a null there leaves a member out."""
        private = self._key
        told = {"kid": self._kid, "typ": "at+jwt", **header}
        return jwt.encode(
            claims,
            private,
            algorithm=self._algorithm,
            headers={name: value for name, value in told.items() if value is not None},
        )

    @property
    def key_set(self) -> JsonObject:
        """The public key as a JWK Set."""
        kinds: dict[str, Any] = {"RS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}
        public = json.loads(kinds[self._algorithm].to_jwk(self._key.public_key()))
        members = {**public, "kid": self._kid, "use": "sig", "alg": self._algorithm}
        return {"keys": [{key: each for key, each in members.items() if key != "key_ops"}]}

    @property
    def _kid(self) -> str:
        return f"key-{self._number}"

    @property
    def _key(self) -> Any:
        if self._private is None:
            self.rotate()
        return self._private
