"""The paths of our files.

The rule: this module is imported first at start-up, so it imports only `os` and opens no file. The names of
cache files contain the name of the config file, so that two configs in one folder never share a cache file.
"""

import os

TYPE_CHECKING = False  # what `typing` calls it, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT = "~/.config/compressed-mcp-proxy/config.json"
"""The path that the original mcpzip uses, on every system."""
OTHER_DEFAULT = "~/.config/mcpzip/config.json"
"""The path that is used if there is a file, and none at `DEFAULT`."""
CONFIG_VARIABLE = "MCPZIP_CONFIG"
"""The environment variable with the path of another config file."""

PROJECT_FILE = ".mcpzip.json"
"""The name of the file with a project's servers."""
PROJECT_VARIABLE = "MCPZIP_PROJECT"
"""The environment variable with the project's folder, instead of searching for it; ``off`` for none."""

_PLAIN = "_@%+=:,./~-" + os.sep
"""What no shell changes inside a word, besides letters and digits."""
_HOME = {"\\": "USERPROFILE"}.get(os.sep, "HOME")


def config_path(explicit: "str | None", env: "Mapping[str, str]") -> str:
    """The config's path, absolute: ``explicit`` (``--config``), else ``$MCPZIP_CONFIG``, else `DEFAULT` or
    `OTHER_DEFAULT`.
    """
    path = explicit if explicit is not None else env.get(CONFIG_VARIABLE)
    if path is None or (path == "" and explicit is None):
        path, other = (os.path.abspath(expand_home(each, env)) for each in (DEFAULT, OTHER_DEFAULT))
        return other if not os.path.lexists(path) and os.path.lexists(other) else path
    return os.path.abspath(expand_home(path, env))


def is_named(explicit: "str | None", env: "Mapping[str, str]") -> bool:
    """Whether somebody named the config, so that its path is not `DEFAULT`."""
    return explicit is not None or bool(env.get(CONFIG_VARIABLE))


def mcpzip_command(config: str, *words: str, env: "Mapping[str, str]" = os.environ) -> str:
    """A command for a person to copy: ``mcpzip`` and ``words``, quoted for a shell, with ``--config`` if
    ``config`` isn't the default one.
    """
    at = words.index("--") if "--" in words else len(words)
    quoted = list(map(quoted_word, words))
    return " ".join(filter(None, ["mcpzip", *quoted[:at], config_options(config, env), *quoted[at:]]))


def config_options(config: str, env: "Mapping[str, str]" = os.environ) -> str:
    """The options with which a command finds ``config``; "" if it is the default one, or ""."""
    homes = {name: env[name] for name in ("HOME", "USERPROFILE") if name in env}
    return "" if config in ("", config_path(None, homes)) else f"--config {quoted_word(config)}"


def quoted_word(word: str) -> str:
    """``word`` as a shell reads it as one word that means itself (`shlex.quote`, without importing it)."""
    if word and all(char.isalnum() or char in _PLAIN for char in word):
        return word
    if os.name == "nt":
        return f'"{word}"'
    return "'" + word.replace("'", "'\"'\"'") + "'"


def expand_home(path: str, env: "Mapping[str, str]") -> str:
    """``path`` with a leading ``~`` replaced by the home folder that ``env`` names."""
    if path != "~" and path[:2] not in ("~/", "~" + os.sep):
        return path
    return (env.get(_HOME) or os.path.expanduser("~")) + path[1:]


def find_project(env: "Mapping[str, str]") -> str:
    """The path of the `PROJECT_FILE` of the project that the current folder is in; "" if it is in none.

    It is the nearest one, in the current folder or above, but not in the home folder or above that.
    """
    named = env.get(PROJECT_VARIABLE, "")
    if named == "off":
        return ""
    if named:
        return os.path.join(os.path.abspath(expand_home(named, env)), PROJECT_FILE)
    try:
        folder = os.getcwd()
    except OSError:  # it was deleted
        return ""
    home = os.path.realpath(expand_home("~", env))
    while folder != home:
        path = os.path.join(folder, PROJECT_FILE)
        if os.path.isfile(path):
            return path
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return ""


def state_path(config_path: str, project: str) -> str:
    """The path from which the names of the cache files derive: that of the config, or, with the file
    ``project`` in use, one of its own beside it, so that its tools aren't those of the config alone.
    """
    if not project:
        return config_path
    from zlib import crc32  # only with a project

    path = os.path.realpath(project)
    name = os.path.basename(os.path.dirname(path))[:40] or "root"
    return f"{config_path}.{name}-{crc32(path.encode()):08x}{crc32(path[::-1].encode()):08x}"


def run_folder(config_path: str) -> str:
    """The folder of the files of the processes that serve this config now, or another one beside it."""
    return os.path.join(os.path.dirname(config_path), "run")


def daemon_path(config_path: str, project: str, host: str) -> str:
    """The path, without its ending, of the files of the daemon that serves this config on the machine
    ``host``: its lock, and its socket if that has no longer path than a socket may have. project: the path of
    the project's file, or "".
    """
    from zlib import crc32

    key = f"{host}\n{state_path(config_path, project)}".encode("utf-8", "surrogateescape")
    return os.path.join(run_folder(config_path), f"daemon-{crc32(key):08x}{crc32(key[::-1]):08x}")


def trust_path(config_path: str) -> str:
    """The file that lists the trusted projects."""
    return os.path.join(os.path.dirname(config_path), "trust", "projects.json")


def pins_path(config_path: str) -> str:
    """The file of the pins: what is approved of each server."""
    return os.path.join(os.path.dirname(config_path), "pins", os.path.basename(config_path))


def seen_path(config_path: str, what: str) -> str:
    """The file of what this machine has seen last in the store that it shares. what: pins …"""
    return os.path.join(cache_folder(config_path), f"{os.path.basename(config_path)}.{what}-seen.json")


def history_folder(config_path: str) -> str:
    """The folder of the versions of this config, or of another one beside it, that mcpzip replaced."""
    return os.path.join(os.path.dirname(config_path), "history")


def allowed_path(config_path: str) -> str:
    """The file that lists what a person has allowed with `mcpzip allow`."""
    return os.path.join(os.path.dirname(config_path), "allow", os.path.basename(config_path))


def refused_path(config_path: str) -> str:
    """The file of the calls that were refused lately, so that a person can allow one by its id."""
    return f"{allowed_path(config_path)}.refused.json"


def audit_path(config_path: str) -> str:
    """The file of the audit log, unless the config names another."""
    name = os.path.basename(config_path)
    return os.path.join(os.path.dirname(config_path), "audit", f"{name}.audit.jsonl")


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


def logs_folder(config_path: str) -> str:
    """The folder of the log; configs in the same folder share it."""
    return os.path.join(os.path.dirname(config_path), "logs")


def _cache_file(config_path: str, name: str) -> str:
    return os.path.join(cache_folder(config_path), name)
