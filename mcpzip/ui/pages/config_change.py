"""A change of the config: its difference is shown, and a person saves it.

The rules:

1. What is saved is what was shown: a form names a draft (`ui.drafts`), and brings no text.
2. If the file is not the one any more that the difference was made from, nothing is saved.
3. Only a person saves, as only a person approves (`ui.person`), because a config starts commands.
"""

import asyncio
import os

from mcpzip.catalog import Failed
from mcpzip.clients.config_check import check
from mcpzip.config.paths import mcpzip_command
from mcpzip.config.saving import ConfigChangedError, ConfigSaveError, present, save
from mcpzip.model.errors import NEEDS_LOGIN, McpzipError
from mcpzip.proxy.trial import listed_by
from mcpzip.system.threads import in_thread
from mcpzip.ui import person
from mcpzip.ui.config_meaning import meaning
from mcpzip.ui.config_text import text_of
from mcpzip.ui.drafts import Draft
from mcpzip.ui.limits import TRIAL_TIME
from mcpzip.ui.page import Answer, Visit
from mcpzip.ui.text_diff import text_diff

_CHANGED = "The file was changed since the difference was shown, so nothing was saved."
_NOW = f"{_CHANGED} This is the difference to what it is now."


async def propose(visit: Visit, draft: Draft, *, warning: str = "", status: int = 200) -> Answer:
    """The page with the difference that ``draft`` makes, and the button that saves it. warning: what a person
    should know before.
    """
    path = visit.sources.config
    before, unreadable = text_of(draft.before or b"")
    after, problem = text_of(draft.after)
    if problem or unreadable:
        command = mcpzip_command(path, "edit")
        text = f"{path} can't be changed here, because {problem or unreadable}. Change it with: {command}"
        return visit.refuse(409, "This can't be shown", text)

    def compared() -> dict[str, object]:
        checked = check(draft.after, path, os.environ)
        was = None if draft.before is None else check(draft.before, path, os.environ).config
        means = [] if checked.config is None else meaning(was, checked.config)
        return {
            "diff": text_diff(before, after),
            "checked": checked,
            "hidden": [],
            "linked": False,
            "means": means,
            "unusable": draft.before is not None and was is None,
        }

    values = await in_thread(compared, "difference")
    return visit.page(
        "config_change.html",
        status=status,
        draft=draft,
        id=visit.sources.drafts.add(draft),
        path=path,
        warning=warning,
        is_new=draft.before is None,
        may_save=person.is_present(),
        edit_command=mcpzip_command(path, "edit"),
        **values,
    )


async def save_draft(visit: Visit) -> Answer:
    """Saves what was shown, if the file is still the one that it was compared with."""
    path, name = visit.sources.config, visit.fields.get("draft", "")
    if not person.is_present():
        command = mcpzip_command(path, "edit")
        text = f"Only a person at a terminal saves, and mcpzip ui was not started at one. Run: {command}"
        return visit.refuse(403, "It can't be saved here", text)
    draft = visit.sources.drafts.get(name)
    if draft is None:
        text = "This difference was saved already, or is too old. Look at the page again."
        return visit.refuse(409, "Nothing was saved", text)
    if draft.tries and "untried" not in visit.fields:
        problem = await _trial(visit, draft)
        if problem:
            return await propose(visit, draft, warning=problem, status=409)
    try:
        problems = await in_thread(lambda: save(path, draft.before, draft.after), "save")
    except ConfigChangedError:
        return await _changed(visit, draft)
    except ConfigSaveError as error:
        return visit.refuse(503, "Nothing was saved", str(error))
    visit.sources.drafts.remove(name)
    return visit.redirect(draft.done + ("&kept=no" if problems else ""))


async def _changed(visit: Visit, draft: Draft) -> Answer:
    try:
        now = await in_thread(lambda: present(visit.sources.config), "config")
    except ConfigSaveError as error:
        return visit.refuse(503, "Nothing was saved", str(error))
    if now == draft.after:  # by the same button, in another tab
        return visit.redirect(draft.done)
    if draft.is_text:
        again = Draft(draft.title, now, draft.after, draft.cancel, draft.done, draft.tries, is_text=True)
        return await propose(visit, again, warning=_NOW, status=409)
    return visit.refuse(409, "Nothing was saved", f"{_CHANGED} Go back, and do it again.")


async def _trial(visit: Visit, draft: Draft) -> str:
    """Why the server that ``draft`` adds is not added yet; "" if it answers, or wants a login."""
    checked = await in_thread(lambda: check(draft.after, visit.sources.config, os.environ), "check")
    server = None if checked.config is None else checked.config.servers.get(draft.tries)
    if checked.config is None or server is None or server.disabled:
        return ""
    if visit.sources.trying.locked():
        return "Another server is being tried. Wait until that has ended."
    try:
        async with visit.sources.trying, asyncio.timeout(TRIAL_TIME):
            found = await listed_by(checked.config, draft.tries, lambda sentence: None)
    except TimeoutError:
        return f"{draft.tries} does not answer within {TRIAL_TIME} s, so nothing was saved."
    except McpzipError as error:
        return f"Nothing was saved: {error}"
    if isinstance(found, Failed) and not found.reason.startswith(NEEDS_LOGIN):
        return f"{draft.tries} does not answer, so nothing was saved: {found.reason.rstrip('.')}."
    return ""
