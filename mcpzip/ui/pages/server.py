"""One server: its state, its tools, what it wrote to stderr, and the buttons that restart or stop it."""

from mcpzip.config.paths import mcpzip_command
from mcpzip.model.entry import Entry
from mcpzip.model.errors import McpzipError
from mcpzip.model.signature import parameters, summary
from mcpzip.ui.facts import server_rows
from mcpzip.ui.latency import Latency, latency
from mcpzip.ui.limits import STDERR_LINES
from mcpzip.ui.listing import part_of
from mcpzip.ui.page import Answer, Visit
from mcpzip.ui.pages.server_settings import settings_of
from mcpzip.ui.pages.servers import LONGEST_FILTER
from mcpzip.ui.rendering import path_part

_DONE = {
    "restarted": "It starts again, and its tools are listed.",
    "stopped": "It was stopped. It starts again when it is called.",
    "not-running": "It did not run.",
    "saved": "The config was saved.",
    "added": "It was added to the config.",
    "same": "There was nothing to change.",
    "signed-out": "You are signed out: what it granted was revoked, and removed here.",
    "signed-out-here": "You are signed out here, but its authorization server could not be told.",
    "no-daemon": "No daemon runs, so nothing was ended: each agent's own mcpzip runs its servers.",
}
"""What a button did, by the word in the URL."""
_SIGNATURE = 160
"""Characters of a tool's parameters."""


async def show(visit: Visit) -> Answer:
    """The page."""
    sources, wanted = visit.sources, visit.fields.get("find", "")[:LONGEST_FILTER]
    found = await sources.processes()
    async with sources.proxy() as proxy:
        row = next((row for row in server_rows(proxy.status(), found) if row.name == visit.name), None)
        record = proxy.catalog.servers.get(visit.name)
        config = proxy.config.servers.get(visit.name)
        if row is None or config is None:
            return visit.refuse(404, "There is no such server", f"{sources.config} has no {visit.name!r}.")
        entries = record.entries if record is not None else ()
        settings = await settings_of(visit, proxy.config, row.status)
        matching = [entry for entry in entries if _matches(entry, wanted)]
        part = part_of(matching, visit.number("page"))
        lines = [
            (entry, summary(entry.description), parameters(entry.input_schema(), _SIGNATURE))
            for entry in part.rows
        ]
    latency_now, calls_problem = await _latency(visit)
    log = [entry for entry in await sources.log_of(visit.name) if entry.event in ("stderr", "stdout")]
    return visit.page(
        "server.html",
        row=row,
        share=config.share,
        settings=settings,
        title=record.title if record is not None else "",
        done=_DONE.get(visit.fields.get("done", ""), ""),
        part=part,
        lines=lines,
        find=wanted,
        tools=len(entries),
        latency=latency_now,
        calls_problem=calls_problem,
        log=log[-STDERR_LINES:],
        logs_command=mcpzip_command(sources.config, "logs", visit.name),
        review_command=mcpzip_command(sources.config, "review", visit.name),
        memory=found.memory,
    )


async def _latency(visit: Visit) -> tuple[Latency | None, str]:
    """How long the last calls took, or why that isn't known."""
    try:
        return latency((await visit.sources.calls()).found, visit.name), ""
    except McpzipError as error:
        return None, str(error)


async def restart(visit: Visit) -> Answer:
    """Ends the server's processes, starts it again and lists its tools."""
    return await _disconnect(visit, again=True)


async def stop(visit: Visit) -> Answer:
    """Ends the server's processes."""
    return await _disconnect(visit, again=False)


async def _disconnect(visit: Visit, *, again: bool) -> Answer:
    said = await visit.sources.disconnect(visit.name, again=again)
    if not isinstance(said, dict):
        done = "no-daemon"
    elif not said.get("known"):
        return visit.refuse(404, "There is no such server", f"The daemon has no server {visit.name!r}.")
    elif again:
        done = "restarted"
    else:
        done = "stopped" if said.get("closed") else "not-running"
    return visit.redirect(f"/servers/{path_part(visit.name)}?done={done}")


def _matches(entry: Entry, wanted: str) -> bool:
    return not wanted or wanted.casefold() in entry.tool.casefold()
