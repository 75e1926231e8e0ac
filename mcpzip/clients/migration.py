"""Moves the servers of MCP clients into mcpzip's config.

The rules:

1. All changes are computed before the first byte is written; `plan` writes nothing.
2. The old bytes of every file are on disk before the first file changes (`mcpzip.clients.record`). mcpzip's
   config is written before the clients' files, so that each server is in at least one file at any time.
3. A file that has changed since it was read is not written.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcpzip.clients.documents import Document, DocumentError, Entry, read
from mcpzip.clients.entries import NotMovable, is_mcpzip, moved, own_entry
from mcpzip.clients.known import Client, Format
from mcpzip.config.reading import parse
from mcpzip.model import limits
from mcpzip.model.errors import ConfigError, McpzipError
from mcpzip.model.names import server_name_problem
from mcpzip.system.files import read_bytes_limited, write_atomic

CONFIG_SERVERS = ("mcpServers",)
ENTRY = "mcpzip"
"""The name of mcpzip's entry in a client's config."""
_PROJECTS = ("projects",)
_BESIDE_TRANSPORT = ("disabled", "timeout", "tools", "pin", "boost")


class MigrationError(McpzipError):
    """A migration can't be done or undone. Nothing was changed, unless the message names what was."""


@dataclass(frozen=True, slots=True)
class Source:
    """A client's config file that contains servers."""

    client: Client
    path: str
    data: bytes
    document: Document


@dataclass(frozen=True, slots=True)
class Move:
    """A server that is moved. name: in the client; as_name: in mcpzip's config. new: False if mcpzip's config
    has the same server already. left_out: keys of its entry that mcpzip doesn't have.
    """

    source: Source
    name: str
    as_name: str
    new: bool
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stay:
    """A server that is not moved, or a file that is not changed (then ``name`` is ""), and the reason."""

    client: str
    path: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """The old and the new content of a file. before: None if there is no file yet. servers: the keys that
    lead to its servers. removed: texts of entries by name (`Document.raw`); added: entries by name.
    """

    path: str
    format: Format
    servers: tuple[str, ...]
    before: bytes | None
    after: bytes
    removed: Mapping[str, str] = field(default_factory=dict)
    added: Mapping[str, Entry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a migration. changes: mcpzip's config first; empty if there is nothing to do."""

    moves: tuple[Move, ...]
    stays: tuple[Stay, ...]
    changes: tuple[Change, ...]


def plan(
    clients: Sequence[Client],
    config_path: str,
    env: Mapping[str, str],
    *,
    command: str,
    arguments: Sequence[str],
    project: str = "",
) -> Plan:
    """Plans to move the servers of ``clients`` to the config at ``config_path``. Writes nothing.

    command, arguments: the command line with which clients start mcpzip with that config. project: a folder
    whose project files are read too; their servers aren't moved. Raises MigrationError if the config can't be
    read or changed.
    """
    stays: list[Stay] = []
    sources = [source for client in clients for source in _sources(client, stays)]
    before = read_file(config_path)
    config, existing = _config(config_path, before)
    entries = dict(existing)
    moves: list[Move] = []
    for source in sources:
        for name, data in source.document.servers(source.client.servers).items():
            if is_mcpzip(data):
                continue
            try:
                translated = moved(data, source.client.dialect)
                as_name, new = _config_name(name, translated.entry, entries, source.client)
                _check(config_path, as_name, translated.entry, env)
            except NotMovable as error:
                stays.append(Stay(source.client.title, source.path, name, str(error)))
                continue
            if new:
                entries[as_name] = translated.entry
            moves.append(Move(source, name, as_name, new, translated.left_out))
    stays += _project_servers(clients, sources, project)
    changes = _client_changes(sources, moves, command, arguments, stays)
    changed = {change.path for change in changes}
    moves = [move for move in moves if move.source.path in changed]
    added = {move.as_name: entries[move.as_name] for move in moves if move.new}
    if added:
        try:
            after = config.edited(CONFIG_SERVERS, (), added)
            parse(after, config_path, env)  # also registers the secrets of the new entries for redaction
        except (DocumentError, ConfigError) as error:
            raise MigrationError(f"{config_path} can't be changed: {error}") from error
        changes.insert(0, Change(config_path, "json", CONFIG_SERVERS, before, after, {}, added))
    return Plan(tuple(moves), tuple(stays), tuple(changes))


def write(change: Change) -> None:
    """Writes the new content of a file. Raises MigrationError if the file has changed since `plan`."""
    if read_file(change.path) != change.before:
        raise MigrationError(
            f"{change.path} was changed meanwhile. Quit the program that uses it and try again."
        )
    try:
        write_atomic(change.path, change.after, _mode(change))
    except OSError as error:
        raise MigrationError(f"{change.path} can't be written: {error.strerror}.") from error


def registration(client: Client, command: str, arguments: Sequence[str]) -> Change | None:
    """The change that registers mcpzip with ``client``: in the first of its files that exists, else in a new
    one. None if it is registered. Raises MigrationError.
    """
    path = next((path for path in client.files if os.path.exists(path)), client.files[0])
    before = read_file(path)
    try:
        document = read(before or b"", client.format)
        present = document.servers(client.servers)
        if any(map(is_mcpzip, present.values())):
            return None
        name = ENTRY if ENTRY not in present else f"{ENTRY}-proxy"
        added = {name: own_entry(client.dialect, command, list(arguments))}
        after = document.edited(client.servers, [], added)
    except DocumentError as error:
        raise MigrationError(f"{client.title}'s {path} can't be changed: {error}.") from error
    return Change(path, client.format, client.servers, before, after, {}, added)


def digest(data: bytes) -> str:
    """SHA-256 of ``data``, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _mode(change: Change) -> int:
    # mcpzip's config now contains secrets, so only its owner may read it. A client's file keeps its mode.
    if change.servers == CONFIG_SERVERS and change.added.keys() != {ENTRY}:
        return 0o600
    return os.stat(change.path).st_mode & 0o777 if os.path.exists(change.path) else 0o600


def read_file(path: str) -> bytes | None:
    """The bytes of the file; None if there is none. Raises MigrationError."""
    try:
        return read_bytes_limited(path, limits.CLIENT_CONFIG)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MigrationError(f"{path} can't be read: {error.strerror}.") from error


def _sources(client: Client, stays: list[Stay]) -> list[Source]:
    """The files of ``client`` that contain servers."""
    found: list[Source] = []
    for path in client.files:
        try:
            data = read_file(path)
            if data is None:
                continue
            document = read(data, client.format)
            if not document.servers(client.servers) and not _has_projects(client, document):
                continue
            if not os.access(os.path.realpath(path), os.W_OK):
                raise DocumentError("it is read-only")
            found.append(Source(client, path, data, document))
        except (DocumentError, MigrationError) as error:
            stays.append(Stay(client.title, path, "", str(error)))
    return found


def _has_projects(client: Client, document: Document) -> bool:
    """Whether the file has servers of single projects (Claude Code's ``projects``)."""
    return client.name == "claude-code" and bool(document.servers(_PROJECTS))


def _config(path: str, data: bytes | None) -> tuple[Document, dict[str, dict[str, object]]]:
    """mcpzip's config, and its entries by name."""
    try:
        document = read(data if data is not None else b"", "json")
        servers = document.servers(CONFIG_SERVERS)
    except DocumentError as error:
        raise MigrationError(f"{path} can't be changed: {error}.") from error
    return document, {name: dict(entry) for name, entry in servers.items() if isinstance(entry, dict)}


def _config_name(
    name: str, entry: Mapping[str, object], entries: Mapping[str, Mapping[str, object]], client: Client
) -> tuple[str, bool]:
    """The name of ``entry`` in mcpzip's config, and whether it is new there."""
    for other, existing in entries.items():
        if _transport(existing) == _transport(entry):
            return other, False
    valid = _valid_name(name)
    if valid not in entries:
        return valid, True
    valid = _valid_name(f"{name}-{client.name}")
    number = 2
    while valid in entries:
        valid, number = _valid_name(f"{name}-{client.name}-{number}"), number + 1
    return valid, True


def _transport(entry: Mapping[str, object]) -> dict[str, object]:
    """The settings of the connection: two entries with the same ones are the same server."""
    empty: tuple[object, ...] = (None, [], {}, "")
    keys = {key: value for key, value in entry.items() if key not in _BESIDE_TRANSPORT and value not in empty}
    if str(keys.get("type", "")).lower() in ("stdio", "http", "streamable-http", "streamablehttp"):
        del keys["type"]
    return keys


def _valid_name(name: str) -> str:
    """``name``, changed if it isn't valid as a server name of mcpzip."""
    if not server_name_problem(name):
        return name
    valid = re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.")
    return valid if valid and not server_name_problem(valid) else "server"


def _check(path: str, name: str, entry: dict[str, object], env: Mapping[str, str]) -> None:
    """Raises NotMovable for an entry that mcpzip's config would refuse."""
    try:
        parse(json.dumps({"mcpServers": {name: entry}}).encode(), path, env, strict=True)
    except ConfigError as error:
        raise NotMovable(f"mcpzip could not use it: {error}") from error


def _client_changes(
    sources: Sequence[Source],
    moves: Sequence[Move],
    command: str,
    arguments: Sequence[str],
    stays: list[Stay],
) -> list[Change]:
    """The clients' files without the servers that were moved, and with mcpzip."""
    changes: list[Change] = []
    for source in sources:
        client, names = source.client, [move.name for move in moves if move.source is source]
        if not names:
            continue
        present = source.document.servers(client.servers)
        add: dict[str, Entry] = {}
        if not any(is_mcpzip(data) for data in present.values()):
            name = ENTRY if ENTRY not in present or ENTRY in names else f"{ENTRY}-proxy"
            add[name] = own_entry(client.dialect, command, list(arguments))
        removed = {name: source.document.raw(client.servers, name) for name in names}
        try:
            after = source.document.edited(client.servers, names, add)
        except DocumentError as error:
            stays.append(Stay(client.title, source.path, "", str(error)))
            continue
        changes.append(Change(source.path, client.format, client.servers, source.data, after, removed, add))
    return changes


def _project_servers(clients: Sequence[Client], sources: Sequence[Source], folder: str) -> list[Stay]:
    """The servers of single projects, which are not moved."""
    reason = "it belongs to one project, and mcpzip's config is for all of them"
    stays: list[Stay] = []
    for source in sources:
        projects = source.document.servers(_PROJECTS) if _has_projects(source.client, source.document) else {}
        for path, project in projects.items():
            servers = project.get("mcpServers") if isinstance(project, dict) else None
            for name, data in servers.items() if isinstance(servers, dict) else ():
                if not is_mcpzip(data):
                    stays.append(Stay(source.client.title, path, name, reason))
    for client in clients if folder else ():
        for name in client.project:
            path = os.path.join(folder, name)
            try:
                data = read_file(path)
                servers = {} if data is None else read(data, client.format).servers(client.servers)
            except (DocumentError, MigrationError) as error:
                stays.append(Stay(client.title, path, "", str(error)))
                continue
            stays += [
                Stay(client.title, path, each, reason) for each, it in servers.items() if not is_mcpzip(it)
            ]
    return stays
