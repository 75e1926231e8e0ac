"""`mcpzip serve --http`: many clients on one proxy.

The rule: nothing is begun that a wrong word on the command line would have to end: address, token and config
are read first, and the port is taken, before the first server is started.
"""

import asyncio
import gc
import os
import socket
import sys
from dataclasses import dataclass

from mcpzip.config import config_path
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.app import Prepared, prepare
from mcpzip.server.complaint import complain, guard_logs
from mcpzip.server.endpoint import Endpoint
from mcpzip.server.http.access import Access, Address, access_to, read_address, read_token, take
from mcpzip.server.http.site import Site
from mcpzip.system.allocator import keep_buffers
from mcpzip.system.signals import stop_on_signals


@dataclass(frozen=True, slots=True)
class Offer:
    """What the command line says. address: as for `read_address`; the others: as for `access_to`."""

    address: str
    token_file: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


def main(explicit_config: str | None, offer: Offer) -> int:
    """Serves until told to end. Returns the exit code. Raises ConfigError."""
    address = read_address(offer.address)
    token, warning = read_token(offer.token_file, os.environ)
    access = access_to(address, token, offer.hosts, offer.origins)
    prepared = prepare(config_path(explicit_config, os.environ))
    listening = take(address)
    for each in (warning, *prepared.warnings):
        if each is not None:
            complain(each)
    gc.freeze()  # what is loaded by now lives as long as we do
    gc.enable()  # the command line had it off
    keep_buffers()
    guard_logs()
    try:
        asyncio.run(_serve(prepared, address, access, listening))
    finally:
        listening.close()
    return 0


async def _serve(prepared: Prepared, address: Address, access: Access, listening: socket.socket) -> None:
    done = asyncio.Event()
    stop_on_signals(done)
    proxy = Proxy(prepared.config, prepared.catalog, complain)
    closing: list[asyncio.Task[None]] = []

    def close() -> None:
        if not closing:
            closing.append(asyncio.create_task(proxy.close()))

    try:
        proxy.start()
        site = Site(Endpoint(proxy), access, complain)
        url = address.url(listening.getsockname()[1])

        def ready() -> None:
            print(f"listening {url}", file=sys.stderr, flush=True)

        await site.serve(listening, done, ready, proxy.audience.close, close)
    finally:
        close()
        await closing[0]
