"""*Doctor*: what is wrong with the config, the servers and this machine, and what fixes it."""

from mcpzip.config.paths import mcpzip_command
from mcpzip.model.errors import McpzipError
from mcpzip.ui.examinations import Examined
from mcpzip.ui.page import Answer, Visit


async def show(visit: Visit) -> Answer:
    """The page: all checks that start no server, run now."""
    return _page(visit, await visit.sources.examinations.offline())


async def ask_servers(visit: Visit) -> Answer:
    """All checks: starts every server once."""
    try:
        examined = await visit.sources.examinations.with_servers()
    except McpzipError as error:
        return visit.refuse(503, "The servers can't be checked now", str(error))
    return _page(visit, examined, asked=True)


def _page(visit: Visit, examined: Examined, *, asked: bool = False) -> Answer:
    config = visit.sources.config
    return visit.page(
        "doctor.html",
        examined=examined,
        asked=asked,
        config=config,
        logs_command=mcpzip_command(config, "logs"),
    )
