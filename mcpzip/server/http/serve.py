"""`mcpzip serve --http`: many clients on one proxy.

Address, token and config are read, and the port is bound, before the first server is started, so that a
mistake in them leaves nothing to stop.
"""

import asyncio
import gc
import os
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from mcpzip.config import Config
from mcpzip.config.paths import config_path, is_named
from mcpzip.config.schema import HttpConfig, PageConfig
from mcpzip.model.errors import ConfigError
from mcpzip.policy import audit_stdout
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.config_watcher import ConfigWatcher
from mcpzip.server.http.access import Access, Address, access_to, read_address, read_token, take
from mcpzip.server.http.server import HttpServer
from mcpzip.server.log import log_config_error, log_kept
from mcpzip.server.prepared import Prepared, prepare
from mcpzip.server.run_file import RunFile
from mcpzip.server.stderr import sanitize_logs, warn
from mcpzip.server.telemetry import endpoint_of, telemetry_of
from mcpzip.system.allocator import keep_buffers
from mcpzip.system.signals import stop_on_signals

if TYPE_CHECKING:
    from mcpzip.server.http.people import People
    from mcpzip.server.process_telemetry import ProcessTelemetry
    from mcpzip.server.replicas.opening import Replicas


class HttpOptions(msgspec.Struct, frozen=True):
    """The options of the command line. address: as for `read_address`; the others: as for `access_to`."""

    address: str
    token_file: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


class Page(Protocol):
    """A page for the people of the config, on an address of its own. url: by which people reach it, and
    where it listens, if that is another one.
    """

    url: str

    async def start(self, proxy: Proxy) -> None:
        """Begins to serve what ``proxy`` has."""

    async def close(self) -> None:
        """Ends it, also if it was not started."""


OpenPage = Callable[[Config, PageConfig], Page]
"""Listens for the page of a config. Raises ConfigError."""


def main(explicit_config: str | None, options: HttpOptions, open_page: OpenPage) -> int:
    """Serves until told to stop. open_page: is called if the config has a page. Returns the exit code. Raises
    ConfigError.
    """
    address = read_address(options.address)
    token, warning = read_token(options.token_file, os.environ)
    config = config_path(explicit_config, os.environ)
    try:
        prepared = prepare(config, required=is_named(explicit_config, os.environ))
        people = people_of(prepared.config)
    except ConfigError as error:
        log_config_error(config, str(error))
        raise
    access = access_to(address, token, options.hosts, options.origins, _known(prepared.config))
    listening = take(address)
    wanted = prepared.config.http.page
    try:
        replicas = _replicas_of(prepared.config)
        page = None if wanted is None else open_page(prepared.config, wanted)
    except ConfigError:
        listening.close()
        raise
    with log_kept(prepared.config.path, prepared.config.log_level):
        for each in (warning, *prepared.warnings):
            if each is not None:
                warn(each)
        gc.freeze()  # what is loaded by now lives as long as we do
        gc.enable()  # the command line had switched it off
        keep_buffers()
        sanitize_logs()
        try:
            asyncio.run(_serve(prepared, address, access, listening, people, page, replicas))
        finally:
            listening.close()
    return 0


def listen_http(config: Config) -> tuple[Address, Access, socket.socket, "People | None"]:
    """Listens at the address of the config (``daemon.http``), with its people, or the token of the
    environment. Raises ConfigError.
    """
    address = read_address(config.daemon_http)
    token, warning = read_token(None, os.environ)
    if warning is not None:
        warn(warning)
    access = access_to(address, token, (), (), _known(config))
    people = people_of(config)
    return address, access, take(address), people


def people_of(config: Config) -> "People | None":
    """The people of ``config``; None if it has none. Raises ConfigError."""
    if not config.http.has_people:
        return None
    from mcpzip.server.http.people import People  # most configs have none

    return People(config, warn)


def _replicas_of(config: Config) -> "Replicas | None":
    if config.replicas is None:
        return None
    from mcpzip.server.replicas.opening import Replicas  # most configs have none

    return Replicas(config.replicas, config.path)


def _known(config: Config) -> HttpConfig | None:
    return config.http if config.http.has_people else None


async def _serve(
    prepared: Prepared,
    address: Address,
    access: Access,
    listening: socket.socket,
    people: "People | None",
    page: Page | None,
    replicas: "Replicas | None",
) -> None:
    done = asyncio.Event()
    stop_on_signals(done)
    audit_stdout.claim()
    async with telemetry_of(prepared.config, os.environ, warn) as telemetry:
        given = prepared, address, access, listening, people, page, replicas
        await _serve_clients(*given, done, telemetry)


async def _serve_clients(
    prepared: Prepared,
    address: Address,
    access: Access,
    listening: socket.socket,
    people: "People | None",
    page: Page | None,
    replicas: "Replicas | None",
    done: asyncio.Event,
    telemetry: "ProcessTelemetry | None",
) -> None:
    proxy = Proxy(prepared.config, prepared.catalog, warn)
    started: list[RunFile] = []
    closing: list[asyncio.Task[None]] = []

    def close() -> None:
        if not closing:
            closing.append(asyncio.create_task(proxy.close()))

    def leaving() -> None:
        if telemetry is not None:
            telemetry.ending = True
        if replicas is not None:
            replicas.end()
        proxy.notifier.close()

    if people is not None:
        people.rate_limits = lambda: proxy.config.rate_limits
    try:
        if people is not None:
            proxy.views.serve_only_people()
        proxy.start()
        forwarder = None if replicas is None else replicas.forwarder
        server = HttpServer(endpoint_of(proxy, telemetry), access, warn, people=people, forwarder=forwarder)
        url = address.url(listening.getsockname()[1])

        def ready() -> None:
            metrics = f"\nmetrics {telemetry.url}" if telemetry is not None and telemetry.url else ""
            at = f"\npage {page.url}" if page is not None else ""
            private = f"\nreplicas {replicas.address}" if replicas is not None and replicas.address else ""
            print(f"listening {url}{metrics}{at}{private}", file=sys.stderr, flush=True)
            started.append(RunFile(proxy, url))

        if page is not None:
            await page.start(proxy)
        if replicas is not None:
            replicas.name_handles(proxy.tool_caller.results)
            await replicas.start(server.handle, warn)
        async with ConfigWatcher(prepared.file, proxy, warn).running():
            await server.serve(listening, done, ready, leaving, close)
    finally:
        for each in started:
            each.close()
        if page is not None:
            await page.close()
        if replicas is not None:
            await replicas.close()
        close()
        await closing[0]
