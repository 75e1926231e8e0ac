"""`mcpzip serve` over stdio, once the front desk hands over."""

import asyncio
import gc
import json
import os
from dataclasses import dataclass

from mcpzip.catalog import Catalog, snapshot
from mcpzip.config import Config, load, paths
from mcpzip.model import limits
from mcpzip.proxy.proxy import Proxy
from mcpzip.server import card as cards
from mcpzip.server.complaint import complain, guard_logs
from mcpzip.server.endpoint import Endpoint, FirstWords
from mcpzip.server.outlet import Outlet
from mcpzip.server.session import Session
from mcpzip.system.allocator import keep_buffers
from mcpzip.system.line_reader import read_lines_from
from mcpzip.system.pipes import write_to
from mcpzip.system.signals import stop_on_signals
from mcpzip.system.state_files import foreign_files
from mcpzip.wire import LEGACY_VERSIONS, MODERN_VERSION

PATIENCE = 0.5
"""Seconds that calls under way, and their answers, are given after the client's last byte."""
FLUSH = 0.1
"""Seconds more that the last answers are given to be taken."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is read from disk before the event loop runs."""

    config: Config
    catalog: Catalog
    warnings: tuple[str, ...]
    stamp: list[object] | None


def prepare(config_path: str) -> Prepared:
    """Reads config and snapshot. Raises ConfigError."""
    stamp = cards.stamp(config_path)  # taken first: it must not be newer than what is read
    config = load(config_path, os.environ)
    catalog, warnings = snapshot.load(paths.snapshot_path(config.path), config.path)
    strange = foreign_files(paths.cache_folder(config.path))
    return Prepared(config, catalog, (*config.warnings, *warnings, *strange), stamp)


def run(prepared: Prepared, answered: bytes, rest: bytes, ended: bool) -> int:
    """Serves the client on stdin and stdout until it leaves or we are told to. Returns the exit code.

    answered, rest: what the front desk did and did not answer; ended: whether input is at its end already.
    """
    for warning in prepared.warnings:
        complain(warning)
    gc.freeze()  # what is loaded by now lives as long as we do
    gc.enable()  # the front desk had it off
    keep_buffers()
    guard_logs()
    asyncio.run(_serve(prepared, answered, rest, ended))
    return 0


OPENING = 0.3
"""Seconds the listing of servers waits for the client's first request, which says what it can be asked."""


async def _serve(prepared: Prepared, answered: bytes, rest: bytes, ended: bool) -> None:
    done = asyncio.Event()
    stop_on_signals(done)
    proxy = Proxy(prepared.config, prepared.catalog, complain)
    endpoint = Endpoint(proxy)
    writer = write_to(1)
    outlet = Outlet(writer)
    session = Session(endpoint, outlet.say, outlet.tell, lambda: outlet.full)
    try:
        session.replay(answered)

        def end() -> None:
            session.end()
            done.set()

        reader = None if ended else read_lines_from(0, session.receive, end, at_once=limits.TURN, first=rest)
        outlet.reader = reader
        _keep_card(prepared, endpoint)
        if reader is None:
            session.receive(rest)
            end()
        else:
            await session.opened(OPENING)
        proxy.start(session.client)
        await done.wait()
        if reader is not None:
            reader.close()
            outlet.close()
        until = asyncio.get_running_loop().time() + PATIENCE
        await session.finish(PATIENCE)
        try:
            async with asyncio.timeout_at(until + FLUSH):
                await writer.drain()
        except TimeoutError:
            pass  # the client stopped reading: it doesn't want the rest
        writer.close()
    finally:
        await proxy.close()
        _keep_card(prepared, endpoint)


def _keep_card(prepared: Prepared, endpoint: Endpoint) -> None:
    """What the front desk is to answer next time."""
    if prepared.stamp is not None and (words := endpoint.told_first()) is not None:
        cards.write(prepared.config.path, card_of(words, prepared.stamp))


def card_of(words: FirstWords, stamp: list[object]) -> "cards.Card":
    """``words`` as a card. stamp: of the config as it was before it was read."""
    return {
        "stamp": stamp,
        "versions": list(LEGACY_VERSIONS),
        "modern_version": MODERN_VERSION,
        "initialize": json.loads(words.initialize),
        "discover": None if words.discover is None else json.loads(words.discover),
        "tools": None if words.tools is None else json.loads(words.tools),
        "modern_tools": None if words.modern_tools is None else json.loads(words.modern_tools),
    }
