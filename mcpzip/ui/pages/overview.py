"""*Overview*: what runs, what it costs, what needs a person."""

from mcpzip.config.paths import mcpzip_command
from mcpzip.model.errors import ConfigError
from mcpzip.server.daemon.asking import DaemonSilentError
from mcpzip.server.daemon.report import ClientReport
from mcpzip.server.token_costs import Costs
from mcpzip.ui.charts import Bar, bars
from mcpzip.ui.facts import ServerRow, server_rows
from mcpzip.ui.limits import ROWS
from mcpzip.ui.page import Answer, Visit
from mcpzip.ui.sources import Processes

_DEAREST = 8
"""Servers with a bar of their own."""


async def show(visit: Visit) -> Answer:
    """The page."""
    sources = visit.sources
    problems: list[str] = []
    try:
        found = await sources.processes()
    except DaemonSilentError as error:
        problems.append(str(error))
        found = Processes(None, (), ())
    rows: list[ServerRow] = []
    costs: Costs | None = None
    notes: tuple[str, ...] = ()
    tools = 0
    try:
        async with sources.proxy() as proxy:
            rows, notes = server_rows(proxy.status(), found), tuple(proxy.config_notes)
            tools = len(proxy.catalog.entries)
        costs = await sources.costs()
    except ConfigError as error:
        problems.append(str(error))
    clients = [one for daemon in found.daemons for proxy in daemon.proxies for one in proxy.clients]
    clients.sort(key=lambda one: one.since)
    runs = sum(proxy.searches for daemon in found.daemons for proxy in daemon.proxies)
    return visit.page(
        "overview.html",
        problems=problems,
        notes=notes,
        found=found,
        failing=[row for row in rows if row.is_failing][:ROWS],
        more_failing=max(0, sum(row.is_failing for row in rows) - ROWS),
        used=[row for row in rows if not row.is_failing and (row.processes or row.calls)][:ROWS],
        servers=len(rows),
        tools=tools,
        clients=clients[:ROWS],
        more_clients=_more(clients),
        others=found.others[:ROWS],
        searches=runs + sum(run.searches for run in found.others),
        calls=sum(row.calls for row in rows),
        errors=sum(row.errors for row in rows),
        memory=sum(one.whole for pid, one in found.memory.items() if pid in _roots(found)),
        costs=costs,
        chart=None if costs is None else bars(_bars(costs)),
        search_command=mcpzip_command(sources.config, "serve"),
    )


def _more(clients: list[ClientReport]) -> int:
    return max(0, len(clients) - ROWS)


def _roots(found: Processes) -> set[int]:
    """The processes of which the servers' are descendants."""
    return {*(daemon.pid for daemon in found.daemons), *(run.pid for run in found.others)}


def _bars(costs: Costs) -> list[Bar]:
    """What is in every message: mcpzip, all tools, and the dearest servers."""
    by_server = costs.by_server()
    found = [Bar("mcpzip", costs.ours, "ours"), Bar("all tools listed", costs.all, "all")]
    found += [Bar(name, total, "part") for name, _, total in by_server[:_DEAREST]]
    if len(by_server) > _DEAREST:
        found.append(Bar("the other servers", sum(total for *_, total in by_server[_DEAREST:]), "part"))
    return found
