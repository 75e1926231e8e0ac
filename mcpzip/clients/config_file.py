"""mcpzip's own config file, edited in place: servers are added, removed, renamed, switched on and off.

The rule: an edit keeps every byte that it is not about, and is refused if the config would be invalid.
"""

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from mcpzip.clients.documents import Document, DocumentError, Entry, read
from mcpzip.clients.migration import CONFIG_SERVERS, Change, MigrationError, read_file
from mcpzip.config import parse
from mcpzip.config.server import SHARE
from mcpzip.model.errors import ConfigError
from mcpzip.model.names import server_name_problem


class ConfigFile:
    """The config at ``path``, which may not exist yet. Each method returns the change that it stands for;
    `migration.write` makes it. All raise ConfigError.
    """

    def __init__(self, path: str, env: Mapping[str, str]) -> None:
        """env: the environment, for variables in the config."""
        self.path, self._env = path, env
        try:
            self._before = read_file(path)
            if self._before is not None:
                parse(self._before, path, env)
            self._document = read(self._before or b"", "json")
            self._names = list(self._document.servers(CONFIG_SERVERS))
        except (DocumentError, MigrationError) as error:
            raise ConfigError(path, "", str(error).rstrip("."), "correct the file by hand") from error

    def add(self, name: str, entry: Entry, *, replace: bool = False) -> Change:
        """Adds the server ``name``. replace: it may be there already."""
        self._check_new(name, replace=replace)
        return self._change(self._edited(self._document, (), {name: entry}), {name: entry})

    def remove(self, names: Iterable[str]) -> Change:
        """Removes the servers ``names``."""
        names = [self._known(name) for name in names]
        return self._change(self._edited(self._document, names, {}))

    def rename(self, name: str, new: str) -> Change:
        """Renames the server ``name``, where it stands."""
        entry = self._document.raw(CONFIG_SERVERS, self._known(name))
        self._check_new(new)
        return self._change(self._edited(self._document, [name], {new: entry}))

    def enable(self, names: Iterable[str], *, enabled: bool) -> Change:
        """Switches the servers ``names`` on or off."""
        data = self._before or b""
        for name in map(self._known, names):
            document, path = read(data, "json"), (*CONFIG_SERVERS, name)
            add: dict[str, str] = {} if enabled else {"disabled": "true"}
            data = self._edited(document, ["disabled"] if enabled else [], add, path)
        return self._change(data)

    def share(self, name: str, mode: str) -> Change:
        """Has agents share the server ``name`` in another way; ``auto`` is the default, so it is not
        written.
        """
        path = (*CONFIG_SERVERS, self._known(name))
        if mode not in SHARE:
            remedy = "choose one of " + ", ".join(SHARE)
            raise ConfigError(self.path, ".".join((*path, "share")), "there is no such mode", remedy)
        remove, add = (["share"], dict[str, str]()) if mode == "auto" else ([], {"share": json.dumps(mode)})
        return self._change(self._edited(self._document, remove, add, path))

    def set(self, path: tuple[str, ...], values: Mapping[str, object]) -> Change:
        """Sets the members ``values`` of the object at ``path``; ``()`` is the whole config."""
        texts = {key: json.dumps(value, ensure_ascii=False) for key, value in values.items()}
        return self._change(self._edited(self._document, (), texts, path))

    def _known(self, name: str) -> str:
        if name not in self._names:
            near = get_close_matches(name, self._names, n=3, cutoff=0.5)
            known = ", ".join(near or self._names) or "none"
            hint = f"the nearest: {known}" if near else f"the servers: {known}"
            raise ConfigError(self.path, f"mcpServers.{name}", "there is no such server", hint)
        return name

    def _check_new(self, name: str, *, replace: bool = False) -> None:
        where = f"mcpServers.{name}"
        if reason := server_name_problem(name):
            remedy = "choose one of letters, digits, '-', '.' and single '_'"
            raise ConfigError(self.path, where, f"this name {reason}", remedy)
        if name in self._names and not replace:
            raise ConfigError(
                self.path,
                where,
                "there is such a server already",
                "choose another name, or replace it with --force",
            )

    def _edited(
        self,
        document: Document,
        remove: Iterable[str],
        add: Mapping[str, Entry | str],
        path: tuple[str, ...] = CONFIG_SERVERS,
    ) -> bytes:
        try:
            return document.edited(path, list(remove), add)
        except DocumentError as error:
            raise ConfigError(self.path, "", str(error), "correct the file by hand") from error

    def _change(self, after: bytes, added: Mapping[str, Entry] | None = None) -> Change:
        parse(after, self.path, self._env)
        if added:
            parse(json.dumps({"mcpServers": added}).encode(), self.path, self._env, strict=True)
        return Change(self.path, "json", CONFIG_SERVERS, self._before, after, added=added or {}, private=True)


def entry_of(
    words: list[str], transport: str | None, env: Iterable[str], headers: Iterable[str], cwd: str | None
) -> dict[str, object]:
    """The entry of a server from a command line: a command and its arguments, or one URL. env: ``KEY=value``
    each. headers: ``Name: value`` each. Raises ValueError, whose text says what to write.
    """
    first, *args = shlex.split(words[0]) if len(words) == 1 and not os.path.exists(words[0]) else words
    variables = dict(_pair(each, "=", "--env KEY=value") for each in env)
    fields = dict(_pair(each, ":", "--header 'Name: value'") for each in headers)
    if first.lower().startswith(("http://", "https://")):
        if args:
            raise ValueError(f"Nothing may follow a URL, but {args[0]!r} does.")
        if variables or cwd is not None or transport == "stdio":
            raise ValueError("--env, --cwd and --transport stdio are for commands. A URL takes --header.")
        kind = {} if transport is None else {"type": transport}
        return kind | {"url": first} | ({"headers": fields} if fields else {})
    if fields or transport in ("http", "sse"):
        raise ValueError(f"--header and --transport {transport or 'http'} need a URL, but {first!r} is none.")
    entry: dict[str, object] = {"command": first}
    optional = {"args": args, "env": variables, "cwd": cwd}
    return entry | {key: value for key, value in optional.items() if value}


def entry_of_json(text: str) -> dict[str, object]:
    """The entry in ``text``: itself, or alone in an object called ``mcpServers``. The URL may have the names
    that Gemini CLI and Windsurf give it. Raises ValueError.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This is no JSON: {error}.") from error
    servers = found.get("mcpServers") if isinstance(found, dict) else None
    if isinstance(servers, dict) and len(servers) == 1:
        (found,) = servers.values()
    if not isinstance(found, dict):
        raise ValueError('Write an object, such as {"command": "uvx", "args": ["mcp-server-time"]}.')
    for key in ("httpUrl", "serverUrl"):
        if key in found and "url" not in found:
            found["url"] = found.pop(key)
    return found


def _pair(text: str, separator: str, example: str) -> tuple[str, str]:
    name, found, value = text.partition(separator)
    if not (found and name.strip()):
        raise ValueError(f"{text!r} has no {separator!r}: write {example}.")
    return name.strip(), value.strip() if separator == ":" else value
