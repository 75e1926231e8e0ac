"""Reads a config file into a `Config`.

The rules:

1. A config of the original mcpzip is valid unchanged. ``null`` for an optional key means that it is missing.
2. A mistake in the entry of a server makes only this server unusable. Any other mistake in the structure
   makes the whole file unusable. The message gives the place and the remedy.
3. An unknown key causes a warning.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

from mcpzip.config.auth import read_auth_store
from mcpzip.config.node import TEXT, Node, Source
from mcpzip.config.schema import (
    CALL_TIMEOUT,
    IDLE_TIMEOUT,
    LONGEST,
    Config,
    Expose,
    Secret,
    ServerConfig,
)
from mcpzip.config.search import read_search
from mcpzip.config.server import check_name, inherited, read_server, unusable_server
from mcpzip.config.syntax import EXAMPLE, decode
from mcpzip.config.variables import referred
from mcpzip.model import limits
from mcpzip.model.errors import ConfigError
from mcpzip.system.files import read_bytes_limited

KEYS = (
    *("mcpServers", "gemini_api_key", "search", "idle_timeout_minutes", "call_timeout_seconds"),
    *("expose", "auth", "inheritEnv"),
)

EXPOSE: tuple[Expose, ...] = get_args(Expose)
GEMINI_KEY = "GEMINI_API_KEY"
"""The environment variable with the API key. It overrides ``gemini_api_key`` in the file."""


def load(path: str, env: Mapping[str, str]) -> Config:
    """The config in the file ``path``. env: values for its ``${VARIABLES}``. Raises ConfigError."""
    try:
        data = read_bytes_limited(path, limits.CONFIG)
    except OSError as error:
        raise _unreadable(path, error) from error
    return parse(data, path, env)


def parse(data: bytes, path: str, env: Mapping[str, str], *, strict: bool = False) -> Config:
    """The config in ``data``, the content of the file ``path``, which errors name. strict: whether a mistake
    in the entry of a server is an error too. Raises ConfigError.
    """
    source = Source(path, env)
    top = Node(source, "", decode(data, path)).object(f"write an object, such as {EXAMPLE}", KEYS)
    servers = _servers(top, strict=strict)
    idle, call, key = map(top.get, ("idle_timeout_minutes", "call_timeout_seconds", "gemini_api_key"))
    in_file = _text(key)
    secret = env.get(GEMINI_KEY, "").strip() or in_file
    config = Config(
        path=path,
        servers=servers,
        search=read_search(top.get("search")),
        idle_timeout=60 * idle.number("minutes", LONGEST / 60) if idle else IDLE_TIMEOUT,
        call_timeout=call.number("seconds", LONGEST) if call else CALL_TIMEOUT,
        gemini_api_key=Secret(secret) if secret else None,
        expose=_expose(top.get("expose"), servers),
        auth_store=read_auth_store(top.get("auth")),
    )
    # Faults outside of a server disable one setting only, so they are warnings.
    return replace(config, warnings=(*source.warnings, *source.faults))


def _servers(top: Node, *, strict: bool) -> dict[str, ServerConfig]:
    node = top.get("mcpServers")
    servers: dict[str, ServerConfig] = {}
    if node:
        node.object('write an object of servers, such as {"time": {"command": "uvx", …}}')
        for name, each in node.members().items():
            try:
                check_name(name, each)
            except ConfigError as error:  # tools could not be named after it
                if strict:
                    raise
                each.source.warnings.append(f"{error} Until then the server is left out.")
                continue
            faults = len(top.source.faults)
            try:
                servers[name] = read_server(name, each)
            except ConfigError as error:
                if strict:
                    raise
                del top.source.faults[faults:]
                servers[name] = unusable_server(name, each, error)
        servers = _with_environments(top, node, servers)
    if not servers:
        stray = [f'"{key}"' for key, each in top.members().items() if each.get("command") or each.get("url")]
        remedy = f"move {', '.join(stray)} into it" if stray else f"add one, such as {EXAMPLE}"
        Node(top.source, "mcpServers", None).warn("there are no servers, and so no tools", remedy)
    return servers


def _with_environments(top: Node, node: Node, servers: Mapping[str, ServerConfig]) -> dict[str, ServerConfig]:
    """``servers`` with ``inherit_env`` and ``withheld_env``: the variables of mcpzip's environment that each
    inherits, and those that only other servers refer to, which it doesn't.
    """
    default_globs = inherited(top.get("inheritEnv")) or ()
    references = {name: frozenset(referred(each.value)) for name, each in node.members().items()}
    result: dict[str, ServerConfig] = {}
    for name, server in servers.items():
        others = frozenset[str]().union(*(each for other, each in references.items() if other != name))
        own = node.members()[name].get("inheritEnv")
        globs = server.inherit_env if own is not None or server.transport != "stdio" else default_globs
        withheld = (others - references[name]) | {GEMINI_KEY} if globs else frozenset()
        result[name] = replace(server, inherit_env=globs, withheld_env=withheld)
    return result


def _expose(node: Node | None, servers: Mapping[str, ServerConfig]) -> Expose:
    expose = node.choice(EXPOSE, 'write "meta", "direct" or "transparent"') if node else None
    if node is None or expose is None:
        return "meta"
    enabled = sorted(name for name, server in servers.items() if not server.disabled)
    if expose == "transparent" and len(enabled) != 1:
        names = f"these are enabled: {', '.join(enabled)}" if enabled else "none is enabled"
        remedy = 'disable all servers but one, or write "direct" or "meta"'
        raise node.error(
            f'"transparent" needs exactly one server, and {names}',
            remedy if enabled else 'enable one, or write "direct" or "meta"',
        )
    return expose


def _text(node: Node | None) -> str | None:
    return (node.text(TEXT).strip() or None) if node else None


def _unreadable(path: str, error: OSError) -> ConfigError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        remedy = "move your clients' servers here with 'mcpzip migrate', or add one with 'mcpzip add'"
        return ConfigError(path, "", "there is no such file", remedy)
    # Windows calls opening a folder "permission denied".
    if isinstance(error, IsADirectoryError) or os.path.isdir(path):
        return ConfigError(path, "", "this is a folder", "name the config file in it")
    if isinstance(error, PermissionError):
        return ConfigError(
            path, "", "there is no permission to read it", "give read access to the user that runs mcpzip"
        )
    return ConfigError(
        path, "", f"it can't be read ({error.strerror or error})", "check the file and its disk"
    )
