"""Results of the first requests of every client, made from the config where they follow from that alone.

The early handshake answers with them at a first start, and after an edit of the config. What a config means
is decided by `mcpzip.config.reading`, which takes too long to import here. So only a config is used whose
form is beyond doubt; for any other there are none, and the session answers. `tests` compare the two.

It imports only small modules of the standard library, because a client waits for it.
"""

import json

from mcpzip import __version__
from mcpzip.model.names import server_name_problem
from mcpzip.model.protocol_versions import LEGACY_VERSIONS, MODERN_VERSION
from mcpzip.proxy import metatools
from mcpzip.server import handshake_cache

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpzip.server.handshake_cache import HandshakeCache

SERVER_INFO = {"name": "mcpzip", "title": "mcpzip", "version": __version__}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}
LISTING_TTL = 3_600_000
"""Milliseconds a modern client may keep what follows from the config only."""
DEFAULT_LIMIT = 5
"""Tools that one search returns, unless the config or the request says something else."""

_SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
_YEAR = 365 * 86_400


def results(config_path: str, project: str, *, required: bool) -> "HandshakeCache | None":
    """The results for the config at ``config_path``; None if they don't follow from it, or may not.

    project: the path of the project's file, or "". required: whether a missing or an empty config is an
    error; else it is one without servers.
    """
    if project:
        return None
    try:
        data = handshake_cache.content(config_path)
    except FileNotFoundError:
        data = b""
    except OSError:
        return None
    if data is None or (required and not data.strip()):
        return None
    data = data if data.strip() else b"{}"
    return _results_for(data, handshake_cache.stamp_of(data, config_path) or [])


def _results_for(data: bytes, stamp: "list[object]") -> "HandshakeCache | None":
    """For a config with the content ``data``. stamp: see `handshake_cache.stamp`."""
    top = _object(data)
    if top is None or not all(_is_plain(key, value) for key, value in top.items()):
        return None
    servers = top["mcpServers"] if top.get("mcpServers") is not None else {}
    search = top["search"] if top.get("search") is not None else {}
    assert isinstance(servers, dict)
    assert isinstance(search, dict)
    used: dict[str, object] = {}
    for name, server in servers.items():
        is_disabled = isinstance(server, dict) and server.get("disabled") is True
        if server is not None and not is_disabled and server_name_problem(name) is None:
            used[name] = server
    limit = search.get("default_limit")
    mode, split = _shown(top.get("expose"))
    return _results(
        list(used),
        stamp,
        is_direct=mode == "direct",
        split=split,
        code=_has_code(top.get("code")),
        has_pins=any(isinstance(server, dict) and server.get("pin") for server in used.values()),
        limit=DEFAULT_LIMIT if limit is None else limit,
    )


def _results(
    servers: "list[str]",
    stamp: "list[object]",
    *,
    is_direct: bool,
    split: bool,
    code: bool,
    has_pins: bool,
    limit: int,
) -> "HandshakeCache":
    own: dict[str, object] = {"capabilities": CAPABILITIES}
    instructions = {} if is_direct else {"instructions": metatools.instructions(servers, split=split)}
    is_static = not is_direct and not has_pins
    tools: dict[str, object] = {"tools": metatools.definitions(limit, split=split, code=code)}
    return {
        "stamp": stamp,
        "versions": list(LEGACY_VERSIONS),
        "modern_version": MODERN_VERSION,
        "initialize": {**own, "serverInfo": SERVER_INFO, **instructions},
        "discover": _modern({"supportedVersions": [MODERN_VERSION], **own, **instructions}),
        "tools": tools if is_static else None,
        "modern_tools": _modern(tools) if is_static else None,
    }


def _modern(result: "dict[str, object]") -> "dict[str, object]":
    """``result`` with what every result of the modern era says."""
    return {
        **result,
        "resultType": "complete",
        "ttlMs": LISTING_TTL,
        "cacheScope": "private",
        "_meta": {_SERVER_INFO_KEY: SERVER_INFO},
    }


def _shown(expose: object) -> "tuple[object, bool]":
    """The mode, None for the default, and whether `execute_tool` is split."""
    if isinstance(expose, dict):
        return expose.get("mode"), expose.get("split") is True
    return expose, False


def _has_code(code: object) -> bool:
    """Whether `run_code` is shown."""
    return code is True or isinstance(code, dict)


# --- whether a config is beyond doubt


class _RepeatedKeyError(ValueError):
    """`mcpzip.config.reading` refuses it."""


def _pairs(pairs: "list[tuple[str, object]]") -> "dict[str, object]":
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKeyError
    return found


def _object(data: bytes) -> "dict[str, object] | None":
    """The JSON object in ``data``, which is UTF-8; None if it is anything else."""
    try:
        # In UTF-16 and UTF-32, which `json` would detect, there is a zero byte in every object.
        value = None if b"\0" in data else json.loads(data.decode(), object_pairs_hook=_pairs)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_plain(key: str, value: object) -> bool:
    """Whether ``value`` at the top of a config is valid, and has no variables."""
    check = _CHECKS.get(key)
    # There are only warnings about unknown keys, and null is as if the key was missing.
    return check is None or value is None or check(value)


def _is_number(value: object, least: float, most: float) -> bool:
    return type(value) in (int, float) and least <= value <= most  # type: ignore[operator]


def _is_tokens(value: object) -> bool:
    return value == "off" or (type(value) is int and 500 <= value <= 10_000_000)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _has_plain(known: "Mapping[str, Callable[[object], bool]]", value: object) -> bool:
    """Whether ``value`` is an object with no other members than ``known`` ones, which are valid."""
    return isinstance(value, dict) and all(
        key in known and (inner is None or known[key](inner)) for key, inner in value.items()
    )


_SEARCH: "Mapping[str, Callable[[object], bool]]" = {
    "default_limit": lambda value: type(value) is int and _is_number(value, 1, 100),
    "max_tokens": lambda value: type(value) is int and _is_number(value, 500, 10_000),
    "learn": lambda value: type(value) is bool or value == "calls",
    "details": lambda value: type(value) is bool,
    "semantic": lambda value: value in ("local", "off"),
}
_EXPOSE: "Mapping[str, Callable[[object], bool]]" = {
    "mode": lambda value: value in ("meta", "direct"),
    "split": lambda value: type(value) is bool,
}
_LOG: "Mapping[str, Callable[[object], bool]]" = {
    "level": lambda value: value in ("debug", "info", "warning", "error", "off")
}
_DAEMON: "Mapping[str, Callable[[object], bool]]" = {
    "idle_minutes": lambda value: _is_number(value, 0, 60),
    "http": lambda value: isinstance(value, str) and "$" not in value,
}
_CODE: "Mapping[str, Callable[[object], bool]]" = {"effects": lambda value: value in ("allow", "ask", "deny")}
_AUTH: "Mapping[str, Callable[[object], bool]]" = {"store": lambda value: value in ("file", "keyring")}
_DECISIONS = ("allow", "ask", "deny")
_POLICY: "Mapping[str, Callable[[object], bool]]" = dict.fromkeys(
    ("default", "reads", "writes", "destroys", "reaches_out"), lambda value: value in _DECISIONS
)
_CHECKS: "Mapping[str, Callable[[object], bool]]" = {
    "mcpServers": lambda value: isinstance(value, dict),
    "search": lambda value: _has_plain(_SEARCH, value),
    "expose": lambda value: (
        value in ("meta", "direct") or (_has_plain(_EXPOSE, value) and _shown(value) != ("direct", True))
    ),
    "gemini_api_key": lambda value: isinstance(value, str),
    "idle_timeout_minutes": lambda value: _is_number(value, 0.001, _YEAR / 60),
    "call_timeout_seconds": lambda value: _is_number(value, 0.001, _YEAR),
    "shared": lambda value: type(value) is bool,
    "inheritEnv": lambda value: type(value) is bool or _is_texts(value),
    "log": lambda value: _has_plain(_LOG, value),
    "daemon": lambda value: _has_plain(_DAEMON, value),
    "trust": lambda value: value in ("pin", "strict", "open"),
    "auth": lambda value: _has_plain(_AUTH, value),
    "policy": lambda value: _has_plain(_POLICY, value) or value in _DECISIONS,
    "audit": lambda value: type(value) is bool,
    "telemetry": lambda value: value is False,
    # With another mode it is an error.
    "code": lambda value: type(value) is bool or _has_plain(_CODE, value),
    "results": lambda value: _is_tokens(value) or _has_plain({"keep": _is_tokens}, value),
    # Who may call over HTTP, and what: whoever serves over stdio reads it whole, too.
    "http": lambda value: False,
    "access": lambda value: False,
    "rate_limits": lambda value: False,
    "replicas": lambda value: False,
    "store": lambda value: False,
}
"""The keys of a config, and what is certainly a valid value of each."""
