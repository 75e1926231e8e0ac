"""Whether a config means the same to two agents, so that they can share the processes of servers.

The rules:

1. It does if the variables to which the config refers, those that ``inheritEnv`` names, and those that say
   which machines a server talks to have the same values, and if ``PATH`` finds the same programs.
2. It doesn't if a variable differs that selects the interpreter, the version or the libraries of a server,
   and that this server really inherits: `SELECTING`. A launcher such as ``npx`` looks at few of them; a
   program that isn't known may look at all.
3. Whatever else a server inherits is that of the agent that started the daemon or, if its values differ,
   of the first agent with the other values.
"""

import os
import re
from collections.abc import Mapping
from functools import lru_cache

from mcpzip.config import Config, ServerConfig
from mcpzip.system.environment import environment_key

_LIBRARIES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_PYTHON = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION")
_PYTHON_PACKAGES = (
    *("UV_PYTHON", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"),
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIPX_HOME"),
)
_NODE_PACKAGES = ("npm_config_registry", "NPM_CONFIG_REGISTRY")
_OTHERS = (
    *("NVM_BIN", "VOLTA_HOME", "JAVA_HOME", "GOROOT", "GOPATH", "CARGO_HOME", "RUSTUP_HOME"),
    *("RBENV_ROOT", "GEM_HOME", "DOTNET_ROOT"),
)
SELECTING: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("python", "pypy", "py"), _PYTHON),
    **dict.fromkeys(("uvx", "pipx"), _PYTHON_PACKAGES),
    "uv": (*_PYTHON, *_PYTHON_PACKAGES),
    **dict.fromkeys(("node", "deno", "bun"), ()),
    **dict.fromkeys(("npx", "npm", "pnpm", "pnpx", "yarn", "bunx"), _NODE_PACKAGES),
    **dict.fromkeys(("docker", "podman"), ()),
    "": (*_PYTHON, *_PYTHON_PACKAGES, *_NODE_PACKAGES, *_OTHERS),
}
"""By the name of a program without its version, the variables with which it selects what it runs; "" for any
other program. `PATH`, the proxies and so on count for all, and so do the paths of libraries.
"""


def mean_the_same(config: Config, one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether ``config`` means the same in two environments."""
    globs = frozenset(glob for server in config.servers.values() for glob in server.inherit_env)
    names = config.variables | selecting_variables(config)
    if environment_key(one, names, globs) != environment_key(other, names, globs):
        return False
    paths = one.get("PATH", ""), other.get("PATH", "")
    if paths[0] == paths[1]:
        return True
    commands = frozenset(
        server.command if server.transport == "stdio" else server.headers_command[0]
        for server in config.servers.values()
        if not server.disabled and (_is_started(server) or server.headers_command)
    )
    return _programs(commands, paths[0]) == _programs(commands, paths[1])


def selecting_variables(config: Config) -> frozenset[str]:
    """The variables that select what the servers of ``config`` run, as far as they inherit them."""
    return frozenset(
        name
        for server in config.servers.values()
        if server.transport == "stdio" and not server.disabled
        for name in (*_LIBRARIES, *SELECTING.get(_program(server.command), SELECTING[""]))
        if name not in server.env
    )


def _is_started(server: ServerConfig) -> bool:
    """Whether its program is found by the ``PATH`` of the agent."""
    return server.transport == "stdio" and "PATH" not in server.env


def _program(command: str) -> str:
    """``python`` for ``/usr/bin/python3.12``."""
    name = re.split(r"[\\/]", command)[-1].lower()
    return re.sub(r"[\d.]*(\.exe|\.cmd)?$", "", name)


@lru_cache(maxsize=64)
def _programs(commands: frozenset[str], path: str) -> dict[str, str | None]:
    """The program that each of ``commands`` is with this ``PATH``; None for one that is not found."""
    from shutil import which  # which a first client doesn't wait for

    return {command: _resolved(which(command, path=path)) for command in commands}


def _resolved(program: str | None) -> str | None:
    """Its path, with the real folder: version managers make a link to that for each terminal. A link in place
    of the program itself is kept, because the interpreter of a virtual environment is one.
    """
    if program is None:
        return None
    folder, name = os.path.split(program)
    return os.path.join(os.path.realpath(folder), name)
