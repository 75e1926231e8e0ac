"""What of a server's config is secret, and is never said (`mcpzip.model.redaction`).

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
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*|/[A-Za-z][\w-]*)[=:](.*)", re.DOTALL)
"""An option with its value in one word, also as Windows and .NET write them."""
_FLAG = re.compile(r"--?[a-z]+(?:[-_][a-z]+)*(?:=.*)?", re.DOTALL)
"""What is another option also behind one whose value is secret."""
_HEADER = re.compile(r"\s*([A-Za-z][\w-]*)\s*:(?!//)\s*(\S.*?)\s*")
_WORDS_OF_A_HEADER = 2
"""A scheme and credentials: more is a sentence, where nothing says that it is a header."""
_CREDENTIALS = re.compile(
    r"\b(?:bearer|basic|dpop)\s+([^\s\"',;]+)|\A\s*(?:token|apikey|key)\s+(\S+)\s*\Z", re.I
)
_USER = re.compile(
    r"(?:^|(?<=[\s\"'=,;]))([\w.+%-]*):([^\s\"'/@:][^\s\"']*)@(?=(\w*\(|[\w-]+(?:\.[\w-]+)+|localhost|(?!sha\d)[\w-]+:\d{1,5}\b))"
)
"""``user:password@host``, and ``user:password@tcp(host)`` as Go has it."""
_NO_USERS = frozenset(
    {"npm", "jsr", "mailto", "acct", "sip", "sips", "xmpp", "file", "git", "workspace", "oci"}
)
"""What stands before a colon and an ``@`` and is a scheme."""
_USERS = ("-u", "--user", "--proxy-user")
_LEAST_TOKEN = 20
"""Characters that a name in a URL has, from which on it may be a token."""
_DEEPEST = 6
"""Texts in one another: a command in an argument, a JSON in its option, a URL in that."""


def register_secrets(server: ServerConfig, node: Node) -> None:
    """What ``server``, read from ``node``, holds of secrets is left out of whatever mcpzip says."""
    for name, value in server.headers.items():
        register_header(name, value)
        _keep_within(value)
    for raw in _written(node, "headers").values():
        _keep_variables(used(raw, node.source.env))
    written = _written(node, "env")
    for name, value in server.env.items():
        if looks_secret(name):
            _keep_secret(value)
        _keep_variables(used(written.get(name, ""), node.source.env))
        _keep_within(value, headers=_names_headers(name))
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
        register(value)


def _keep_secret(value: str) -> None:
    """Keeps ``value``, which is called a secret, and the password of ``user:password``."""
    _keep_plain(value)
    user, colon, password = value.strip().partition(":")
    if colon and user and not any(map(str.isspace, value.strip())) and "://" not in value:
        _keep_plain(password)


# ---- a text, and what stands in it


def _keep_within(text: str, depth: int = 0, *, headers: bool = False) -> None:
    """Keeps the secrets that ``text`` has in it: a URL, JSON, lines of headers, credentials with their
    scheme, ``user:password@host``, a list of ``name=value``, the options of a command line.

    headers: whether it holds headers, says whatever holds it.
    """
    if depth > _DEEPEST:
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
            _keep_document(document, depth, headers=headers)
            return
    _keep_headers(text, headers)
    for found in _CREDENTIALS.finditer(text):
        if not is_ordinary(credentials := found[1] or found[2]):
            register_header("authorization", found[0])
            register_spellings(credentials)
    for user, password, host in _USER.findall(text) if "@" in text else ():
        if user.lower() not in _NO_USERS and (host.endswith("(") or not is_ordinary(password)):
            register_spellings(password)
    for name, value in pairs(text) if "=" in text else ():
        if _says_secret(name) if name.startswith("-") else looks_secret(name):
            _keep_secret(value)
    words = _split(text) if any(map(str.isspace, text)) else [text]
    if len(words) > 1 or (words and words[0] != text) or text.startswith(("-", "/")):
        _keep_words(words, depth + 1)


def _keep_headers(text: str, headers: bool) -> None:
    for line in text.splitlines():
        if found := _HEADER.fullmatch(line):
            name, value = found.groups()
            if headers or (_says_secret(name) and len(value.split()) <= _WORDS_OF_A_HEADER):
                register_header(name, value)
    if headers:
        for name, value in pairs(text):
            register_header(name, value)


def _keep_document(document: object, depth: int, *, headers: bool = False) -> None:
    """Keeps what the members hold that are called a secret, all headers, and looks into the others."""
    waiting: list[tuple[object, str, bool, bool]] = [(document, "", False, headers)]
    while waiting:
        value, name, secret, headers = waiting.pop()
        if isinstance(value, dict):
            for each, member in value.items():
                waiting.append((member, each, secret or looks_secret(each), headers or _names_headers(each)))
        elif isinstance(value, list):
            waiting += [(each, name, secret, headers) for each in value]
        elif isinstance(value, str):
            if secret:
                _keep_secret(value)
            if headers:
                register_header(name, value)
            _keep_within(value, depth + 1, headers=headers)


def _names_headers(name: str) -> bool:
    """Whether what is called so holds headers."""
    return "header" in name.lower()


def _says_secret(name: str) -> bool:
    """Whether an option or a header of this name has a secret, and doesn't only say something about one."""
    return looks_secret(name) and not _OF_A_SECRET.search(name)


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
    """Keeps the values of ``--token VALUE``, ``--api-key=VALUE``, ``--otp:VALUE``, ``--header 'Name: VALUE'``
    and ``-e NAME=VALUE``, and what stands in each word and behind its ``=``.
    """
    if depth > _DEEPEST:
        return
    option = ""
    for word in words:
        given, option = option, ""
        if given and (not word.startswith("-") or (_says_secret(given) and not _FLAG.fullmatch(word))):
            _keep_value(given, word, depth)
        elif word.startswith("-H") and ":" in word:
            _keep_value("-H", word[2:], depth)
        elif found := _OPTION.fullmatch(word):
            _keep_value(found[1], found[2], depth)
        elif word.startswith("-"):
            option = word
        if setting := _SETTING.fullmatch(word):
            if looks_secret(setting[1]):
                _keep_secret(setting[2])
            _keep_within(setting[2], depth + 1, headers=_names_headers(setting[1]))
        _keep_within(word, depth + 1)


def _keep_value(option: str, value: str, depth: int) -> None:
    """Keeps ``value`` if ``option``, before it, says that it is a secret, and what stands in it."""
    called = option.lstrip("-/")
    headers = option == "-H" or _names_headers(called)
    if option in _USERS:
        register(value.partition(":")[2])
    if _says_secret(called) and not headers:
        _keep_secret(value)
    _keep_within(value, depth + 1, headers=headers)


def _split(line: str) -> list[str]:
    from shlex import split  # seldom wanted

    try:
        return split(line)
    except ValueError:  # a quote that is not closed
        return line.split()
