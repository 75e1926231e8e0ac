"""The clients of an authorization server: preconfigured, registered, or described by a metadata document.

The rules: a client authenticates with its own method only; a redirect URI is compared as text, except the
port of a loopback URI (RFC 8252, section 7.3); a secret is returned once, at the registration.
"""

import secrets
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from urllib.parse import unquote, urlsplit

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.oauth.errors import Refused
from mcpzip_fakes.oauth.settings import AUTH_METHODS, KnownClient, OAuth

JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_GRANTS = ("authorization_code", "refresh_token", "client_credentials")


class Clients:
    """The clients of one issuer. now: the clock, Unix s. documents: metadata documents of clients, by URL."""

    def __init__(self, told: OAuth, now: Callable[[], float]) -> None:
        self.told = told
        self._now = now
        self._registered: dict[str, KnownClient] = {}
        self._assertions: set[str] = set()
        self.documents: dict[str, JsonObject] = {}

    def get(self, id: str) -> KnownClient | None:
        """The client of this id, or None."""
        if found := self._registered.get(id):
            return found
        for client in self.told.clients:
            if client.id == id:
                return client
        document = self.documents.get(id, self.told.documents.get(id))
        return _described(id, document) if self.told.cimd and document is not None else None

    def missing(self, id: str) -> bool:
        """Whether ``id`` is the URL of a document that was not fetched yet."""
        fetched = is_document(id) and urlsplit(id).hostname in _LOOPBACK
        return self.told.cimd and fetched and self.get(id) is None

    def register(self, asked: JsonObject) -> JsonObject:
        """Answer a registration (RFC 7591, section 3.2). Raises Refused."""
        uris = _texts(asked.get("redirect_uris") or [])
        grants = _texts(asked.get("grant_types") or ["authorization_code"])
        if uris is None or grants is None:
            raise Refused("invalid_client_metadata", "redirect_uris and grant_types are lists of texts")
        if not uris and "authorization_code" in grants:
            raise Refused("invalid_redirect_uri", "redirect_uris is missing")
        for uri in uris:
            if not _may_be_redirected_to(uri):
                raise Refused(
                    "invalid_redirect_uri", f"{uri} is neither https nor loopback; nobody is sent there"
                )
        if unknown := sorted({*grants} - {*_GRANTS}):
            raise Refused("invalid_client_metadata", f"no grant_types {', '.join(unknown)} here")
        method = asked.get("token_endpoint_auth_method", "client_secret_basic")
        if method not in AUTH_METHODS:
            raise Refused("invalid_client_metadata", f"no token_endpoint_auth_method {method} here")
        method = self.told.registration_method or str(method)
        secret = secrets.token_urlsafe(24) if method.startswith("client_secret") else ""
        id = f"client-{len(self._registered) + 1}-{secrets.token_hex(4)}"
        self._registered[id] = KnownClient(
            id=id, secret=secret, method=method, redirect_uris=tuple(uris), grants=tuple(grants)
        )
        kept = {key: value for key, value in asked.items() if key not in ("client_id", "client_secret")}
        said: JsonObject = {
            **kept,
            "client_id": id,
            "client_id_issued_at": int(self._now()),
            "redirect_uris": uris,
            "grant_types": grants,
            "token_endpoint_auth_method": method,
        }
        return {**said, "client_secret": secret, "client_secret_expires_at": 0} if secret else said

    def forget(self, id: str | None = None) -> None:
        """Forget a registered client, or all of them."""
        for each in [id] if id else list(self._registered):
            self._registered.pop(each, None)

    def redirects_to(self, client: KnownClient, uri: str) -> bool:
        """Whether ``uri`` is one of the client's."""
        compared = (lambda text: text) if self.told.exact_ports else _without_loopback_port
        return compared(uri) in {compared(each) for each in client.redirect_uris}

    def authenticate(
        self, form: Mapping[str, str], authorization: str, audiences: tuple[str, ...]
    ) -> KnownClient:
        """The authenticated client (RFC 6749, section 2.3; RFC 7523, section 2.2). audiences: the valid ones
        of an assertion. Raises Refused."""
        id, secret, method = _credentials(form, authorization)
        headers = {"WWW-Authenticate": 'Basic realm="fake"'} if method == "client_secret_basic" else {}
        client = self.get(id)
        if client is None:
            raise Refused("invalid_client", "there is no such client", 401, headers)
        if method not in _methods(client):
            raise Refused("invalid_client", f"this client does not come with {method}", 401, headers)
        if method == "private_key_jwt":
            self._assert(client, form.get("client_assertion", ""), audiences)
        elif not secrets.compare_digest(secret.encode(), client.secret.encode()):
            raise Refused("invalid_client", "the client's secret is wrong", 401, headers)
        return client

    def _assert(self, client: KnownClient, assertion: str, audiences: tuple[str, ...]) -> None:
        import jwt  # comes with the SDK, and takes long to import

        try:
            claims = jwt.decode(
                assertion,
                client.key,
                algorithms=["RS256", "ES256", "EdDSA"],
                audience=list(audiences),
                issuer=client.id,
                options={"require": ["exp", "iss", "sub", "aud"], "verify_exp": False, "verify_iat": False},
            )
        except jwt.PyJWTError as error:
            raise Refused("invalid_client", f"the assertion is not valid: {error}", 401) from error
        mark = str(claims.get("jti", assertion))
        if claims["sub"] != client.id or float(claims["exp"]) <= self._now() or mark in self._assertions:
            why = "it has expired, was used before, or is about somebody else"
            raise Refused("invalid_client", f"the assertion is not valid: {why}", 401)
        self._assertions.add(mark)


def is_document(id: str) -> bool:
    """Whether a client's id is the URL of its metadata document: https, or http on loopback, with a path."""
    url = urlsplit(id)
    secure = url.scheme == "https" or (url.scheme == "http" and url.hostname in _LOOPBACK)
    return secure and url.path not in ("", "/")


def _described(id: str, document: JsonObject) -> KnownClient:
    """The client of a document (draft-ietf-oauth-client-id-metadata-document, section 4). Raises Refused."""
    uris = _texts(document.get("redirect_uris"))
    grants = _texts(document.get("grant_types", ["authorization_code"]))
    method = document.get("token_endpoint_auth_method", "none")
    if document.get("client_id") != id:
        raise Refused("invalid_client", "the document's client_id is not its own URL", 401)
    if not uris or grants is None:
        raise Refused("invalid_client", "the document has no redirect_uris", 401)
    if method not in ("none", "private_key_jwt") or "client_secret" in document:
        raise Refused("invalid_client", "a client with a document can have no secret", 401)
    return KnownClient(id=id, method=str(method), redirect_uris=tuple(uris), grants=tuple(grants))


def _credentials(form: Mapping[str, str], authorization: str) -> tuple[str, str, str]:
    """Id, secret and method of a request. Raises Refused."""
    if authorization[:6].lower() == "basic ":
        if "client_secret" in form or "client_assertion" in form:
            raise Refused("invalid_request", "the client shows who it is in two ways")
        try:
            id, colon, secret = b64decode(authorization[6:], validate=True).decode().partition(":")
        except (Base64Error, UnicodeDecodeError) as error:
            raise Refused("invalid_client", "the Authorization header is not Basic", 401) from error
        if not colon or form.get("client_id", unquote(id)) != unquote(id):
            raise Refused("invalid_client", "the Authorization header is of another client", 401)
        return unquote(id), unquote(secret), "client_secret_basic"
    if assertion := form.get("client_assertion"):
        if form.get("client_assertion_type") != JWT_BEARER:
            raise Refused("invalid_client", "the client_assertion_type is not known", 401)
        return form.get("client_id") or _subject(assertion), "", "private_key_jwt"
    if "client_secret" in form:
        return form.get("client_id", ""), form["client_secret"], "client_secret_post"
    return form.get("client_id", ""), "", "none"


def _subject(assertion: str) -> str:
    """The subject of an assertion, before it is verified."""
    import jwt

    try:
        return str(jwt.decode(assertion, options={"verify_signature": False}).get("sub", ""))
    except jwt.PyJWTError as error:
        raise Refused("invalid_client", f"the assertion is not valid: {error}", 401) from error


def _methods(client: KnownClient) -> tuple[str, ...]:
    """The authentication methods of ``client``."""
    if client.method:
        return (client.method,)
    if client.key:
        return ("private_key_jwt",)
    return ("client_secret_basic", "client_secret_post") if client.secret else ("none",)


def _may_be_redirected_to(uri: str) -> bool:
    url = urlsplit(uri)
    if url.fragment or not url.scheme:
        return False
    if url.scheme == "http":
        return url.hostname in _LOOPBACK
    return url.scheme == "https" or "." in url.scheme or url.scheme in ("cursor", "vscode")


def _without_loopback_port(uri: str) -> str:
    url = urlsplit(uri)
    if url.scheme != "http" or url.hostname not in _LOOPBACK:
        return uri
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname or ""
    return url._replace(netloc=host).geturl()


def _texts(value: object) -> list[str] | None:
    """``value`` if it is a list of texts."""
    return value if isinstance(value, list) and all(isinstance(each, str) for each in value) else None
