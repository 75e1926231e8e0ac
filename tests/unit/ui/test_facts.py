"""One row for each server, from what the config says and what running processes do."""

from collections.abc import Sequence

import pytest

from mcpzip.proxy.status import ServerStatus
from mcpzip.server.daemon.report import DaemonReport, ProcessReport, ProxyReport, ServerReport
from mcpzip.server.run_file import Run, RunServer
from mcpzip.system.process_memory import Memory
from mcpzip.transport.health import State
from mcpzip.ui.facts import server_rows
from mcpzip.ui.sources import Processes


def status(name: str, state: State = "idle", reason: str = "") -> ServerStatus:
    return ServerStatus(name, "stdio", state, 1, None, None, reason, ())


def report(name: str, state: str, *pids: int | None, reason: str = "", calls: int = 0) -> ServerReport:
    processes = [ProcessReport(pid, None, 0) for pid in pids]
    return ServerReport(name, state, reason, 1, "auto", calls, 0, processes)


def daemon(*proxies: Sequence[ServerReport]) -> DaemonReport:
    reports = [ProxyReport(0, [], list(servers), []) for servers in proxies]
    return DaemonReport(1, "1", 0.0, "c", "", "", 300.0, reports)


def run(*servers: RunServer) -> Run:
    return Run(
        version="1",
        pid=2,
        host="h",
        started_at=0.0,
        config="c",
        project="",
        address="",
        searches=0,
        clients=(),
        servers=servers,
    )


def test_without_a_process_a_server_is_as_its_config_and_lists_say() -> None:
    rows = server_rows([status("a"), status("b", "failing", "why")], Processes(None, (), ()))
    assert [(row.name, row.state, row.reason, row.memory) for row in rows] == [
        ("b", "failing", "why", None),
        ("a", "idle", "", None),
    ]


def test_of_several_processes_the_worst_state_is_shown_and_all_calls_count() -> None:
    alone = run(RunServer("a", "needs login", "sign in", 1, 2, 1))
    found = Processes(
        daemon([report("a", "connected", 7, calls=3)], [report("a", "idle", None)]),
        (),
        (alone,),
        {7: Memory(1, 50, 2)},
    )
    (row,) = server_rows([status("a", "failing", "an old reason")], found)
    assert (row.state, row.reason, row.calls, row.errors) == ("needs login", "sign in", 5, 1)
    assert (row.memory, len(row.processes), row.by_daemon, row.is_failing) == (50, 2, True, True)


@pytest.mark.parametrize("state", ["connected", "a state of a newer version"])
def test_what_is_switched_off_stays_so(state: str) -> None:
    (row,) = server_rows([status("a", "disabled")], Processes(daemon([report("a", state)]), (), ()))
    assert row.state == "disabled"


def test_a_server_of_an_older_daemon_can_not_be_restarted_from_here() -> None:
    found = Processes(None, (daemon([report("a", "connected", 7)]),), ())
    (row,) = server_rows([status("a")], found)
    assert (row.state, row.by_daemon, row.memory) == ("connected", False, None)


def test_a_server_that_only_a_process_knows_has_no_row() -> None:
    assert server_rows([], Processes(daemon([report("gone", "connected")]), (), ())) == []
