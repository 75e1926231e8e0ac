"""Listing the tools of a server."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from mcpzip.model.errors import UpstreamLostError, UpstreamUnavailableError
from mcpzip.transport.base import Origin
from mcpzip.transport.connection import Connection
from mcpzip.transport.health import Listing
from mcpzip.transport.pagination import all_pages


async def listed_tools(
    server: str,
    connection: Callable[[], AbstractAsyncContextManager[Connection]],
    connect_started: Callable[[], float],
    timeout: float,
    origin: Origin,
) -> Listing:
    """All pages of the tools of ``server``.

    connection: opens one, or gives the one that is open. connect_started: when the last attempt to connect
    began (monotonic s). timeout: seconds, see `Pool.list_tools`. Raises UpstreamError and its subclasses.
    """
    started = time.monotonic()

    async def attempt() -> Listing:
        async with connection() as opened:
            info = opened.server_info
            assert info is not None
            async with asyncio.timeout(max(started, connect_started()) + timeout - time.monotonic()):
                tools, ttl = await all_pages(opened, "tools/list", "tools", timeout, origin)
        version = info.dialect.version
        return Listing(tuple(tools), version, info.instructions, info.capabilities, info.info, ttl)

    try:
        try:
            return await attempt()
        except UpstreamLostError:  # listing twice does no harm
            return await attempt()
    except TimeoutError:
        raise UpstreamUnavailableError(
            server,
            f"it did not list its tools within {timeout:g} s",
            "It is asked again at the next refresh.",
        ) from None
