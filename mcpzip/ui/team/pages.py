"""The pages for a team: what each person may use, calls of it, and their own calls.

The rule: nothing here changes anything for others. What is approved, configured, restarted, or signed in to
for all, is done by whoever runs mcpzip, at a terminal: `mcpzip ui`, or a command.
"""

from collections.abc import Mapping

from mcpzip.model.entry import Entry
from mcpzip.model.signature import parameters, summary
from mcpzip.proxy.status import ServerStatus
from mcpzip.transport.health import FAILING
from mcpzip.ui.latency import latency
from mcpzip.ui.limits import ROWS
from mcpzip.ui.listing import part_of
from mcpzip.ui.page import Answer, PersonHandler, PersonVisit
from mcpzip.ui.pages import calls, search, tool
from mcpzip.ui.pages.servers import LONGEST_FILTER

_SIGNATURE = 160
"""Characters of a tool's parameters."""


async def show_overview(visit: PersonVisit) -> Answer:
    """What this person may use, and what of it doesn't run."""
    made = (await visit.sources.calls()).found
    async with visit.sources.seen() as seen:
        rows = seen.status()
        failing = [row for row in rows if row.state in FAILING]
        servers = seen.config.servers
        signs_in = any(row.state == "needs login" and servers[row.name].per_user for row in failing)
        return visit.page(
            "team_overview.html",
            servers=len(rows),
            tools=len(seen.catalog.entries),
            calls=len(made),
            failed=sum(call.failed for call in made),
            failing=failing[:ROWS],
            more_failing=max(0, len(failing) - ROWS),
            signs_in=signs_in,
            groups=sorted(seen.principal.groups if seen.principal else ()),
        )


async def show_servers(visit: PersonVisit) -> Answer:
    """The servers of which this person may use anything."""
    wanted = visit.fields.get("find", "")[:LONGEST_FILTER]
    async with visit.sources.seen() as seen:
        rows = sorted(seen.status(), key=lambda row: (row.state not in FAILING, row.name))
        counts = {name: len(record.entries) for name, record in seen.catalog.servers.items()}
    matching = [row for row in rows if wanted.casefold() in row.name.casefold()]
    part = part_of(matching, visit.number("page"))
    return visit.page("team_servers.html", part=part, find=wanted, known=len(rows), counts=counts)


async def show_server(visit: PersonVisit) -> Answer:
    """One of them, with the tools that they may use."""
    wanted = visit.fields.get("find", "")[:LONGEST_FILTER]
    async with visit.sources.seen() as seen:
        row: ServerStatus | None = next((one for one in seen.status() if one.name == visit.name), None)
        if row is None:
            return visit.refuse(404, "There is no such server", f"No server here is called {visit.name!r}.")
        record, configured = seen.catalog.servers.get(visit.name), seen.config.servers.get(visit.name)
    entries: tuple[Entry, ...] = () if record is None else tuple(record.entries)
    matching = [entry for entry in entries if wanted.casefold() in entry.tool.casefold()]
    part = part_of(matching, visit.number("page"))
    return visit.page(
        "team_server.html",
        row=row,
        part=part,
        find=wanted,
        tools=len(entries),
        signs_in=configured is not None and configured.per_user,
        lines=[
            (entry, summary(entry.description), parameters(entry.input_schema(), _SIGNATURE))
            for entry in part.rows
        ],
        latency=latency((await visit.sources.calls()).found, visit.name),
        calls_problem="",
    )


ROUTES: Mapping[tuple[str, str], PersonHandler] = {
    ("GET", "/"): show_overview,
    ("GET", "/servers"): show_servers,
    ("GET", "/servers/*"): show_server,
    ("GET", "/search"): search.show,
    ("GET", "/tools/*"): tool.show,
    ("POST", "/tools/*"): tool.call,
    ("GET", "/calls"): calls.show,
    ("GET", "/calls/*"): calls.show_one,
}
"""As `mcpzip.ui.pages.ROUTES`."""
