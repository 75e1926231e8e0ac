"""From the file to the `Config`.

The rules:

1. The original's config is read as it is. ``null`` for an optional key is the same as leaving it out.
2. What is wrong with the file's shape makes it unusable, and says where. What is wrong with one server only
   as things stand (a variable that isn't set, a URL that can't be one) leaves the others alone: it is that
   server's `problem`.
3. A key we don't know, or don't use yet, is a warning.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from mcpzip.config.node import Node, Source
from mcpzip.config.paths import config_path, expand_home
from mcpzip.config.schema import (
    CALL_TIMEOUT,
    DEFAULT_LIMIT,
    IDLE_TIMEOUT,
    Config,
    Expose,
    SearchConfig,
    Secret,
    ServerConfig,
    Transport,
)
from mcpzip.config.syntax import EXAMPLE, decode, member
from mcpzip.model.errors import ConfigError
from mcpzip.model.names import server_name_problem
from mcpzip.system.files import read_bytes_limited

LIMIT = 16 * 1024 * 1024
"""Bytes a config may have; a bigger file is some other file."""

_YEAR = 365 * 86_400.0

TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
"""What `type` may say, in any case, and what it means. ``streamableHttp`` is how some clients write it."""

SHOWN_TRANSPORTS = ("stdio", "http", "sse")
EXPOSE: Mapping[str, Expose] = {"meta": "meta", "direct": "direct", "transparent": "transparent"}
SEMANTIC = ("local", "ollama", "off")

TOP_KEYS = (
    "mcpServers",
    "gemini_api_key",
    "search",
    "idle_timeout_minutes",
    "call_timeout_seconds",
    "expose",
)
SEARCH_KEYS = ("default_limit", "model", "semantic", "threshold")
STDIO_KEYS = ("command", "args", "env", "cwd")
REMOTE_KEYS = ("url", "headers")
SERVER_KEYS = ("type", *STDIO_KEYS, *REMOTE_KEYS, "disabled", "timeout", "tools", "pin")
TOOLS_KEYS = ("allow", "deny")

MEANT = {
    "servers": "mcpServers",
    "mcp_servers": "mcpServers",
    "transport": "type",
    "transportType": "type",
    "serverUrl": "url",
    "httpUrl": "url",
    "enabled": "disabled",
    "includeTools": "tools.allow",
    "excludeTools": "tools.deny",
    "disabledTools": "tools.deny",
}
"""What other programs call our keys."""

_NOT_YET = "it has no effect yet, and may stay for one that does"

_URL = re.compile(r"https?://[^\s/?#]+[^\s]*", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token: RFC 9110, 5.6.2
_NOT_IN_HEADER = re.compile(r"[\r\n\0]")
_OURSELVES = re.compile(r"mcpzip(\.exe|\.cmd)?(\[.*\])?([@=<>~].*)?")


def load(path: str, env: Mapping[str, str]) -> Config:
    """The config at ``path``; ``env`` is where variables come from. Raises ConfigError."""
    try:
        data = read_bytes_limited(path, LIMIT)
    except OSError as error:
        raise _unreadable(path, error) from error
    return parse(data, path, env)


def parse(data: bytes, path: str, env: Mapping[str, str]) -> Config:
    """The config that ``data`` says; ``path`` is what it is called in errors. Raises ConfigError."""
    source = Source(path, env)
    top = Node(source, "", decode(data, path)).object(f"write an object, such as {EXAMPLE}", TOP_KEYS, MEANT)
    servers = _servers(top)
    idle, call = top.get("idle_timeout_minutes"), top.get("call_timeout_seconds")
    key = env.get("GEMINI_API_KEY") or _optional_text(top.get("gemini_api_key"))
    config = Config(
        path=path,
        servers=servers,
        search=_search(top),
        idle_timeout=60 * idle.number("minutes", _YEAR / 60) if idle else IDLE_TIMEOUT,
        call_timeout=call.number("seconds", _YEAR) if call else CALL_TIMEOUT,
        gemini_api_key=Secret(key) if key else None,
        expose=_expose(top.get("expose")),
    )
    # What can't be used outside of a server is done without.
    return replace(config, warnings=(*source.warnings, *source.faults))


def _servers(top: Node) -> dict[str, ServerConfig]:
    node = top.get("mcpServers")
    if node is None:
        for key, stray in top.members().items():
            if isinstance(stray.value, dict) and stray.value.keys() & {"command", "url"}:
                stray.warn(
                    "looks like a server", f"move it into mcpServers: {{{key!r}: …}}".replace("'", '"')
                )
    named = (
        node.object('write an object of servers, such as {"time": {"command": "uvx", …}}') if node else None
    )
    servers = {name: _server(name, each) for name, each in named.members().items()} if named else {}
    if not servers:
        Node(top.source, "mcpServers", None).warn(
            "no servers, so there are no tools", f"add one, such as {EXAMPLE}"
        )
    return servers


def _server(name: str, node: Node) -> ServerConfig:
    reason = server_name_problem(name)
    if reason:
        raise node.wrong(
            f"the server name {reason}", "rename it with letters, digits, '-', '.' and single '_'"
        )
    node.object('write an object with a "command" or a "url"', SERVER_KEYS, MEANT)
    faults = node.source.faults
    before = len(faults)
    transport = _transport(node)
    timeout, pin, disabled = node.get("timeout"), node.get("pin"), node.get("disabled")
    tools = node.get("tools")
    if tools:
        tools.object('write an object, such as {"allow": ["get_*"], "deny": ["*_delete"]}', TOOLS_KEYS)
    server = ServerConfig(
        name=name,
        transport=transport,
        disabled=disabled.flag() if disabled else False,
        timeout=timeout.number("seconds", _YEAR) if timeout else None,
        tools_allow=_globs(tools, "allow"),
        tools_deny=_globs(tools, "deny") or (),
        pin=pin.texts('write a list of tool names, such as ["send_message"]') if pin else (),
    )
    server = _stdio(node, server) if transport == "stdio" else _remote(node, server)
    if pin:
        pin.warn("not used by this version", _NOT_YET)
    own = faults[before:]
    del faults[before:]
    return replace(server, problem=own[0]) if own else server


def _transport(node: Node) -> Transport:
    """Which transport a server's keys ask for. Keys of another are an error or, when harmless, a warning."""
    kind = node.get("type")
    said = kind.text(f"write one of {_list_of(SHOWN_TRANSPORTS)}").strip() if kind else ""
    command, url = node.get("command"), node.get("url")
    if command and url:
        raise node.wrong(
            "both a command and a url", "keep the command for a local server, the url for a remote one"
        )
    transport = TRANSPORTS.get(said.lower()) if said else "stdio" if command or not url else "http"
    if transport is None:
        remedy = f"write one of {_list_of(SHOWN_TRANSPORTS)}"
        raise Node(node.source, f"{node.path}.type", said).wrong(f"found {said!r}", remedy)
    needed, idle = ("command", REMOTE_KEYS) if transport == "stdio" else ("url", STDIO_KEYS)
    if not (command if transport == "stdio" else url):
        given = f'"type": "{said}" without a {needed}' if said else "neither a command nor a url"
        remedy = f"add the {needed}" if said else 'add "command" for a local server or "url" for a remote one'
        raise node.wrong(given, remedy)
    for key in idle:
        stray = node.get(key)
        if stray:
            stray.warn(f"not used by a server of type {transport}", "remove it")
    return transport


def _stdio(node: Node, server: ServerConfig) -> ServerConfig:
    command, args, env, cwd = (node.get(key) for key in STDIO_KEYS)
    assert command is not None
    server = replace(
        server,
        command=expand_home(
            command.text("write the program to start, in double quotes").strip(), node.source.env
        ),
        args=args.texts('write a list of strings, such as ["-y", "some-server"]') if args else (),
        env=env.text_members('write an object of strings, such as {"TOKEN": "…"}') if env else {},
        cwd=expand_home(cwd.text("write a folder, in double quotes"), node.source.env) or None
        if cwd
        else None,
    )
    if not server.command:
        command.fault("the command is empty", "write the program to start")
    for name, value in server.env.items():
        if not name or "=" in name or "\0" in name + value:
            where = Node(node.source, member(f"{node.path}.env", name), value)
            where.fault("no environment variable can be so", "remove the '=' or NUL from its name or value")
    if _is_this_proxy(server, node.source):
        node.fault(
            "this server is mcpzip itself with this very config",
            "remove it: mcpzip would start itself for ever",
        )
    return server


def _remote(node: Node, server: ServerConfig) -> ServerConfig:
    url, headers = (node.get(key) for key in REMOTE_KEYS)
    assert url is not None
    server = replace(
        server,
        url=url.text("write the address, in double quotes").strip(),
        headers=headers.text_members('write an object of strings, such as {"X-Key": "…"}') if headers else {},
    )
    if not _URL.fullmatch(server.url):
        url.fault("not an http address", "write it whole, such as https://example.com/mcp")
    for name, value in server.headers.items():
        if not _HEADER_NAME.fullmatch(name) or _NOT_IN_HEADER.search(value):
            where = Node(node.source, member(f"{node.path}.headers", name), value)
            where.fault(
                "no header can be so",
                "remove line breaks, and from its name whatever isn't a letter, digit or '-'",
            )
    return server


def _is_this_proxy(server: ServerConfig, source: Source) -> bool:
    """Whether starting ``server`` would start this proxy with this config, which would start it again, and so on."""
    words = [os.path.basename(word.replace("\\", "/")).lower() for word in (server.command, *server.args)]
    ours = [at for at, word in enumerate(words) if _OURSELVES.fullmatch(word)]
    if not ours or "serve" not in words[ours[0] + 1 :]:
        return False
    explicit = None
    for at, word in enumerate(server.args):
        if word == "--config" and at + 1 < len(server.args):
            explicit = server.args[at + 1]
        elif word.startswith("--config="):
            explicit = word.removeprefix("--config=")
    if explicit and server.cwd:
        explicit = os.path.join(server.cwd, explicit)
    its = config_path(explicit, {**source.env, **server.env})
    return os.path.normcase(os.path.realpath(its)) == os.path.normcase(os.path.realpath(source.file))


def _search(top: Node) -> SearchConfig:
    node = top.get("search")
    if node is None:
        return SearchConfig()
    node.object('write an object, such as {"default_limit": 5}', SEARCH_KEYS)
    limit, model, semantic, threshold = (node.get(key) for key in SEARCH_KEYS)
    search = SearchConfig(
        default_limit=limit.whole(1, 100) if limit else DEFAULT_LIMIT,
        model=_optional_text(model),
        semantic=_semantic(semantic),
        threshold=threshold.within(0, 1) if threshold else None,
    )
    for unused in (model, threshold, semantic if search.semantic != "off" else None):
        if unused:
            unused.warn("not used by this version", _NOT_YET)
    return search


def _semantic(node: Node | None) -> str:
    said = _optional_text(node)
    if node is None or not said:
        return SEMANTIC[0]
    if said not in SEMANTIC and not _URL.fullmatch(said):
        remedy = f"write {_list_of(SEMANTIC)}, or the URL of an OpenAI-compatible server"
        raise node.wrong(f"found {said!r}", remedy)
    return said


def _expose(node: Node | None) -> Expose:
    said = _optional_text(node)
    if node is None or not said:
        return "meta"
    if said not in EXPOSE:
        raise node.wrong(f"found {said!r}", f"write {_list_of(EXPOSE)}")
    if said != "meta":
        node.warn("not used by this version", _NOT_YET)
    return EXPOSE[said]


def _optional_text(node: Node | None) -> str | None:
    return (node.text("write a string, in double quotes").strip() or None) if node else None


def _globs(tools: Node | None, key: str) -> tuple[str, ...] | None:
    node = tools.get(key) if tools else None
    return (
        node.texts('write a list of tool names, in which * stands for anything, such as ["get_*"]')
        if node
        else None
    )


def _list_of(words: Iterable[str]) -> str:
    *most, last = (f'"{word}"' for word in words)
    return f"{', '.join(most)} or {last}"


def _unreadable(path: str, error: OSError) -> ConfigError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return ConfigError(path, "", "there is no such file", f"write it, for example with {EXAMPLE}")
    # Windows calls opening a folder "permission denied".
    if isinstance(error, IsADirectoryError) or os.path.isdir(path):
        return ConfigError(path, "", "this is a folder", "name the config file in it")
    if isinstance(error, PermissionError):
        return ConfigError(
            path, "", "it may not be read", "give the user that mcpzip runs as the right to read it"
        )
    return ConfigError(
        path, "", f"it can't be read ({error.strerror or error})", "check the file and its disk"
    )
