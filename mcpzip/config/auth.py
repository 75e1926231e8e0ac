"""How one server is signed in to: its ``auth`` and its ``headersCommand``.

The rule: what other clients write under another name is read under that name too (Claude Code's and Gemini
CLI's ``oauth`` with ``clientId``, Cursor's ``CLIENT_ID``, Claude Code's ``headersHelper``), and two spellings
of one key are an error: we don't guess which one was meant.
"""

import re
from collections.abc import Mapping

from mcpzip.config.node import TEXT, Node
from mcpzip.config.paths import expand_home
from mcpzip.config.schema import AuthConfig, AuthGrant, AuthStore, Secret
from mcpzip.system.command_line import split_command_line

AUTH, HEADERS_COMMAND = "auth", "headersCommand"
"""The two keys of a server."""

ALSO: Mapping[str, tuple[str, ...]] = {
    AUTH: ("oauth",),
    HEADERS_COMMAND: ("headersHelper", "headers_command"),
    "client_id": ("clientId", "CLIENT_ID"),
    "client_secret": ("clientSecret", "CLIENT_SECRET"),
    "client_metadata_url": ("clientMetadataUrl",),
    "scope": ("scopes",),
    "private_key": ("privateKey",),
    "callback_port": ("callbackPort",),
}
"""A key of ours, and what other clients call it."""

KEYS = (
    *("client_id", "client_secret", "issuer", "client_metadata_url", "scope", "grant", "private_key"),
    *("algorithm", "callback_port", "mcp_remote"),
)
SWITCH = "enabled"
"""Gemini CLI's way to say ``"auth": false``."""
OTHER_NAMES = (SWITCH, *(name for key in KEYS for name in ALSO.get(key, ())))

OF_A_PERSON = ("client_metadata_url", "callback_port", "mcp_remote")
OF_A_MACHINE = ("private_key", "algorithm")
GRANTS: Mapping[str, AuthGrant] = {
    "authorization_code": "authorization_code",
    "client_credentials": "client_credentials",
}
ALGORITHMS = (
    *("ES256", "ES384", "ES512", "EdDSA"),
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
)
STORES: Mapping[str, AuthStore] = {"file": "file", "keyring": "keyring"}

_AUTH = 'write false for none, or an object, such as {"client_id": "…", "client_secret": "${SECRET}"}'
_GRANT = 'write "authorization_code" or "client_credentials"'
_SCOPE = 'write a string, such as "read write", or a list of strings'
_COMMAND = 'write the program and its arguments, such as "get-token --json" or ["get-token", "--json"]'
_STORE = 'write "file" or "keyring"'

_SCOPES = re.compile(r"[!#-\[\]-~ ]*")  # RFC 6749, 3.3
_ISSUER = re.compile(r"https?://[^\s?#]+", re.IGNORECASE)  # RFC 8414, 2
_METADATA_URL = re.compile(r"https://[^\s/?#]+/[^\s?#][^\s]*", re.IGNORECASE)
_OF_A_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>&1"})
_SUBSTITUTION = re.compile(r"\$\(|`")


def read_auth(server: Node, headers: Mapping[str, str]) -> AuthConfig | None:
    """How the remote server ``server`` is signed in to; None when it isn't, with OAuth. Raises ConfigError.

    headers: those of the config. One that is called Authorization is the sign-in.
    """
    node = written(server, AUTH)
    if any(name.lower() == "authorization" for name in headers):
        if node and node.value is not False:
            node.warn("not used beside an Authorization header", "remove one of the two")
        return None
    if node is None or node.value is True:
        return AuthConfig()
    if node.value is False:
        return None
    node.object(_AUTH, KEYS, OTHER_NAMES)
    switch = node.get(SWITCH)
    return _auth(node) if switch is None or switch.flag() else None


def read_headers_command(server: Node) -> tuple[str, ...]:
    """The program that prints headers, with its arguments; () for none. Raises ConfigError."""
    node = written(server, HEADERS_COMMAND)
    if node is None:
        return ()
    faults = len(node.source.faults)
    words = list(node.texts(_COMMAND)) if isinstance(node.value, list) else _split(node)
    if not words or not words[0].strip():
        if len(node.source.faults) == faults:
            node.fault("the command is empty", "write the program to start, or remove the key")
        return ()
    if any("\0" in word for word in words):
        node.fault("no argument can be so", "remove the NUL")
    return (expand_home(words[0], node.source.env), *words[1:])


def read_auth_store(node: Node | None) -> AuthStore:
    """Where sign-ins are kept, as the ``auth`` beside ``mcpServers`` says. Raises ConfigError."""
    if node is None:
        return "file"
    store = node.object('write an object, such as {"store": "keyring"}', ("store",)).get("store")
    said = store.text(_STORE).strip() if store else ""
    if store and said and said not in STORES:
        raise store.wrong(f"found {said!r}", _STORE)
    return STORES[said or "file"]


def written(node: Node, key: str) -> Node | None:
    """The member ``key`` of ``node``, under whichever of its names it stands. Raises ConfigError for two."""
    found = {name: each for name in (key, *ALSO.get(key, ())) if (each := node.get(name))}
    if len(found) > 1:
        names = " and ".join(f'"{name}"' for name in found)
        raise node.wrong(f"{names} are one key", "keep one of them")
    return next(iter(found.values()), None)


def _auth(node: Node) -> AuthConfig:
    said = {key: written(node, key) for key in KEYS}
    text = {key: each.text(TEXT).strip() if each else "" for key, each in said.items() if key in _TEXTS}
    grant, port, mcp_remote = said["grant"], said["callback_port"], said["mcp_remote"]
    found = AuthConfig(
        client_id=text["client_id"],
        client_secret=Secret(text["client_secret"]) if text["client_secret"] else None,
        issuer=text["issuer"],
        client_metadata_url=text["client_metadata_url"],
        scope=_scope(said["scope"]),
        grant=_grant(grant) if grant else "authorization_code",
        private_key=expand_home(text["private_key"], node.source.env),
        algorithm=_algorithm(said["algorithm"], text["algorithm"]),
        callback_port=port.whole(0, 65_535) if port else 0,
        mcp_remote=mcp_remote.flag() if mcp_remote else True,
    )
    _refuse_contradictions(node, said, found.grant)
    issuer, metadata = said["issuer"], said["client_metadata_url"]
    if issuer and found.issuer and not _ISSUER.fullmatch(found.issuer):
        issuer.fault(
            "no authorization server is called so", "write its address, such as https://auth.example.com"
        )
    if metadata and found.client_metadata_url and not _METADATA_URL.fullmatch(found.client_metadata_url):
        metadata.fault(
            "no client metadata document can be there",
            "write an https address with a path, such as https://example.com/client.json",
        )
    return found


_TEXTS = ("client_id", "client_secret", "issuer", "client_metadata_url", "private_key", "algorithm")


def _refuse_contradictions(node: Node, said: Mapping[str, Node | None], grant: AuthGrant) -> None:
    """Raises ConfigError for keys that can't hold together; warns of those that are of no use together."""
    has = {key for key, each in said.items() if each and each.value != ""}
    if {"client_secret", "private_key"} <= has:
        raise node.wrong("both a client_secret and a private_key", "keep the one the server knows")
    if {"client_id", "client_metadata_url"} <= has:
        raise node.wrong(
            "both a client_id and a client_metadata_url",
            "keep the client_id of a client that was registered, or the address of one's own metadata",
        )
    for secret in ("client_secret", "private_key"):
        if secret in has and "client_id" not in has:
            raise node.wrong(f"a {secret} without a client_id", "add the client_id it belongs to")
    if grant == "client_credentials" and not {"client_secret", "private_key"} & has:
        raise node.wrong(
            '"grant": "client_credentials" without a client_secret or a private_key',
            "add the one the server knows, and its client_id",
        )
    useless = OF_A_PERSON if grant == "client_credentials" else OF_A_MACHINE
    for key in useless:
        if each := said[key]:
            each.warn(f'not used by the grant "{grant}"', "remove it, or change the grant")
    if grant == "client_credentials" and (algorithm := said["algorithm"]) and "private_key" not in has:
        algorithm.warn("not used without a private_key", "remove it")


def _scope(node: Node | None) -> str | None:
    if node is None:
        return None
    words = node.texts(_SCOPE) if isinstance(node.value, list) else (node.text(_SCOPE),)
    scope = " ".join(" ".join(words).split())
    if not _SCOPES.fullmatch(scope):
        node.fault("no scope can be so", "use printable ASCII without quotes and backslashes")
    return scope or None


def _grant(node: Node) -> AuthGrant:
    said = node.text(_GRANT).strip()
    if said and said not in GRANTS:
        raise node.wrong(f"found {said!r}", _GRANT)
    return GRANTS[said or "authorization_code"]


def _algorithm(node: Node | None, said: str) -> str:
    if node and said and said not in ALGORITHMS:
        raise node.wrong(f"found {said!r}", f"write one of {', '.join(ALGORITHMS)}")
    return said or AuthConfig().algorithm


def _split(node: Node) -> list[str]:
    """The words of a command line, and then their variables: what a variable holds stays in one word."""
    if not isinstance(node.value, str):
        return [node.text(_COMMAND)]  # which raises
    try:
        words = split_command_line(node.value)
    except ValueError as error:
        raise node.wrong("a quote that is not closed", "close it, or write a list of strings") from error
    if _SUBSTITUTION.search(node.value) or not _OF_A_SHELL.isdisjoint(words):
        node.warn("no shell reads this", "write a script and name it, if | or $(…) are meant")
    return [Node(node.source, node.path, word).text(_COMMAND) for word in words]
