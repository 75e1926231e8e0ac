"""A server's sign-in settings: ``auth`` and ``headersCommand``.

The rule: the key names of other clients are read too (Claude Code's and Gemini CLI's ``oauth`` with
``clientId``, Cursor's ``CLIENT_ID``, Claude Code's ``headersHelper``). Two names of the same key in one
object are an error, because either could be meant.
"""

import re
from collections.abc import Mapping
from typing import get_args

from mcpzip.config.node import TEXT, Node
from mcpzip.config.paths import expand_home
from mcpzip.config.schema import AuthConfig, AuthGrant, AuthStore, Secret
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.system.command_line import split_command_line

AUTH, HEADERS_COMMAND = "auth", "headersCommand"
"""The two keys in a server's object."""

ALIASES: Mapping[str, tuple[str, ...]] = {
    "url": ("httpUrl", "serverUrl"),
    "type": ("transport", "transportType"),
    AUTH: ("oauth",),
    HEADERS_COMMAND: ("headersHelper", "headers_command"),
    "client_id": ("clientId", "CLIENT_ID"),
    "client_secret": ("clientSecret", "CLIENT_SECRET"),
    "client_metadata_url": ("clientMetadataUrl",),
    "scope": ("scopes",),
    "private_key": ("privateKey",),
    "callback_port": ("callbackPort",),
    "per_user": ("perUser",),
}
"""By our key, its names in other clients."""

KEYS = (
    *("client_id", "client_secret", "issuer", "client_metadata_url", "scope", "grant", "private_key"),
    *("algorithm", "callback_port", "mcp_remote", "per_user"),
)
ENABLED = "enabled"
"""Gemini CLI writes ``"enabled": false`` for ``"auth": false``."""
OTHER_NAMES = (ENABLED, *(name for key in KEYS for name in ALIASES.get(key, ())))

AUTHORIZATION_CODE_KEYS = ("client_metadata_url", "callback_port", "mcp_remote")
PERSON_KEYS = ("callback_port", "mcp_remote")
"""Of a sign-in on this machine, and so of none with ``per_user``."""
CLIENT_CREDENTIALS_KEYS = ("private_key", "algorithm")
ALGORITHMS = (
    *("ES256", "ES384", "ES512", "EdDSA"),
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
)

GRANTS: tuple[AuthGrant, ...] = get_args(AuthGrant)
STORES: tuple[AuthStore, ...] = get_args(AuthStore)

_AUTH = 'write false for none, or an object, such as {"client_id": "…", "client_secret": "${SECRET}"}'
_GRANT = 'write "authorization_code" or "client_credentials"'
_SCOPE = 'write a string, such as "read write", or a list of strings'
_COMMAND = 'write the program and its arguments, such as "get-token --json" or ["get-token", "--json"]'
_STORE = 'write "file" or "keyring"'

_SCOPES = lazy_pattern(r"[!#-\[\]-~ ]*")  # RFC 6749, 3.3
_ISSUER = lazy_pattern(r"https?://[^\s?#]+", re.IGNORECASE)  # RFC 8414, 2
_METADATA_URL = lazy_pattern(r"https://[^\s/?#]+/[^\s?#][^\s]*", re.IGNORECASE)
_SHELL_OPERATORS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>&1"})
_SUBSTITUTION = lazy_pattern(r"\$\(|`")


def read_auth(server: Node, headers: Mapping[str, str]) -> AuthConfig | None:
    """The OAuth settings of a remote server; None when OAuth is not used. Raises ConfigError.

    headers: the server's headers in the config. With an Authorization header, OAuth is not used.
    """
    node = get_with_aliases(server, AUTH)
    if any(name.lower() == "authorization" for name in headers):
        own = get_with_aliases(node, "per_user") if node and isinstance(node.value, dict) else None
        if own and own.value is True:
            raise own.error("an Authorization header is one sign-in for all people", "remove one of the two")
        if node and node.value is not False:
            node.warn("not used beside an Authorization header", "remove one of the two")
        return None
    if node is None or node.value is True:
        return AuthConfig()
    if node.value is False:
        return None
    node.object(_AUTH, KEYS, OTHER_NAMES)
    enabled = node.get(ENABLED)
    return _auth(node) if enabled is None or enabled.boolean() else None


def read_headers_command(server: Node) -> tuple[str, ...]:
    """The program that prints headers, and its arguments; () for none. Raises ConfigError."""
    node = get_with_aliases(server, HEADERS_COMMAND)
    if node is None:
        return ()
    faults = len(node.source.faults)
    words = list(node.texts(_COMMAND)) if isinstance(node.value, list) else _split(node)
    if not words or not words[0].strip():
        if len(node.source.faults) == faults:
            node.fault("the command is empty", "write the program to start, or remove the key")
        return ()
    if any("\0" in word for word in words):
        node.fault("not a valid argument", "remove the NUL")
    return (expand_home(words[0], node.source.env), *words[1:])


def read_auth_store(node: Node | None) -> AuthStore:
    """Reads the ``auth`` beside ``mcpServers``: where sign-ins are stored. Raises ConfigError."""
    if node is None:
        return "file"
    store = node.object('write an object, such as {"store": "keyring"}', ("store",)).get("store")
    return (store.choice(STORES, _STORE) if store else None) or "file"


def get_with_aliases(node: Node, key: str) -> Node | None:
    """The member ``key`` of ``node``, under any of its names. Raises ConfigError when two are there."""
    found = {name: each for name in (key, *ALIASES.get(key, ())) if (each := node.get(name))}
    if len(found) > 1:
        names = " and ".join(f'"{name}"' for name in found)
        raise node.error(f"{names} mean the same key", "keep one of them")
    return next(iter(found.values()), None)


def _auth(node: Node) -> AuthConfig:
    nodes = {key: get_with_aliases(node, key) for key in KEYS}
    text = {key: each.text(TEXT).strip() if each else "" for key, each in nodes.items() if key in _TEXTS}
    grant, port, mcp_remote = nodes["grant"], nodes["callback_port"], nodes["mcp_remote"]
    per_user = nodes["per_user"]
    found = AuthConfig(
        client_id=text["client_id"],
        client_secret=Secret(text["client_secret"]) if text["client_secret"] else None,
        issuer=text["issuer"],
        client_metadata_url=text["client_metadata_url"],
        scope=_scope(nodes["scope"]),
        grant=(grant.choice(GRANTS, _GRANT) if grant else None) or "authorization_code",
        private_key=expand_home(text["private_key"], node.source.env),
        algorithm=_algorithm(nodes["algorithm"], text["algorithm"]),
        callback_port=port.integer(0, 65_535) if port else 0,
        mcp_remote=mcp_remote.boolean() if mcp_remote else True,
        per_user=per_user.boolean() if per_user else False,
    )
    _check_combinations(node, nodes, found.grant)
    issuer, metadata = nodes["issuer"], nodes["client_metadata_url"]
    if issuer and found.issuer and not _ISSUER.fullmatch(found.issuer):
        issuer.fault(
            "not the URL of an authorization server", "write its address, such as https://auth.example.com"
        )
    if metadata and found.client_metadata_url and not _METADATA_URL.fullmatch(found.client_metadata_url):
        metadata.fault(
            "not the URL of a client metadata document",
            "write an https address with a path, such as https://example.com/client.json",
        )
    return found


_TEXTS = ("client_id", "client_secret", "issuer", "client_metadata_url", "private_key", "algorithm")


def _check_combinations(node: Node, nodes: Mapping[str, Node | None], grant: AuthGrant) -> None:
    """Raises ConfigError for keys that contradict each other, and warns of keys that have no effect."""
    present = {key for key, each in nodes.items() if each and each.value != ""}
    if {"client_secret", "private_key"} <= present:
        raise node.error("both a client_secret and a private_key", "keep the one the server knows")
    if {"client_id", "client_metadata_url"} <= present:
        raise node.error(
            "both a client_id and a client_metadata_url",
            "keep the client_id of a registered client, or the URL of your own metadata document",
        )
    for secret in ("client_secret", "private_key"):
        if secret in present and "client_id" not in present:
            raise node.error(f"a {secret} without a client_id", "add the client_id it belongs to")
    if grant == "client_credentials" and not {"client_secret", "private_key"} & present:
        raise node.error(
            '"grant": "client_credentials" without a client_secret or a private_key',
            "add the one the server knows, and its client_id",
        )
    if (per_user := nodes["per_user"]) and per_user.value is True and grant == "client_credentials":
        raise per_user.error(
            f'with "grant": "{grant}" this machine signs in, and no person',
            "remove per_user, or the grant",
        )
    unused = AUTHORIZATION_CODE_KEYS if grant == "client_credentials" else CLIENT_CREDENTIALS_KEYS
    for key in unused:
        if each := nodes[key]:
            each.warn(f'not used by the grant "{grant}"', "remove it, or change the grant")
    if per_user and per_user.value is True:
        for key in PERSON_KEYS:
            if each := nodes[key]:
                each.warn("not used with per_user: people sign in on the page", "remove it")
    if grant == "client_credentials" and (algorithm := nodes["algorithm"]) and "private_key" not in present:
        algorithm.warn("not used without a private_key", "remove it")


def _scope(node: Node | None) -> str | None:
    if node is None:
        return None
    words = node.texts(_SCOPE) if isinstance(node.value, list) else (node.text(_SCOPE),)
    scope = " ".join(" ".join(words).split())
    if not _SCOPES.fullmatch(scope):
        node.fault("not a valid scope", "use printable ASCII without quotes and backslashes")
    return scope or None


def _algorithm(node: Node | None, name: str) -> str:
    if node and name and name not in ALGORITHMS:
        raise node.error(f"found {name!r}", f"write one of {', '.join(ALGORITHMS)}")
    return name or AuthConfig().algorithm


def _split(node: Node) -> list[str]:
    """The words of a command line, variables replaced after splitting, so that a value stays one word."""
    if not isinstance(node.value, str):
        return [node.text(_COMMAND)]  # which raises
    try:
        words = split_command_line(node.value)
    except ValueError as error:
        raise node.error("a quote that is not closed", "close it, or write a list of strings") from error
    if _SUBSTITUTION.search(node.value) or not _SHELL_OPERATORS.isdisjoint(words):
        node.warn("this is not run by a shell", "write a script and name it, if | or $(…) are meant")
    return [Node(node.source, node.path, word).text(_COMMAND) for word in words]
