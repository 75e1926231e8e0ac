"""What the commands that use a proxy share: the --config option, the proxy, and finding servers and tools."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Concatenate, ParamSpec

from msgspec.structs import replace

from mcpzip.catalog import Listed, snapshot
from mcpzip.cli import console
from mcpzip.cli.console import warn
from mcpzip.cli.parameters import config_option, hint
from mcpzip.config import Config, config_path, load
from mcpzip.config.paths import cache_folder, find_project
from mcpzip.config.schema import SemanticConfig
from mcpzip.model.entry import Entry
from mcpzip.model.errors import McpzipError, UnknownToolError
from mcpzip.model.names import split
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.proxy import Proxy
from mcpzip.system.signals import cancel_on_interrupt
from mcpzip.system.state_files import foreign_files
from mcpzip.transport.health import FAILING

P = ParamSpec("P")

REST_LISTING = 10.0
"""Seconds to wait for the prompts and resources of servers whose tools are listed."""


def with_proxy(
    work: Callable[Concatenate[Proxy, P], Coroutine[None, None, int]],
) -> Callable[P, int]:
    """Makes ``work`` a command body: adds --config, and runs ``work`` in an event loop with a proxy."""

    @config_option
    @wraps(work)
    def command(*args: P.args, **kwargs: P.kwargs) -> int:
        config = kwargs.pop("config", None)
        path = config_path(config if isinstance(config, str) else None, os.environ)

        async def main() -> int:
            cancel_on_interrupt()
            async with open_proxy(path) as proxy:
                return await work(proxy, *args, **kwargs)

        return asyncio.run(main())

    return command


@asynccontextmanager
async def open_proxy(config: str, semantic: SemanticConfig | None = None) -> AsyncIterator[Proxy]:
    """A proxy with this config and its snapshot; it starts servers when they are needed. semantic: replaces
    the config's. Raises ConfigError.
    """
    loaded = load(config, os.environ, find_project(os.environ))
    if semantic is not None:
        loaded = replace(loaded, search=replace(loaded.search, semantic=semantic))
    async with proxy_with(loaded) as proxy:
        yield proxy


@asynccontextmanager
async def proxy_with(loaded: Config) -> AsyncIterator[Proxy]:
    """A proxy with this config and its snapshot."""
    catalog, warnings = snapshot.load_for(loaded)
    for warning in (*loaded.warnings, *warnings, *foreign_files(cache_folder(loaded.path))):
        warn(warning)
    proxy = Proxy(loaded, catalog, warn)
    try:
        yield proxy
    finally:
        await proxy.close()


async def list_servers(proxy: Proxy, names: list[str]) -> dict[str, str]:
    """Lists the servers ``names``, with a progress bar. Returns the reasons of failures, by name."""
    failures: dict[str, str] = {}
    with console.counting_bar("asking servers", len(names)) as done:

        async def refresh(name: str) -> None:
            update = (await proxy.refresh([name]))[0]
            if not isinstance(update, Listed):
                failures[name] = update.reason
            done()

        await asyncio.gather(*map(refresh, names))
    return failures


async def wait_for_rests(proxy: Proxy) -> None:
    """Waits for the prompts and resources of servers whose tools were listed; warns of slow ones."""
    for name in await proxy.wait_for_rests(REST_LISTING):
        warn(f"{name}: its prompts and resources are not listed after {REST_LISTING:.0f} s.")


async def list_missing(proxy: Proxy, server: str | None = None) -> None:
    """Lists the servers that were never listed, or of these only ``server``; and those of which a person has
    approved something since.
    """
    await proxy.reviews.caught_up()
    missing = [
        one.name
        for one in proxy.status()
        if one.listed_at is None and one.state not in ("disabled", *FAILING) and server in (None, one.name)
    ]
    if missing:
        await list_servers(proxy, missing)


async def find_tool(proxy: Proxy, name: str) -> Entry:
    """The tool called ``name``, which may be one of `ADMIN_TOOLS`. When it isn't in the catalog, only its own
    server is listed first.

    Raises UnknownToolError, UpstreamUnavailableError.
    """
    for admin_tool in ADMIN_TOOLS:
        if name == admin_tool.tool:
            return admin_tool
    if proxy.catalog.get(name) is None:
        parts = split(name)
        server = proxy.config.servers.get(parts[0]) if parts else None
        if server is None:
            await list_missing(proxy)
        elif not server.disabled:
            await list_servers(proxy, [server.name])
    try:
        return (await proxy.resolver.resolve(name))[0]
    except UnknownToolError as error:
        raise UnknownToolError(
            error.name, error.nearest, f"Find it: {hint('search', 'what it does')}"
        ) from error


def known_server(proxy: Proxy, name: str) -> str:
    """``name`` if it is a configured server. Raises McpzipError."""
    if name not in proxy.config.servers:
        raise unknown_server(name, proxy.config.servers, proxy.config.path)
    return name


def unknown_server(name: str, servers: Iterable[str], config: str) -> McpzipError:
    """The error for a ``name`` that is none of ``servers``, those of the file ``config``."""
    from difflib import get_close_matches  # slow to import, and needed for typing mistakes only

    known = sorted(servers)
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"The nearest: {', '.join(near)}." if near else f"Configured: {', '.join(known) or 'none'}."
    return McpzipError(f"There is no server {name!r} in {config}. {hint}")
