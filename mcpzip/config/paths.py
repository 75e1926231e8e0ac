"""Where our files are.

The rule: this runs before anything else at start-up, so it imports `os` and nothing more, and touches no
disk. What we keep stands in ``cache/`` beside the config and carries the config's name, so that two configs
never share a file.
"""

import os

TYPE_CHECKING = False  # what `typing` calls it, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT = "~/.config/compressed-mcp-proxy/config.json"
"""The original's place, on every system."""

_HOME = {"\\": "USERPROFILE"}.get(os.sep, "HOME")


def config_path(explicit: "str | None", env: "Mapping[str, str]") -> str:
    """The config's path, absolute: ``explicit`` (``--config``), else ``$MCPZIP_CONFIG``, else `DEFAULT`."""
    path = explicit if explicit is not None else env.get("MCPZIP_CONFIG") or DEFAULT
    return os.path.abspath(expand_home(path, env))


def expand_home(path: str, env: "Mapping[str, str]") -> str:
    """``path`` with a leading ``~`` replaced by the home folder that ``env`` names."""
    if path != "~" and path[:2] not in ("~/", "~" + os.sep):
        return path
    return (env.get(_HOME) or os.path.expanduser("~")) + path[1:]


def snapshot_path(config_path: str) -> str:
    """Where this config's catalog is kept; for ``config.json`` it is the original's ``cache/tools.json``."""
    folder, name = os.path.split(config_path)
    return os.path.join(folder, "cache", "tools.json" if name == "config.json" else f"{name}.tools.json")


def index_path(config_path: str) -> str:
    """Where the search index of this config's catalog is kept."""
    folder, name = os.path.split(config_path)
    return os.path.join(folder, "cache", f"{name}.index.bin")


def card_path(config_path: str) -> str:
    """Where what the front desk answers with is kept."""
    folder, name = os.path.split(config_path)
    return os.path.join(folder, "cache", f"{name}.front.json")


def cache_folder(config_path: str) -> str:
    """Where all that can be made anew is kept."""
    return os.path.join(os.path.dirname(config_path), "cache")


def auth_folder(config_path: str) -> str:
    """Where the sign-ins of this config's servers are kept; configs beside each other share them."""
    return os.path.join(os.path.dirname(config_path), "auth")
