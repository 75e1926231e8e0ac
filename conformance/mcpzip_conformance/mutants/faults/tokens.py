"""Faults of a resource server."""

import base64
import hmac
import json
from collections.abc import Mapping
from hashlib import sha256

import jwt
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from mcpzip.wire import join_object, quote
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.faults.replicas import ForAll
from mcpzip_conformance.mutants.relay.exchange import Headers, Receive, Refusal, Scope, Send
from mcpzip_conformance.mutants.relay.gateway import Gateway
from mcpzip_conformance.mutants.relay.naming import members, text
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.tokens import Tokens


class Optional(Tokens):
    async def person(self, headers: Headers, query: str) -> str:
        return await super().person(headers, query) if self.token_in(headers, query) else "nobody"


class Bare(Tokens):
    def refusal(self, status: int, headers: Headers, why: str, error: str = "") -> Refusal:
        return Refusal(status, why)


class NamesItself(Tokens):
    def metadata(self, headers: Headers) -> dict[str, object]:
        return {**super().metadata(headers), "authorization_servers": [self.access.resource]}


class BelievesHost(Tokens):
    def metadata(self, headers: Headers) -> dict[str, object]:
        host = headers.get("x-forwarded-host")
        return {**super().metadata(headers), **({"resource": f"https://{host}/mcp"} if host else {})}


class AnyAudience(Tokens):
    async def claims(self, token: str) -> dict[str, object]:
        return self.decoded(token, await self.key(token), verify_aud=False)


class FirstAudience(Tokens):
    async def claims(self, token: str) -> dict[str, object]:
        found = await super().claims(token)
        audience = found["aud"]
        if isinstance(audience, list) and audience[0] != self.access.resource:
            raise jwt.InvalidAudienceError("it is for another resource")
        return found


class AnyIssuer(Tokens):
    def decoded(self, token: str, key: jwt.PyJWK, **options: bool) -> dict[str, object]:
        claims: dict[str, object] = jwt.decode(token, key, options={"verify_signature": False})
        super().decoded(token, key, verify_iss=False) if "iss" in claims else None
        return claims


class AnyTime(Tokens):
    async def claims(self, token: str) -> dict[str, object]:
        return self.decoded(token, await self.key(token), verify_exp=False, verify_nbf=False)


def _said(token: str) -> tuple[dict[str, object], dict[str, object], str, bytes]:
    """Header, claims, what is signed, and the signature of a token."""
    signed, _, signature = token.rpartition(".")
    header, claims = (json.loads(_decoded(part)) for part in signed.split("."))
    return header, claims, signed, _decoded(signature)


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class TakesNone(Tokens):
    async def claims(self, token: str) -> dict[str, object]:
        header, claims, _, _ = _said(token)
        return claims if str(header["alg"]).lower() == "none" else await super().claims(token)


class TakesHmac(Tokens):
    async def claims(self, token: str) -> dict[str, object]:
        header, claims, signed, signature = _said(token)
        if header["alg"] != "HS256":
            return await super().claims(token)
        key = (await self.key(token)).key
        secret = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        if hmac.digest(secret, signed.encode(), sha256) != signature:
            raise jwt.InvalidSignatureError("it is signed by another key")
        return claims


class AnySignature(Tokens):
    async def claims(self, token: str) -> dict[str, object]:
        try:
            return await super().claims(token)
        except jwt.InvalidSignatureError:
            return _said(token)[1]


class KeyInHeader(Tokens):
    async def key(self, token: str) -> jwt.PyJWK:
        brought = jwt.get_unverified_header(token).get("jwk")
        return jwt.PyJWK(brought) if brought else await super().key(token)


class IgnoresCritical(Tokens):
    async def claims(self, token: str) -> dict[str, object]:
        header, claims, signed, signature = _said(token)
        if "crit" not in header:
            return await super().claims(token)
        key = self.keys[str(header["kid"])]  # which are known from a good token
        if not key.Algorithm.verify(signed.encode(), key.key, signature):
            raise jwt.InvalidSignatureError("it is signed by another key")
        return claims


class AnyScope(Tokens):
    def may(self, claims: dict[str, object]) -> bool:
        return True


class Once(Gateway):
    """Wants a token for what begins a session."""

    async def person(self, scope: Scope, headers: Headers, query: str) -> str:
        try:
            return await super().person(scope, headers, query)
        except Refusal:
            if known := self.recall("session", headers.get("mcp-session-id", "")):
                return known["person"]
            raise


class LetsPagesIn(Gateway):
    def check_access(self, scope: Scope, headers: Headers) -> None:
        super().check_access(scope, {key: value for key, value in headers.items() if key != "origin"})


class HandsOn(Gateway):
    """Sends a client's token to the server of a call."""

    async def post(self, headers: Headers, body: bytes, receive: Receive, send: Send) -> None:
        message = members(body)
        if text(message.get("method")) == "tools/call":
            params = members(message.get("params"))
            meta = members(params.get("_meta")) | {"authorization": quote(headers["authorization"])}
            message["params"] = join_object(params | {"_meta": join_object(meta)})
            body = join_object(message)
        await super().post(headers, body, receive, send)


def _gateway(wrong: type[Tokens]) -> type[Gateway]:
    """A gateway that takes tokens in a wrong way."""
    return type(wrong.__name__, (Gateway,), {"tokens": wrong})


def _fault(about: str, check: str, wrong: type[Tokens] | type[Gateway], *also: str) -> Fault:
    gateway = wrong if issubclass(wrong, Gateway) else _gateway(wrong)
    every = tuple(f"resource-server.{each}" if "." not in each else each for each in also)
    return Fault(about, f"resource-server.{check}", Parts(gateway=gateway), "names-gateway", every)


FAULTS: Mapping[str, Fault] = {
    "needs-no-token": _fault("lets anybody in without a token", "no-token", Optional, "every-request"),
    "bare-401": _fault("doesn't say that a token is needed", "no-token", Bare),
    "names-itself": _fault("names another issuer", "metadata", NamesItself),
    "believes-host": _fault("says what X-Forwarded-Host says", "forged-host", BelievesHost),
    "any-audience": _fault("takes tokens for others", "audience", AnyAudience, "forged-host"),
    "first-audience": _fault("looks at the first audience", "audience-list", FirstAudience),
    "any-issuer": _fault("takes tokens of any issuer", "issuer", AnyIssuer),
    "any-time": _fault("takes tokens that have expired", "expired", AnyTime, "every-request"),
    "takes-none": _fault("takes tokens without a signature", "algorithm", TakesNone),
    "takes-hmac": _fault("takes the public key for a secret", "algorithm", TakesHmac),
    "any-signature": _fault("doesn't mind a wrong signature", "signature", AnySignature),
    "key-in-header": _fault("takes the key that a token brings", "signature", KeyInHeader),
    "ignores-critical": _fault("ignores what is critical", "critical", IgnoresCritical),
    "any-scope": _fault("doesn't mind the scope", "scope", AnyScope),
    "token-once": _fault("wants a token once in a session", "every-request", Once),
    "anybodys-session": _fault(
        "doesn't compare whose a session is",
        "session-of-another-person",
        ForAll,
        "replicas.session-of-another-person",
        "replicas.question-of-another-person",
    ),
    "lets-pages-in": _fault("lets any page in", "origin", LetsPagesIn, "security.origin"),
    "hands-on-token": _fault("sends a client's token on", "token-passthrough", HandsOn),
}
