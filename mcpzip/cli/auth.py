"""`mcpzip auth`: signing in to servers, signing out, and the state of each sign-in."""

import os
import time
from functools import partial

import click
from msgspec.structs import replace

from mcpzip.auth import mcp_remote
from mcpzip.auth.beginning import login_lock, signed_in_server
from mcpzip.auth.codec import canonical
from mcpzip.auth.grant import Grant
from mcpzip.auth.sign_ins import SignIns
from mcpzip.auth.status import AuthStatus, address, left_over, status_of, with_people
from mcpzip.auth.store import PersonStore, Store, WholeStore
from mcpzip.cli import console
from mcpzip.cli.console import warn
from mcpzip.cli.parameters import examples, hint, server_names
from mcpzip.cli.proxy_session import known_server, with_proxy
from mcpzip.config.schema import AuthConfig, ServerConfig
from mcpzip.model.durations import age
from mcpzip.model.errors import McpzipError
from mcpzip.model.principal import PrincipalId
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.status import listing_of
from mcpzip.system.threads import in_thread

TIMEOUT = 300.0
"""Seconds a person has to sign in by default."""

_STYLES = {"signed in": "green", "needs login": "red", "failing": "red", "unknown": "dim", "off": "dim"}


@click.group()
def auth() -> None:
    """Sign in to servers and out of them."""


@auth.command(
    short_help="Sign in to a server.",
    epilog=examples(
        "mcpzip auth login notion",
        ("mcpzip auth login notion --no-browser", "on a machine without one"),
    ),
)
@click.argument("name", metavar="SERVER", shell_complete=server_names)
@click.option("--no-browser", is_flag=True, help="Open no browser; paste the URL that you are redirected to.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=TIMEOUT,
    show_default=True,
    help="Seconds to sign in.",
)
@click.option("--force", is_flag=True, help="Sign in again even if you are signed in.")
@with_proxy
async def login(proxy: Proxy, name: str, no_browser: bool, timeout: float, force: bool) -> int:
    """Sign in to SERVER with OAuth: in the browser, or with the client credentials in the config.

    The URL is printed too, and may be opened on another device. Exit code 1 when the sign-in failed.
    """
    server = signed_in_server(proxy.config, known_server(proxy, name))
    async with SignIns(proxy.config, warn) as sign_ins, login_lock(sign_ins.store, server):
        store = sign_ins.store
        before = await in_thread(partial(store.load, server.url), "auth")
        if server.auth is not None and server.auth.grant == "client_credentials":
            from mcpzip.auth.login import sign_in

            grant = await sign_in(server, store, None, force=force)
            already = grant is not None and grant == before
        else:
            grant, already = await _login_person(
                server, store, before, browser=not no_browser, timeout=timeout, force=force
            )
    if grant is None:
        console.say(f"{name} needs no login: it can be used as it is.")
        return 0
    word = "Already signed in" if already else "Signed in"
    console.say(f"{word} to {name} ({_summary(grant)}).")
    if already:
        console.say("Use --force to sign in again.")
    else:
        await _list_tools(proxy, name)
    return 0


@auth.command(
    short_help="Sign out of a server.",
    epilog=examples(
        "mcpzip auth logout notion",
        ("mcpzip auth logout notion --person ann", "what ann signed in to on the page"),
    ),
)
@click.argument("name", metavar="SERVER", shell_complete=server_names)
@click.option(
    "--person",
    metavar="SUBJECT",
    help="Sign out this person, who signed in on the page: the name of their API key, or their subject "
    'at the issuer; or "ISSUER SUBJECT".',
)
@click.option("--everybody", is_flag=True, help="Sign out all people who signed in on the page.")
@with_proxy
async def logout(proxy: Proxy, name: str, person: str | None, everybody: bool) -> int:
    """Sign out of SERVER: revoke its tokens where the server supports that, and delete them here.

    SERVER may also be the URL of a server that was removed from the config.
    """
    async with SignIns(proxy.config, warn) as sign_ins:
        store = sign_ins.whole_store
        if person is not None or everybody:
            return await _sign_out_people(proxy, store, name, person)
        for server in await _logout_servers(proxy, store, name):
            grant = await in_thread(partial(store.load, server.url), "auth")
            if grant is None:
                console.say(f"You are not signed in to {name}: nothing is kept.")
            else:
                await _sign_out(server, store, grant)
            _warn_of_mcp_remote(server)
    return 0


@auth.command(
    short_help="Show the sign-in of each server.",
    epilog=examples(
        "mcpzip auth status",
    ),
)
@click.option("--json", "as_json", is_flag=True, help="For programs. Holds no secret.")
@with_proxy
async def status(proxy: Proxy, as_json: bool) -> int:
    """Show the sign-in of each server over HTTP, without asking the servers as `mcpzip servers` does.

    Exit code 1 when any needs a login.
    """
    statuses = await _statuses(proxy)
    if as_json:
        console.data([one.as_json() for one in statuses])
    else:
        _show(statuses, proxy.config.path)
    return 1 if any(one.wrong for one in statuses) else 0


# ---- login


async def _login_person(
    server: ServerConfig,
    store: Store,
    before: Grant | None,
    *,
    browser: bool,
    timeout: float,
    force: bool,
) -> tuple[Grant | None, bool]:
    """Lets a person sign in. Returns the grant, and whether it existed before without asking them."""
    from mcpzip.auth.client import callback_port
    from mcpzip.auth.interactive_login import InteractiveLogin
    from mcpzip.auth.login import sign_in

    port = server.auth.callback_port if server.auth is not None else 0
    preferred = callback_port(before)
    async with InteractiveLogin(
        server.name, console.tell_person, browser=browser, timeout=timeout, port=port, rather=preferred
    ) as interactive:
        grant = await sign_in(server, store, interactive, force=force)
    return grant, not interactive.asked


def _summary(grant: Grant) -> str:
    scope = f"scope: {grant.scope}" if grant.scope else "no scope was named"
    if grant.expires_at is None:
        return f"{scope}; no end was named"
    end = time.strftime("%Y-%m-%d %H:%M", time.localtime(grant.expires_at))
    return f"{scope}; until {end}" + (", renewed by itself" if grant.refresh_token else "")


async def _list_tools(proxy: Proxy, name: str) -> None:
    """Prints how many tools ``name`` has now. A failed listing is no failure of the login."""
    await proxy.refresh([name])
    (now,) = (one for one in proxy.status() if one.name == name)
    if now.reason:
        warn(f"Its tools could not be listed yet: {now.reason}")
    else:
        console.say(f"It lists {now.tools} tool{'' if now.tools == 1 else 's'}.")


# ---- logout


async def _sign_out_people(proxy: Proxy, store: WholeStore, name: str, wanted: str | None) -> int:
    """wanted: see ``--person``; None for all people."""
    of_people = [one for one in await in_thread(store.all, "auth") if one.person is not None]
    signed_out = 0
    for server in await _logout_servers(proxy, store, name, of_people):
        for grant in of_people:
            assert grant.person is not None
            issuer, subject = grant.person
            if canonical(grant.url) != canonical(server.url):
                continue
            if wanted in (None, subject, f"{issuer} {subject}"):
                named = replace(server, name=f"{server.name} for {subject}")
                await _sign_out(named, PersonStore(store, grant.person), grant)
                signed_out += 1
    if not signed_out:
        who = "Nobody has" if wanted is None else f"{wanted} has not"
        console.say(f"{who} signed in to {name} on the page: nothing is kept.")
    return 0


async def _logout_servers(
    proxy: Proxy, store: WholeStore, name: str, kept: list[Grant] | None = None
) -> list[ServerConfig]:
    """The server called ``name``, or those with a grant for that URL. kept: the grants that count; None for
    those of whoever uses this machine. Raises McpzipError.
    """
    server = proxy.config.servers.get(name)
    if server is None and "://" in name:
        if kept is None:
            kept = [one for one in await in_thread(store.all, "auth") if one.person is None]
        found = dict.fromkeys(one.url for one in kept if name in (one.url, address(one.url)))
        if not found:
            raise McpzipError(f"Nothing is kept for {address(name)}. See: {hint('auth', 'status')}")
        return [ServerConfig(address(url), "http", url=url, auth=AuthConfig()) for url in found]
    server = proxy.config.servers[known_server(proxy, name)]
    if server.transport == "stdio":
        raise McpzipError(f"{name} runs on this machine: it is not signed in to.")
    return [server]


async def _sign_out(server: ServerConfig, store: Store, grant: Grant) -> None:
    from mcpzip.auth.login import sign_out

    problems = await sign_out(server, store)
    revoked = bool(grant.access_token or grant.refresh_token) and not problems
    done = f"revoked at {grant.issuer or 'its server'}, and removed" if revoked else "removed"
    console.say(f"Signed out of {server.name}: what it granted is {done} here.")
    for sentence in problems:
        warn(sentence)


def _warn_of_mcp_remote(server: ServerConfig) -> None:
    takes = server.auth is not None and server.auth.mcp_remote
    if takes and mcp_remote.read(server.url, server.headers, os.environ) is not None:
        warn(
            f"mcp-remote is still signed in to {server.name}, and mcpzip will use its sign-in; "
            'to stop it, add "auth": {"mcp_remote": false} to the server in the config.'
        )


# ---- status


async def _statuses(proxy: Proxy) -> list[AuthStatus]:
    """The sign-ins of all servers over HTTP, by name, then the stored grants of no configured server."""
    async with SignIns(proxy.config, warn) as sign_ins:
        everything = await in_thread(sign_ins.whole_store.all, "auth")
    kept = {canonical(one.url): one for one in everything if one.person is None}
    people: dict[str, list[PrincipalId]] = {}
    for one in everything:
        if one.person is not None and (one.access_token or one.refresh_token):
            people.setdefault(canonical(one.url), []).append(one.person)
    listed = {one.name: one for one in proxy.status()}
    now = time.time()
    found = []
    for name, server in sorted(proxy.config.servers.items()):
        if server.transport == "stdio":
            continue
        grant = kept.pop(canonical(server.url), None)
        if grant is None and server.auth is not None and server.auth.mcp_remote:
            grant = mcp_remote.read(server.url, server.headers, os.environ)
        known = status_of(server, grant, listing_of(listed[name]), now, sign_ins.command(name))
        own = people.pop(canonical(server.url), [])
        found.append(with_people(known, own, signs_in_itself=not server.per_user))
    for url in {**kept, **people}:
        command = sign_ins.command(address(url)).replace(" login ", " logout ", 1)
        own = people.get(url, [])
        if own:
            command = f"{command} --everybody"
        found.append(left_over(kept.get(url) or Grant(url=url), now, command, own))
    return found


def _show(found: list[AuthStatus], config: str) -> None:
    """Prints the table for people."""
    if not found:
        console.say(f"No server in {config} is reached over HTTP.")
        return
    headings = ("server", "state", "issuer", "scope", "expires", "what is wrong")
    table = console.Table(*headings, wide=("what is wrong",))
    for one in found:
        todo = f"Run: {one.command}" if one.command else ""
        state = console.styled(one.state, _STYLES.get(one.state, ""))
        if one.people or one.state == "each person":
            state.append(f", {len(one.people)} signed in")
        table.row(
            one.name,
            state.append(", disabled") if one.disabled else state,
            one.issuer,
            one.scope,
            _expiry(one),
            ". ".join(part for part in (one.reason, todo) if part),
        )
    table.show()


def _expiry(one: AuthStatus) -> str:
    if one.expires_in is None:
        return ""
    left = f"in {age(one.expires_in)}" if one.expires_in > 0 else "has"
    return f"{left}, renewed by itself" if one.refreshable else left
