"""Reads and writes cassette files; several processes can add to one at the same time.

The rule: what was recorded is on the disk as soon as its exchange is over, so that a recorder which is killed
loses only the exchanges that were still open. Messages longer than `INLINE` are in files of their own, in the
folder ``NAME.bodies`` beside the cassette.
"""

import os
import re
import time
import tomllib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Self, cast

import msgspec

from mcpzip.cassettes.cassette import Cassette, Exchange, Masked, Session
from mcpzip.cassettes.layout import (
    KEYS,
    cassette_text,
    exchange_text,
    from_mapping,
    masked_text,
    session_text,
)
from mcpzip.cassettes.toml_values import Value
from mcpzip.model.errors import ConfigError
from mcpzip.model.limits import CASSETTE, MESSAGE
from mcpzip.system.files import make_folders, read_bytes_limited, remove_file, write_atomic
from mcpzip.system.locks import locked_blocking

INLINE = 2_000
"""Bytes of a message that stands in the cassette itself."""
_LOCK_TIMEOUT = 10.0
"""Seconds to wait for another process that writes to the cassette."""
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
_METHOD = re.compile(rb'"method"\s*:\s*"([A-Za-z0-9/_-]{1,60})"')


class CassetteError(ConfigError):
    """A cassette can't be read or written. ``file``, ``path``, ``found``, ``remedy``: see `ConfigError`."""


def read_data(path: str) -> dict[str, object]:
    """The data of the TOML file at ``path``. Raises CassetteError."""
    try:
        return tomllib.loads(read_bytes_limited(path, CASSETTE).decode())
    except OSError as error:
        raise CassetteError(path, "", f"it can't be read ({error.strerror})", "check the path") from error
    except (ValueError, RecursionError) as error:
        raise CassetteError(path, "", str(error), "correct the syntax") from error


def load(path: str) -> Cassette:
    """The cassette in the file at ``path``. Raises CassetteError."""
    return load_whole(path)[0]


def load_whole(path: str) -> tuple[Cassette, dict[str, Value]]:
    """The cassette in the file at ``path``, and the file's other keys, as `save` takes them. Raises
    CassetteError.
    """
    data = read_data(path)
    if "cassette" not in data:
        raise CassetteError(
            path, "", "it is no cassette: the key 'cassette' is missing", "give a file of mcpzip-fake record"
        )
    more = {key: value for key, value in data.items() if key not in (*KEYS, "name")}
    return of_data(data, path), cast(dict[str, Value], more)


def of_data(data: Mapping[str, object], path: str) -> Cassette:
    """The cassette in the data of the file at ``path``. Raises CassetteError."""
    try:
        return from_mapping(data, lambda file: _read_body(path, file))
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at `$")
        raise CassetteError(path, where.rstrip("`").lstrip("."), text, "correct it") from None
    except ValueError as error:
        found, _, remedy = str(error).partition("; ")
        raise CassetteError(path, "", found, remedy or "correct it") from None


def save(path: str, cassette: Cassette, more: Mapping[str, Value] | None = None) -> None:
    """Writes the whole cassette; its large messages get new files, and those it had before are removed. more:
    the other keys of the file, such as the faults of a scenario. Raises CassetteError.
    """
    bodies = _Bodies(path)
    try:
        text = cassette_text(cassette, bodies.keep, more).encode()
        if len(text) > CASSETTE:
            size = f"it would have {len(text):,} bytes, more than the {CASSETTE:,} that can be read"
            raise CassetteError(path, "", size, "make it of fewer exchanges")
        write_atomic(path, text, 0o644)
        bodies.remove_others()
    except OSError as error:
        raise _unwritable(path, error) from error


class CassetteWriter:
    """Adds one session to the cassette at ``path``. Thread-safe between processes, not between threads.

    session: its number. Every method raises CassetteError if the file can't be written.
    """

    def __init__(self, path: str, cassette: Cassette, *, anew: bool = False) -> None:
        """cassette: what the file begins with if there is none. anew: replace an existing file."""
        self.path = os.path.abspath(path)
        try:
            make_folders(os.path.dirname(self.path))
            with self._locked():
                if anew or not os.path.exists(self.path):
                    save(self.path, cassette)
                    sessions: tuple[Session, ...] = cassette.sessions
                else:
                    sessions = load(self.path).sessions
                self.session = max((each.number for each in sessions), default=0) + 1
                started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                self._write(session_text(Session(number=self.session, started=started)))
        except (OSError, TimeoutError) as error:
            raise _unwritable(path, error) from error
        self._sessions = {self.session}
        self._bodies = _Bodies(self.path)

    def add(self, exchange: Exchange) -> None:
        """Adds an exchange that is over, to this session unless it names another one."""
        try:
            with self._locked():  # also for the bodies, so that nobody removes them before they are named
                self._write(exchange_text(exchange, self._bodies.keep))
        except (OSError, TimeoutError) as error:
            raise _unwritable(self.path, error) from error

    def change(self, changed: Callable[[Exchange], Exchange]) -> bool:
        """Replaces the exchanges of the sessions that it began. Returns whether ``changed`` changed one.

        If it did, the file is written again without its comments.
        """
        try:
            with self._locked():
                data = read_data(self.path)
                cassette = of_data(data, self.path)
                exchanges = [
                    changed(each) if each.session in self._sessions else each for each in cassette.exchanges
                ]
                if tuple(exchanges) == cassette.exchanges:
                    return False
                more = {key: cast(Value, value) for key, value in data.items() if key not in (*KEYS, "name")}
                save(self.path, cassette.with_exchanges(exchanges), more)
                return True
        except (OSError, TimeoutError) as error:
            raise _unwritable(self.path, error) from error

    def add_session(self) -> int:
        """Begins another session, for a server that has several at a time. Returns its number."""
        with self._locked():
            number = max(each.number for each in load(self.path).sessions) + 1
            started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self._write(session_text(Session(number=number, started=started)))
        self._sessions.add(number)
        return number

    def add_masked(self, masked: Masked) -> None:
        """Adds a secret that was masked."""
        self._append(masked_text(masked))

    def close(self) -> None:
        """Removes the lock file. Can be called again."""
        try:
            remove_file(self._lock)
        except OSError:
            pass  # another process has it open (Windows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _lock(self) -> str:
        return f"{self.path}.lock"

    def _locked(self) -> AbstractContextManager[None]:
        return locked_blocking(self._lock, _LOCK_TIMEOUT)

    def _append(self, text: str) -> None:
        try:
            with self._locked():
                self._write(text)
        except (OSError, TimeoutError) as error:
            raise _unwritable(self.path, error) from error

    def _write(self, text: str) -> None:
        data = text.encode()
        handle = os.open(self.path, _APPEND, 0o644)
        try:
            if os.fstat(handle).st_size + len(data) > CASSETTE:
                found = f"it is full: more than {CASSETTE:,} bytes can't be read again"
                raise CassetteError(self.path, "", found, "record the rest into another cassette")
            while data:
                data = data[os.write(handle, data) :]
        finally:
            os.close(handle)


class _Bodies:
    """Writes large messages to files, each named after a method and its content."""

    def __init__(self, path: str) -> None:
        self._folder = f"{os.path.splitext(path)[0]}.bodies"
        self._known: dict[bytes, str] = {}  # by the SHA-256 of the data

    def keep(self, data: bytes, request: bytes) -> str:
        """See `KeepBody`."""
        if len(data) <= INLINE:
            return ""
        digest = sha256(data)
        name = self._known.get(digest.digest())
        if name and os.path.exists(os.path.join(self._folder, os.path.basename(name))):
            return name
        method = _METHOD.search(request[:INLINE]) or _METHOD.search(data[:INLINE])
        kind = method[1].decode().replace("/", "-") if method else "message"
        stem = f"{kind}-{digest.hexdigest()[:12]}"
        file, number = f"{stem}.json", 1
        while not self._is_free(file, data):
            number += 1
            file = f"{stem}-{number}.json"
        path = os.path.join(self._folder, file)
        if not os.path.exists(path):
            write_atomic(path, data, 0o644)
        name = f"{os.path.basename(self._folder)}/{file}"
        self._known[digest.digest()] = name
        return name

    def _is_free(self, file: str, data: bytes) -> bool:
        """Whether ``file`` can hold ``data``: somebody may have edited the one that held it before."""
        try:
            return read_bytes_limited(os.path.join(self._folder, file), MESSAGE) == data
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def remove_others(self) -> None:
        """Removes the files that were not written by `keep`, and the folder if it is empty."""
        names = {os.path.basename(name) for name in self._known.values()}
        try:
            for file in os.listdir(self._folder):
                if file.endswith(".json") and file not in names:
                    remove_file(os.path.join(self._folder, file))
            os.rmdir(self._folder)
        except OSError:
            pass  # there is no folder, or it still has files


def _read_body(path: str, file: str) -> bytes:
    """The content of a body's file. Raises ValueError if it is outside of the cassette's folder or can't be
    read."""
    folder = os.path.realpath(os.path.dirname(path))
    target = os.path.realpath(os.path.join(folder, file))
    if os.path.isabs(file) or os.path.commonpath([folder, target]) != folder:
        raise ValueError(f"the file {file!r} is outside of the cassette's folder; move it there")
    try:
        return read_bytes_limited(target, MESSAGE)
    except OSError as error:
        raise ValueError(f"the file {file!r} can't be read ({error.strerror}); put it back") from error


def _unwritable(path: str, error: OSError) -> CassetteError:
    why = error.strerror or str(error)
    return CassetteError(path, "", f"it can't be written ({why})", "choose another path")
