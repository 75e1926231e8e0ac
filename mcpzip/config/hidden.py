"""What of a server's config is secret, and is never said (`mcpzip.model.secrecy`).

The rule: rather one too many than one too few – but what a message is useless without, such as the home
folder, a file's path or a plain address, is no secret because a variable holds it. Variables that are called
a token, a key or a password are secret wherever they stand: `Node.text` keeps those.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping

from mcpzip.config.node import Node
from mcpzip.config.schema import ServerConfig
from mcpzip.config.variables import used
from mcpzip.model.secrecy import ORDINARY, keep, keep_header, keep_spelt, looks_secret, pairs

_PLAIN_VARIABLES = frozenset(
    {"HOME", "USERPROFILE", "USER", "USERNAME", "LOGNAME", "HOSTNAME", "PWD", "PATH", "SHELL", "LANG", "TZ"}
    | {"TMPDIR", "TEMP", "TMP", "APPDATA", "LOCALAPPDATA"}
)
_IN_QUERIES = frozenset({"code", "sid", "sig", "ticket", "assertion", "hash"})
"""Parameters of a URL that are secret by what they mean there."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")
_ODD_PASSWORD = re.compile(r"://[^/\s:@]*:(?!\d+(?:/|$))(\S+)@")
"""A password with a sign that ought to be percent-encoded, up to the last ``@``."""
_OF_A_PATH = re.compile(
    r"(?=[^/]*\d)(?=[^/]*[A-Za-z])(?:[A-Za-z0-9]{24,}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?=[^/]*[a-z])(?=[^/]*[A-Z])[\w-]{32,})"
)
"""A part of a URL's path that no person would choose: with some hosts the address itself is the key."""
_SETTING = re.compile(r"(?:--?[A-Za-z][\w-]*=|-[A-Za-z])?([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
"""``NAME=VALUE``, also as ``-eNAME=VALUE`` and ``--env=NAME=VALUE``."""
_OF_A_SECRET = re.compile(
    r"(?:file|path|dir|folder|url|uri|endpoint|host|port|type|alg|algorithm|name|ttl|timeout|expiry|length"
    r"|size|limit|count|max|version|provider|method|mode|store|user|username)$",
    re.IGNORECASE,
)
"""How options end that say something about a secret, and not the secret."""
_USERS = ("-u", "--user", "--proxy-user")
_LEAST_TOKEN = 20
"""Characters that a name in a URL has, from which on it may be a token."""
_DEEPEST = 4
"""Texts in one another: a command in an argument, a JSON in its option, a URL in that."""


def keep_secrets(server: ServerConfig, node: Node) -> None:
    """What ``server``, read from ``node``, holds of secrets is left out of whatever mcpzip says."""
    for name, value in server.headers.items():
        keep_header(name, value)
        _keep_within(value)
    for raw in _written(node, "headers").values():
        _keep_variables(used(raw, node.source.env))
    written = _written(node, "env")
    for name, value in server.env.items():
        if looks_secret(name):
            _keep_plain(value)
        _keep_variables(used(written.get(name, ""), node.source.env))
        _keep_within(value)
    args = node.get("args")
    for raw in args.value if args and isinstance(args.value, list) else ():
        if isinstance(raw, str) and (setting := _SETTING.fullmatch(raw)) and not raw.startswith("--"):
            _keep_variables(used(setting[2], node.source.env))
    _keep_within(server.url)
    for words in (server.args, server.headers_command):
        _keep_words(words)


def _written(node: Node, key: str) -> dict[str, str]:
    """The strings of an object as they stand in the file, variables and all."""
    found = node.get(key)
    members = found.members() if found else {}
    return {name: each.value for name, each in members.items() if isinstance(each.value, str)}


def _keep_variables(found: Mapping[str, str]) -> None:
    for name, value in found.items():
        if name not in _PLAIN_VARIABLES:
            _keep_plain(value)


def _keep_plain(value: str) -> None:
    """Keeps ``value``, but a word that anybody says, and a path or an address, which is where a secret is."""
    if value.strip() not in ORDINARY and "://" not in value and not os.path.exists(value):
        keep(value)


# ---- a text, and what stands in it


def _keep_within(text: str, depth: int = 0) -> None:
    """Keeps the secrets that ``text`` has in it: as a URL, as JSON, or as a list of ``name=value``."""
    if depth > _DEEPEST:
        return
    for url in _URL.findall(text) if "://" in text else ():
        for secret in _in_url(url):
            keep_spelt(secret)
    if text.lstrip()[:1] in ("{", "["):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            _keep_document(document, depth)
            return
    for name, value in pairs(text) if "=" in text else ():
        if looks_secret(name):
            _keep_plain(value)


def _keep_document(document: object, depth: int) -> None:
    """Keeps what the members hold that are called a secret, and looks into the others."""
    waiting: list[tuple[object, bool]] = [(document, False)]
    while waiting:
        value, secret = waiting.pop()
        if isinstance(value, dict):
            waiting += [(each, secret or looks_secret(str(name))) for name, each in value.items()]
        elif isinstance(value, list):
            waiting += [(each, secret) for each in value]
        elif isinstance(value, str):
            if secret:
                _keep_plain(value)
            _keep_within(value, depth + 1)


def _in_url(url: str) -> Iterator[str]:
    """The password of a URL, its secret parameters, and what else of it is a key."""
    from urllib.parse import parse_qsl, urlsplit  # slow to import, and wanted only for a URL

    yield from _ODD_PASSWORD.findall(url)
    try:
        parts = urlsplit(url)
        given = parse_qsl(parts.query) + parse_qsl(parts.fragment)
        user, password = parts.username or "", parts.password
    except ValueError:
        return
    if password:
        yield password
    if len(user) >= _LEAST_TOKEN:
        yield user
    yield from (value for name, value in given if looks_secret(name) or name.lower() in _IN_QUERIES)
    yield from (part for part in parts.path.split("/") if _OF_A_PATH.fullmatch(part))


# ---- a command line


def _keep_words(words: Iterable[str], depth: int = 0) -> None:
    """Keeps the values of ``--token VALUE``, ``--api-key=VALUE``, ``--header 'Name: VALUE'`` and
    ``-e NAME=VALUE``, and what stands in each word; a word of several is a command line in its turn.
    """
    if depth > _DEEPEST:
        return
    option = ""
    for word in words:
        given, value = option, word
        option = ""
        if word.startswith("-"):
            option, found, value = word.partition("=")
            given, option = (option, "") if found else ("", option)
        if word.startswith("-H") and ":" in word:
            given, value, option = "-H", word[2:], ""
        _keep_value(given, value)
        if setting := _SETTING.fullmatch(word):
            if looks_secret(setting[1]):
                _keep_plain(setting[2])
            _keep_within(setting[2], depth)
        _keep_within(word, depth)
        if any(map(str.isspace, word)):
            _keep_words(_split(word), depth + 1)


def _keep_value(option: str, value: str) -> None:
    """Keeps ``value`` if ``option``, before it, says that it is one."""
    if not option or not value:
        return
    name, colon, header = value.partition(":")
    if option == "-H" or "header" in option.lower():
        if not colon:
            name, colon, header = value.partition("=")
        if colon:
            keep_header(name.strip(), header)
            return
    if option in _USERS and colon:
        keep(header)
    called = option.lstrip("-")
    if looks_secret(called) and not _OF_A_SECRET.search(called):
        _keep_plain(value)


def _split(line: str) -> list[str]:
    from shlex import split  # seldom wanted

    try:
        return split(line)
    except ValueError:  # a quote that is not closed
        return line.split()
