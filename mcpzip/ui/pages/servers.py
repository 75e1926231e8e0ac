"""*Servers*: every configured server with its state."""

from mcpzip.model.errors import ConfigError
from mcpzip.ui.facts import ServerRow, server_rows
from mcpzip.ui.listing import part_of
from mcpzip.ui.page import Answer, Visit

LONGEST_FILTER = 200
"""Characters of a filter."""
_DONE = {"removed": "It was removed from the config."}
"""What a button did, by the word in the URL."""


async def show(visit: Visit) -> Answer:
    """The page."""
    wanted = visit.fields.get("find", "")[:LONGEST_FILTER]
    found = await visit.sources.processes()
    rows: list[ServerRow] = []
    problem = ""
    try:
        async with visit.sources.proxy() as proxy:
            rows = server_rows(proxy.status(), found)
    except ConfigError as error:
        problem = str(error)
    matching = [row for row in rows if wanted.casefold() in row.name.casefold()]
    return visit.page(
        "servers.html",
        part=part_of(matching, visit.number("page")),
        find=wanted,
        known=len(rows),
        problem=problem,
        done=_DONE.get(visit.fields.get("done", ""), ""),
    )
