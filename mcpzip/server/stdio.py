"""`mcpzip serve` over stdio, after the early handshake."""

import asyncio
import gc
import json
import os
from dataclasses import dataclass

from mcpzip.catalog import Catalog, snapshot
from mcpzip.config import Config, load, paths
from mcpzip.model import limits
from mcpzip.proxy.proxy import Proxy
from mcpzip.server import handshake_cache
from mcpzip.server.endpoint import Endpoint, HandshakeResults
from mcpzip.server.session import Session
from mcpzip.server.stderr import sanitize_logs, warn
from mcpzip.server.stdio_output import StdioOutput
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
    stamp = handshake_cache.stamp(config_path)  # taken first: it must not be newer than what is read
    config = load(config_path, os.environ)
    catalog, warnings = snapshot.load(paths.snapshot_path(config.path), config.path)
    strange = foreign_files(paths.cache_folder(config.path))
    return Prepared(config, catalog, (*config.warnings, *warnings, *strange), stamp)


def run(prepared: Prepared, answered: bytes, rest: bytes, ended: bool) -> int:
    """Serves the client on stdin and stdout until it leaves or we are told to stop. Returns the exit code.

    answered, rest: the lines that the early handshake did and did not answer; ended: whether stdin has ended.
    """
    for warning in prepared.warnings:
        warn(warning)
    gc.freeze()  # what is loaded by now lives as long as we do
    gc.enable()  # the early handshake had switched it off
    keep_buffers()
    sanitize_logs()
    asyncio.run(_serve(prepared, answered, rest, ended))
    return 0


OPENING = 0.3
"""Seconds that servers are not yet listed, so that the client's first request can say what it supports."""


async def _serve(prepared: Prepared, answered: bytes, rest: bytes, ended: bool) -> None:
    done = asyncio.Event()
    stop_on_signals(done)
    proxy = Proxy(prepared.config, prepared.catalog, warn)
    endpoint = Endpoint(proxy)
    writer = write_to(1)
    output = StdioOutput(writer)
    session = Session(endpoint, output.send, output.send_if_room, lambda: output.full)
    try:
        session.replay(answered)

        def end() -> None:
            session.end()
            done.set()

        reader = None if ended else read_lines_from(0, session.receive, end, at_once=limits.TURN, first=rest)
        output.reader = reader
        _write_handshake_cache(prepared, endpoint)
        if reader is None:
            session.receive(rest)
            end()
        else:
            await session.opened(OPENING)
        proxy.start(session.client)
        await done.wait()
        if reader is not None:
            reader.close()
            output.close()
        until = asyncio.get_running_loop().time() + PATIENCE
        await session.finish(PATIENCE)
        try:
            async with asyncio.timeout_at(until + FLUSH):
                await writer.drain()
        except TimeoutError:
            pass  # the client doesn't read any more
        writer.close()
    finally:
        await proxy.close()
        _write_handshake_cache(prepared, endpoint)


def _write_handshake_cache(prepared: Prepared, endpoint: Endpoint) -> None:
    """Keeps the results that the early handshake is to answer with at the next start."""
    if prepared.stamp is not None and (results := endpoint.handshake_results()) is not None:
        handshake_cache.write(prepared.config.path, cache_of(results, prepared.stamp))


def cache_of(results: HandshakeResults, stamp: list[object]) -> "handshake_cache.HandshakeCache":
    """``results`` as they are cached. stamp: of the config as it was before it was read."""
    return {
        "stamp": stamp,
        "versions": list(LEGACY_VERSIONS),
        "modern_version": MODERN_VERSION,
        "initialize": json.loads(results.initialize),
        "discover": None if results.discover is None else json.loads(results.discover),
        "tools": None if results.tools is None else json.loads(results.tools),
        "modern_tools": None if results.modern_tools is None else json.loads(results.modern_tools),
    }
