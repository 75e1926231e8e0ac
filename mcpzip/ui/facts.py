"""One row for each server, from what the config says of it and what running processes do with it (pure)."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mcpzip.proxy.status import ServerStatus
from mcpzip.server.daemon.report import ProcessReport, ServerReport
from mcpzip.server.run_file import RunServer
from mcpzip.system.process_memory import Memory
from mcpzip.transport.health import FAILING
from mcpzip.ui.sources import Processes

_BY_NEED = (*FAILING, "connecting", "connected", "idle", "disabled")
"""States, those that a person should see first."""


class ServerRow(msgspec.Struct, frozen=True):
    """A server as people see it. status: from its config and its lists. state, reason: of the processes that
    use it, the worst; of ``status`` where none does. memory: bytes of all its processes; None if unknown.
    by_daemon: whether the daemon has it, so that it can be restarted from here.
    """

    status: ServerStatus
    state: str
    reason: str
    calls: int
    errors: int
    processes: Sequence[ProcessReport]
    memory: int | None
    by_daemon: bool

    @property
    def name(self) -> str:
        return self.status.name

    @property
    def is_failing(self) -> bool:
        """Whether a person should look at it."""
        return self.state in FAILING


def server_rows(statuses: Iterable[ServerStatus], found: Processes) -> list[ServerRow]:
    """The rows of all configured servers: first those that fail, then by name."""
    of_daemons: dict[str, list[ServerReport]] = {}
    for daemon in found.daemons:
        for proxy in daemon.proxies:
            for report in proxy.servers:
                of_daemons.setdefault(report.name, []).append(report)
    of_runs: dict[str, list[RunServer]] = {}
    for run in found.others:
        for server in run.servers:
            of_runs.setdefault(server.name, []).append(server)
    present = _names(found)
    rows = [
        _row(
            status,
            of_daemons.get(status.name, ()),
            of_runs.get(status.name, ()),
            found.memory,
            status.name in present,
        )
        for status in statuses
    ]
    return sorted(rows, key=lambda row: (not row.is_failing, row.name))


def _names(found: Processes) -> frozenset[str]:
    """The servers of the present daemon."""
    if found.daemon is None:
        return frozenset()
    return frozenset(server.name for proxy in found.daemon.proxies for server in proxy.servers)


def _row(
    status: ServerStatus,
    reports: Sequence[ServerReport],
    runs: Sequence[RunServer],
    memory: Mapping[int, Memory],
    by_daemon: bool,
) -> ServerRow:
    users: list[ServerReport | RunServer] = [*reports, *runs]
    state, reason = status.state, status.reason
    if users and state != "disabled":
        worst = min(users, key=lambda one: _need(one.state))
        state, reason = worst.state, worst.reason  # type: ignore[assignment]
    processes = [one for report in reports for one in report.processes]
    pids = [one.pid for one in processes if one.pid is not None]
    used = [memory[pid].whole for pid in pids if pid in memory]
    return ServerRow(
        status,
        state,
        reason,
        sum(one.calls for one in users),
        sum(one.errors for one in users),
        processes,
        sum(used) if used else None,
        by_daemon,
    )


def _need(state: str) -> int:
    return _BY_NEED.index(state) if state in _BY_NEED else len(_BY_NEED)
