"""The audit log in a table of PostgreSQL, which processes and machines share.

    mcpzip_audit       n, at, server, tool, decision, outcome, person, line    the line as in a file, ASCII
    mcpzip_audit_head  n, hash                                                 of the last line

The rules: lines are appended in one transaction, which holds the row of the head, so that they follow each
other whoever writes them. It ends by itself when a process or the server stops in the middle. The tables are
made when they are missing. Nothing is removed from them.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import psycopg

from mcpzip.model.quoting import shortened
from mcpzip.model.redaction import redact
from mcpzip.policy.audit_destination import Make
from mcpzip.policy.audit_files import NOTHING, AuditLine, Head, decoded, hash_of

_LOCK = 0x6D63707A6971
"""Of the advisory lock under which the tables are made: two at once fail in spite of IF NOT EXISTS."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS mcpzip_audit (n bigint PRIMARY KEY, at timestamptz NOT NULL, "
    "server text NOT NULL, tool text NOT NULL, decision text NOT NULL, outcome text NOT NULL, "
    "person text NOT NULL, line text NOT NULL)",
    "CREATE INDEX IF NOT EXISTS mcpzip_audit_at ON mcpzip_audit (at)",
    "CREATE TABLE IF NOT EXISTS mcpzip_audit_head (n bigint NOT NULL, hash text NOT NULL)",
    "INSERT INTO mcpzip_audit_head SELECT 0, %s WHERE NOT EXISTS (SELECT FROM mcpzip_audit_head)",
)
_READY = "SELECT to_regclass('mcpzip_audit_head') IS NOT NULL AND to_regclass('mcpzip_audit') IS NOT NULL"
_TIMES = (
    "SET LOCAL statement_timeout = '5s'",
    "SET LOCAL lock_timeout = '5s'",
    "SET LOCAL idle_in_transaction_session_timeout = '10s'",
)
_HEAD = "SELECT n, hash FROM mcpzip_audit_head FOR UPDATE"
_APPEND = "INSERT INTO mcpzip_audit VALUES (%s, to_timestamp(%s), %s, %s, %s, %s, %s, %s)"
_NEW_HEAD = "UPDATE mcpzip_audit_head SET n = %s, hash = %s"
_LINE = "SELECT line FROM mcpzip_audit WHERE n = %s"
_NEWEST = "SELECT line FROM mcpzip_audit WHERE at >= to_timestamp(%s) ORDER BY n DESC"
_ENDS = "SELECT n, hash, (SELECT min(n) FROM mcpzip_audit) FROM mcpzip_audit_head"
_ALL = "SELECT n, line FROM mcpzip_audit ORDER BY n"
_CONNECTING = 5
"""Seconds."""
_AT_ONCE = 1_000
"""Lines that are read in one piece."""


class AuditStoreError(OSError):
    """The table can't be written or read; the message says why, without a password."""


class PostgresWriter:
    """The log at ``url``; see `audit_destination.Destination`."""

    waits = True

    def __init__(self, url: str) -> None:
        self._url, self.place = url, place(url)
        self._connection: psycopg.Connection | None = None
        self._tried: tuple[int, str] | None = None
        """The number and the hash of the last line of an attempt that may have succeeded."""

    def append(self, make: Make) -> None:
        """See `Destination.append`. All lines are written, or none."""
        try:
            self._append(make)
        except psycopg.Error as error:
            self.close()
            raise _error(error) from error

    def _append(self, make: Make) -> None:
        if self._connection is None:
            self._connection = connected(self._url)
            _make_tables(self._connection)
        with self._connection.transaction(), self._connection.cursor() as cursor:
            for statement in _TIMES:
                cursor.execute(statement)
            n, previous = cursor.execute(_HEAD).fetchone() or (0, NOTHING)
            if self._tried is not None and self._is_written(cursor, *self._tried):
                self._tried = None
                return
            lines, n, previous = make(n, previous)
            self._tried = n, previous
            cursor.executemany(_APPEND, [_row(line) for line in lines])
            cursor.execute(_NEW_HEAD, (n, previous))
        self._tried = None

    def _is_written(self, cursor: "psycopg.Cursor", n: int, hashed: str) -> bool:
        found = cursor.execute(_LINE, (n,)).fetchone()
        return found is not None and hash_of(found[0].encode()) == hashed

    def close(self) -> None:
        """Ends the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class PostgresReader:
    """Reads the log at ``url``. All raise AuditStoreError."""

    def __init__(self, url: str) -> None:
        self._url, self.place = url, place(url)

    def newest(self, begin: float) -> Iterator[AuditLine]:
        """The lines of calls that began at the Unix time ``begin`` or later, the newest first."""
        for (text,) in self._rows(_NEWEST, (begin,)):
            if (line := decoded(text.encode())) is not None:
                yield line

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """A name for each line, for sentences, and its text, the oldest first."""
        for n, line in self._rows(_ALL, ()):
            yield f"{self.place}, n = {n}", line.encode()

    def head(self) -> Head | None:
        """The last line that there should be, and as the first one that which there is; None without any."""
        rows = list(
            self._rows("SELECT n, hash, (SELECT min(n) FROM mcpzip_audit) FROM mcpzip_audit_head", ())
        )
        return Head(rows[0][0], rows[0][1], rows[0][2] or rows[0][0] + 1) if rows else None

    def _rows(self, query: str, values: tuple[object, ...]) -> Iterator[tuple[Any, ...]]:
        try:
            with closing(connected(self._url)) as connection:
                if connection.execute(_READY).fetchone() != (True,):
                    return
                with connection.transaction(), connection.cursor("mcpzip_audit") as cursor:
                    cursor.itersize = _AT_ONCE
                    yield from cursor.execute(query, values)
        except psycopg.Error as error:
            raise _error(error) from error


def place(url: str) -> str:
    """``url`` without the user, the password and its parameters."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def connected(url: str) -> "psycopg.Connection":
    """A connection. Raises psycopg.Error."""
    # Not prepared: a pooler in between may give the next transaction another connection.
    return psycopg.connect(url, autocommit=True, connect_timeout=_CONNECTING, prepare_threshold=None)


def _make_tables(connection: "psycopg.Connection") -> None:
    if connection.execute(_READY).fetchone() == (True,):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        *tables, first = _TABLES
        for statement in tables:
            connection.execute(statement)
        connection.execute(first, (NOTHING,))


def _row(text: bytes) -> tuple[object, ...]:
    line = decoded(text)
    assert line is not None
    person = line.principal.get("name") or line.principal.get("subject", "")
    said = (line.server, line.tool, line.decision, line.outcome, person)
    return line.n, line.at, *(_storable(each) for each in said), text.decode("ascii")


def _storable(text: str) -> str:
    """PostgreSQL has no NUL and no lone surrogates in texts; the line has them escaped."""
    return text.replace("\0", "�").encode("utf-8", "replace").decode()


def _error(error: psycopg.Error) -> AuditStoreError:
    said = " ".join(str(error).split()) or type(error).__name__
    return AuditStoreError(shortened(redact(said), 300))
