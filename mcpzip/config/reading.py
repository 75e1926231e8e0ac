"""Reads a config file into a `Config`.

The rules:

1. A config of the original mcpzip is valid unchanged. ``null`` for an optional key means that it is missing.
2. A mistake in the entry of a server makes only this server unusable. Any other mistake in the structure
   makes the whole file unusable. The message gives the place and the remedy.
3. An unknown key causes a warning.
"""

import os
from collections.abc import Mapping
from typing import get_args

from msgspec.structs import replace

from mcpzip.config.auth import read_auth_store
from mcpzip.config.node import TEXT, Node, Source
from mcpzip.config.paths import mcpzip_command
from mcpzip.config.project import TrustError, read_project, trust_of
from mcpzip.config.schema import (
    CALL_TIMEOUT,
    DAEMON_IDLE,
    IDLE_TIMEOUT,
    LONGEST,
    Config,
    Expose,
    LogLevel,
    Secret,
    ServerConfig,
)
from mcpzip.config.search import read_search
from mcpzip.config.server import TRUST, TRUST_REMEDY, check_name, inherited, read_server, unusable_server
from mcpzip.config.syntax import EXAMPLE, decode
from mcpzip.config.variables import referred
from mcpzip.model import limits
from mcpzip.model.errors import ConfigError
from mcpzip.system.files import read_bytes_limited

NOT_TRUSTED = "so its servers are not used"
"""Part of the warning about a project's file that a person can trust."""
KEYS = (
    *("mcpServers", "gemini_api_key", "search", "idle_timeout_minutes", "call_timeout_seconds"),
    *("expose", "auth", "inheritEnv", "log", "shared", "daemon", "trust", "policy", "audit", "telemetry"),
    *("results", "code", "http", "access", "rate_limits", "replicas", "store"),
)
DAEMON_KEYS = ("idle_minutes", "http")
EXPOSE_KEYS = ("mode", "split")
LONGEST_IDLE = 7 * 24 * 60
"""Minutes."""
_ADDRESS = 'write an address, such as "127.0.0.1:8931"'

EXPOSE: tuple[Expose, ...] = get_args(Expose)
PROJECT_FOLDER = "MCPZIP_PROJECT_DIR"
"""What stands for the project's folder in its file: ``${MCPZIP_PROJECT_DIR}``."""
LOG_LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)
LOG_VARIABLE = "MCPZIP_LOG"
"""The environment variable with the level of the log. It overrides ``log.level`` in the file."""
GEMINI_KEY = "GEMINI_API_KEY"
"""The environment variable with the API key. It overrides ``gemini_api_key`` in the file."""


def load(path: str, env: Mapping[str, str], project: str = "") -> Config:
    """The config in the file ``path``, with the servers of the file ``project`` if that is trusted, else with
    a warning. If there is only the trusted file of a project, that is enough.

    env: values for the ``${VARIABLES}``. Raises ConfigError.
    """
    found, warning = _trusted(project, path, env) if project else (None, "")
    try:
        data = read_file(path)
    except ConfigError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        if warning:
            raise ConfigError(path, "", "there is no such file", warning) from error.__cause__
        if found is None:
            raise
        data = b"{}"
    config = parse(data, path, env, project=found)
    if warning:
        config = replace(config, warnings=(*config.warnings, warning), notes=(f"{warning}.",))
    return config


def read_file(path: str) -> bytes:
    """The content of the file ``path``. Raises ConfigError, caused by the OSError."""
    try:
        return read_bytes_limited(path, limits.CONFIG)
    except OSError as error:
        raise _unreadable(path, error) from error


def parse(
    data: bytes,
    path: str,
    env: Mapping[str, str],
    *,
    strict: bool = False,
    project: Node | None = None,
    noticed: list[ConfigError] | None = None,
) -> Config:
    """The config in ``data``, the content of the file ``path``, which errors name. strict: whether a mistake
    in the entry of a server is an error too. project: the file of a project, whose servers are added, or
    replace those of their names. noticed: gets every mistake that doesn't make the whole unusable. Raises
    ConfigError.
    """
    source = Source(path, env, noticed=[] if noticed is None else noticed)
    top = Node(source, "", decode(data, path)).object(f"write an object, such as {EXAMPLE}", KEYS)
    servers = _servers(top, project, strict=strict)
    idle, call, key = map(top.get, ("idle_timeout_minutes", "call_timeout_seconds", "gemini_api_key"))
    shared, daemon = top.get("shared"), top.get("daemon")
    if daemon:
        daemon.object('write an object, such as {"idle_minutes": 5}', DAEMON_KEYS)
    daemon_idle, daemon_http = (daemon.get(key) if daemon else None for key in DAEMON_KEYS)
    in_file = _text(key)
    secret = env.get(GEMINI_KEY, "").strip() or in_file
    expose, split = _expose(top.get("expose"), servers)
    config = Config(
        path=path,
        servers=servers,
        search=read_search(top.get("search")),
        idle_timeout=60 * idle.number("minutes", LONGEST / 60) if idle else IDLE_TIMEOUT,
        call_timeout=call.number("seconds", LONGEST) if call else CALL_TIMEOUT,
        gemini_api_key=Secret(secret) if secret else None,
        expose=expose,
        split=split,
        shared=shared.boolean() if shared else True,
        daemon_idle=60 * daemon_idle.number_between(0, LONGEST_IDLE) if daemon_idle else DAEMON_IDLE,
        daemon_http=daemon_http.text(_ADDRESS).strip() if daemon_http else "",
        auth_store=read_auth_store(top.get("auth")),
        log_level=_log_level(top.get("log"), source),
        variables=frozenset(
            (GEMINI_KEY, *referred(top.value), *(referred(project.value) if project else ()))
        ),
    )
    policy, audit = map(top.get, ("policy", "audit"))
    if policy or audit:
        from mcpzip.config.policy import read_audit, read_policy  # most configs have none

        config = replace(config, policy=read_policy(policy), audit=read_audit(audit))
    if results := top.get("results"):
        from mcpzip.config.results import read_results  # most configs have none

        config = replace(config, results=read_results(results))
    if code := top.get("code"):
        from mcpzip.config.code import read_code  # most configs have none

        config = replace(config, code=read_code(code))
        if config.code.enabled and expose != "meta":
            remedy = 'remove it, or write "mode": "meta"'
            raise code.error(f'with "mode": "{expose}" there is no run_code', remedy)
    http, access, rates = map(top.get, ("http", "access", "rate_limits"))
    if http or access or rates:
        from mcpzip.config.http import read_access, read_http, read_rate_limits  # most configs have none

        config = replace(
            config,
            http=read_http(http) if http else config.http,
            access=read_access(access, expose) if access else None,
            rate_limits=read_rate_limits(rates) if rates else (),
        )
    if any(server.per_user for server in servers.values()):
        from mcpzip.config.http import with_people_or_problem  # most configs have none

        config = replace(config, servers=with_people_or_problem(config))
    if replicas := top.get("replicas"):
        from mcpzip.config.replicas import read_replicas  # most configs have none

        config = replace(config, replicas=read_replicas(replicas))
    if telemetry := top.get("telemetry"):
        from mcpzip.config.telemetry import read_telemetry  # most configs have none

        config = replace(config, telemetry=read_telemetry(telemetry))
    if store := top.get("store"):
        from mcpzip.config.store import read_store  # most configs have none

        config = replace(config, store=read_store(store))
        if config.auth_store == "keyring":
            remedy = 'remove "auth.store": sign-ins lie in the store'
            raise store.error('with a store there is no "auth.store": "keyring"', remedy)
    # Faults outside of a server disable one setting only, so they are warnings.
    warnings = (*source.warnings, *map(str, source.faults))
    if project is not None:
        own = frozenset(name for name, each in _entries(project).items() if name in servers)
        warnings = (*warnings, *project.source.warnings)
        config = replace(config, project=project.source.file, project_servers=own)
    return replace(config, warnings=warnings)


def _trusted(path: str, config_path: str, env: Mapping[str, str]) -> tuple[Node | None, str]:
    """The content of the project's file ``path`` if it is trusted and valid; else None and the reason."""
    folder = os.path.dirname(path)
    try:
        data = read_project(path)
        trust = trust_of(path, data, config_path)
        if trust != "trusted":
            reason = "has changed since you trusted it" if trust == "changed" else "is not trusted yet"
            look = mcpzip_command(config_path, "trust", folder, env=env)
            return None, f"{path} {reason}, {NOT_TRUSTED}. To look at them: {look}"
        source = Source(path, {**env, PROJECT_FOLDER: folder}, folder)
        top = Node(source, "", decode(data, path)).object(f"write an object, such as {EXAMPLE}", KEYS)
        _entries(top)
    except ConfigError as error:
        return None, f"{error} Until then the project's servers are not used."
    except (OSError, TrustError) as error:
        return None, f"{path} is not used: {error}"
    for key in top.members():
        if key in KEYS and key != "mcpServers":
            Node(source, key, None).warn("not used in the file of a project", "move it to your own config")
    return top, ""


def _entries(top: Node | None) -> dict[str, Node]:
    """The entries of the servers in a file. Raises ConfigError if they are no object."""
    node = top and top.get("mcpServers")
    if not node:
        return {}
    return node.object('write an object of servers, such as {"time": {"command": "uvx", …}}').members()


def _servers(top: Node, project: Node | None, *, strict: bool) -> dict[str, ServerConfig]:
    servers: dict[str, ServerConfig] = {}
    entries = {**_entries(top), **_entries(project)}
    for name, each in entries.items():
        try:
            check_name(name, each)
        except ConfigError as error:  # tools could not be named after it
            if strict:
                raise
            each.source.noticed.append(error)
            each.source.warnings.append(f"{error} Until then the server is left out.")
            continue
        faults = len(each.source.faults)
        try:
            servers[name] = read_server(name, each)
        except ConfigError as error:
            if strict:
                raise
            each.source.noticed.append(error)
            del each.source.faults[faults:]
            servers[name] = unusable_server(name, each, error)
    servers = _with_defaults(top, entries, servers)
    if not servers:
        stray = [f'"{key}"' for key, each in top.members().items() if each.get("command") or each.get("url")]
        remedy = f"move {', '.join(stray)} into it" if stray else f"add one, such as {EXAMPLE}"
        Node(top.source, "mcpServers", None).warn("there are no servers, and so no tools", remedy)
    return servers


def _with_defaults(
    top: Node, entries: Mapping[str, Node], servers: Mapping[str, ServerConfig]
) -> dict[str, ServerConfig]:
    """``servers`` with the defaults of the file, and with ``inherit_env`` and ``withheld_env``: the variables
    of mcpzip's environment that each inherits, and those that only other servers refer to, which it doesn't.
    """
    default_globs = inherited(top.get("inheritEnv")) or ()
    trust = top.get("trust")
    default_trust = (trust.choice(TRUST, TRUST_REMEDY) if trust else None) or "pin"
    references = {name: frozenset(referred(each.value)) for name, each in entries.items()}
    every_reference = frozenset[str]().union(*references.values())
    result: dict[str, ServerConfig] = {}
    for name, server in servers.items():
        own = entries[name].get("inheritEnv")
        globs = server.inherit_env if own is not None or server.transport != "stdio" else default_globs
        withheld = (every_reference - references[name]) | {GEMINI_KEY} if globs else frozenset()
        own_trust = server.trust if entries[name].get("trust") is not None else default_trust
        result[name] = replace(server, inherit_env=globs, withheld_env=withheld, trust=own_trust)
    return result


def _expose(node: Node | None, servers: Mapping[str, ServerConfig]) -> tuple[Expose, bool]:
    """The mode, and whether `execute_tool` is split. A word is the same as an object with this ``mode``."""
    mode, split = node, None
    if node is not None and isinstance(node.value, dict):
        node.object('write a mode, or an object such as {"split": true}', EXPOSE_KEYS)
        mode, split = map(node.get, EXPOSE_KEYS)
    expose = _mode(mode, servers)
    if split is None or not split.boolean():
        return expose, False
    if expose != "meta":
        remedy = 'remove it, or write "mode": "meta"'
        raise split.error(f'with "mode": "{expose}" there is no execute_tool to split', remedy)
    return expose, True


def _mode(node: Node | None, servers: Mapping[str, ServerConfig]) -> Expose:
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


def log_level(env: Mapping[str, str]) -> LogLevel | None:
    """The level that the environment sets; None if it sets none."""
    wanted = env.get(LOG_VARIABLE, "").strip().lower()
    return next((level for level in LOG_LEVELS if level == wanted), None)


def _log_level(node: Node | None, source: Source) -> LogLevel:
    level = (
        node.object('write an object, such as {"level": "debug"}', ("level",)).get("level") if node else None
    )
    in_file = level.choice(LOG_LEVELS, f"write {_LEVELS}") if level else None
    in_environment = log_level(source.env)
    if in_environment is None and source.env.get(LOG_VARIABLE, "").strip():
        source.warnings.append(f"{LOG_VARIABLE} has no known level; set it to {_LEVELS}.")
    return in_environment or in_file or "info"


_LEVELS = '"debug", "info", "warning", "error" or "off"'


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
