"""Results of the first requests of every client, cached on disk for the early handshake of the next start.

The cache is valid only for the version and the config it was written for, as far as the results depend on the
config. In any doubt it is not used, and the first answer comes a few hundred milliseconds later. A file that
another user could have written is not used (`mcpzip.system.state_files`). Standard library only: this is
imported before anything else.
"""

import json
import os
import stat

from mcpzip import __version__
from mcpzip.config.paths import handshake_path, state_path, trust_path
from mcpzip.model import limits
from mcpzip.system.state_files import read_state, write_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class HandshakeCache(TypedDict):
        """Results as JSON values; the last three are None where they depend on more than the config.
        ``versions``: the legacy ones, oldest first.
        """

        stamp: list[object]
        versions: list[str]
        modern_version: str
        initialize: dict[str, object]
        discover: dict[str, object] | None
        tools: dict[str, object] | None
        modern_tools: dict[str, object] | None


_LIST = (dict, type(None))
_SHAPE = {
    "stamp": (list,),
    "versions": (list,),
    "modern_version": (str,),
    "initialize": (dict,),
    "discover": _LIST,
    "tools": _LIST,
    "modern_tools": _LIST,
}


def stamp(config_path: str, project: str = "") -> "list[object] | None":
    """What the cached results depend on: our version, the path of the config, the names and pins of its
    servers, how tools are shown, how many results a search has. project: the path of the project's file, ""
    for none; then it is that file and the list of the trusted ones too.

    None when that can't be read, or can't be read twice. Nothing else in the config (a header, an argument)
    occurs in the results.
    """
    try:
        data = content(config_path)
    except OSError:
        return None
    return None if data is None else stamp_of(data, config_path, project)


def content(path: str) -> "bytes | None":
    """The content of the config; None if it is no file, or too large. Raises OSError."""
    found = os.stat(path)
    # Reading a pipe here would leave nothing for later.
    if not stat.S_ISREG(found.st_mode) or found.st_size > limits.CONFIG:
        return None
    with open(path, "rb") as file:
        return file.read()


def stamp_of(data: bytes, config_path: str, project: str = "") -> "list[object] | None":
    """`stamp` of a config with the content ``data``."""
    try:
        config = json.loads(data)
        servers = config["mcpServers"]
        used = {name: server for name, server in servers.items() if server.get("disabled") is not True}
        pinned = [[name, used[name].get("pin")] for name in sorted(used)]
        limit = (config.get("search") or {}).get("default_limit")
        depends = [__version__, config_path, pinned, config.get("expose"), config.get("code"), limit]
        if project:
            depends += [project, *map(_identity, (project, trust_path(config_path)))]
        # A variable may have another value next time.
        return None if "${" in json.dumps(depends[2:]) else depends
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _identity(path: str) -> "list[int] | None":
    """Differs when the file ``path`` has been written; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_mtime_ns, found.st_size, found.st_ino]


def read(config_path: str, project: str = "") -> "HandshakeCache | None":
    """The cached results for this config; None when there are none that can be trusted."""
    try:
        path = handshake_path(state_path(config_path, project))
        results: HandshakeCache = json.loads(read_state(path, limits.HANDSHAKE))
        fits = results["stamp"] == stamp(config_path, project) and all(
            key in results and type(results.get(key)) in kinds for key, kinds in _SHAPE.items()
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return results if fits and results["versions"] else None


def write(config_path: str, results: "HandshakeCache", project: str = "") -> None:
    """Writes ``results``, unless the file has them already. If they are too large, the file is removed. A
    write error costs only time at the next start.
    """
    if read(config_path, project) == results:
        return
    path = handshake_path(state_path(config_path, project))
    try:
        data = json.dumps(results, ensure_ascii=False).encode()
        if len(data) <= limits.HANDSHAKE:
            write_state(path, data)
        else:
            os.unlink(path)
    except OSError:
        pass
