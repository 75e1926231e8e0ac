"""Checks of the config, and of the environment and the commands that it refers to."""

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator
from functools import partial
from ipaddress import ip_address
from urllib.parse import urlsplit

from mcpzip.config import ServerConfig
from mcpzip.config.reading import NOT_TRUSTED
from mcpzip.config.variables import referred
from mcpzip.doctor.finding import Finding
from mcpzip.doctor.setup import Setup
from mcpzip.doctor.shell import command_line, make_folder, set_variable, unset_variables
from mcpzip.model import limits
from mcpzip.system.files import others_may_read, read_bytes_limited

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_CERTIFICATES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("AWS_CA_BUNDLE", "GIT_SSL_CAINFO", "NIX_SSL_CERT_FILE"),
)
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PRIVATE_DOMAINS = (".local", ".internal", ".lan", ".home.arpa")
_URLS = re.compile(r"https?://[^\s'\"]{1,300}")
_SOURCES = {
    "npx": "Node.js, which brings it: https://nodejs.org",
    "node": "Node.js: https://nodejs.org",
    "npm": "Node.js, which brings it: https://nodejs.org",
    "bunx": "Bun, which brings it: https://bun.sh",
    "deno": "Deno: https://deno.com",
    "uvx": "uv, which brings it: https://docs.astral.sh/uv",
    "uv": "uv: https://docs.astral.sh/uv",
    "docker": "Docker: https://docs.docker.com/get-docker",
    "python": "Python: https://www.python.org",
    "python3": "Python: https://www.python.org",
}
_OLDEST_NODE = 18
_OF_NODE = ("node", "npx", "npm")
_VERSION_TIMEOUT = 10.0


def check_config(setup: Setup) -> Iterator[Finding]:
    """The file itself, and what reading it brought."""
    if setup.config is None:
        if os.path.lexists(setup.path):
            remedy, command = "Correct it.", setup.mcpzip("edit")
            yield Finding("error", "config.unusable", setup.path, setup.error, (), remedy, command)
        else:
            remedy = "Let mcpzip init move your clients' servers there, and add others."
            command = setup.mcpzip("init")
            yield Finding(
                "error", "config.missing", setup.path, "There is no config yet.", (), remedy, command
            )
        return
    for warning in setup.config.warnings:
        if setup.project and warning.startswith(setup.project) and NOT_TRUSTED in warning:
            folder = os.path.dirname(setup.project)
            yield Finding(
                "warning",
                "config.project",
                setup.project,
                warning,
                remedy="Look at the servers, and allow them if you know them.",
                command=setup.mcpzip("trust", folder),
            )
        else:
            yield Finding("warning", "config.warning", setup.path, warning, command=setup.mcpzip("edit"))
    for name, server in setup.servers.items():
        if server.unset:
            for variable in server.unset:
                yield Finding(
                    "error",
                    "config.variable",
                    name,
                    f"The variable {variable}, to which the entry refers, is not set.",
                    remedy="Set it where mcpzip is started: in the shell's profile or the client's entry.",
                    command=set_variable(variable),
                )
        elif server.problem:
            yield Finding("error", "config.server", name, server.problem, command=setup.mcpzip("edit"))
    if _is_readable_by_others(setup.path) and _has_literal_secrets(setup):
        yield Finding(
            "warning",
            "config.permissions",
            setup.path,
            "Other users of this machine can read the file, which has secrets in it.",
            remedy="Take the right away from them, or write the secrets as ${VARIABLES}.",
            command=command_line("chmod", "600", setup.path),
            fix=partial(_make_private, setup.path),
        )


def _is_readable_by_others(path: str) -> bool:
    try:
        return others_may_read(path)
    except OSError:
        return False


def _has_literal_secrets(setup: Setup) -> bool:
    """Whether a header or a variable of an entry is written out, or a key or the password of the store."""
    servers = setup.document.get("mcpServers")
    for entry in servers.values() if isinstance(servers, dict) else ():
        for key in ("env", "headers"):
            values = entry.get(key) if isinstance(entry, dict) else None
            if isinstance(values, dict) and any(value and not referred(value) for value in values.values()):
                return True
    store = setup.document.get("store")
    for key, value in store.items() if isinstance(store, dict) else ():
        texts = value if isinstance(value, list) else [value if key == "url" and "@" in str(value) else ""]
        if any(text and not referred(text) for text in texts):
            return True
    return bool(setup.document.get("gemini_api_key"))


def _make_private(path: str) -> str:
    os.chmod(path, 0o600)
    return f"Only you can read {path} now."


def check_environment(setup: Setup) -> Iterator[Finding]:
    """Proxies and certificates, which servers inherit."""
    proxies = {
        name: setup.env[name] for each in _PROXIES for name in (each, each.lower()) if setup.env.get(name)
    }
    for name, value in proxies.items():
        if not _is_proxy(value):
            yield Finding(
                "error",
                "environment.proxy",
                name,
                f"{name} is no URL of a proxy, so that nothing reaches the internet.",
                (),
                "Write it as http://HOST:PORT (or https, socks5, socks5h), or unset it.",
                unset_variables([name]),
            )
    if proxies:
        yield from _check_no_proxy(setup)
    for name in _CERTIFICATES:
        path = setup.env.get(name)
        if path and (wrong := _wrong_with_certificates(path)):
            yield Finding(
                "error",
                "environment.certificates",
                name,
                f"{name} names {wrong}, so that HTTPS fails.",
                (f"{name}={path}",),
                "Name the right one, or unset the variable.",
                unset_variables([name]),
            )


def _check_no_proxy(setup: Setup) -> Iterator[Finding]:
    """Addresses that a proxy on the internet can't reach, and that ``NO_PROXY`` does not spare from it."""
    spared = (
        (setup.env.get("NO_PROXY") or setup.env.get("no_proxy") or "").lower().replace(" ", "").split(",")
    )
    here: list[str] = []
    private: dict[str, str] = {}
    for name, server in setup.servers.items():
        texts = [server.url] if server.url else [*server.args, *server.env.values()]
        for host in filter(None, (_host(url) for text in texts for url in _URLS.findall(text))):
            if _is_spared(host, spared):
                continue
            if host in _LOOPBACK:
                here.append(name)
            elif _is_private(host):
                private[host] = name
    if here:
        yield Finding(
            "warning",
            "environment.no-proxy",
            "NO_PROXY",
            "A proxy is set, and NO_PROXY does not name this machine: requests to it go to the proxy.",
            (f"servers on this machine: {', '.join(dict.fromkeys(here))}",),
            "Name it.",
            f"{set_variable('NO_PROXY').partition('=')[0]}={','.join(_no_proxy(setup, _LOOPBACK[:2]))}",
        )
    if private:
        yield Finding(
            "note",
            "environment.private-hosts",
            "NO_PROXY",
            "A proxy is set, and NO_PROXY does not name these hosts of a private network.",
            tuple(f"{host}: {name}" for host, name in private.items())[:5],
            "Name them if the proxy can't reach them.",
            f"{set_variable('NO_PROXY').partition('=')[0]}={','.join(_no_proxy(setup, private))}",
        )


def _no_proxy(setup: Setup, hosts: Iterable[str]) -> list[str]:
    """The hosts that ``NO_PROXY`` names, and ``hosts``."""
    named = (setup.env.get("NO_PROXY") or setup.env.get("no_proxy") or "").replace(" ", "").split(",")
    return list(dict.fromkeys([*filter(None, named), *hosts]))


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _is_spared(host: str, spared: Iterable[str]) -> bool:
    """Whether ``NO_PROXY`` names ``host``: itself, a domain above it, or everything."""
    return any(
        name == "*" or host == name.lstrip(".") or host.endswith(f".{name.lstrip('.')}")
        for name in spared
        if name
    )


def _is_private(host: str) -> bool:
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_DOMAINS)


def _is_proxy(value: str) -> bool:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        valid_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return parts.scheme in _PROXY_SCHEMES and bool(parts.hostname) and valid_port and " " not in value


def _wrong_with_certificates(path: str) -> str:
    """What is wrong with a file or folder of certificates; "" if nothing is."""
    if not os.path.exists(path):
        return "certificates that do not exist"
    try:
        if os.path.isfile(path) and b"-----BEGIN" not in read_bytes_limited(path, limits.CLIENT_CONFIG):
            return "a file without certificates"
    except OSError as error:
        return f"a file that can't be read ({error.strerror or error})"
    return ""


def check_commands(setup: Setup) -> Iterator[Finding]:
    """The programs that servers are started with."""
    node: set[str] = set()
    for name, server in setup.servers.items():
        if server.transport != "stdio" or server.problem:
            continue
        path = server.env.get("PATH") or setup.env.get("PATH")
        if server.cwd and not os.path.isdir(server.cwd):
            yield Finding(
                "error",
                "commands.folder",
                name,
                f"The folder in which it should run does not exist: {server.cwd}",
                remedy='Make it, or correct "cwd".',
                command=make_folder(server.cwd),
            )
        found = _which(server, path)
        if found is None:
            yield _missing(setup, name, server)
        elif re.split(r"[\\/]", server.command)[-1] in _OF_NODE:
            node.add(shutil.which("node", path=path) or "")
    for program in sorted(filter(None, node)):
        major = _node_version(program)
        if major is not None and major < _OLDEST_NODE:
            yield Finding(
                "warning",
                "commands.node",
                program,
                f"Node.js {major} is too old for most MCP servers, which need {_OLDEST_NODE} or later.",
                remedy="Install a newer one: https://nodejs.org",
            )


def _which(server: ServerConfig, path: str | None) -> str | None:
    if os.path.dirname(server.command):
        command = os.path.join(server.cwd or "", server.command)
        return command if os.path.isfile(command) and os.access(command, os.X_OK) else None
    return shutil.which(server.command, path=path)


def _missing(setup: Setup, name: str, server: ServerConfig) -> Finding:
    """The finding for a command that can't be started."""
    command = server.command
    if os.path.dirname(command) and os.path.isfile(os.path.join(server.cwd or "", command)):
        path = os.path.join(server.cwd or "", command)
        return Finding(
            "error",
            "commands.not-executable",
            name,
            f"The file {path} is not executable.",
            (stat.filemode(os.stat(path).st_mode),),
            "Make it executable, or start it with its interpreter.",
            command_line("chmod", "+x", path),
        )
    first, *rest = command.split()
    if rest:
        return Finding(
            "error",
            "commands.spaces",
            name,
            f"There is no program called {command!r}: the command has arguments in it.",
            remedy=f'Write {first!r} into "command", and the rest into "args": {rest}',
            command=setup.mcpzip("edit"),
        )
    source = _SOURCES.get(re.split(r"[\\/]", first)[-1].removesuffix(".exe"))
    return Finding(
        "error",
        "commands.missing",
        name,
        f"The command {command!r} was not found.",
        (f"PATH={server.env.get('PATH') or setup.env.get('PATH', '')}",),
        f"Install {source}." if source else "Install it, or write its whole path.",
        "" if source else setup.mcpzip("edit"),
    )


def _node_version(program: str) -> int | None:
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, timeout=_VERSION_TIMEOUT, text=True, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    found = re.match(r"v(\d+)\.", done.stdout)
    return int(found[1]) if found else None
