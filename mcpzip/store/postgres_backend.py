"""A store in PostgreSQL.

The rules: every operation is one message and one transaction, and needs nothing of a session, so that a
pooler in between may give each another connection. Only `subscribe` needs a session (LISTEN): behind such a
pooler messages are lost, which the store's users expect. Time is the server's clock. The tables are made
when they are missing.
"""

import asyncio
import base64
import contextlib
import hashlib
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg import errors, sql

from mcpzip.model.errors import StoreFault
from mcpzip.model.quoting import shortened
from mcpzip.store.buckets import Bucket, Shortage
from mcpzip.store.records import Entry, Key, StoreFullError, Value
from mcpzip.system.tasks import retrieve_exception


class _Tables(NamedTuple):
    """What is made when it is missing. last: what is made last. statements: they make it. is_numbered:
    whether the sequence is made too.
    """

    last: str
    statements: tuple[str, ...]
    is_numbered: bool = False


_MAIN = _Tables(
    "mcpzip_numbers",
    (
        "CREATE TABLE IF NOT EXISTS mcpzip_values (namespace text, kind text, name text, "
        "version bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (namespace, kind, name))",
        "CREATE TABLE IF NOT EXISTS mcpzip_leases (namespace text, name text, owner text NOT NULL, "
        "number bigint NOT NULL, ends timestamptz NOT NULL, PRIMARY KEY (namespace, name))",
        "CREATE TABLE IF NOT EXISTS mcpzip_entries (namespace text, log text, number bigint, "
        "data bytea NOT NULL, PRIMARY KEY (namespace, log, number))",
    ),
    is_numbered=True,
)
_BUCKETS = _Tables(
    "mcpzip_buckets",
    (
        # No write of it waits for the disk. After a crash of the server it is empty: all buckets are full.
        "CREATE UNLOGGED TABLE IF NOT EXISTS mcpzip_buckets (namespace text, name text, "
        "full_at bigint NOT NULL, PRIMARY KEY (namespace, name))",
    ),
)
_SEQUENCE = sql.SQL("CREATE SEQUENCE IF NOT EXISTS mcpzip_numbers START WITH {}")
_LOCK = 0x6D63707A6970
"""Of the advisory lock under which the tables are made: two at once fail in spite of IF NOT EXISTS."""
_READY = "SELECT to_regclass(%s) IS NOT NULL"
_MICROSECONDS = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

_GET = "SELECT data, version FROM mcpzip_values WHERE namespace = %s AND kind = %s AND name = %s"
_VERSIONS = "SELECT name, version FROM mcpzip_values WHERE namespace = %s AND kind = %s LIMIT %s"
_CREATE = """
WITH room AS (SELECT count(*) < %s AS left FROM mcpzip_values WHERE namespace = %s AND kind = %s),
made AS (
  INSERT INTO mcpzip_values (namespace, kind, name, version, data)
  SELECT %s, %s, %s, nextval('mcpzip_numbers'), %s FROM room WHERE room.left
  ON CONFLICT DO NOTHING RETURNING version)
SELECT room.left, made.version FROM room LEFT JOIN made ON true
"""
_UPDATE = """
UPDATE mcpzip_values SET data = %s, version = nextval('mcpzip_numbers')
WHERE namespace = %s AND kind = %s AND name = %s AND version = %s RETURNING version
"""
_DELETE = """
DELETE FROM mcpzip_values WHERE namespace = %s AND kind = %s AND name = %s AND version = %s RETURNING 1
"""
_ACQUIRE = """
INSERT INTO mcpzip_leases AS held (namespace, name, owner, number, ends)
VALUES (%s, %s, %s, nextval('mcpzip_numbers'), clock_timestamp() + %s * interval '1 millisecond')
ON CONFLICT (namespace, name) DO UPDATE
SET owner = excluded.owner, number = excluded.number, ends = excluded.ends
WHERE held.ends <= clock_timestamp() RETURNING number
"""
_RENEW = """
UPDATE mcpzip_leases SET ends = clock_timestamp() + %s * interval '1 millisecond'
WHERE namespace = %s AND name = %s AND owner = %s AND number = %s AND ends > clock_timestamp() RETURNING 1
"""
_RELEASE = """
DELETE FROM mcpzip_leases WHERE namespace = %s AND name = %s AND owner = %s AND number = %s
AND ends > clock_timestamp() RETURNING 1
"""
# Whoever appends holds a lock until its transaction ends: else a lower number could become visible later.
_APPEND = """
WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(hashtextextended(%s || ':' || %s, 0))),
dropped AS (
  DELETE FROM mcpzip_entries WHERE namespace = %s AND log = %s AND number <= (
    SELECT number FROM mcpzip_entries WHERE namespace = %s AND log = %s
    ORDER BY number DESC OFFSET %s LIMIT 1))
INSERT INTO mcpzip_entries (namespace, log, number, data)
SELECT %s, %s, nextval('mcpzip_numbers'), %s FROM turn RETURNING number
"""
_ENTRIES = """
SELECT number, data FROM mcpzip_entries WHERE namespace = %s AND log = %s AND number > %s
ORDER BY number LIMIT %s
"""

# A message with a statement for each request, after those that begin it: one transaction. The turns are taken
# before, because a statement sees what there was when it began.
_BEGIN_TAKE = """
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT pg_advisory_xact_lock(turn) FROM (
  SELECT DISTINCT hashtextextended(%s || ':' || name, 1) AS turn
  FROM unnest(%s::text[]) AS name ORDER BY turn) AS turns
"""
_TAKE = """
;WITH asked AS (
  SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[])
  WITH ORDINALITY AS each (name, most, gap, number)),
clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now),
found AS MATERIALIZED (
  SELECT asked.name, most, gap, number, now, full_at > now + most * gap AS set_back,
    least(greatest(coalesce(full_at, now) - now, 0), most * gap) AS taken
  FROM asked CROSS JOIN clock
  LEFT JOIN mcpzip_buckets AS b ON b.namespace = %s AND b.name = asked.name),
short AS MATERIALIZED (
  SELECT number, taken - (most - 1) * gap AS wait FROM found WHERE taken > (most - 1) * gap),
made AS (
  INSERT INTO mcpzip_buckets (namespace, name, full_at)
  SELECT %s, name, now + taken + CASE WHEN EXISTS (SELECT FROM short) THEN 0 ELSE gap END
  FROM found WHERE set_back OR NOT EXISTS (SELECT FROM short)
  ON CONFLICT (namespace, name) DO UPDATE SET full_at = excluded.full_at)
SELECT number, wait FROM short ORDER BY wait DESC, number LIMIT 1
"""
_TIDY = """
DELETE FROM mcpzip_buckets WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM mcpzip_buckets
  WHERE namespace = %s AND full_at < extract(epoch FROM clock_timestamp()) * 1000000
  LIMIT 10000 FOR UPDATE SKIP LOCKED))
"""
_TIDY_EVERY = 1_000
"""Takes after which buckets that are full are deleted. Each take makes a few at most."""


class PostgresBackend:
    """The rows of ``namespace`` in the database at ``url``. place: that URL without a password."""

    def __init__(self, url: str, namespace: str, place: str, deadline: float) -> None:
        """deadline: seconds to connect."""
        self.place, self._url, self._namespace = place, url, namespace
        self._deadline = max(2, round(deadline))  # libpq's least
        self._turn = asyncio.Lock()
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._ready: set[str] = set()
        self._takes = 0

    async def get(self, key: Key) -> Value | None:
        row = await self._one(_GET, self._namespace, *key)
        return None if row is None else Value(bytes(row[0]), row[1])

    async def versions(self, table: str, most: int) -> Mapping[str, int]:
        return dict(await self._all(_VERSIONS, self._namespace, table, most))

    async def compare_and_set(self, key: Key, data: bytes, version: int, most: int) -> int | None:
        if version:
            row = await self._one(_UPDATE, data, self._namespace, *key, version)
            return None if row is None else int(row[0])
        place = (self._namespace, *key)
        row = await self._one(_CREATE, most, self._namespace, key.table, *place, data)
        assert row is not None
        if not row[0] and await self.get(key) is None:
            raise StoreFullError
        return None if row[1] is None else int(row[1])

    async def delete(self, key: Key, version: int) -> bool:
        return await self._one(_DELETE, self._namespace, *key, version) is not None

    async def acquire(self, name: str, owner: str, milliseconds: int) -> int | None:
        row = await self._one(_ACQUIRE, self._namespace, name, owner, milliseconds)
        return None if row is None else int(row[0])

    async def renew(self, name: str, owner: str, number: int, milliseconds: int) -> bool:
        row = await self._one(_RENEW, milliseconds, self._namespace, name, owner, number)
        return row is not None

    async def release(self, name: str, owner: str, number: int) -> bool:
        return await self._one(_RELEASE, self._namespace, name, owner, number) is not None

    async def take(self, requests: Sequence[Sequence[Bucket]]) -> list[Shortage | None]:
        if not self._takes % _TIDY_EVERY:
            await self._all(_TIDY, self._namespace, tables=_BUCKETS)
        self._takes += 1
        names = [bucket.name for buckets in requests for bucket in buckets]
        arguments: list[object] = [self._namespace, names]
        for buckets in requests:
            arguments += map(list, zip(*buckets, strict=True))
            arguments += [self._namespace] * 2
        message = _BEGIN_TAKE + _TAKE * len(requests)
        found = await self._each(message, tuple(arguments), _BUCKETS)
        return [Shortage(rows[0][0] - 1, rows[0][1]) if rows else None for rows in found[2:]]

    async def append(self, log: str, data: bytes, keep: int) -> int:
        place = (self._namespace, log)
        row = await self._one(_APPEND, *place, *place, *place, keep - 1, *place, data)
        assert row is not None
        return int(row[0])

    async def entries(self, log: str, after: int, most: int) -> list[Entry]:
        rows = await self._all(_ENTRIES, self._namespace, log, after, most)
        return [Entry(number, bytes(data)) for number, data in rows]

    async def publish(self, channel: str, message: bytes) -> None:
        text = base64.b64encode(message).decode()
        await self._all("SELECT pg_notify(%s, %s)", self._channel(channel), text)

    @asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[AsyncIterator[bytes]]:
        connection = await self._connect()
        try:
            await _undisturbed(connection, f"LISTEN {self._channel(channel)}", ())
            yield _messages(connection)
        finally:
            await _drop(connection)

    def fault(self, error: Exception) -> tuple[StoreFault, str] | None:
        said = shortened(str(error))
        match error:
            case errors.ReadOnlySqlTransaction():
                return "read-only", "it is read-only"
            case errors.DiskFull() | errors.OutOfMemory():
                return "full", f"it has no room ({said})"
            case (
                errors.InvalidPassword() | errors.InvalidAuthorizationSpecification()
            ) | errors.InsufficientPrivilege():
                return "refused", f"it refuses us ({said})"
            case psycopg.OperationalError() if any(word in said for word in _REFUSALS):
                return "refused", f"it refuses us ({said})"
            case errors.QueryCanceled() | psycopg.errors.ConnectionTimeout() | TimeoutError():
                return "slow", "it does not answer"
            case psycopg.Error() | OSError():
                return "away", f"it can't be used ({said or type(error).__name__})"
        return None

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await _drop(connection)

    # ----

    async def _one(self, statement: str, *arguments: object) -> Any:
        rows = await self._all(statement, *arguments)
        return rows[0] if rows else None

    async def _all(self, statement: str, *arguments: object, tables: _Tables = _MAIN) -> list[Any]:
        return (await self._each(statement, arguments, tables))[-1]

    async def _each(self, message: str, arguments: tuple[object, ...], tables: _Tables) -> list[list[Any]]:
        """The rows of each statement of ``message``, which needs ``tables``."""
        async with self._turn:
            connection = await self._connected(tables)
            try:
                return await _undisturbed(connection, message, arguments)
            except BaseException as error:
                if isinstance(error, errors.UndefinedTable | errors.UndefinedObject):
                    self._ready.clear()  # somebody dropped it; the next operation makes it anew
                if connection.closed or not isinstance(error, psycopg.Error):
                    self._connection = None
                    await _drop(connection)
                raise

    async def _connected(self, tables: _Tables) -> psycopg.AsyncConnection[Any]:
        """The connection, with ``tables`` at its other end."""
        if self._connection is None or self._connection.closed:
            self._connection = await self._connect()
        if tables.last not in self._ready:
            connection = self._connection
            try:
                await self._make_tables(connection, tables)
            except BaseException:
                self._connection = None
                await _drop(connection)
                raise
            self._ready.add(tables.last)
        return self._connection

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        """In the caller's own task. Made by another task, it would stay open if its caller left then."""
        return await psycopg.AsyncConnection.connect(
            self._url,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=self._deadline,
            application_name="mcpzip",
        )

    async def _make_tables(self, connection: psycopg.AsyncConnection[Any], tables: _Tables) -> None:
        if (await _undisturbed(connection, _READY, (tables.last,)))[0][0][0]:
            return
        await _undisturbed(connection, "BEGIN", ())
        await _undisturbed(connection, "SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        for statement in tables.statements:
            await _undisturbed(connection, statement, ())
        if tables.is_numbered:
            start = (await _undisturbed(connection, _MICROSECONDS, ()))[0][0][0]
            await _undisturbed(connection, _SEQUENCE.format(sql.Literal(start)), ())
        await _undisturbed(connection, "COMMIT", ())

    def _channel(self, channel: str) -> str:
        """An identifier of PostgreSQL, which has at most 63 bytes."""
        return "mcpzip_" + hashlib.sha256(f"{self._namespace}:{channel}".encode()).hexdigest()[:40]


_REFUSALS = ("authentication failed", "no password supplied", "does not exist", "permission denied")


async def _undisturbed(
    connection: psycopg.AsyncConnection[Any],
    message: "str | sql.Composed",
    arguments: tuple[object, ...],
) -> list[list[Any]]:
    """The rows of each statement of ``message``. A cancellation ends the connection at once: psycopg would
    ask the server to cancel, for up to ten seconds if it doesn't answer.
    """

    async def run() -> list[list[Any]]:
        # Only with its arguments in its text can a message have several statements.
        is_one = not isinstance(message, str) or ";" not in message
        cursor = connection.cursor() if is_one else psycopg.AsyncClientCursor(connection)
        await cursor.execute(message, arguments)
        found = [await cursor.fetchall() if cursor.description else []]
        while cursor.nextset():
            found.append(await cursor.fetchall() if cursor.description else [])
        return found

    task = asyncio.ensure_future(run())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(retrieve_exception)
        _hang_up(connection)
        # Before its descriptor is closed, and is another connection's, nobody may wait for it any more.
        await asyncio.wait({task})
        raise


def _hang_up(connection: psycopg.AsyncConnection[Any]) -> None:
    """Whoever waits for an answer on ``connection`` has an error for one."""
    if not connection.closed:
        with contextlib.suppress(OSError), socket.fromfd(connection.fileno(), 0, 0) as copy:
            copy.shutdown(socket.SHUT_RDWR)


async def _drop(connection: psycopg.AsyncConnection[Any]) -> None:
    _hang_up(connection)
    with contextlib.suppress(Exception):
        await connection.close()


async def _messages(connection: psycopg.AsyncConnection[Any]) -> AsyncIterator[bytes]:
    async for notice in connection.notifies():
        yield base64.b64decode(notice.payload)
