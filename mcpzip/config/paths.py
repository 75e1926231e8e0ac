"""The paths of our files.

The rule: this module is imported first at start-up, so it imports only `os` and reads no file. Cache files
are in ``cache/`` beside the config and their names contain the config's, so that two configs never share one.
"""

import os

TYPE_CHECKING = False  # what `typing` calls it, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT = "~/.config/compressed-mcp-proxy/config.json"
"""The path that the original uses, on every system."""
CONFIG_VARIABLE = "MCPZIP_CONFIG"
"""The environment variable that names another."""

_HOME = {"\\": "USERPROFILE"}.get(os.sep, "HOME")


def config_path(explicit: "str | None", env: "Mapping[str, str]") -> str:
    """The config's path, absolute: ``explicit`` (``--config``), else ``$MCPZIP_CONFIG``, else `DEFAULT`."""
    path = explicit if explicit is not None else env.get(CONFIG_VARIABLE) or DEFAULT
    return os.path.abspath(expand_home(path, env))


def expand_home(path: str, env: "Mapping[str, str]") -> str:
    """``path`` with a leading ``~`` replaced by the home folder that ``env`` names."""
    if path != "~" and path[:2] not in ("~/", "~" + os.sep):
        return path
    return (env.get(_HOME) or os.path.expanduser("~")) + path[1:]


def snapshot_path(config_path: str) -> str:
    """The file of the catalog's snapshot; for ``config.json`` the original's ``cache/tools.json``."""
    folder, name = os.path.split(config_path)
    return os.path.join(folder, "cache", "tools.json" if name == "config.json" else f"{name}.tools.json")


def index_path(config_path: str) -> str:
    """The file of the search index."""
    folder, name = os.path.split(config_path)
    return os.path.join(folder, "cache", f"{name}.index.bin")


def card_path(config_path: str) -> str:
    """The file of the responses that `server.frontdesk` gives."""
    folder, name = os.path.split(config_path)
    return os.path.join(folder, "cache", f"{name}.front.json")


def cache_folder(config_path: str) -> str:
    """The folder of the files that can be rebuilt."""
    return os.path.join(os.path.dirname(config_path), "cache")


def auth_folder(config_path: str) -> str:
    """The folder of the grants of this config's servers; configs in the same folder share it."""
    return os.path.join(os.path.dirname(config_path), "auth")
