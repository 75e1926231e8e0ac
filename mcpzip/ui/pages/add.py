"""*Add a server*: a form for its name and its command or URL, checked as `mcpzip add` does."""

import os

from mcpzip.clients.config_file import ConfigFile, entry_of
from mcpzip.clients.migration import Change
from mcpzip.model.errors import ConfigError
from mcpzip.system.threads import in_thread
from mcpzip.ui.drafts import Draft
from mcpzip.ui.limits import ADDED_TEXT
from mcpzip.ui.page import Answer, Visit
from mcpzip.ui.pages.config_change import propose
from mcpzip.ui.rendering import ShownText, path_part

_FIELDS = ("name", "words", "env", "header", "cwd")


async def show(visit: Visit) -> Answer:
    """The form."""
    return _page(visit)


async def add(visit: Visit) -> Answer:
    """What the server adds to the config, and the button that tries and saves it."""
    given = {field: visit.fields.get(field, "").strip() for field in _FIELDS}
    name, words = given["name"], given["words"]
    if not words:
        return _page(visit, "Write the command that starts it, or its URL.", 400)
    if any(len(text) > ADDED_TEXT for text in given.values()):
        return _page(visit, f"A field here has at most {ADDED_TEXT:,} characters.", 400)

    def change() -> Change:
        entry = entry_of([words], None, _lines(given["env"]), _lines(given["header"]), given["cwd"] or None)
        return ConfigFile(visit.sources.config, os.environ).add(name, entry)

    try:
        made = await in_thread(change, "config")
    except ConfigError as error:
        return _page(visit, error.within("mcpServers"), 400)
    except ValueError as error:
        return _page(visit, str(error), 400)
    page = f"/servers/{path_part(name)}"
    return await propose(
        visit, Draft(f"Add {name}", made.before, made.after, "/servers", f"{page}?done=added", tries=name)
    )


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.splitlines()) if line]


def _page(visit: Visit, problem: str = "", status: int = 200) -> Answer:
    given = {field: ShownText(visit.fields.get(field, "") if visit.is_post else "") for field in _FIELDS}
    return visit.page("add.html", status=status, given=given, problem=problem)
