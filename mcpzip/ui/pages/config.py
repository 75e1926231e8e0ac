"""*Config*: the text of the config in a form, checked while it is typed; its earlier versions; and the file
of the project. What is saved, and how, says `config_change`.
"""

import asyncio
import os

import msgspec

from mcpzip.clients.config_check import Checked, check
from mcpzip.config import history
from mcpzip.config.paths import mcpzip_command
from mcpzip.config.project import TrustError, read_project, trust_of
from mcpzip.model import sanitize
from mcpzip.server.daemon.asking import DaemonSilentError
from mcpzip.system.threads import in_thread
from mcpzip.ui import person
from mcpzip.ui.config_text import NEW, ConfigText, data_of, digest, hidden_lines, read, text_of
from mcpzip.ui.drafts import Draft
from mcpzip.ui.limits import CONFIG_TEXT
from mcpzip.ui.page import Answer, Visit
from mcpzip.ui.pages.config_change import propose
from mcpzip.ui.rendering import ShownText, render

_DONE = {
    "saved": "It was saved.",
    "forgotten": "The earlier versions were deleted.",
}
"""What a button did, by the word in the URL."""
_NOT_KEPT = "The version before could not be kept, so this can't be undone here."
_UPTAKE, _LOOK = 3.0, 0.1
"""Seconds that the page waits after a save until the daemon has used it, and between two looks."""
_CHANGED = (
    "The file was changed since you opened it. This is the difference to what it is now: what was written "
    "there meanwhile is lost if you save this."
)


class Use(msgspec.Struct, frozen=True):
    """What the daemon makes of the file. daemon: whether one runs. uses: whether all its proxies use this
    content. notes: what it says of the config.
    """

    daemon: bool = False
    uses: bool = False
    notes: tuple[str, ...] = ()


class Project(msgspec.Struct, frozen=True):
    """The file of the project. state: whether it is used. text: what it says."""

    path: str
    state: str
    text: ShownText


async def show(visit: Visit) -> Answer:
    """The page."""
    return await _page(visit)


async def edit(visit: Visit) -> Answer:
    """The page with the text of a draft, so that it can be changed further."""
    draft = visit.sources.drafts.get(visit.fields.get("draft", ""))
    if draft is None:
        text = "This text was saved already, or is too old."
        return visit.refuse(409, "This text is not there any more", text)
    return await _page(visit, text=text_of(draft.after)[0], base=digest(draft.before))


async def check_text(visit: Visit) -> Answer:
    """What is wrong with a text: the page, or only the list for a script that asks for the ``part``."""
    text = visit.fields.get("text", "")
    if "part" not in visit.fields:
        return await _page(visit, text=text, base=visit.fields.get("base", ""))
    file = await in_thread(lambda: read(visit.sources.config), "config")
    checked = await _checked(file, text)
    return Answer(render("config_problems.html", checked=checked, hidden=hidden_lines(text), linked=True))


async def difference(visit: Visit) -> Answer:
    """What a text would change, and the button that saves it."""
    text = visit.fields.get("text", "")
    file = await in_thread(lambda: read(visit.sources.config), "config")
    if file.problem:
        return await _page(visit)
    after = data_of(text, file.data)
    checked = await _checked(file, text)
    if checked.config is None or len(after) > CONFIG_TEXT:
        problem = "" if checked.config is None else f"A text here has at most {CONFIG_TEXT:,} bytes."
        base = visit.fields.get("base", "")
        problem = problem or "This text can't be used."
        return await _page(visit, text=text, base=base, problem=problem, status=400)
    if after == file.data:
        return await _page(visit, text=text, problem="There is no difference to the file.", status=400)
    warning = _CHANGED if visit.fields.get("base", file.digest) != file.digest else ""
    return await propose(visit, Draft("Change the config", file.data, after, is_text=True), warning=warning)


async def undo(visit: Visit) -> Answer:
    """What it would change to have an earlier version again."""
    path, version = visit.sources.config, visit.fields.get("version", "")
    file = await in_thread(lambda: read(path), "config")
    if file.problem:
        return await _page(visit)
    try:
        earlier = await in_thread(lambda: history.read(path, version), "version")
    except OSError as error:
        text = f"This version can't be read: {error.strerror or error}."
        return visit.refuse(404, "There is no such version", text)
    if earlier == file.data:
        return await _page(visit, problem="The file is as it was in this version.", status=400)
    return await propose(visit, Draft("Take an earlier version", file.data, earlier, is_text=True))


async def forget(visit: Visit) -> Answer:
    """Deletes the earlier versions."""
    if not person.is_present():
        text = "Only a person at a terminal deletes them, and mcpzip ui was not started at one."
        return visit.refuse(403, "They can't be deleted here", text)
    try:
        await in_thread(lambda: history.forget(visit.sources.config), "versions")
    except OSError as error:
        return visit.refuse(503, "They can't be deleted", f"{error.filename}: {error.strerror}.")
    return visit.redirect("/config?done=forgotten")


async def _page(
    visit: Visit, *, text: str | None = None, base: str = "", problem: str = "", status: int = 200
) -> Answer:
    """base: the digest of the file that ``text`` was made from; "" for the one that it is now."""
    path, done = visit.sources.config, visit.fields.get("done", "") if not visit.is_post else ""
    file = await in_thread(lambda: read(path), "config")
    shown = (file.text if file.data is not None else NEW) if text is None else text
    checked = await _checked(file, shown)
    return visit.page(
        "config.html",
        status=status,
        file=file,
        text=ShownText(shown),
        base=base or file.digest,
        checked=checked,
        hidden=hidden_lines(shown),
        linked=True,
        problem=problem,
        done=_DONE.get(done, ""),
        not_kept=_NOT_KEPT if visit.fields.get("kept") == "no" else "",
        use=await _use(visit, file, wait=done == "saved"),
        versions=await in_thread(lambda: history.versions(path), "versions"),
        project=await in_thread(lambda: _project(visit), "project"),
        may_save=person.is_present(),
        edit_command=mcpzip_command(path, "edit"),
        restart_command=mcpzip_command(path, "daemon", "restart"),
    )


async def _checked(file: ConfigText, text: str) -> Checked:
    return await in_thread(lambda: check(data_of(text, file.data), file.path, os.environ), "check")


async def _use(visit: Visit, file: ConfigText, *, wait: bool) -> Use:
    """What the daemon makes of ``file``. wait: whether it was saved just now."""
    loop = asyncio.get_running_loop()
    until = loop.time() + (_UPTAKE if wait else 0)
    while True:
        try:
            found = (await visit.sources.processes(memory=False)).daemon
        except DaemonSilentError as error:
            return Use(daemon=True, notes=(str(error),))
        if found is None:
            return Use()
        notes = tuple(dict.fromkeys(note for proxy in found.proxies for note in proxy.notes))
        uses = all(proxy.uses == file.digest for proxy in found.proxies)
        if uses or notes or loop.time() >= until:
            return Use(True, uses, notes)
        await asyncio.sleep(_LOOK)


def _project(visit: Visit) -> Project | None:
    path = visit.sources.project
    if not path:
        return None
    try:
        data = read_project(path)
        trusted = trust_of(path, data, visit.sources.config)
    except (OSError, TrustError) as error:
        return Project(path, f"not used: {error}", ShownText())
    state = {"trusted": "trusted, so used", "changed": "changed since you trusted it, so not used"}.get(
        trusted, "not trusted, so not used"
    )
    text = data[:CONFIG_TEXT].decode("utf-8", "replace")
    return Project(path, state, ShownText(sanitize.lines(text)))
