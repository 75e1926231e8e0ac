"""Real stores: Redis and PostgreSQL of this machine, with loopback ports and folders of their own.

Both keep their data when they are killed and started again. PostgreSQL doesn't run as root: started by root,
it runs as the user ``postgres`` or ``nobody``.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import psycopg
import redis
from mcpzip_conformance.http_subject import free_port

PASSWORD = "hush-password"
_PATIENCE = 60.0


class StoreServer(ABC):
    """A program that is a store. url: with which it is reached. deadline: of what is asked of it."""

    url: str

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mcpzip-store-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        self._start()
        end = time.monotonic() + _PATIENCE
        while not self._answers():
            assert self.process
            assert self.process.poll() is None, (self.folder / "log").read_text("utf-8", "replace")
            assert time.monotonic() < end, "the store doesn't answer"
            time.sleep(0.02)

    def processes(self) -> list[int]:
        """Its process and the children of that."""
        assert self.process
        known = filter(None, map(_parent, Path("/proc").glob("[0-9]*/stat")))
        return [self.process.pid, *(child for child, parent in known if parent == self.process.pid)]

    def signal_all(self, number: int) -> list[int]:
        """Sends a signal to all of its processes, which are returned."""
        assert self.process
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGSTOP)  # it begins no more
        processes = self.processes()
        for process in reversed(processes):
            with suppress(ProcessLookupError):
                os.kill(process, number)
        return processes

    def kill(self) -> None:
        """Ends it without a moment to tidy up, and waits until all of it is gone."""
        assert self.process
        _, *children = self.signal_all(signal.SIGKILL)
        self.process.wait()
        end = time.monotonic() + _PATIENCE
        while any(_parent(Path(f"/proc/{child}/stat")) for child in children):
            assert time.monotonic() < end, "a process of the store doesn't end"
            time.sleep(0.005)

    def end(self) -> None:
        """Ends it, and removes its data."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _spawn(self, *command: str, user: str | None = None) -> None:
        with (self.folder / "log").open("ab") as log:
            more = {"user": user, "extra_groups": []} if user else {}
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, "LC_ALL": "C", "HOME": str(self.folder)},
                **more,  # type: ignore[call-overload]
            )

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def _answers(self) -> bool: ...

    @abstractmethod
    def read_only(self, *, on: bool) -> None:
        """Whether it takes no writes."""

    @abstractmethod
    def full(self) -> None:
        """Has it take no more data."""

    @abstractmethod
    def emptied(self) -> None:
        """Has it take data again."""

    @abstractmethod
    def fail_over(self) -> None:
        """Has a copy of it, which has all that it has answered for, take its place and its port."""

    @abstractmethod
    def operations(self) -> int:
        """How many commands or transactions it has done."""


class RedisServer(StoreServer):
    """Keeps each write in a file before it answers. url: with a password."""

    def __init__(self) -> None:
        self._program = found("redis-server", "valkey-server")
        super().__init__()
        self.url = f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def _start(self) -> None:
        self._spawn(
            *(self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)),
            *("--save", "", "--appendonly", "yes", "--appendfsync", "always", "--requirepass", PASSWORD),
        )

    def _client(self) -> "redis.Redis":
        return redis.Redis.from_url(self.url, socket_timeout=5)

    def _answers(self) -> bool:
        try:
            with self._client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def read_only(self, *, on: bool) -> None:
        with self._client() as client:
            # A replica of nobody who answers: it keeps its data, and takes no writes.
            client.config_set("replica-read-only", "yes")
            client.execute_command(*(("REPLICAOF", "127.0.0.1", "1") if on else ("REPLICAOF", "NO", "ONE")))

    def full(self) -> None:
        with self._client() as client:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", "1")

    def emptied(self) -> None:
        with self._client() as client:
            client.config_set("maxmemory", "0")

    def fail_over(self) -> None:
        assert self.process
        copy = RedisServer()
        copy.start()
        old, self.folder, copy.folder = self.folder, copy.folder, self.folder
        with self._client() as client, copy._client() as other:
            other.config_set("masterauth", PASSWORD)
            other.execute_command("REPLICAOF", "127.0.0.1", str(self.port))
            _comes_true(lambda: other.info("replication")["master_link_status"] == "up")
            client.execute_command("CLIENT", "PAUSE", "10000", "WRITE")
            done = client.info("replication")["master_repl_offset"]
            _comes_true(lambda: int(other.info("replication")["slave_repl_offset"]) >= int(done))
            self.kill()
            other.execute_command("REPLICAOF", "NO", "ONE")
            other.config_set("port", str(self.port))
        self.process = copy.process
        shutil.rmtree(old, ignore_errors=True)

    def operations(self) -> int:
        with self._client() as client:
            return int(client.info("stats")["total_commands_processed"])


class PostgresServer(StoreServer):
    """A cluster made by initdb. url: of its superuser, with a password."""

    def __init__(self) -> None:
        folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        self._programs = folders[-1] if folders else Path(found("initdb")).parent
        super().__init__()
        self._user: str | None = None
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            self._user = next(name for name in ("postgres", "nobody") if _is_user(name))
            shutil.chown(self.folder, self._user)
        self.url = self._address()
        self._data = self.folder / "data"
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self._spawn(
            *(str(self._programs / "initdb"), "-D", str(self._data), "-U", "mcpzip", "-N"),
            *("-E", "UTF8", "--locale=C", "-A", "scram-sha-256", f"--pwfile={password}"),
            user=self._user,
        )
        assert self.process
        assert self.process.wait() == 0, (self.folder / "log").read_text()

    def _start(self) -> None:
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        self._spawn(
            *(str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self.port)),
            *("-c", "listen_addresses=127.0.0.1", "-k", str(self.folder), "-c", "max_connections=50"),
            *("-c", "shared_buffers=16MB"),
            user=self._user,
        )

    def _address(self) -> str:
        return f"postgresql://mcpzip:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def run(self, *statements: str) -> None:
        """Runs statements as the superuser, who may always write."""
        options = "-c default_transaction_read_only=off"
        with psycopg.connect(
            self._address(), autocommit=True, connect_timeout=5, options=options
        ) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[call-overload]

    def setting(self, name: str) -> str:
        """The value of a setting in a new session."""
        with psycopg.connect(self.url, connect_timeout=5) as connection:
            [[value]] = connection.execute("SELECT current_setting(%s)", (name,)).fetchall()
            return str(value)

    def _answers(self) -> bool:
        try:
            self.run("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def read_only(self, *, on: bool) -> None:
        state = "on" if on else "off"
        self.run(f"ALTER SYSTEM SET default_transaction_read_only = {state}", "SELECT pg_reload_conf()")

    def full(self) -> None:
        # A disk that is full takes a file system of its own; this is what the server says then.
        self.run(
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
            "'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$",
            "CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON mcpzip_values EXECUTE FUNCTION no_room()",
        )

    def emptied(self) -> None:
        self.run("DROP FUNCTION no_room CASCADE")

    def fail_over(self) -> None:
        assert self.process
        first, old, port = self.process, self._data, self.port
        copy = self.folder / f"data-{free_port()}"
        self._spawn(
            *(str(self._programs / "pg_basebackup"), "-D", str(copy), "-R", "-c", "fast", "-d", self.url),
            user=self._user,
        )
        assert self.process.wait() == 0, (self.folder / "log").read_text()
        self._data, self.port = copy, free_port()
        self._start()
        _comes_true(self._answers)
        first.send_signal(signal.SIGINT)  # in order: the copy is sent everything
        first.wait()
        self.run("SELECT pg_promote()")
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        self.port = port
        self.start()
        shutil.rmtree(old, ignore_errors=True)

    def operations(self) -> int:
        query = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'"
        with psycopg.connect(self.url, connect_timeout=5) as connection:
            [[count]] = connection.execute(query).fetchall()
            return int(count)


SERVERS: dict[str, Callable[[], StoreServer]] = {"redis": RedisServer, "postgres": PostgresServer}
"""The remote kinds of stores."""


class NotInstalledError(Exception):
    """None of the programs of a store is installed."""


def found(*names: str) -> str:
    """The path of the first of these programs that is installed. Raises NotInstalledError."""
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        raise NotInstalledError(f"{' or '.join(names)} isn't installed (Debian: redis-server, postgresql)")
    return path


def _comes_true(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end, "the copy of the store doesn't come to answer"
        time.sleep(0.02)


def _parent(status: Path) -> tuple[int, int] | None:
    """A process and its parent; None for one that has ended."""
    try:
        state, parent = status.read_text("utf-8", "replace").rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return None if state in "ZX" else (int(status.parent.name), int(parent))


def _is_user(name: str) -> bool:
    import pwd

    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


Server = TypeVar("Server", bound=StoreServer)


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """``server``, from its start to its end."""
    try:
        server.start()
        yield server
    finally:
        server.end()
