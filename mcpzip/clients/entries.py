"""Translates a server's entry from the format of a client to that of mcpzip's config (pure).

The rule: an entry that can't have the same meaning in mcpzip's config isn't translated; the error gives the
reason.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcpzip.clients.known import Dialect
from mcpzip.config.reading import PROJECT_FOLDER
from mcpzip.config.server import MCPZIP_COMMAND

_FOREIGN = re.compile(r"\$\{(?!env:)[A-Za-z]+(?::[^}]*)?\}|\{file:[^}]*\}")
_ENV = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_OPENCODE_ENV = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_BARE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_OURS = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}")
_FOLDERS = {"${userHome}": "~", "${pathSeparator}": os.sep, "${/}": os.sep}


class NotMovable(ValueError):
    """The entry can't be moved. The message is the reason, a clause that can follow "because"."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A translated entry. entry: for mcpzip's config. left_out: keys that mcpzip doesn't have."""

    entry: dict[str, object]
    left_out: tuple[str, ...] = ()


def is_built_in(data: object) -> bool:
    """Whether an entry is a part of the client and not a server: some extensions of Goose."""
    return isinstance(data, Mapping) and data.get("type") in _BUILT_IN


_BUILT_IN = ("builtin", "platform", "frontend", "inline_python")


def is_mcpzip(data: object) -> bool:
    """Whether an entry starts mcpzip."""
    if not isinstance(data, Mapping):
        return False
    command = data.get("command", data.get("cmd"))
    words = command if isinstance(command, list) else [command, *_list(data.get("args"))]
    texts = [word for word in words if isinstance(word, str)]
    return any(MCPZIP_COMMAND.fullmatch(re.split(r"[\\/]", word)[-1]) for word in texts[:4])


def moved(data: Any, dialect: Dialect, *, project: bool = False) -> Moved:
    """The entry ``data`` of a client, translated for mcpzip's config, or for the file of a project, whose
    folder can be named there. Raises NotMovable.
    """
    if not isinstance(data, Mapping):
        raise NotMovable("it is not an object")
    if project and dialect in ("cursor", "vscode"):
        data = _with_project_folder(data)
    fields = {str(key): value for key, value in data.items() if value is not None}
    if dialect == "goose":
        fields = _from_goose(fields)
    entry: dict[str, object] = {}
    if _pop_disabled(fields):
        entry["disabled"] = True
    url = next((fields.pop(key) for key in ("httpUrl", "serverUrl", "url") if key in fields), None)
    command = fields.pop("command", None)
    if isinstance(command, Mapping):  # Zed, before 2025
        fields = {**fields, "args": command.get("args"), "env": command.get("env")}
        command = command.get("path")
    if isinstance(command, list) and command:  # opencode
        command, fields["args"] = command[0], command[1:]
    kind = str(fields.pop("type", "") or fields.pop("transport", "") or "").lower()
    if (url is None) == (command is None):
        raise NotMovable("it has both a command and a URL" if url else "it has neither a command nor a URL")
    if command is not None:
        entry["command"] = _text(command, dialect, "the command")
        if args := _list(fields.pop("args", None)):
            entry["args"] = [_text(arg, dialect, "an argument") for arg in args]
        env = _texts({**_map(fields.pop("env", None)), **_map(fields.pop("environment", None))}, dialect)
        env.update(
            {name: f"${{{name}}}" for name in _list(fields.pop("env_vars", None)) if isinstance(name, str)}
        )
        if env:
            entry["env"] = env
        if "envFile" in fields:
            raise NotMovable("it reads variables from a file (envFile)")
        if cwd := fields.pop("cwd", None):
            entry["cwd"] = _text(cwd, dialect, "the folder")
    else:
        if kind == "sse" or (dialect == "gemini" and "httpUrl" not in data and kind != "http"):
            entry["type"] = "sse"
        entry["url"] = _text(url, dialect, "the URL")
        headers = _texts(
            {**_map(fields.pop("headers", None)), **_map(fields.pop("http_headers", None))}, dialect
        )
        for name, variable in _map(fields.pop("env_http_headers", None)).items():
            headers[name] = f"${{{variable}}}"
        if token := fields.pop("bearer_token_env_var", None):
            headers["Authorization"] = f"Bearer ${{{token}}}"
        if headers:
            entry["headers"] = headers
    _move_options(fields, entry, dialect)
    return Moved(entry, tuple(sorted(set(fields) - _WITHOUT_EFFECT)))


_WITHOUT_EFFECT = frozenset(
    {
        "bundled",
        "description",
        "display_name",
        "id",
        "name",
        "required",
        "source",
        "startup_timeout_ms",
        "startup_timeout_sec",
    }
)
"""Keys that a user needn't be warned of when they are left out."""


def own_entry(dialect: Dialect, command: str, arguments: list[str]) -> dict[str, object]:
    """The entry with which a client starts mcpzip."""
    if dialect == "opencode":
        return {"type": "local", "command": [command, *arguments], "enabled": True}
    if dialect == "zed":
        return {"source": "custom", "command": command, "args": arguments, "env": {}}
    if dialect == "goose":
        about = {"enabled": True, "type": "stdio", "name": "mcpzip", "description": "All servers, by search"}
        return {**about, "cmd": command, "args": arguments, "envs": {}, "env_keys": [], "timeout": 300}
    entry: dict[str, object] = {"command": command, "args": arguments}
    return {"type": "stdio", **entry} if dialect in ("claude", "vscode") else entry


def _from_goose(fields: Mapping[str, object]) -> dict[str, object]:
    """``fields`` under the names that other clients use."""
    if secrets := [key for key in _list(fields.get("env_keys")) if key not in _map(fields.get("envs"))]:
        raise NotMovable(f"Goose keeps {secrets[0]}, which it needs, to itself (env_keys)")
    names = {"cmd": "command", "uri": "url", "envs": "env", "available_tools": "enabled_tools"}
    renamed = {names.get(key, key): value for key, value in fields.items() if key != "env_keys"}
    if "url" in renamed:
        if renamed.pop("env", None):
            raise NotMovable("it has both a URL and variables")
        renamed["type"] = "sse" if fields.get("type") == "sse" else "http"
    return renamed


def _with_project_folder(data: Any) -> Any:
    """``data`` with mcpzip's variable for the folder of a project in place of the client's."""
    if isinstance(data, str):
        return data.replace("${workspaceFolder}", f"${{{PROJECT_FOLDER}}}")
    if isinstance(data, list):
        return [_with_project_folder(each) for each in data]
    if isinstance(data, Mapping):
        return {key: _with_project_folder(each) for key, each in data.items()}
    return data


def _pop_disabled(fields: dict[str, object]) -> bool:
    return fields.pop("disabled", False) is True or fields.pop("enabled", True) is False


def _move_options(fields: dict[str, object], entry: dict[str, object], dialect: Dialect) -> None:
    """Moves the timeout and the allowed and denied tools from ``fields`` to ``entry``."""
    timeout = fields.pop("tool_timeout_sec", None) or fields.pop("timeout", None)
    if isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0:
        entry["timeout"] = timeout / 1000 if dialect in ("gemini", "opencode") else timeout
    allow = _list(fields.pop("enabled_tools", None)) or _list(fields.pop("includeTools", None))
    deny = [
        name
        for key in ("disabled_tools", "excludeTools", "disabledTools")
        for name in _list(fields.pop(key, None))
    ]
    tools = {key: names for key, names in (("allow", allow), ("deny", deny)) if names}
    if tools:
        entry["tools"] = tools


def _text(value: object, dialect: Dialect, what: str) -> str:
    """``value`` with the client's references to variables written as ``${NAME}``. Raises NotMovable."""
    if not isinstance(value, str):
        raise NotMovable(f"{what} is not a string")
    if dialect in ("plain", "codex", "zed", "goose"):  # they have no variables
        return _OURS.sub(lambda found: "$" + found.group(), value)
    if dialect == "claude":
        return value
    for theirs, ours in _FOLDERS.items():
        value = value.replace(theirs, ours)
    if dialect == "opencode":
        if found := re.search(r"\{file:[^}]*\}", value):
            raise NotMovable(f"only opencode can replace {found.group()}")
        return _OPENCODE_ENV.sub(r"${\1}", _OURS.sub(lambda found: "$" + found.group(), value))
    if dialect == "gemini":
        return _BARE.sub(r"${\1}", value)
    if found := _FOREIGN.search(value):
        raise NotMovable(f"only the client can replace {found.group()}")
    return _ENV.sub(r"${\1}", value)


def _texts(values: Mapping[str, object], dialect: Dialect) -> dict[str, str]:
    return {
        name: _text(str(value) if isinstance(value, int | float) else value, dialect, name)
        for name, value in values.items()
    }


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _map(value: object) -> dict[str, object]:
    return {str(key): each for key, each in value.items()} if isinstance(value, Mapping) else {}
