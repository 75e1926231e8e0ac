"""The record of a migration on disk, and its undoing.

    migrations/20261123T171500.123456Z/record.json     what was changed
                                       0.bak, 1.bak …  the old files

The rule: the record is complete before the first file changes. `undo` restores the old bytes of a file that
is as the migration wrote it; in a file that has changed since, it restores only the entries.
"""

import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec

from mcpzip.clients.documents import DocumentError, read
from mcpzip.clients.migration import Change, MigrationError, digest, read_file, write
from mcpzip.model import limits
from mcpzip.system.files import read_bytes_limited, remove_file, write_atomic

FORMAT = "mcpzip-migration/1"
_RECORD = "record.json"

Outcome = Literal["restored", "merged", "removed", "unchanged"]


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """One changed file. backup: name of the file with its old bytes; "" if the migration created it. after:
    SHA-256 of the bytes that were written. mode: Unix permissions of the old file.
    """

    path: str
    format: Literal["json", "toml", "yaml"]
    servers: tuple[str, ...]
    backup: str
    after: str
    mode: int
    removed: dict[str, str]
    added: dict[str, dict[str, object]]


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    time: str
    files: tuple[_File, ...]
    undone: bool = False


def migrations_folder(config_path: str) -> str:
    """The folder of the records of this config's migrations."""
    return os.path.join(os.path.dirname(config_path), "migrations")


def write_record(changes: Iterable[Change], config_path: str, now: float | None = None) -> str:
    """Writes the record of ``changes``, before they are made. now: Unix seconds. Returns the record's folder.
    Raises MigrationError.
    """
    moment = datetime.fromtimestamp(time.time() if now is None else now, UTC)
    folder = os.path.join(migrations_folder(config_path), moment.strftime("%Y%m%dT%H%M%S.%fZ"))
    files = []
    try:
        for number, change in enumerate(changes):
            backup = f"{number}.bak" if change.before is not None else ""
            if change.before is not None:
                write_atomic(os.path.join(folder, backup), change.before)
            files.append(
                _File(
                    path=change.path,
                    format=change.format,
                    servers=change.servers,
                    backup=backup,
                    after=digest(change.after),
                    mode=os.stat(change.path).st_mode & 0o777 if change.before is not None else 0o600,
                    removed=dict(change.removed),
                    added={name: dict(entry) for name, entry in change.added.items()},
                )
            )
        _write(folder, _Record(format=FORMAT, time=moment.isoformat(), files=tuple(files)))
    except OSError as error:
        raise MigrationError(f"{folder} can't be written: {error.strerror}. Nothing was changed.") from error
    return folder


class Restoration(NamedTuple):
    """What undoing does to a file. after: its bytes then; None for no file."""

    path: str
    outcome: Outcome
    after: bytes | None


def plan_undo(config_path: str) -> list[Restoration]:
    """What `undo` would do now. Changes nothing. Raises MigrationError."""
    folder, record = _last_record(config_path)
    return [_restoration(file, folder) for file in reversed(record.files)]


def undo(config_path: str) -> list[Restoration]:
    """Undoes the last migration that isn't undone yet, the clients' files first. Raises MigrationError; files
    restored before stay restored, and the next `undo` continues.
    """
    folder, record = _last_record(config_path)
    outcomes = []
    for file in reversed(record.files):
        outcomes.append(_restoration(file, folder))
        _restore(file, outcomes[-1])
    try:
        _write(folder, msgspec.structs.replace(record, undone=True))
    except OSError as error:
        raise MigrationError(f"{folder} can't be written: {error.strerror}.") from error
    return outcomes


def _last_record(config_path: str) -> tuple[str, _Record]:
    parent = migrations_folder(config_path)
    try:
        names = sorted(os.listdir(parent), reverse=True)
    except FileNotFoundError:
        names = []
    for name in names:
        folder = os.path.join(parent, name)
        try:
            data = read_bytes_limited(os.path.join(folder, _RECORD), 4 * limits.CLIENT_CONFIG)
            record = msgspec.json.decode(data, type=_Record)
        except FileNotFoundError:
            continue  # the migration was interrupted before it changed a file
        except (OSError, msgspec.DecodeError) as error:
            raise MigrationError(f"{folder} can't be read: {error}. The old files are in it.") from error
        if record.format != FORMAT:
            raise MigrationError(f"{folder} was written by another version of mcpzip ({record.format}).")
        if not record.undone:
            return folder, record
    raise MigrationError("There is no migration to undo.")


def _restoration(file: _File, folder: str) -> Restoration:
    old = read_file(os.path.join(folder, file.backup)) if file.backup else None
    now = read_file(file.path)
    if now == old or now is None:  # None: the user removed the file
        return Restoration(file.path, "unchanged", now)
    if digest(now) == file.after:
        return Restoration(file.path, "removed" if old is None else "restored", old)
    return Restoration(file.path, "merged", _merged(file, now))


def _restore(file: _File, restoration: Restoration) -> None:
    if restoration.outcome == "unchanged":
        return
    if restoration.after is None:
        remove_file(file.path)
    else:
        _write_file(file, restoration.after)


def _merged(file: _File, now: bytes) -> bytes:
    """``now`` with the entries that the migration removed, and without those that it added, if unchanged."""
    try:
        document = read(now, file.format)
        present = document.servers(file.servers)
        remove = [name for name, entry in file.added.items() if present.get(name) == entry]
        add = {name: raw for name, raw in file.removed.items() if name not in present or name in remove}
        return document.edited(file.servers, [name for name in remove if name not in add], add)
    except DocumentError as error:
        raise MigrationError(
            f"{file.path} can't be changed: {error}. Its old content is in {file.backup}."
        ) from error


def _write_file(file: _File, data: bytes) -> None:
    try:
        write_atomic(file.path, data, file.mode)
    except OSError as error:
        raise MigrationError(f"{file.path} can't be written: {error.strerror}.") from error


def _write(folder: str, record: _Record) -> None:
    write_atomic(os.path.join(folder, _RECORD), msgspec.json.encode(record))


def migrate(changes: Iterable[Change], config_path: str) -> str:
    """Writes the record, then the files. Returns the record's folder. Raises MigrationError."""
    changes = list(changes)
    folder = write_record(changes, config_path)
    for change in changes:
        write(change)
    return folder


def rewritten(changes: Iterable[Change]) -> list[str]:
    """The paths of the files whose content is no longer ``after``, because a running client wrote them."""
    last = {change.path: change.after for change in changes}
    return [path for path, after in last.items() if read_file(path) != after]
