"""What a server's page changes: its entry in the config, and who is signed in to it.

The rule: an edit of the config is shown as a difference before it is saved (`config_change`). Signing in asks
a person in the browser, and signing out asks nobody, as `mcpzip auth` does.
"""

import os
import time

import msgspec

from mcpzip.auth import mcp_remote
from mcpzip.auth.beginning import signed_in_server
from mcpzip.auth.grant import Grant
from mcpzip.auth.sign_ins import SignIns
from mcpzip.auth.status import AuthStatus, status_of
from mcpzip.clients.config_file import ConfigFile
from mcpzip.clients.migration import Change
from mcpzip.config import Config
from mcpzip.config.server import SHARE
from mcpzip.model.errors import McpzipError
from mcpzip.proxy.status import ServerStatus, listing_of
from mcpzip.system.threads import in_thread
from mcpzip.ui.drafts import Draft
from mcpzip.ui.limits import LOGIN_TIME
from mcpzip.ui.logins import LoginReport
from mcpzip.ui.page import Answer, Visit
from mcpzip.ui.pages.config_change import propose
from mcpzip.ui.rendering import path_part

_ACTIONS = {
    "enable": "Enable",
    "disable": "Disable",
    "share": "Change how agents share",
    "remove": "Remove",
}
"""What an edit does, for the title of its page."""


class Settings(msgspec.Struct, frozen=True):
    """What can be set of a server. own: whether its entry is in the config, and not in a project's file.
    status: how it is signed in to; None over stdio. why_not: why it can't be signed in to, "" if it can.
    """

    own: bool
    disabled: bool
    share: str
    status: AuthStatus | None = None
    login: LoginReport | None = None
    may_sign_in: bool = False
    may_sign_out: bool = False
    why_not: str = ""
    modes: tuple[str, ...] = SHARE
    login_time: int = LOGIN_TIME


async def settings_of(visit: Visit, config: Config, known: ServerStatus) -> Settings:
    """The settings of the server of which ``known`` is the status."""
    name = known.name
    server = config.servers[name]
    own = name not in config.project_servers
    if server.transport == "stdio":
        return Settings(own, server.disabled, server.share)
    sign_ins = SignIns(config, visit.sources.warn)

    def kept() -> Grant | None:
        found = sign_ins.store.load(server.url)
        if found is None and server.auth is not None and server.auth.mcp_remote:
            found = mcp_remote.read(server.url, server.headers, os.environ)
        return found

    why_not, grant = "", None
    try:
        async with sign_ins:
            grant = await in_thread(kept, "auth")
        signed_in_server(config, name)
    except McpzipError as error:
        why_not = str(error)
    status = status_of(server, grant, listing_of(known), time.time(), sign_ins.command(name))
    return Settings(
        own,
        server.disabled,
        server.share,
        status,
        visit.sources.logins.report(name),
        not why_not,
        grant is not None and not grant.source and bool(grant.access_token or grant.refresh_token),
        why_not,
    )


async def edit(visit: Visit) -> Answer:
    """What an edit of the server's entry changes, and the button that saves it."""
    name, action = visit.name, visit.fields.get("action", "")
    path = visit.sources.config
    if action not in _ACTIONS:
        return visit.refuse(400, "There is no such edit", "Go back, and load the page again.")

    def change() -> Change:
        file = ConfigFile(path, os.environ)
        if action == "remove":
            return file.remove([name])
        if action == "share":
            return file.share(name, visit.fields.get("share", ""))
        return file.enable([name], enabled=action == "enable")

    try:
        made = await in_thread(change, "config")
    except McpzipError as error:
        return visit.refuse(409, "The config can't be changed so", str(error))
    page = f"/servers/{path_part(name)}"
    if made.after == made.before:
        return visit.redirect(f"{page}?done=same")
    done = "/servers?done=removed" if action == "remove" else f"{page}?done=saved"
    title = f"{_ACTIONS[action]} {name}"
    return await propose(visit, Draft(title, made.before, made.after, page, done))


async def sign_in(visit: Visit) -> Answer:
    """Begins a login, and leads to the page that shows how it goes."""
    try:
        await visit.sources.logins.begin(await _config(visit), visit.name)
    except McpzipError as error:
        return visit.refuse(409, "The login can't begin", str(error))
    return _back(visit)


async def cancel_sign_in(visit: Visit) -> Answer:
    """Ends the login under way."""
    await visit.sources.logins.cancel(visit.name)
    return _back(visit)


async def sign_out(visit: Visit) -> Answer:
    """Has the server forget what it granted, and forgets it here."""
    from mcpzip.auth.login import sign_out

    config = await _config(visit)
    server = config.servers[visit.name]
    if server.transport == "stdio":
        return visit.refuse(409, "It is not signed in to", "It runs on this machine.")
    try:
        async with SignIns(config, visit.sources.warn) as sign_ins:
            problems = await sign_out(server, sign_ins.store)
    except McpzipError as error:
        return visit.refuse(503, "The sign-in can't be removed", str(error))
    visit.sources.logins.forget(visit.name)
    return _back(visit, "signed-out-here" if problems else "signed-out")


async def _config(visit: Visit) -> Config:
    """The config, which has the server. Raises McpzipError."""
    async with visit.sources.proxy() as proxy:
        config = proxy.config
    if visit.name not in config.servers:
        raise McpzipError(f"{visit.sources.config} has no server {visit.name!r}.")
    return config


def _back(visit: Visit, done: str = "") -> Answer:
    end = f"?done={done}" if done else "#sign-in"
    return visit.redirect(f"/servers/{path_part(visit.name)}{end}")
