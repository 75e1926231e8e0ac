"""`mcpzip serve` over stdio, once the front desk hands over."""

import asyncio
import gc
import json
import os
import signal
import sys
from dataclasses import dataclass

from mcpzip.catalog import Catalog, snapshot
from mcpzip.config import Config, load, paths
from mcpzip.proxy.proxy import Proxy
from mcpzip.server import card as cards
from mcpzip.server.session import Session, Welcome
from mcpzip.system.pipes import keep_buffers, read_from, write_to
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
    return Prepared(config, catalog, (*config.warnings, *warnings), stamp)


def run(prepared: Prepared, answered: bytes, rest: bytes, ended: bool) -> int:
    """Serves the client on stdin and stdout until it leaves or we are told to. Returns the exit code.

    answered, rest: what the front desk did and did not answer; ended: whether input is at its end already.
    """
    for warning in prepared.warnings:
        _warn(warning)
    gc.freeze()  # what is loaded by now lives as long as we do
    gc.enable()  # the front desk had it off
    keep_buffers()
    asyncio.run(_serve(prepared, answered, rest, ended))
    return 0


def _warn(warning: str) -> None:
    print(f"mcpzip: {warning}", file=sys.stderr)


async def _serve(prepared: Prepared, answered: bytes, rest: bytes, ended: bool) -> None:
    done = asyncio.Event()
    _stop_on_signals(done)
    proxy = Proxy(prepared.config, prepared.catalog, _warn)
    welcome = Welcome(proxy)
    writer = write_to(1)
    session = Session(proxy, welcome, writer.write)
    try:
        session.replay(answered)
        session.receive(rest)

        def end() -> None:
            session.end()
            done.set()

        reader = None if ended else read_from(0, session.receive, end)
        proxy.start()
        if prepared.stamp is not None:
            cards.write(prepared.config.path, card_of(welcome, prepared.stamp))
        if reader is None:
            end()
        await done.wait()
        if reader is not None:
            reader.close()
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


def _stop_on_signals(done: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, done.set)
        except NotImplementedError:  # Windows: the handler runs between two steps of the loop
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(done.set))


def card_of(welcome: Welcome, stamp: list[object]) -> "cards.Card":
    """What the front desk is to answer next time. stamp: of the config as it was before it was read."""
    return {
        "stamp": stamp,
        "versions": list(LEGACY_VERSIONS),
        "modern_version": MODERN_VERSION,
        "initialize": json.loads(welcome.initialize),
        "discover": json.loads(welcome.discover),
        "tools": json.loads(welcome.tools),
        "modern_tools": json.loads(welcome.modern_tools),
    }
