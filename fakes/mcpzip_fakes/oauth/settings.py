"""The settings of an authorization server and of the guard of an MCP server: ``[oauth]`` of a scenario.

    [oauth]
    approve = "page"                       # a person has to press "Allow"
    access_seconds = 60
    scopes = ["read", "write"]
    tool_scopes = { pay = ["write"] }

    [[oauth.faults]]
    kind = "status"
    endpoint = "token"
    status = 429
    retry_after = 7

The rule: every default is what a correct, strict server does; a key changes one thing.
"""

from collections.abc import Mapping
from typing import cast

import msgspec
from msgspec import Struct

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.oauth.faults import AuthFault
from mcpzip_fakes.oauth.lies import LIES

AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post", "private_key_jwt")
"""Client authentication methods (RFC 7591, section 2; OpenID Connect Core, section 9)."""

_WORDS: Mapping[str, tuple[str, ...]] = {
    "approve": ("auto", "page", "deny"),
    "discovery": ("oauth", "oidc", "oidc-inserted", "none"),
    "resource_metadata": ("path", "root", "none"),
    "challenge": ("metadata", "bare", "none"),
    "refresh": ("rotate", "keep", "none"),
    "resource": ("required", "optional"),
    "iss": ("right", "wrong", "missing"),
    "state": ("right", "wrong", "missing"),
    "registration_method": ("", *AUTH_METHODS),
    "access_tokens": ("opaque", "jwt"),
    "algorithm": ("RS256", "ES256", "EdDSA"),
}


class KnownClient(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A preconfigured client.

    method: one of `AUTH_METHODS`; "": by ``key``, by ``secret`` (basic or post), or none. key: the public key
    (PEM) of a client that signs (RFC 7523). redirect_uris: compared as text, except the port of a loopback
    URI (RFC 8252, section 7.3), unless ``exact_ports``.
    """

    id: str
    secret: str = ""
    method: str = ""
    key: str = ""
    redirect_uris: tuple[str, ...] = ()
    grants: tuple[str, ...] = ("authorization_code", "refresh_token")

    def __post_init__(self) -> None:
        if self.method not in ("", *AUTH_METHODS):
            raise ValueError(f"method is {self.method!r}; write {', '.join(AUTH_METHODS)}")


class OAuth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The keys of the authorization server first, then those of the guard of the MCP server.

    approve: ``auto`` sends the browser back at once, ``page`` asks a person, ``deny`` refuses.
    own_port: listens on a port of its own, not at the MCP server's origin. issuer_path: of the issuer's URL.
    discovery: where the metadata are: ``oauth`` (RFC 8414), ``oidc`` (OpenID Connect Discovery, appended to
    the issuer), ``oidc-inserted`` (before its path), ``none`` (the default endpoints of MCP 2025-03-26).
    registration: RFC 7591; registration_method: assigned to every client. clients: preconfigured.
    cimd: accepts the URL of a client's metadata document as its id; documents: those documents, by URL;
    others are fetched, over http from loopback only. exact_ports: see `KnownClient`.
    scopes: the supported ones; granted_scopes: only these are granted (None: all requested).
    access_seconds, refresh_seconds (None: no expiry), code_seconds: lifetimes; tell_expiry: whether answers
    have ``expires_in``. refresh: tokens ``rotate`` (reuse revokes the whole family), are ``keep``t or there
    are ``none``; offline: only for the scope ``offline_access``.
    access_tokens: ``opaque`` ones, or ``jwt`` (RFC 9068), signed with a key for ``algorithm``; both are asked
    about at ``/introspect`` (RFC 7662). claims: of every JWT and every introspection, besides the usual ones;
    null leaves one out. resources: URLs for which tokens are given, besides those of the fakes.
    revocation: RFC 7009. resource: whether a request must name one (RFC 8707); a named one is always checked.
    announce_iss: the metadata announce ``iss`` (RFC 9207). iss, state: how they are returned.
    metadata, resource_fields: override the authorization server's metadata, and the resource's; "" removes.
    lies: see `LIES`. faults: see `mcpzip_fakes.oauth.faults`.

    resource_metadata: where the resource's metadata (RFC 9728) are: at the ``path`` of the MCP endpoint, for
    the whole origin at the ``root``, ``none``. challenge: the 401 has ``resource_metadata``, only ``Bearer``
    (``bare``) or no header (``none``). listed: the authorization servers it names, "{issuer}" for its own.
    required_scopes: for every request; tool_scopes: by tool, further ones for its calls; challenge_scope: the
    401 names them. open_methods: need no token.
    """

    approve: str = "auto"
    own_port: bool = False
    issuer_path: str = ""
    discovery: str = "oauth"
    registration: bool = True
    registration_method: str = ""
    clients: tuple[KnownClient, ...] = ()
    cimd: bool = False
    documents: dict[str, JsonObject] = {}
    exact_ports: bool = False
    scopes: tuple[str, ...] = ()
    granted_scopes: tuple[str, ...] | None = None
    access_seconds: float = 3600.0
    refresh_seconds: float | None = None
    code_seconds: float = 60.0
    tell_expiry: bool = True
    refresh: str = "rotate"
    offline: bool = False
    access_tokens: str = "opaque"
    algorithm: str = "RS256"
    claims: JsonObject = {}
    resources: tuple[str, ...] = ()
    revocation: bool = True
    resource: str = "required"
    announce_iss: bool = True
    iss: str = "right"
    state: str = "right"
    metadata: JsonObject = {}
    lies: tuple[str, ...] = ()
    faults: tuple[AuthFault, ...] = ()

    resource_metadata: str = "path"
    challenge: str = "metadata"
    listed: tuple[str, ...] = ()
    resource_fields: JsonObject = {}
    required_scopes: tuple[str, ...] = ()
    tool_scopes: dict[str, tuple[str, ...]] = {}
    challenge_scope: bool = False
    open_methods: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key, words in _WORDS.items():
            if (said := getattr(self, key)) not in words:
                raise ValueError(f"{key} is {said!r}; write {', '.join(filter(None, words))}")
        for lie in self.lies:
            if lie not in LIES:
                raise ValueError(f"there is no lie {lie!r}; the lies are {', '.join(LIES)}")
        path = self.issuer_path
        if path and (not path.startswith("/") or path.endswith("/")):
            raise ValueError(f"issuer_path is {path!r}; write it as '/tenant'")
        if self.discovery == "none" and (self.own_port or path):
            raise ValueError(
                "discovery is 'none', and nobody can find an issuer elsewhere; "
                "remove own_port and issuer_path"
            )

    @property
    def all_scopes(self) -> tuple[str, ...]:
        """Every scope: the configured ones, then those that are required anywhere."""
        needed = (scope for scopes in self.tool_scopes.values() for scope in scopes)
        offline = ("offline_access",) if self.offline else ()
        return tuple(dict.fromkeys((*self.scopes, *self.required_scopes, *needed, *offline)))

    @property
    def first_scopes(self) -> tuple[str, ...]:
        """The scopes of a client that requests none."""
        return self.required_scopes or self.scopes


def plain(told: object) -> object:
    """``told`` as tables, also if it is an `OAuth` or has faults given by their kind alone."""
    if isinstance(told, Struct):
        told = msgspec.to_builtins(told)
    if not isinstance(told, Mapping):
        return told
    faults = told.get("faults")
    if not isinstance(faults, list | tuple):
        return dict(told)
    tables = [{"kind": each} if isinstance(each, str) else msgspec.to_builtins(each) for each in faults]
    return {**told, "faults": tables}


def settings(told: Mapping[str, object], over: OAuth | None = None) -> OAuth:
    """The settings ``told``, which override ``over``. Raises msgspec.ValidationError if they are invalid."""
    base = cast(JsonObject, msgspec.to_builtins(over)) if over else {}
    return msgspec.convert(plain({**base, **told}), OAuth)


def option_keys() -> dict[str, tuple[str, ...]]:
    """The valid keys of each table, for `mcpzip_fakes.errors.scenario_error`."""
    return {
        "oauth": OAuth.__struct_encode_fields__,
        "clients": KnownClient.__struct_encode_fields__,
        "oauth.faults": AuthFault.__struct_encode_fields__,
    }
