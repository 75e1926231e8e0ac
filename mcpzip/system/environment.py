"""The environment of the programs that we start (pure).

The rule: a program gets what programs need in order to run at all, and what its config gives it. Keys, tokens
and whatever else our own environment holds stay here, unless the config passes them on by name.
"""

import sys
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase

PASSED_ON: Mapping[str, tuple[str, ...]] = {
    "files and programs": ("HOME", "PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "XDG_*"),
    "user and terminal": ("LOGNAME", "USER", "TERM", "COLORTERM", "NO_COLOR"),
    "language and time": ("LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR"),
    "proxies": (
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy"),
    ),
    "certificates": (
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "GIT_SSL_CAINFO"),
        *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE"),
    ),
    "display and sockets": (
        *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK"),
        *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"),
        *("CONTAINER_HOST", "PODMAN_*"),
    ),
    "Node": (
        *("NVM_DIR", "NVM_BIN", "VOLTA_HOME", "FNM_*", "N_PREFIX", "PNPM_HOME", "COREPACK_HOME"),
        *("BUN_INSTALL", "DENO_DIR", "npm_config_*", "NPM_CONFIG_*"),
    ),
    "Python": (
        *("PYENV_ROOT", "PYENV_VERSION", "PIPX_HOME", "PIPX_BIN_DIR", "UV_*", "PIP_*", "POETRY_HOME"),
        *("CONDA_PREFIX", "CONDA_EXE", "VIRTUAL_ENV"),
    ),
    "other languages": (
        *("ASDF_DIR", "ASDF_DATA_DIR", "MISE_*", "JAVA_HOME", "GOPATH", "GOROOT", "GOPROXY", "GOBIN"),
        *("CARGO_HOME", "RUSTUP_HOME", "RBENV_ROOT", "GEM_HOME", "DOTNET_ROOT", "HOMEBREW_PREFIX"),
        *("NIX_PROFILES", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    ),
    "Windows": (
        *("ALLUSERSPROFILE", "APPDATA", "COMMONPROGRAMFILES*", "COMPUTERNAME", "COMSPEC", "HOMEDRIVE"),
        *("HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "OS", "PATHEXT", "PROCESSOR_*", "WINDIR"),
        *("PROGRAMDATA", "PROGRAMFILES*", "PROGRAMW6432", "PUBLIC", "SYSTEMDRIVE", "SYSTEMROOT"),
        *("USERDOMAIN", "USERNAME", "USERPROFILE"),
    ),
}
"""What every server gets where it is set, by purpose. ``*`` stands for any characters."""

CREDENTIALS = ("*TOKEN*", "*PASSWORD*", "*SECRET*", "*API_KEY*", "*_AUTH", "*_AUTH_*", "*:*")
"""What of it stays here all the same, such as ``UV_PUBLISH_TOKEN`` and ``npm_config_//host/:_authToken``."""
_OURS = ("MCPZIP_*",)
PER_TERMINAL = (
    *("_", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "TERM*", "WINDOWID", "TMUX*", "STY", "WINDOW"),
    *("SSH_TTY", "SSH_CLIENT", "SSH_CONNECTION", "XDG_SESSION_*", "XDG_VTNR", "GPG_TTY", "*_SESSION_ID"),
    *("VSCODE_*", "CURSOR_*", "CLAUDE_CODE_*", "CLAUDECODE", "MCPZIP_*"),
)
"""What differs between two terminals or clients of one user without a meaning for servers."""


_NETWORK = (*PASSED_ON["proxies"], *PASSED_ON["certificates"], "DOCKER_*", "CONTAINER_HOST", "PODMAN_*")
"""What says which machines a server talks to, and as whom."""


def server_environment(
    own: Mapping[str, str],
    extra: Mapping[str, str],
    inherit: Iterable[str] = (),
    withheld: Collection[str] = (),
    *,
    system: str = sys.platform,
) -> dict[str, str]:
    """The environment of a server.

    own: ours. extra: the config's ``env``, which wins. inherit: globs over names in ``own`` (the config's
    ``inheritEnv``). withheld: names that no glob passes on, only the name itself: what the entries of other
    servers refer to. system: as `sys.platform` has it; on Windows case doesn't count.
    """
    fold = str.upper if system == "win32" else str
    usual = [
        fold(pattern)
        for purpose, patterns in PASSED_ON.items()
        if purpose != "Windows" or system == "win32"
        for pattern in patterns
    ]
    asked = [fold(pattern) for pattern in inherit]
    kept = {fold(name) for name in withheld}
    found: dict[str, str] = {}
    for name, value in own.items():
        key = fold(name)
        wanted = (
            (_among(key, usual) and not _among(key.upper(), CREDENTIALS))
            or (_among(key, asked) and key not in kept and not _among(key, _OURS))
            or key in asked
        )
        # An exported bash function begins with "()": running it would run code from the environment.
        if wanted and not value.startswith("()"):
            found[name] = value
    return found | dict(extra)


def environment_key(
    own: Mapping[str, str], names: Collection[str], globs: Iterable[str]
) -> tuple[tuple[str, str | None], ...]:
    """What differs between two environments in which the same config means something else.

    names: the variables to which the config refers. globs: those that servers inherit (``inheritEnv``),
    without `PER_TERMINAL`.
    """
    patterns = list(globs)
    inherited = {name for name in own if _among(name, patterns) and not _among(name, PER_TERMINAL)}
    network = {name for name in own if _among(name, _NETWORK)}
    return tuple((name, own.get(name)) for name in sorted({*names, *inherited, *network}))


def _among(name: str, patterns: Iterable[str]) -> bool:
    return any(name == pattern or ("*" in pattern and fnmatchcase(name, pattern)) for pattern in patterns)
