"""The audit log in a real PostgreSQL, which several processes share."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from helpers.store_servers import PASSWORD, PostgresServer, running

from mcpzip.cli.audit import audit
from mcpzip.model.entry import Entry
from mcpzip.model.principal import Principal
from mcpzip.model.risk import WORST
from mcpzip.policy import audit_log, audit_postgres
from mcpzip.policy.audit_files import problems
from mcpzip.policy.audit_log import AuditedCall, AuditLog
from mcpzip.policy.audit_postgres import PostgresReader, PostgresWriter
from mcpzip.policy.decision import Verdict

ANN = Principal("https://issuer.example", "ann", "Ann", frozenset(), frozenset())


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running(PostgresServer()) as server:
        yield server


@pytest.fixture
def url(server: PostgresServer) -> str:
    """A database without tables of ours."""
    server.run("DROP TABLE IF EXISTS mcpzip_audit, mcpzip_audit_head")
    return server.url


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "AGAIN", 0.05)


def call(n: int, tool: str = "merge") -> AuditedCall:
    entry = Entry.parse("git", json.dumps({"name": tool}).encode())
    verdict = Verdict("allow", "", WORST)
    made = 1_795_489_200.0 + n, 0.25, entry, b'{"n":%d}' % n, verdict, "", "result"
    return AuditedCall(*made, b'{"name":"claude"}', 1, 1, ANN)


def write(url: str, count: int, warn: Callable[[str], None] = print) -> None:
    """Has so many calls written, and waits until they are."""
    log = AuditLog(PostgresWriter(url), values=False, warn=warn)
    for n in range(count):
        log.add(call(n))
    log.close(60)


def wrong(url: str) -> list[str]:
    log = PostgresReader(url)
    return list(problems(log.texts(), log.head))


def numbers(url: str) -> list[int]:
    return [line.n for line in PostgresReader(url).newest(0)][::-1]


def test_several_processes_write_one_chain(url: str) -> None:
    program = "import sys, test_audit_log as t; t.write(sys.argv[1], 40)"
    folders = os.pathsep.join((str(Path(__file__).parent), str(Path(__file__).parents[2]), *sys.path))
    environment = {**os.environ, "PYTHONPATH": folders}
    writers = [subprocess.Popen([sys.executable, "-c", program, url], env=environment) for _ in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert numbers(url) == list(range(1, 121))
    assert wrong(url) == []


def test_calls_wait_while_the_server_is_away(server: PostgresServer, url: str) -> None:
    said: list[str] = []
    told = threading.Event()

    def warn(sentence: str) -> None:
        said.append(sentence)
        told.set()

    log = AuditLog(PostgresWriter(url), values=False, warn=warn)
    log.add(call(1))
    written(url, 1)
    server.kill()
    log.add(call(2))
    assert told.wait(30)
    log.add(call(3))
    server.start()
    written(url, 3)
    log.close(30)
    [sentence] = said
    assert "Up to 5,000 calls wait for it, and go on." in sentence
    assert PASSWORD not in sentence
    assert wrong(url) == []


def written(url: str, count: int) -> None:
    """Waits until so many calls are in the table."""
    end = time.monotonic() + 60
    while len(numbers(url)) < count:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_what_was_written_is_not_written_again_when_the_answer_was_lost(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave = psycopg.Transaction.__exit__
    lost = [True]

    def unheard(self: psycopg.Transaction, *error: object) -> object:
        left = leave(self, *error)  # type: ignore[arg-type]
        if lost and self.connection.execute("SELECT count(*) FROM mcpzip_audit").fetchone() == (2,):
            lost.clear()
            raise psycopg.OperationalError("the connection was lost")
        return left

    monkeypatch.setattr(psycopg.Transaction, "__exit__", unheard)
    write(url, 2)
    assert lost == []
    write(url, 1)
    assert numbers(url) == [1, 2, 3]
    assert wrong(url) == []


def test_a_writer_that_is_stopped_in_the_middle_holds_up_nobody_for_long(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = tuple(each.replace("10s", "300ms") for each in audit_postgres._TIMES)
    monkeypatch.setattr(audit_postgres, "_TIMES", times)
    write(url, 1)
    stopped = psycopg.connect(url)
    for statement in (*times, audit_postgres._HEAD):
        stopped.execute(statement)  # type: ignore[arg-type]
    write(url, 1)
    assert numbers(url) == [1, 2]
    with pytest.raises(psycopg.Error):
        stopped.execute("SELECT 1")
    stopped.close()


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("UPDATE mcpzip_audit SET line = replace(line, 'merge', 'read') WHERE n = 2", "the line before it"),
        ("DELETE FROM mcpzip_audit WHERE n = 2", "but call 2 has to follow"),
        ("DELETE FROM mcpzip_audit WHERE n = 3", "ends with call 2, but the last one was 3"),
        ("UPDATE mcpzip_audit SET line = replace(line, 'merge', 'read') WHERE n = 3", "not the one that was"),
    ],
)
def test_a_change_shows(server: PostgresServer, url: str, change: str, found: str) -> None:
    write(url, 3)
    server.run(change)
    assert found in " ".join(wrong(url))


def test_the_command_reads_it(url: str, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {}, "audit": {"to": url}}))
    write(url, 3)

    def run(*words: str) -> str:
        done = CliRunner().invoke(audit, ["--config", str(config), *words], catch_exceptions=False)
        assert PASSWORD not in done.output
        return done.output

    assert "3 calls, and nothing was changed" in run("--verify")
    assert [json.loads(line)["n"] for line in run("--json", "-n", "2").splitlines()] == [2, 3]
    assert run("--tool", "git__read").startswith("There are no such calls in postgresql://127.0.0.1:")
    assert "Ann, claude" in run()
    assert json.loads(run("--verify", "--json")) == {
        "path": audit_postgres.place(url),
        "lines": 3,
        "problems": [],
    }


def test_a_paused_server_delays_no_call(server: PostgresServer, url: str) -> None:
    log = AuditLog(PostgresWriter(url), values=False, warn=print)
    log.add(call(1))
    written(url, 1)
    server.signal_all(signal.SIGSTOP)
    try:
        began = time.monotonic()
        for n in range(100):
            log.add(call(n))
        log.close(0.2)
        assert time.monotonic() - began < 5  # as long as psycopg waits to connect
    finally:
        server.signal_all(signal.SIGCONT)
    written(url, 101)
