"""The decisions and the state of an authorization server, without its HTTP.

The rules: PKCE with S256 only (OAuth 2.1, section 4.1.1); a token is for one resource (RFC 8707); every
decision is made under one lock, because threads and tests call it. If an RFC allows several behaviours, the
strictest is used.
"""

import secrets
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from msgspec import Struct

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.oauth.clients import Clients
from mcpzip_fakes.oauth.errors import Refused, ShownToPerson
from mcpzip_fakes.oauth.faults import AuthPlan
from mcpzip_fakes.oauth.lies import ABROAD
from mcpzip_fakes.oauth.settings import KnownClient, OAuth, settings
from mcpzip_fakes.oauth.token_store import Ledger, Token

if TYPE_CHECKING:
    from mcpzip_fakes.oauth.signing import Signer


class Asked(Struct, frozen=True):
    """A valid request for authorization."""

    client: str
    redirect_uri: str
    state: str | None
    challenge: str
    scope: tuple[str, ...]
    resource: str


class AuthRequest(Struct):
    """A received request. endpoint: see `oauth.faults.ENDPOINTS`. host: its Host header. fields: of its
    query, form or JSON. time: Unix s; clock: the server's own. status: of the answer, None before it;
    answer: its JSON."""

    endpoint: str
    verb: str
    path: str
    host: str
    headers: dict[str, str]
    fields: JsonObject
    time: float
    clock: float
    status: int | None = None
    answer: JsonObject | None = None

    @property
    def grant(self) -> str:
        """Its ``grant_type``, or ""."""
        return str(self.fields.get("grant_type", ""))


class Authority:
    """origin: "http://127.0.0.1:PORT", once it is known. resources: the URLs of its MCP servers. requests:
    all received. plan: its faults."""

    def __init__(self, told: OAuth) -> None:
        self.lock = threading.RLock()
        self.told = told
        self.origin = ""
        self.resources: list[str] = []
        self.requests: list[AuthRequest] = []
        self.plan = AuthPlan(told.faults)
        self._ahead = 0.0
        self._waiting: dict[str, Asked] = {}
        self._begin()

    def _begin(self) -> None:
        self.ledger = Ledger(self.now)
        self._signer: Signer | None = None
        self.clients = Clients(self.told, self.now)

    @property
    def issuer(self) -> str:
        """Its identifier (RFC 8414)."""
        return self.origin + self.told.issuer_path

    def now(self) -> float:
        """Its clock, Unix s."""
        return time.time() + self._ahead

    def advance(self, seconds: float) -> None:
        """Advance its clock."""
        with self.lock:
            self._ahead += seconds

    def configure(self, told: Mapping[str, object]) -> None:
        """Change settings from now on. A new ``issuer_path`` makes it another issuer, without clients and
        tokens. Raises msgspec.ValidationError if they are invalid."""
        with self.lock:
            moved = self.told.issuer_path
            self.told = self.clients.told = settings(told, self.told)
            if "faults" in told:
                self.plan = AuthPlan(self.told.faults)
            if self.told.issuer_path != moved:
                self._begin()

    def ask(self, fields: Mapping[str, str]) -> Asked | str:
        """The request for authorization, or the redirect with its error. Raises ShownToPerson."""
        with self.lock:
            client = self._named(fields)
            uri = fields.get("redirect_uri", "")
            if not self.clients.redirects_to(client, uri):
                raise ShownToPerson(f"The redirect_uri {uri!r} is not one of this client's.")
            try:
                return self._in_order(client, uri, fields)
            except Refused as refusal:
                return self._back(uri, fields.get("state"), refusal.body)

    def wait_for_person(self, asked: Asked) -> str:
        """Store a request until a person decides. Returns the ticket for the decision."""
        with self.lock:
            ticket = secrets.token_urlsafe(16)
            self._waiting[ticket] = asked
            return ticket

    def decide(self, ticket: str, allow: bool) -> str:
        """The redirect after a person's decision. Raises ShownToPerson."""
        with self.lock:
            if (asked := self._waiting.pop(ticket, None)) is None:
                raise ShownToPerson("This request has been decided already. Start again.")
            return self.allow(asked) if allow else self.deny(asked)

    def allow(self, asked: Asked) -> str:
        """The redirect with a code."""
        with self.lock:
            code = self.ledger.code(
                asked.client,
                asked.redirect_uri,
                asked.challenge,
                asked.scope,
                asked.resource,
                self.told.code_seconds,
            )
            return self._back(asked.redirect_uri, asked.state, {"code": code.value})

    def deny(self, asked: Asked, code: str = "access_denied") -> str:
        """The redirect with an error."""
        return self._back(asked.redirect_uri, asked.state, Refused(code, "it was not allowed").body)

    def token(self, form: Mapping[str, str], authorization: str) -> JsonObject:
        """Answer the token endpoint. Raises Refused."""
        with self.lock:
            client = self._client(form, authorization)
            grant = form.get("grant_type", "")
            if grant not in ("authorization_code", "refresh_token", "client_credentials"):
                raise Refused("unsupported_grant_type", f"no {grant!r} here")
            if grant not in client.grants and not (
                grant == "refresh_token" and "authorization_code" in client.grants
            ):
                raise Refused("unauthorized_client", f"this client is not for {grant}")
            if grant == "authorization_code":
                return self._by_code(client, form)
            if grant == "refresh_token":
                return self._by_refresh(client, form)
            if not client.secret and not client.key:
                raise Refused("unauthorized_client", "a client without credentials can't ask for itself")
            scope, resource = self._scope(form.get("scope")), self._resource(form.get("resource"))
            return self._issued(client, scope, resource, self.ledger.family(), refresh=False)

    def revoke(self, form: Mapping[str, str], authorization: str) -> None:
        """Answer the revocation endpoint (RFC 7009). Raises Refused."""
        with self.lock:
            client = self._client(form, authorization)
            token = self.ledger.tokens.get(form.get("token", ""))
            if token is None:
                return
            if token.client != client.id:
                raise Refused("invalid_grant", "the token was given to another client")
            if token.kind == "refresh":
                self.ledger.end(token.family, "revoked by the client")
            else:
                token.ended = "revoked by the client"

    @property
    def signer(self) -> "Signer":
        """Its keys, made when they are needed."""
        with self.lock:
            if self._signer is None:
                from mcpzip_fakes.oauth.signing import Signer  # takes long to import

                self._signer = Signer(self.told.algorithm)
            return self._signer

    def access(self, client: str, scope: tuple[str, ...], resource: str, family: int) -> Token:
        """A new access token, as the settings say."""
        made_of = self._jwt_of if self.told.access_tokens == "jwt" else None
        return self.ledger.issue("access", client, scope, resource, family, self.told.access_seconds, made_of)

    def _jwt_of(self, token: Token) -> str:
        return self.signer.sign({**self._claims(token), "jti": token.id}, {})

    def _claims(self, token: Token) -> JsonObject:
        said: JsonObject = {
            "iss": self.issuer,
            "sub": token.client,
            "client_id": token.client,
            "aud": token.resource,
            "scope": " ".join(token.scope),
            "iat": int(self.now()),
            "exp": None if token.expires is None else int(token.expires),
            **self.told.claims,
        }
        return {name: value for name, value in said.items() if value is not None}

    def introspect(self, form: Mapping[str, str], authorization: str) -> JsonObject:
        """Answer the introspection endpoint (RFC 7662). Raises Refused."""
        with self.lock:
            asking = self._client(form, authorization)
            if not asking.secret and not asking.key:
                raise Refused("invalid_client", "a client without credentials can't ask", 401)
            token = self.ledger.tokens.get(form.get("token", ""))
            if token is None or token.kind != "access" or self.ledger.wrong(token):
                return {"active": False}
            return {"active": True, "token_type": "Bearer", **self._claims(token)}

    def judge(self, value: str, resources: tuple[str, ...]) -> tuple[Token | None, str]:
        """The access token ``value``, None if unknown, and why it is not valid for any of these resources,
        "" if it is valid."""
        with self.lock:
            token = self.ledger.tokens.get(value)
            if token is None or token.kind != "access":
                return token, "it is no access token of this issuer"
            if why := self.ledger.wrong(token):
                return token, why
            fits = not token.resource or any(same(token.resource, each) for each in resources)
            return token, "" if fits else "it is for another resource"

    def _named(self, fields: Mapping[str, str]) -> KnownClient:
        try:
            client = self.clients.get(fields.get("client_id", ""))
        except Refused as refusal:
            raise ShownToPerson(refusal.why) from refusal
        if client is None:
            raise ShownToPerson(f"There is no client {fields.get('client_id', '')!r}.")
        return client

    def _in_order(self, client: KnownClient, uri: str, fields: Mapping[str, str]) -> Asked:
        if fields.get("response_type") != "code":
            raise Refused("unsupported_response_type", "response_type is to be code")
        if "authorization_code" not in client.grants:
            raise Refused("unauthorized_client", "this client is not for authorization_code")
        challenge = fields.get("code_challenge", "")
        if not challenge or fields.get("code_challenge_method") != "S256" or len(challenge) != 43:
            raise Refused(
                "invalid_request", "PKCE with S256 is needed: code_challenge, code_challenge_method"
            )
        scope = self._scope(fields.get("scope"))
        return Asked(
            client.id, uri, fields.get("state"), challenge, scope, self._resource(fields.get("resource"))
        )

    def _client(self, form: Mapping[str, str], authorization: str) -> KnownClient:
        endpoint = f"{self.issuer}/token"
        return self.clients.authenticate(form, authorization, (self.issuer, endpoint))

    def _by_code(self, client: KnownClient, form: Mapping[str, str]) -> JsonObject:
        code = self.ledger.redeem(form.get("code", ""), client.id)
        if form.get("redirect_uri") != code.redirect_uri:
            raise Refused("invalid_grant", "redirect_uri is not the one the code was asked for with")
        if s256(form.get("code_verifier", "")) != code.challenge:
            raise Refused("invalid_grant", "code_verifier does not fit the code_challenge")
        self._still(form.get("resource"), code.resource)
        refresh = "offline_access" in code.scope if self.told.offline else True
        return self._issued(client, code.scope, code.resource, code.family, refresh=refresh)

    def _by_refresh(self, client: KnownClient, form: Mapping[str, str]) -> JsonObject:
        old = self.ledger.refreshing(form.get("refresh_token", ""), client.id)
        scope = tuple(form["scope"].split()) if form.get("scope") else old.scope
        if not {*scope} <= {*old.scope}:
            raise Refused("invalid_scope", "more is asked for than was granted")
        self._still(form.get("resource"), old.resource)
        rotate = self.told.refresh == "rotate"
        if rotate:
            old.ended = "rotated"
        return self._issued(client, scope, old.resource, old.family, refresh=rotate)

    def _issued(
        self, client: KnownClient, scope: tuple[str, ...], resource: str, family: int, *, refresh: bool
    ) -> JsonObject:
        told = self.told
        access = self.access(client.id, scope, resource, family)
        answer: JsonObject = {"access_token": access.value, "token_type": "Bearer"}
        if told.tell_expiry:
            answer["expires_in"] = int(told.access_seconds)
        if refresh and told.refresh != "none":
            token = self.ledger.issue("refresh", client.id, scope, resource, family, told.refresh_seconds)
            answer["refresh_token"] = token.value
        return {**answer, "scope": " ".join(scope)} if scope else answer

    def _scope(self, asked: str | None) -> tuple[str, ...]:
        """The scopes that are granted for the requested ones."""
        wanted = tuple(dict.fromkeys((asked or "").split())) or self.told.first_scopes
        if unknown := sorted({*wanted} - {*self.told.all_scopes}):
            raise Refused("invalid_scope", f"there is no scope {', '.join(unknown)}")
        granted = self.told.granted_scopes
        return wanted if granted is None else tuple(scope for scope in wanted if scope in granted)

    def _resource(self, asked: str | None) -> str:
        if not asked:
            if self.told.resource == "required":
                raise Refused("invalid_target", "resource is missing (RFC 8707)")
            return ""
        if not any(same(asked, each) for each in (*self.resources, *self.told.resources)):
            raise Refused("invalid_target", f"there is no resource {asked} here")
        return asked

    def _still(self, asked: str | None, bound: str) -> None:
        if asked and not same(asked, bound):
            raise Refused("invalid_target", f"the resource is {bound or 'none'}, not {asked}")

    def _back(self, uri: str, state: str | None, said: JsonObject) -> str:
        """The redirect URI with an answer (RFC 6749, section 4.1.2; RFC 9207)."""
        told = dict(said)
        if state is not None and self.told.state != "missing":
            told["state"] = state if self.told.state == "right" else f"{state}-of-somebody-else"
        if self.told.iss == "wrong":
            told["iss"] = f"{ABROAD}/issuer"
        elif (
            self.told.iss == "right" and self.told.discovery != "none"
        ):  # without metadata there is no issuer
            told["iss"] = self.issuer
        return f"{uri}{'&' if '?' in uri else '?'}{urlencode(told)}"


def s256(verifier: str) -> str:
    """The code challenge of a verifier (RFC 7636, section 4.2); "" if the verifier is invalid."""
    if not 43 <= len(verifier) <= 128:
        return ""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def same(a: str, b: str) -> bool:
    """Whether two URLs are one resource, ignoring case of scheme and host and a trailing slash."""
    return _canonical(a) == _canonical(b)


def _canonical(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(
        scheme=parts.scheme.lower(), netloc=parts.netloc.lower(), path=parts.path.rstrip("/")
    ).geturl()
