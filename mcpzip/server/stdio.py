"""`mcpzip serve` over stdio, after the early handshake."""

import asyncio
import gc
import json
import os
from typing import TYPE_CHECKING

from mcpzip.model import limits
from mcpzip.proxy.proxy import Proxy
from mcpzip.server import handshake_cache
from mcpzip.server.config_watcher import ConfigWatcher
from mcpzip.server.endpoint import Endpoint, HandshakeResults
from mcpzip.server.log import log_kept
from mcpzip.server.prepared import Prepared
from mcpzip.server.run_file import RunFile
from mcpzip.server.session import Session
from mcpzip.server.stderr import sanitize_logs, warn
from mcpzip.server.stdio_output import StdioOutput
from mcpzip.server.telemetry import endpoint_of, telemetry_of
from mcpzip.system.allocator import keep_buffers
from mcpzip.system.line_reader import read_lines_from
from mcpzip.system.pipes import write_to
from mcpzip.system.signals import stop_on_signals
from mcpzip.wire import LEGACY_VERSIONS, MODERN_VERSION

if TYPE_CHECKING:
    from mcpzip.server.process_telemetry import ProcessTelemetry

FINISH_TIMEOUT = 0.5
"""Seconds that the calls under way have to finish after the end of the client's input."""
FLUSH_TIMEOUT = 0.1
"""Seconds that the client then has to read the last replies."""


def run(prepared: Prepared, answered: bytes, rest: bytes, ended: bool) -> int:
    """Serves the client on stdin and stdout until it leaves or we are told to stop. Returns the exit code.

    answered, rest: the lines that the early handshake did and did not answer; ended: whether stdin has ended.
    """
    with log_kept(prepared.config.path, prepared.config.log_level):
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
    async with telemetry_of(prepared.config, os.environ, warn, listens=False) as telemetry:
        await _serve_client(prepared, answered, rest, ended, done, telemetry)


async def _serve_client(
    prepared: Prepared,
    answered: bytes,
    rest: bytes,
    ended: bool,
    done: asyncio.Event,
    telemetry: "ProcessTelemetry | None",
) -> None:
    proxy = Proxy(prepared.config, prepared.catalog, warn, searcher=prepared.searcher)
    endpoint = endpoint_of(proxy, telemetry)
    stamp = prepared.stamp

    def used(data: bytes) -> None:
        nonlocal stamp
        # With a project it depends on more files than were read here.
        stamp = None if prepared.project else handshake_cache.stamp_of(data, prepared.config.path)

    watcher = ConfigWatcher(prepared.file, proxy, warn, used)
    writer = write_to(1)
    output = StdioOutput(writer)
    run_file: RunFile | None = None
    session = Session(endpoint, output.send, output.send_if_room, lambda: output.full)
    try:
        session.replay(answered)

        def end() -> None:
            session.end()
            done.set()

        reader = None if ended else read_lines_from(0, session.receive, end, at_once=limits.TURN, first=rest)
        output.reader = reader
        write_handshake_cache(prepared, endpoint, stamp)
        if reader is None:
            session.receive(rest)
            end()
        else:
            await session.opened(OPENING)
        proxy.start(session.client)
        run_file = RunFile(proxy)
        async with watcher.running():
            await done.wait()
        if reader is not None:
            reader.close()
            output.close()
        deadline = asyncio.get_running_loop().time() + FINISH_TIMEOUT
        await session.finish(FINISH_TIMEOUT)
        try:
            async with asyncio.timeout_at(deadline + FLUSH_TIMEOUT):
                await writer.drain()
        except TimeoutError:
            pass  # the client doesn't read any more
        writer.close()
    finally:
        if run_file is not None:
            run_file.close()
        if endpoint.recorder is not None:
            endpoint.recorder.left(session.client)
        await proxy.close()
        write_handshake_cache(prepared, endpoint, stamp)


def write_handshake_cache(prepared: Prepared, endpoint: Endpoint, stamp: list[object] | None) -> None:
    """Keeps the results that the early handshake is to answer with at the next start. stamp: of the config
    in use.
    """
    if stamp is not None and (results := endpoint.handshake_results()) is not None:
        handshake_cache.write(prepared.config.path, cache_of(results, stamp), prepared.project)


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
