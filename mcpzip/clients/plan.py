"""Plans to move the servers of MCP clients into mcpzip's config, and those of projects into their own files.

The rule: `plan` reads files and writes none.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mcpzip.clients.documents import Document, DocumentError, Entry, read
from mcpzip.clients.entries import NotMovable, is_built_in, is_mcpzip, moved, own_entry
from mcpzip.clients.known import Client
from mcpzip.clients.migration import (
    CONFIG_SERVERS,
    ENTRY,
    Change,
    MigrationError,
    Move,
    Plan,
    Source,
    Stay,
    read_file,
)
from mcpzip.config.paths import PROJECT_FILE
from mcpzip.config.reading import PROJECT_FOLDER, parse
from mcpzip.model.errors import ConfigError
from mcpzip.model.names import server_name_problem

_PROJECTS = ("projects",)
"""The keys of Claude Code's file that lead to its projects by folder."""
_BESIDE_TRANSPORT = ("disabled", "timeout", "tools", "pin", "boost", "trust")
_SHARED = ("mcpzip", ["serve"])
"""How a project's file starts mcpzip: by its name, because the file is shared with other machines."""
_OF_A_PROJECT = "it belongs to one project"


@dataclass(slots=True)
class _Target:
    """A file that servers are moved to: mcpzip's config, or the file of a project. before: None if there is
    no file yet. entries: by name, with those of the plan so far. known: entries that this user has anyway.
    """

    path: str
    before: bytes | None
    document: Document
    entries: dict[str, dict[str, object]]
    known: Mapping[str, Mapping[str, object]]

    def name_for(self, name: str, entry: Mapping[str, object], source: Source) -> tuple[str, bool]:
        """The name of ``entry`` in this file, and whether it is new."""
        known = {} if source.is_shared else self.known  # the others of a team don't have them
        for other, existing in {**known, **self.entries}.items():
            if _transport(existing) == _transport(entry):
                return other, False
        valid = _valid_name(name)
        if valid not in self.entries:
            return valid, True
        valid = _valid_name(f"{name}-{source.client.name}")
        number = 2
        while valid in self.entries:
            valid, number = _valid_name(f"{name}-{source.client.name}-{number}"), number + 1
        return valid, True


def plan(
    clients: Sequence[Client],
    config_path: str,
    env: Mapping[str, str],
    *,
    command: str,
    arguments: Sequence[str],
    folder: str = "",
    projects: Sequence[str] = (),
) -> Plan:
    """Plans to move the servers of ``clients`` to the config at ``config_path``.

    command, arguments: the command line with which clients start mcpzip with that config. projects: absolute
    paths of folders whose servers are moved too, to the `PROJECT_FILE` there. folder: another project, whose
    servers are reported as staying. Raises MigrationError if the config can't be read or changed.
    """
    stays: list[Stay] = []
    sources = [source for client in clients for source in _user_sources(client, stays)]
    for project in projects:
        sources += _project_sources(clients, project, stays)
    ours = _target(config_path, {})
    targets = {"": ours}
    for project in projects:
        targets[project] = _target(os.path.join(project, PROJECT_FILE), ours.entries)
    moves: list[Move] = []
    for source in sources:
        target = targets[source.project]
        for name, data in source.servers().items():
            if is_mcpzip(data) or is_built_in(data):
                continue
            try:
                translated = moved(data, source.client.dialect, project=bool(source.project))
                as_name, new = target.name_for(name, translated.entry, source)
                _check(target.path, as_name, translated.entry, env, source.project)
            except NotMovable as error:
                stays.append(Stay(source.client.title, source.path, name, str(error)))
                continue
            if new:
                target.entries[as_name] = translated.entry
            moves.append(Move(source, name, as_name, new, translated.left_out))
    stays += _staying(clients, folder, projects)
    changes, given_up = _client_changes(sources, moves, command, arguments, stays)
    moves = [move for move in moves if move.source in given_up]
    written = [_target_change(target, moves, project, env) for project, target in targets.items()]
    return Plan(tuple(moves), tuple(stays), (*(one for one in written if one is not None), *changes))


# ---- the servers of clients


def _user_sources(client: Client, stays: list[Stay]) -> list[Source]:
    """The servers for all projects in the files of ``client``."""
    found = [_source(client, path, client.servers, "", stays) for path in client.files]
    return [source for source in found if source is not None]


def _project_sources(clients: Sequence[Client], project: str, stays: list[Stay]) -> list[Source]:
    """The servers of ``project`` alone: in its own files, and in that of Claude Code."""
    found: list[Source | None] = []
    for client in clients:
        found += [
            _source(client, path, client.servers, project, stays)
            for name in client.project
            if (path := os.path.join(project, name)) not in client.files  # in the home folder
        ]
        for path in client.files:
            for keys in _keys_of_projects(client, path, stays):
                if os.path.realpath(keys[1]) == os.path.realpath(project):
                    found.append(_source(client, path, keys, project, stays))
    return [source for source in found if source is not None]


def _source(
    client: Client, path: str, keys: tuple[str, ...], project: str, stays: list[Stay]
) -> Source | None:
    """The servers at ``keys`` of a file; None if there are none, or if the file can't be used."""
    try:
        data = read_file(path)
        if data is None:
            return None
        source = Source(client, path, data, read(data, client.format), keys, project)
        if not source.servers():
            return None
        if not os.access(os.path.realpath(path), os.W_OK):
            raise DocumentError("it is read-only")
    except (DocumentError, MigrationError) as error:
        if not any(stay.path == path and not stay.name for stay in stays):
            stays.append(Stay(client.title, path, "", str(error)))
        return None
    return source


def _keys_of_projects(client: Client, path: str, stays: list[Stay]) -> list[tuple[str, ...]]:
    """The keys of the servers of each project in a file: Claude Code keeps them there by folder."""
    if client.name != "claude-code":
        return []
    found = _source(client, path, _PROJECTS, "", stays)
    return [
        (*_PROJECTS, name, "mcpServers")
        for name, project in (found.servers() if found else {}).items()
        if isinstance(project, dict) and isinstance(project.get("mcpServers"), dict)
    ]


def _staying(clients: Sequence[Client], folder: str, projects: Sequence[str]) -> list[Stay]:
    """The servers of single projects that are not moved: of all in Claude Code's file, and of ``folder``."""
    moving = {os.path.realpath(project) for project in projects}
    named = {
        keys[1]: None
        for client in clients
        for path in client.files
        for keys in _keys_of_projects(client, path, [])
    }
    stays: list[Stay] = []
    for project in dict.fromkeys((*named, folder)):
        if not project or os.path.realpath(project) in moving:
            continue
        for source in _project_sources(clients, project, stays):
            if source.is_shared and project != folder:
                continue  # its folder may be anywhere, and nobody asked for it
            place = source.path if source.is_shared else project
            stays += [
                Stay(source.client.title, place, name, _OF_A_PROJECT, project)
                for name, data in source.servers().items()
                if not is_mcpzip(data)
            ]
    return stays


# ---- changes


def _client_changes(
    sources: Sequence[Source],
    moves: Sequence[Move],
    command: str,
    arguments: Sequence[str],
    stays: list[Stay],
) -> tuple[list[Change], list[Source]]:
    """The clients' files without the servers that are moved, and with mcpzip; and the sources of those."""
    changes: list[Change] = []
    given_up: list[Source] = []
    content: dict[str, bytes] = {}

    def change(source: Source, keys: tuple[str, ...], names: Sequence[str], add: dict[str, Entry]) -> None:
        before = content.get(source.path, source.data)
        document = read(before, source.client.format)
        removed = {name: document.raw(keys, name) for name in names}
        after = document.edited(keys, names, add)
        changes.append(Change(source.path, source.client.format, keys, before, after, removed, add))
        content[source.path] = after

    for source in sources:
        client, names = source.client, [move.name for move in moves if move.source is source]
        if not names:
            continue
        start = _SHARED if source.is_shared else (command, list(arguments))
        made = len(changes)
        try:
            present = read(content.get(source.path, source.data), client.format).servers(client.servers)
            gone = names if source.keys == client.servers else ()
            add: dict[str, Entry] = {}
            if not any(is_mcpzip(data) for data in present.values()):
                name = ENTRY if ENTRY not in present or ENTRY in gone else f"{ENTRY}-proxy"
                add[name] = own_entry(client.dialect, *start)
            if source.keys == client.servers:
                change(source, source.keys, names, add)
            else:
                if add:
                    change(source, client.servers, (), add)
                change(source, source.keys, names, {})
        except DocumentError as error:
            for undone in reversed(changes[made:]):
                content[source.path] = undone.before or b""
            del changes[made:]
            stays.append(Stay(client.title, source.path, "", str(error)))
            continue
        given_up.append(source)
    return changes, given_up


def _target(path: str, known: Mapping[str, Mapping[str, object]]) -> _Target:
    """The file at ``path``, to which servers can be moved. Raises MigrationError."""
    before = read_file(path)
    try:
        document = read(before if before is not None else b"", "json")
        servers = document.servers(CONFIG_SERVERS)
    except DocumentError as error:
        raise MigrationError(f"{path} can't be changed: {error}.") from error
    entries = {name: dict(entry) for name, entry in servers.items() if isinstance(entry, dict)}
    return _Target(path, before, document, entries, known)


def _target_change(
    target: _Target, moves: Sequence[Move], project: str, env: Mapping[str, str]
) -> Change | None:
    """The change of the file that gets the ``moves`` of ``project``; None if it has them all."""
    added: dict[str, Entry] = {
        move.as_name: target.entries[move.as_name]
        for move in moves
        if move.new and move.source.project == project
    }
    if not added:
        return None
    try:
        after = target.document.edited(CONFIG_SERVERS, (), added)
        parse(after, target.path, _variables(env, project))  # also registers the secrets for redaction
    except (DocumentError, ConfigError) as error:
        raise MigrationError(f"{target.path} can't be changed: {error}") from error
    return Change(target.path, "json", CONFIG_SERVERS, target.before, after, {}, added, private=True)


# ---- entries


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


def _check(path: str, name: str, entry: dict[str, object], env: Mapping[str, str], project: str) -> None:
    """Raises NotMovable for an entry that mcpzip's config would refuse."""
    try:
        parse(json.dumps({"mcpServers": {name: entry}}).encode(), path, _variables(env, project), strict=True)
    except ConfigError as error:
        raise NotMovable(f"mcpzip could not use it: {error}") from error


def _variables(env: Mapping[str, str], project: str) -> Mapping[str, str]:
    return {**env, PROJECT_FOLDER: project} if project else env
