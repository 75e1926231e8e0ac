"""Servers in whatever form a person has them: a command, a URL, JSON, or a line for another client.

The rule: what can't be understood is an error that says what can; nothing is guessed except a name.
"""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from mcpzip.clients.config_file import entry_of, entry_of_json
from mcpzip.clients.entries import NotMovable, moved
from mcpzip.clients.known import Dialect
from mcpzip.model.names import server_name_problem

LONGEST = 1_000_000
"""Characters that are read."""

_CONTAINERS = ("mcpServers", "servers", "mcp", "context_servers", "mcp_servers")
_ADDERS = ("claude", "codex", "gemini", "mcpzip", "cursor-agent", "opencode")
_OPTIONS = {
    **dict.fromkeys(("-t", "--transport"), "transport"),
    **dict.fromkeys(("-e", "--env"), "env"),
    **dict.fromkeys(("-H", "--header"), "header"),
    **dict.fromkeys(("-s", "--scope"), "scope"),
    "--url": "url",
}
"""The options of `claude mcp add` and its like that have a value."""
_NOISE = re.compile(r"^(?:mcp[-_]server[-_]|server[-_]|mcp[-_])|(?:[-_]mcp[-_]server|[-_]mcp|[-_]server)$")
_RUNNERS = re.compile(r"(?:npx|bunx|uvx|uv|pipx|node|deno|docker|python[\d.]*|sh|bash|env)(?:\.exe|\.cmd)?")


class PasteError(ValueError):
    """The text is no server. The message says what would be."""


def read_pasted(text: str) -> dict[str, dict[str, Any]]:
    """The servers in ``text``: entries of mcpzip's config, by name. Raises PasteError."""
    text = text.strip()
    if not text or len(text) > LONGEST:
        raise PasteError("paste a command, a URL, JSON, or a line such as 'claude mcp add …'")
    if text.startswith(("{", '"')):
        return _from_json(text)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise PasteError(f"this is no command: {error}") from error
    if len(words) == 1 and "://" in words[0]:
        return {name_of([words[0]]): _entry(words)}
    if len(words) > 2 and words[0] in _ADDERS and words[1:3] in (["mcp", "add"], ["mcp", "add-json"]):
        return _from_line(words[3:], is_json=words[2] == "add-json")
    if len(words) > 1 and words[0] == "mcpzip" and words[1] in ("add", "add-json"):
        return _from_line(words[2:], is_json=words[1] == "add-json")
    variables = []
    while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0]):
        variables.append(words.pop(0))
    if not words:
        raise PasteError("there is no command after the variables")
    return {name_of(words): _entry(words, env=variables)}


def name_of(words: list[str]) -> str:
    """A name for the server with this command line, or with this URL: ``memory`` for
    ``npx -y @modelcontextprotocol/server-memory``.
    """
    if "://" in words[0]:
        labels = (urlsplit(words[0]).hostname or "").split(".")
        useful = [label for label in labels[:-1] if label not in ("mcp", "api", "www")]
        return _valid(useful[-1] if useful else labels[0])
    for word in words:
        base = re.split(r"[\\/]", word.rstrip("/"))[-1]
        if (
            word.startswith("-")
            or _RUNNERS.fullmatch(base)
            or "=" in word
            or base in ("run", "exec", "x", "tool")
        ):
            continue
        base = re.split(r"@|==|:", base)[0]
        base = re.sub(r"\.(?:py|js|ts|mjs|cjs|exe|cmd|sh)$", "", base)
        return _valid(_NOISE.sub("", _NOISE.sub("", base)) or base)
    return _valid(words[0])


def _valid(name: str) -> str:
    valid = re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.")
    return valid if valid and not server_name_problem(valid) else "server"


def _entry(
    words: list[str],
    transport: str | None = None,
    env: list[str] | None = None,
    headers: list[str] | None = None,
) -> dict[str, Any]:
    try:
        return entry_of(words, transport, tuple(env or ()), tuple(headers or ()), None)
    except ValueError as error:
        raise PasteError(str(error)) from error


def _from_line(words: list[str], *, is_json: bool) -> dict[str, dict[str, Any]]:
    """The server of a `mcp add` line, without its first words."""
    values: dict[str, list[str]] = {"transport": [], "env": [], "header": [], "scope": [], "url": []}
    positional: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option, equals, value = word.partition("=")
        if word == "--":
            positional += rest
            break
        if option in _OPTIONS and (equals or rest):
            values[_OPTIONS[option]].append(value if equals else rest.pop(0))
        elif word.startswith("-") and len(positional) < 2:
            raise PasteError(f"the option {word} is not known here; leave it out")
        else:
            positional.append(word)
    if len(positional) < (1 if values["url"] else 2):
        raise PasteError("the line needs a name, and a command or a URL after it")
    name, *command = positional
    if is_json:
        return {_valid(name): _checked(command[0])}
    transport = values["transport"][-1] if values["transport"] else None
    return {_valid(name): _entry(values["url"] or command, transport, values["env"], values["header"])}


def _from_json(text: str) -> dict[str, dict[str, Any]]:
    """An object of servers, under any client's key or none, one entry, or the inside of an object."""
    if text.startswith('"'):
        text = f"{{{text.rstrip(',')}}}"
    try:
        found = json.loads(text)
    except ValueError as error:
        raise PasteError(f"this is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise PasteError("write an object of servers")
    for key in _CONTAINERS:
        if isinstance(found.get(key), dict):
            found = found[key]
            break
    if isinstance(found.get("command"), str | list) or any(
        found.get(key) for key in ("url", "httpUrl", "serverUrl")
    ):
        entry = _translated(found)
        words = [entry["url"]] if "url" in entry else [entry["command"], *entry.get("args", ())]
        return {name_of(words): entry}
    if not found or not all(isinstance(entry, dict) for entry in found.values()):
        raise PasteError("there is no server with a command or a url in it")
    return {_valid(name): _translated(entry) for name, entry in found.items()}


def _translated(entry: Mapping[str, object]) -> dict[str, Any]:
    """An entry of any client in mcpzip's words."""
    dialect: Dialect = "opencode" if isinstance(entry.get("command"), list) else "cursor"
    try:
        return dict(moved(dict(entry), dialect).entry)
    except NotMovable as error:
        raise PasteError(str(error)) from error


def _checked(text: str) -> dict[str, Any]:
    try:
        return entry_of_json(text)
    except ValueError as error:
        raise PasteError(str(error)) from error
