"""Registers the secrets in a server's config for redaction (`mcpzip.model.redaction`).

The rule: in doubt a value is a secret. The exceptions are values that messages need, such as the home folder,
a file's path or a plain address: they are no secret merely because a variable holds them. `Node.text`
registers the values of variables whose name contains token, key or password.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping

from mcpzip.config.node import Node
from mcpzip.config.schema import ServerConfig
from mcpzip.config.variables import used
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.redaction import (
    ORDINARY,
    is_ordinary,
    looks_secret,
    pairs,
    register,
    register_header,
    register_spellings,
)

_PLAIN_VARIABLES = frozenset(
    {"HOME", "USERPROFILE", "USER", "USERNAME", "LOGNAME", "HOSTNAME", "PWD", "PATH", "SHELL", "LANG", "TZ"}
    | {"TMPDIR", "TEMP", "TMP", "APPDATA", "LOCALAPPDATA"}
)
_SECRET_PARAMETERS = frozenset({"code", "sid", "sig", "ticket", "assertion", "hash"})
"""URL parameters that are secret although their names don't look it."""
_URL = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")
_ODD_PASSWORD = lazy_pattern(r"://[^/\s:@]*:(?!\d+(?:/|$))(\S+)@")
"""A URL's password with a character that should be percent-encoded, up to the last ``@``."""
_PATH_TOKEN = lazy_pattern(
    r"(?=[^/]*\d)(?=[^/]*[A-Za-z])(?:[A-Za-z0-9]{24,}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(?=[^/]*[a-z])(?=[^/]*[A-Z])[\w-]{32,})"
)
"""A random-looking segment of a URL's path: some services put the API key there."""
_SETTING = lazy_pattern(r"(?:--?[A-Za-z][\w-]*=|-[A-Za-z])?([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
"""``NAME=VALUE``, also as ``-eNAME=VALUE`` and ``--env=NAME=VALUE``."""
_SECRET_ATTRIBUTE = lazy_pattern(
    r"(?:file|path|dir|folder|url|uri|endpoint|host|port|type|alg|algorithm|name|ttl|timeout|expiry|length"
    r"|size|limit|count|max|version|provider|method|mode|store|user|username)$",
    re.IGNORECASE,
)
"""The endings of option names that describe a secret without containing it."""
_OPTION = lazy_pattern(r"(--?[A-Za-z][\w.-]*|/[A-Za-z][\w-]*)[=:](.*)", re.DOTALL)
"""An option and its value in one word, also in the syntax of Windows and .NET."""
_FLAG = lazy_pattern(r"--?[a-z]+(?:[-_][a-z]+)*(?:=.*)?", re.DOTALL)
"""A word that is an option, even if the option before it has a secret value."""
_HEADER = lazy_pattern(r"\s*([A-Za-z][\w-]*)\s*:(?!//)\s*(\S.*?)\s*")
_HEADER_WORDS = 2
"""Maximum number of words in a header's value: a scheme and credentials. Longer texts are sentences."""
_CREDENTIALS = lazy_pattern(
    r"\b(?:bearer|basic|dpop)\s+([^\s\"',;]+)|\A\s*(?:token|apikey|key)\s+(\S+)\s*\Z", re.I
)
_USER_PASSWORD = lazy_pattern(
    r"(?:^|(?<=[\s\"'=,;]))([\w.+%-]*):([^\s\"'/@:][^\s\"']*)@(?=(\w*\(|[\w-]+(?:\.[\w-]+)+|localhost|(?!sha\d)[\w-]+:\d{1,5}\b))"
)
"""``user:password@host``, and ``user:password@tcp(host)`` in Go's syntax."""
_NOT_USERS = frozenset(
    {"npm", "jsr", "mailto", "acct", "sip", "sips", "xmpp", "file", "git", "workspace", "oci"}
)
"""Words before a colon and an ``@`` that are a scheme and no user."""
_USER_OPTIONS = ("-u", "--user", "--proxy-user")
_MIN_TOKEN_LENGTH = 20
"""A user name in a URL with at least this many characters may be a token."""
_MAX_DEPTH = 6
"""Maximum nesting of texts: a command in an argument, JSON in its option, a URL in that."""


def masked_entry(entry: object) -> object:
    """The entry of a server, which may be as broken as it likes, with ``…`` for each text that may be secret:
    what is left are keys, the command, the package, names of options, variables, and the host of a URL.
    """
    if not isinstance(entry, Mapping):
        return "…"
    return {str(key): _masked(str(key), value) for key, value in entry.items()}


def _masked(key: str, value: object) -> object:
    if value is None or isinstance(value, bool | int | float) or key in _PLAIN_KEYS:
        return value
    if key in _URL_KEYS and isinstance(value, str):
        return _masked_url(value)
    if key == "command" and isinstance(value, str):
        first, *rest = value.split()[:2] or [""]
        return f"{first} …" if rest else first
    if key == "args" and isinstance(value, list):
        words = [str(word) for word in value]
        package = next((at for at, word in enumerate(words) if not word.startswith("-")), -1)
        return [_masked_word(word, plain=at == package) for at, word in enumerate(words)]
    if isinstance(value, Mapping):
        return {str(name): _masked_word(str(each), plain=False) for name, each in value.items()}
    if isinstance(value, list):
        return ["…" for _ in value]
    return _masked_word(str(value), plain=False)


def _masked_url(url: str) -> str:
    from urllib.parse import urlsplit  # slow to import, and only for what is shown to others

    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return "…"
    return f"{parts.scheme}://{host}/…" if parts.scheme and host else "…"


def _masked_word(word: str, *, plain: bool) -> str:
    if plain and _PACKAGE.fullmatch(word):
        return word
    if _VARIABLE_ONLY.fullmatch(word):
        return word
    option, equals, _ = word.partition("=")
    return option + ("=…" if equals else "") if _OPTION_NAME.fullmatch(option) else "…"


_PLAIN_KEYS = frozenset({"cwd", "type", "transport", "tools", "pin", "inheritEnv"})
_URL_KEYS = frozenset({"url", "httpUrl", "serverUrl"})
_PACKAGE = lazy_pattern(r"(?:@[\w.-]+/)?[\w.-]*mcp[\w.-]*(?:@[\w.-]+)?|@modelcontextprotocol/[\w.-]+")
_VARIABLE_ONLY = lazy_pattern(r"\$\{\w+(?::-)?\}")
_OPTION_NAME = lazy_pattern(r"--?[A-Za-z][A-Za-z-]{0,30}")


def register_secrets(server: ServerConfig, node: Node) -> None:
    """Registers the secrets of ``server``, which was read from ``node``."""
    for name, value in server.headers.items():
        register_header(name, value)
        _register_in_text(value)
    for raw in _unexpanded(node, "headers").values():
        _register_variables(used(raw, node.source.env))
    unexpanded = _unexpanded(node, "env")
    for name, value in server.env.items():
        if looks_secret(name):
            _register_secret(value)
        _register_variables(used(unexpanded.get(name, ""), node.source.env))
        _register_in_text(value, headers=_names_headers(name))
    args = node.get("args")
    for raw in args.value if args and isinstance(args.value, list) else ():
        if isinstance(raw, str) and (setting := _SETTING.fullmatch(raw)) and not raw.startswith("--"):
            _register_variables(used(setting[2], node.source.env))
    _register_in_text(server.url)
    for words in (server.args, server.headers_command):
        _register_in_words(words)


def _unexpanded(node: Node, key: str) -> dict[str, str]:
    """The strings of an object as in the file, with variables not replaced."""
    found = node.get(key)
    members = found.members() if found else {}
    return {name: each.value for name, each in members.items() if isinstance(each.value, str)}


def _register_variables(found: Mapping[str, str]) -> None:
    for name, value in found.items():
        if name not in _PLAIN_VARIABLES:
            _register_unless_plain(value)


def _register_unless_plain(value: str) -> None:
    """Registers ``value`` unless it is a common word, an existing path or a URL."""
    if value.strip() not in ORDINARY and "://" not in value and not os.path.exists(value):
        register(value)


def _register_secret(value: str) -> None:
    """Registers ``value``, which is a secret by its name, and the password of ``user:password``."""
    _register_unless_plain(value)
    user, colon, password = value.strip().partition(":")
    if colon and user and not any(map(str.isspace, value.strip())) and "://" not in value:
        _register_unless_plain(password)


# ---- texts


def register_in_text(text: str) -> None:
    """Registers the secrets in a text of the config, such as the password in a URL."""
    _register_in_text(text)


def _register_in_text(text: str, depth: int = 0, *, headers: bool = False) -> None:
    """Registers the secrets in ``text``: in URLs, JSON, header lines, credentials with their scheme,
    ``user:password@host``, lists of ``name=value`` and the options of a command line.

    headers: whether ``text`` contains headers, by its name.
    """
    if depth > _MAX_DEPTH:
        return
    for url in _URL.findall(text) if "://" in text else ():
        for secret in _in_url(url):
            register_spellings(secret)
    if text.lstrip()[:1] in ("{", "["):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            _register_in_document(document, depth, headers=headers)
            return
    _register_headers(text, headers)
    for found in _CREDENTIALS.finditer(text):
        if not is_ordinary(credentials := found[1] or found[2]):
            register_header("authorization", found[0])
            register_spellings(credentials)
    for user, password, host in _USER_PASSWORD.findall(text) if "@" in text else ():
        if user.lower() not in _NOT_USERS and (host.endswith("(") or not is_ordinary(password)):
            register_spellings(password)
    for name, value in pairs(text) if "=" in text else ():
        if _names_secret(name) if name.startswith("-") else looks_secret(name):
            _register_secret(value)
    words = _split(text) if any(map(str.isspace, text)) else [text]
    if len(words) > 1 or (words and words[0] != text) or text.startswith(("-", "/")):
        _register_in_words(words, depth + 1)


def _register_headers(text: str, headers: bool) -> None:
    for line in text.splitlines():
        if found := _HEADER.fullmatch(line):
            name, value = found.groups()
            if headers or (_names_secret(name) and len(value.split()) <= _HEADER_WORDS):
                register_header(name, value)
    if headers:
        for name, value in pairs(text):
            register_header(name, value)


def _register_in_document(document: object, depth: int, *, headers: bool = False) -> None:
    """Registers the members whose names look secret, all headers, and the secrets in the other texts."""
    pending: list[tuple[object, str, bool, bool]] = [(document, "", False, headers)]
    while pending:
        value, name, secret, headers = pending.pop()
        if isinstance(value, dict):
            for each, member in value.items():
                pending.append((member, each, secret or looks_secret(each), headers or _names_headers(each)))
        elif isinstance(value, list):
            pending += [(each, name, secret, headers) for each in value]
        elif isinstance(value, str):
            if secret:
                _register_secret(value)
            if headers:
                register_header(name, value)
            _register_in_text(value, depth + 1, headers=headers)


def _names_headers(name: str) -> bool:
    """Whether a value of this name contains headers."""
    return "header" in name.lower()


def _names_secret(name: str) -> bool:
    """Whether an option or a header of this name contains a secret, and doesn't only describe one."""
    return looks_secret(name) and not _SECRET_ATTRIBUTE.search(name)


def _in_url(url: str) -> Iterator[str]:
    """The password, secret parameters and tokens in a URL."""
    from urllib.parse import parse_qsl, urlsplit  # slow to import, and needed for URLs only

    yield from _ODD_PASSWORD.findall(url)
    try:
        parts = urlsplit(url)
        given = parse_qsl(parts.query) + parse_qsl(parts.fragment)
        user, password = parts.username or "", parts.password
    except ValueError:
        return
    if password:
        yield password
    if len(user) >= _MIN_TOKEN_LENGTH:
        yield user
    yield from (value for name, value in given if looks_secret(name) or name.lower() in _SECRET_PARAMETERS)
    yield from (part for part in parts.path.split("/") if _PATH_TOKEN.fullmatch(part))


# ---- command lines


def _register_in_words(words: Iterable[str], depth: int = 0) -> None:
    """Registers the values of ``--token VALUE``, ``--api-key=VALUE``, ``--otp:VALUE``, ``--header 'Name:
    VALUE'`` and ``-e NAME=VALUE``, and the secrets in each word and after its ``=``.
    """
    if depth > _MAX_DEPTH:
        return
    option = ""
    for word in words:
        given, option = option, ""
        if given and (not word.startswith("-") or (_names_secret(given) and not _FLAG.fullmatch(word))):
            _register_option(given, word, depth)
        elif word.startswith("-H") and ":" in word:
            _register_option("-H", word[2:], depth)
        elif found := _OPTION.fullmatch(word):
            _register_option(found[1], found[2], depth)
        elif word.startswith("-"):
            option = word
        if setting := _SETTING.fullmatch(word):
            if looks_secret(setting[1]):
                _register_secret(setting[2])
            _register_in_text(setting[2], depth + 1, headers=_names_headers(setting[1]))
        _register_in_text(word, depth + 1)


def _register_option(option: str, value: str, depth: int) -> None:
    """Registers ``value`` if the name of its ``option`` is a secret's, and the secrets in it."""
    name = option.lstrip("-/")
    headers = option == "-H" or _names_headers(name)
    if option in _USER_OPTIONS:
        register(value.partition(":")[2])
    if _names_secret(name) and not headers:
        _register_secret(value)
    _register_in_text(value, depth + 1, headers=headers)


def _split(line: str) -> list[str]:
    from shlex import split  # slow to import, and rarely needed

    try:
        return split(line)
    except ValueError:  # a quote that is not closed
        return line.split()
