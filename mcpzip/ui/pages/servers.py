"""*Servers*: every configured server with its state."""

from mcpzip.ui.facts import server_rows
from mcpzip.ui.listing import part_of
from mcpzip.ui.page import Answer, Visit

LONGEST_FILTER = 200
"""Characters of a filter."""


async def show(visit: Visit) -> Answer:
    """The page."""
    wanted = visit.fields.get("find", "")[:LONGEST_FILTER]
    found = await visit.sources.processes()
    async with visit.sources.proxy() as proxy:
        rows = server_rows(proxy.status(), found)
    matching = [row for row in rows if wanted.casefold() in row.name.casefold()]
    part = part_of(matching, visit.number("page"))
    return visit.page("servers.html", part=part, find=wanted, known=len(rows))
