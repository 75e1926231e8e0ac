"""What of a server's config is secret, and is never said (`mcpzip.model.secrecy`).

The rule: rather one too many than one too few – but what a message is useless without, such as the home
folder, a file's path or a plain address, is no secret because a variable holds it. Variables that are called
a token, a key or a password are secret wherever they stand: `Node.text` keeps those.
"""

import os
from collections.abc import Iterable, Iterator, Mapping

from mcpzip.config.node import Node
from mcpzip.config.schema import ServerConfig
from mcpzip.config.variables import used
from mcpzip.model.secrecy import keep, keep_header, looks_secret

_PLAIN_VARIABLES = frozenset(
    {"HOME", "USERPROFILE", "USER", "USERNAME", "LOGNAME", "HOSTNAME", "PWD", "PATH", "SHELL", "LANG", "TZ"}
    | {"TMPDIR", "TEMP", "TMP", "APPDATA", "LOCALAPPDATA"}
)


def keep_secrets(server: ServerConfig, node: Node) -> None:
    """What ``server``, read from ``node``, holds of secrets is left out of whatever mcpzip says."""
    for name, value in server.headers.items():
        keep_header(name, value)
    env = node.get("env")
    written = env.members() if env else {}
    for name, value in server.env.items():
        raw = written[name].value if name in written else ""
        if looks_secret(name):
            _keep_plain(value)
        if isinstance(raw, str):
            _keep_variables(used(raw, node.source.env))
    for text in (*server.env.values(), *server.args, server.url):
        for secret in _in_url(text):
            keep(secret)
    _keep_options((*server.args, *server.headers_command))


def _keep_variables(found: Mapping[str, str]) -> None:
    for name, value in found.items():
        if name not in _PLAIN_VARIABLES:
            _keep_plain(value)


def _keep_plain(value: str) -> None:
    """Keeps ``value``, but a path or an address, which may only be where a secret is."""
    if "://" not in value and not os.path.exists(value):
        keep(value)


def _in_url(text: str) -> Iterator[str]:
    """The password and the secret parameters of a URL."""
    if "://" not in text:
        return
    from urllib.parse import parse_qsl, urlsplit  # slow to import, and wanted only for a URL

    try:
        parts = urlsplit(text)
        pairs = parse_qsl(parts.query)
    except ValueError:
        return
    if parts.password:
        yield parts.password
    yield from (value for name, value in pairs if looks_secret(name))


def _keep_options(args: Iterable[str]) -> None:
    """Keeps the values of ``--token VALUE`` and ``--api-key=VALUE``, and of ``--header 'Name: VALUE'``."""
    option = ""
    for word in args:
        given, value = option, word
        if word.startswith("-"):
            option, found, value = word.partition("=")
            given = option if found else ""
        if not given:
            continue
        name, colon, header = value.partition(":")
        if colon and "header" in given.lower():
            keep_header(name.strip(), header)
        elif looks_secret(given.rpartition("-")[2]):
            _keep_plain(value)
        option = ""
