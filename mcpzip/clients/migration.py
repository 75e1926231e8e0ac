"""What a migration of servers is made of: their files, the servers that move or stay, and the changes.

The rules:

1. All changes are computed before the first byte is written (`mcpzip.clients.plan`).
2. The old bytes of every file are on disk before the first file changes (`mcpzip.clients.record`). mcpzip's
   config is written before the clients' files, so that each server is in at least one file at any time.
3. A file that has changed since it was read is not written.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcpzip.clients.documents import Document, DocumentError, Entry, read
from mcpzip.clients.entries import is_mcpzip, own_entry
from mcpzip.clients.known import Client, Format
from mcpzip.model import limits
from mcpzip.model.errors import McpzipError
from mcpzip.system.files import read_bytes_limited, write_atomic

CONFIG_SERVERS = ("mcpServers",)
ENTRY = "mcpzip"
"""The name of mcpzip's entry in a client's config."""


class MigrationError(McpzipError):
    """A migration can't be done or undone. Nothing was changed, unless the message names what was."""


@dataclass(frozen=True, slots=True)
class Source:
    """Servers in a client's config file. keys: those that lead to them. project: the folder of the project
    that they belong to; "" if they are for all.
    """

    client: Client
    path: str
    data: bytes
    document: Document
    keys: tuple[str, ...]
    project: str = ""

    def servers(self) -> dict[str, object]:
        """The entries by name. Raises DocumentError."""
        return self.document.servers(self.keys)

    @property
    def is_shared(self) -> bool:
        """Whether the file lies in a project, so that others who work on it have it too."""
        return bool(self.project) and self.keys == self.client.servers


@dataclass(frozen=True, slots=True)
class Move:
    """A server that is moved. name: in the client; as_name: in mcpzip's config, or in its project's file.
    new: False if the same server is there already. left_out: keys of its entry that mcpzip doesn't have.
    """

    source: Source
    name: str
    as_name: str
    new: bool
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stay:
    """A server that is not moved, or a file that is not changed (then ``name`` is ""), and the reason.
    project: the folder with which it can be moved; "" if it can't.
    """

    client: str
    path: str
    name: str
    reason: str
    project: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """The old and the new content of a file. before: None if there is no file yet. servers: the keys that
    lead to its servers. removed: texts of entries by name (`Document.raw`); added: entries by name. private:
    only its owner may read it, because it may contain secrets; else it keeps its mode.
    """

    path: str
    format: Format
    servers: tuple[str, ...]
    before: bytes | None
    after: bytes
    removed: Mapping[str, str] = field(default_factory=dict)
    added: Mapping[str, Entry] = field(default_factory=dict)
    private: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a migration. changes: mcpzip's config first, then the files of projects, then those of
    clients, of which one may be changed twice; empty if there is nothing to do.
    """

    moves: tuple[Move, ...]
    stays: tuple[Stay, ...]
    changes: tuple[Change, ...]


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
    if change.private:
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
