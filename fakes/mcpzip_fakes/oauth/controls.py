"""Commands of tests to an authorization server: called in a thread, or posted to a process.

The rule: a command is data, so that both ways do the same; results are copies.
"""

from collections.abc import Callable, Mapping, Sequence
from html.parser import HTMLParser
from typing import cast
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

import msgspec

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.oauth.authority import Authority, AuthRequest
from mcpzip_fakes.oauth.token_store import Token

CONTROL = "/control"
"""The path of commands to a process."""

_SECONDS = 30.0


class Desk:
    """Executes commands."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority
        self._commands: Mapping[str, Callable[[JsonObject], object]] = {
            "issuer": lambda told: authority.issuer,
            "now": lambda told: authority.now(),
            "advance": lambda told: authority.advance(float(str(told["seconds"]))),
            "configure": authority.configure,
            "requests": lambda told: list(authority.requests),
            "tokens": lambda told: list(authority.ledger.tokens.values()),
            "revoke": self._revoke,
            "forget": lambda told: authority.clients.forget(),
            "mint": self._mint,
            "sign": self._sign,
            "rotate": lambda told: authority.signer.rotate(str(told.get("algorithm") or "")),
        }

    def do(self, command: str, told: JsonObject) -> object:
        """The result of a command, as JSON types. Raises ValueError, one sentence, if it fails."""
        with self._authority.lock:
            try:
                return msgspec.to_builtins(self._commands[command](told))
            except msgspec.ValidationError as error:
                raise ValueError(str(error)) from None

    def answer(self, body: bytes) -> tuple[int, bytes]:
        """Status and JSON for a command that was posted."""
        try:
            told = msgspec.json.decode(body, type=dict)
            return 200, msgspec.json.encode(self.do(str(told.pop("do")), told))
        except (ValueError, KeyError) as error:
            return 400, msgspec.json.encode({"error": str(error)})

    def _revoke(self, told: JsonObject) -> int:
        ended = 0
        for token in self._authority.ledger.tokens.values():
            named = str(told.get("token") or "") in ("", token.id, token.value)
            if named and told.get("kind") in (None, token.kind) and not token.ended:
                token.ended = "revoked"
                ended += 1
        return ended

    def _mint(self, told: JsonObject) -> JsonObject:
        """Tokens without a sign-in, for a client that is registered for it."""
        authority = self._authority
        client = authority.clients.register(
            {
                "redirect_uris": told.get("redirect_uris") or ["http://127.0.0.1/callback"],
                "token_endpoint_auth_method": "none",
                "grant_types": ["authorization_code", "refresh_token"],
            }
        )
        scope = told.get("scope")
        scopes = tuple(str(scope).split()) if scope else authority.told.first_scopes
        resource = str(told.get("resource") or (authority.resources or [""])[0])
        family, id = authority.ledger.family(), str(client["client_id"])
        access = authority.access(id, scopes, resource, family)
        refresh = authority.ledger.issue(
            "refresh", id, scopes, resource, family, authority.told.refresh_seconds
        )
        return {
            "client": client,
            "access_token": access.value,
            "refresh_token": refresh.value,
            "scope": " ".join(scopes),
            "resource": resource,
            "expires_at": access.expires,
        }

    def _sign(self, told: JsonObject) -> str:
        """A JWT with any claims: the usual ones of a token, if they aren't given."""
        authority, claims, header = self._authority, told.get("claims"), told.get("header")
        now = int(authority.now())
        said: JsonObject = {
            "iss": authority.issuer,
            "iat": now,
            "exp": now + int(authority.told.access_seconds),
            **(claims if isinstance(claims, dict) else {}),
        }
        kept = {name: value for name, value in said.items() if value is not None}
        return authority.signer.sign(kept, header if isinstance(header, dict) else {})


class AuthControls:
    """Controls an authorization server from a test, in this process or in another."""

    def __init__(self, do: Callable[[str, JsonObject], object]) -> None:
        self._do = do

    @classmethod
    def at(cls, url: str) -> "AuthControls":
        """The authorization server of a process: ``url`` is any of its URLs, or the MCP server's."""
        where = urljoin(url, CONTROL)

        def post(command: str, told: JsonObject) -> object:
            body = msgspec.json.encode({**told, "do": command})
            request = Request(where, body, {"Content-Type": "application/json"})
            try:
                with _opener().open(request, timeout=_SECONDS) as answer:
                    return msgspec.json.decode(answer.read())
            except HTTPError as error:
                with error:
                    raise ValueError(error.read().decode()) from None

        return cls(post)

    @property
    def issuer(self) -> str:
        """Its identifier: a URL without a trailing slash."""
        return str(self._do("issuer", {}))

    @property
    def now(self) -> float:
        """Its clock, Unix s."""
        return cast(float, self._do("now", {}))

    def advance(self, seconds: float) -> None:
        """Advance its clock."""
        self._do("advance", {"seconds": seconds})

    def configure(self, **keys: object) -> None:
        """Change settings from now on; see `OAuth`. Faults then count from here. Raises ValueError if one
        is invalid."""
        self._do("configure", cast(JsonObject, msgspec.to_builtins(keys)))

    def requests(self, endpoint: str | None = None) -> list[AuthRequest]:
        """Every request so far, or only those to ``metadata``, ``resource``, ``authorize``, ``token``,
        ``register``, ``revoke``, ``introspect`` or ``jwks``; in the order they came."""
        found = msgspec.convert(self._do("requests", {}), list[AuthRequest])
        return [each for each in found if endpoint in (None, each.endpoint)]

    def refreshes(self) -> list[AuthRequest]:
        """The requests to refresh a token."""
        return [each for each in self.requests("token") if each.grant == "refresh_token"]

    def tokens(self, kind: str | None = None) -> list[Token]:
        """Every issued token, or only ``access`` or ``refresh`` tokens, in order, valid or not."""
        found = msgspec.convert(self._do("tokens", {}), list[Token])
        return [each for each in found if kind in (None, each.kind)]

    def revoke(self, token: str | None = None) -> int:
        """Revoke one token, by its id or value, or all. Returns their number."""
        return cast(int, self._do("revoke", {"token": token}))

    def revoke_access(self) -> int:
        """Revoke the access tokens; refresh tokens stay valid. Returns their number."""
        return cast(int, self._do("revoke", {"kind": "access"}))

    def revoke_refresh(self) -> int:
        """Revoke the refresh tokens; access tokens stay valid. Returns their number."""
        return cast(int, self._do("revoke", {"kind": "refresh"}))

    def forget_clients(self) -> None:
        """Remove the registered clients."""
        self._do("forget", {})

    def mint(
        self, *, resource: str | None = None, scope: str | None = None, redirect_uris: Sequence[str] = ()
    ) -> JsonObject:
        """Tokens without a sign-in: ``client`` (as a registration answers), ``access_token``,
        ``refresh_token``, ``scope``, ``resource`` (none given: of the first MCP server) and ``expires_at``
        (of its clock)."""
        told: JsonObject = {"resource": resource, "scope": scope, "redirect_uris": list(redirect_uris)}
        return cast(JsonObject, self._do("mint", told))

    def sign(self, header: JsonObject | None = None, **claims: object) -> str:
        """A JWT of this issuer with these claims; it has the usual ``iss``, ``iat`` and ``exp`` if they
        aren't given, and None leaves one out. header: members of its header. The server itself doesn't know
        this token.
        """
        told: JsonObject = {"claims": claims, "header": header or {}}
        return str(self._do("sign", told))

    def rotate_keys(self, algorithm: str = "") -> str:
        """Sign with a new key, and publish the former one no more. Returns the ``kid`` of the new one."""
        return str(self._do("rotate", {"algorithm": algorithm}))

    def visit(self, url: str, decision: str = "allow") -> dict[str, str]:
        """Open an authorization URL as a browser does, without following the redirect to the client: its
        parameters. On a page it presses ``allow`` or ``deny``. Raises ValueError, with the page, if there is
        no redirect.

        It blocks; in a coroutine use `asyncio.to_thread`.
        """
        return dict(parse_qsl(urlsplit(self.leads_to(url, decision)).query))

    def leads_to(self, url: str, decision: str = "allow") -> str:
        """Like `visit`, but returns the whole URL of the redirect."""
        location, page = _get(Request(url))
        if location:
            return location
        form = _Form()
        form.feed(page)
        if not form.action:
            raise ValueError(page)
        said = urlencode({**form.fields, "decision": decision}).encode()
        location, page = _get(Request(urljoin(url, form.action), said))
        if not location:
            raise ValueError(page)
        return location

    def browse(self, url: str, decision: str = "allow") -> str:
        """Open an authorization URL as a browser does, and follow the redirect to the client. Returns the
        client's page."""
        with _opener().open(self.leads_to(url, decision), timeout=_SECONDS) as answer:
            return str(answer.read().decode())


class _Form(HTMLParser):
    """The form of a page: its action, and its hidden fields."""

    def __init__(self) -> None:
        super().__init__()
        self.action = ""
        self.fields: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See `HTMLParser`."""
        told = dict(attrs)
        if tag == "form":
            self.action = told.get("action") or ""
        elif tag == "input":
            self.fields[told.get("name") or ""] = told.get("value") or ""


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        """Follows no redirect."""


def _opener(*handlers: HTTPRedirectHandler) -> OpenerDirector:
    return build_opener(ProxyHandler({}), *handlers)


def _get(request: Request) -> tuple[str, str]:
    """The target of an answer's redirect, or "", and its body."""
    try:
        with _opener(_Stay()).open(request, timeout=_SECONDS) as answer:
            return "", str(answer.read().decode())
    except HTTPError as error:
        with error:
            return error.headers.get("Location") or "", error.read().decode("utf-8", "replace")
