"""The paths of our files.

The rule: this module is imported first at start-up, so it imports only `os` and reads no file. The names of
cache files contain the name of the config file, so that two configs in one folder never share a cache file.
"""

import os

TYPE_CHECKING = False  # what `typing` calls it, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT = "~/.config/compressed-mcp-proxy/config.json"
"""The path that the original mcpzip uses, on every system."""
CONFIG_VARIABLE = "MCPZIP_CONFIG"
"""The environment variable with the path of another config file."""

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
    name = os.path.basename(config_path)
    return _cache_file(config_path, "tools.json" if name == "config.json" else f"{name}.tools.json")


def index_path(config_path: str) -> str:
    """The file of the search index."""
    return _cache_file(config_path, f"{os.path.basename(config_path)}.index.bin")


def handshake_path(config_path: str) -> str:
    """The file of the results with which `server.early_handshake` answers."""
    return _cache_file(config_path, f"{os.path.basename(config_path)}.handshake.json")


def cache_folder(config_path: str) -> str:
    """The folder of the files that can be rebuilt."""
    return os.path.join(os.path.dirname(config_path), "cache")


def auth_folder(config_path: str) -> str:
    """The folder of the sign-ins of this config's servers; configs in the same folder share it."""
    return os.path.join(os.path.dirname(config_path), "auth")


def _cache_file(config_path: str, name: str) -> str:
    return os.path.join(cache_folder(config_path), name)
