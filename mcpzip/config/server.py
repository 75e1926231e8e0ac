"""One entry of ``mcpServers``.

The rule: a mistake in an entry makes only this server unusable: it becomes `ServerConfig.problem`.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import get_args

from msgspec.structs import replace

from mcpzip.config.auth import (
    ALIASES,
    AUTH,
    HEADERS_COMMAND,
    get_with_aliases,
    read_auth,
    read_headers_command,
)
from mcpzip.config.node import Node, Source
from mcpzip.config.paths import config_path, expand_home
from mcpzip.config.schema import LONGEST, ServerConfig, Share, Transport, Trust
from mcpzip.config.secrets import register_secrets
from mcpzip.config.syntax import member
from mcpzip.config.variables import referred
from mcpzip.model.errors import ConfigError
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.names import join, server_name_problem

TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
"""The transport by the value of ``type`` in lower case. Some clients write ``streamableHttp``."""

STDIO_KEYS = ("command", "args", "env", "cwd", "inheritEnv")
REMOTE_KEYS = ("url", "headers", HEADERS_COMMAND, AUTH)
OTHER_NAMES = tuple(alias for key in ("type", *REMOTE_KEYS) for alias in ALIASES.get(key, ()))
CONNECTION_KEYS = frozenset(("type", *STDIO_KEYS, *REMOTE_KEYS, *OTHER_NAMES))
COMMON_KEYS = ("disabled", "timeout", "tools", "pin", "boost", "share", "trust", "policy", "risk")
KEYS = ("type", *STDIO_KEYS, *REMOTE_KEYS, *COMMON_KEYS)
TOOLS_KEYS = ("allow", "deny")

SHARE: tuple[Share, ...] = get_args(Share)
TRUST: tuple[Trust, ...] = get_args(Trust)
BOOST = (0.1, 10)
"""Minimum and maximum of ``boost``."""

_TYPE = 'write "stdio", "http" or "sse"'
_TOOLS = 'write an object, such as {"allow": ["get_*"], "deny": ["*_delete"]}'
_GLOBS = 'write a list of tool names, in which * stands for anything, such as ["get_*"]'
_INHERIT = 'write true, or a list of names of variables, such as ["GITHUB_*", "AWS_PROFILE"]'
_SHARE = 'write "auto", "always", "never" or "per-cwd"'
TRUST_REMEDY = 'write "pin", "strict" or "open"'
_PIN = 'write true, or a list of tool names, such as ["send_message", "get_*"]'

URL = lazy_pattern(r"https?://[^\s/?#]+[^\s]*", re.IGNORECASE)
HEADER_NAME = lazy_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token: RFC 9110, 5.6.2
_NOT_IN_HEADER = lazy_pattern(r"[\r\n\0]")
MCPZIP_COMMAND = lazy_pattern(r"mcpzip(\.exe|\.cmd)?(\[.*\])?([@=<>~].*)?")


def check_name(name: str, node: Node) -> None:
    """Raises ConfigError if ``name`` is no valid name of a server."""
    reason = server_name_problem(name)
    if reason:
        raise node.error(f"this name {reason}", "rename it with letters, digits, '-', '.' and single '_'")


def unusable_server(name: str, node: Node, error: ConfigError) -> ServerConfig:
    """The server called ``name`` for an entry in which `read_server` found the mistake ``error``."""
    disabled = node.get("disabled")
    return ServerConfig(
        name=name,
        transport="stdio" if node.get("command") else "http",
        disabled=disabled is not None and disabled.value is True,
        problem=_problem(node, error),
    )


def _problem(node: Node, error: ConfigError) -> str:
    """What is wrong with the entry ``node``, for a reader who knows the server's name. The file is named only
    if it is that of a project.
    """
    sentence = error.within(node.path)
    return f"{os.path.basename(node.source.file)}: {sentence}" if node.source.project else sentence


def read_server(name: str, node: Node) -> ServerConfig:
    """The server called ``name``. Raises ConfigError for a mistake in the structure of the entry. An unusable
    value, such as an unset variable or an invalid URL, is the server's `problem`.
    """
    node.object('write an object with a "command" or a "url"', KEYS, OTHER_NAMES)
    faults, unset = node.source.faults, node.source.unset
    before = len(faults)
    unset.clear()
    transport = _transport(node)
    disabled, timeout, tools, pin, boost, share, trust, policy, risk = map(node.get, COMMON_KEYS)
    if tools:
        tools.object(_TOOLS, TOOLS_KEYS)
    server = ServerConfig(
        name=name,
        transport=transport,
        disabled=disabled.boolean() if disabled else False,
        timeout=timeout.number("seconds", LONGEST) if timeout else None,
        tools_allow=_globs(tools.get("allow") if tools else None, name),
        tools_deny=_globs(tools.get("deny") if tools else None, name) or (),
        pin=_pin(pin, name),
        boost=boost.number_between(*BOOST) if boost else 1.0,
        share=(share.choice(SHARE, _SHARE) if share else None) or "auto",
        trust=(trust.choice(TRUST, TRUST_REMEDY) if trust else None) or "pin",
    )
    if policy or risk:
        from mcpzip.config.policy import read_policy, read_risk  # most configs have none

        server = replace(server, policy=read_policy(policy, name), risk=read_risk(risk, name))
    server = _stdio(node, server) if transport == "stdio" else _remote(node, server)
    register_secrets(server, node)
    own = faults[before:]
    del faults[before:]
    return replace(
        server,
        problem=_problem(node, own[0]) if own else None,
        unset=tuple(dict.fromkeys(unset)),
        written=_written(node),
    )


def _written(node: Node) -> str:
    """See `ServerConfig.written`."""
    members = {key: each.value for key, each in node.members().items() if key in CONNECTION_KEYS}
    return json.dumps(members, sort_keys=True) if referred(members) else ""


def _transport(node: Node) -> Transport:
    """The transport that a server's keys determine. Unused keys of another transport cause a warning."""
    kind, command, url = (get_with_aliases(node, key) for key in ("type", "command", "url"))
    name = kind.text(_TYPE).strip() if kind else ""
    if command and url:
        remedy = "keep the command for a local server, or the url for a remote one"
        raise node.error("both a command and a url", remedy)
    if not name and not command and not url:
        remedy = 'add "command" for a local server, or "url" for a remote one'
        raise node.error("neither a command nor a url", remedy)
    transport = TRANSPORTS.get(name.lower()) if name else "stdio" if command else "http"
    if transport is None:
        assert kind is not None
        raise kind.error(f"found {name!r}", _TYPE)
    remote = (*REMOTE_KEYS, *(alias for key in REMOTE_KEYS for alias in ALIASES.get(key, ())))
    needed, stray = ("command", remote) if transport == "stdio" else ("url", STDIO_KEYS)
    if not get_with_aliases(node, needed):
        raise node.error(f'"type": "{name}" without a {needed}', f"add the {needed} or change the type")
    for unused in filter(None, map(node.get, stray)):
        unused.warn(f"not used by a server of type {transport}", "remove it")
    return transport


def _stdio(node: Node, server: ServerConfig) -> ServerConfig:
    command, args, env, cwd, inherit = (node.get(key) for key in STDIO_KEYS)
    assert command is not None
    program = command.text("write the program to start, in double quotes").strip()
    folder = expand_home(cwd.text("write a folder, in double quotes") if cwd else "", node.source.env)
    if node.source.project:
        folder = os.path.normpath(os.path.join(node.source.project, folder))
    server = replace(
        server,
        command=expand_home(program, node.source.env),
        args=args.texts('write a list of strings, such as ["-y", "some-server"]') if args else (),
        env=env.text_members('write an object of strings, such as {"TOKEN": "…"}') if env else {},
        cwd=folder or None,
        inherit_env=inherited(inherit) or (),
    )
    if not program:
        command.fault("the command is empty", "write the program to start")
    for name, value in server.env.items():
        if not name or "=" in name or "\0" in name + value:
            where = Node(node.source, member(f"{node.path}.env", name), value)
            where.fault("not a valid environment variable", "remove the '=' or NUL from its name or value")
    if _is_this_proxy(server, node.source):
        node.fault(
            "this is mcpzip itself with this very config", "remove it, or it would start itself endlessly"
        )
    return server


def inherited(node: Node | None) -> tuple[str, ...] | None:
    """The globs of an ``inheritEnv``: ``true`` is all, ``false`` none. None if it is missing."""
    if node is None:
        return None
    if isinstance(node.value, bool):
        return ("*",) if node.value else ()
    return node.texts(_INHERIT)


def _remote(node: Node, server: ServerConfig) -> ServerConfig:
    url, headers = get_with_aliases(node, "url"), node.get("headers")
    assert url is not None
    server = replace(
        server,
        url=url.text("write the address, in double quotes").strip(),
        headers=headers.text_members('write an object of strings, such as {"X-Key": "…"}') if headers else {},
    )
    if not URL.fullmatch(server.url):
        url.fault("not an http address", "write the whole address, such as https://example.com/mcp")
    for name, value in server.headers.items():
        if not HEADER_NAME.fullmatch(name) or _NOT_IN_HEADER.search(value):
            where = Node(node.source, member(f"{node.path}.headers", name), value)
            where.fault(
                "not a valid header", "write a name without spaces or colons, and a value on one line"
            )
    return replace(server, headers_command=read_headers_command(node), auth=read_auth(node, server.headers))


def _globs(node: Node | None, server: str, remedy: str = _GLOBS) -> tuple[str, ...] | None:
    globs = node.texts(remedy) if node else None
    for at, glob in enumerate(globs or ()):
        if node and glob.startswith(join(server, "")):
            where = Node(node.source, f"{node.path}[{at}]", glob)
            own = glob.removeprefix(join(server, ""))
            where.warn("tools are named here without their server", f"{own!r} may be meant")
    return globs


def _pin(node: Node | None, server: str) -> tuple[str, ...]:
    if node is not None and isinstance(node.value, bool):
        return ("*",) if node.value else ()
    return _globs(node, server, _PIN) or ()


def _is_this_proxy(server: ServerConfig, source: Source) -> bool:
    """Whether ``server`` is mcpzip with this config, or with any config in the file of a project, which it
    would read again: it would start itself endlessly.
    """
    words = [os.path.basename(word.replace("\\", "/")).lower() for word in (server.command, *server.args)]
    index = next((at for at, word in enumerate(words) if MCPZIP_COMMAND.fullmatch(word)), len(words))
    if "serve" not in words[index:]:
        return False
    if source.project:
        return True
    path = _option("--config", server.args)
    if path is not None:
        path = os.path.join(server.cwd or "", path)
    other = config_path(path, {**source.env, **server.env})
    return os.path.normcase(os.path.realpath(other)) == os.path.normcase(os.path.realpath(source.file))


def _option(name: str, args: Iterable[str]) -> str | None:
    words = iter(args)
    for word in words:
        if word == name:
            return next(words, None)
        if word.startswith(f"{name}="):
            return word[len(name) + 1 :]
    return None
