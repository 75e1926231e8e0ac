"""The HTTP server under `http`: uvicorn.

The rule: it prints its URL when it listens, and stops at once by closing open connections, unless these
drain.
"""

import asyncio
import contextlib
import socket
from collections.abc import Generator

import uvicorn

from mcpzip_conformance.mutants.relay.http import PATH, Web


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """They are ours."""
        yield


async def served(web: Web, port: int, done: asyncio.Event) -> None:
    """Serve on ``port`` until ``done``."""
    bound = socket.create_server((web.address, port))
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or each message waits for the last one's
    config = uvicorn.Config(
        web,
        log_config=None,
        log_level="critical",
        ws="none",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=web.patience,  # type: ignore[arg-type]  # it takes any number
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve([bound]))
    print(f"listening http://127.0.0.1:{bound.getsockname()[1]}{PATH}", flush=True)
    await done.wait()
    server.should_exit, server.force_exit = True, not web.drains
    web.drain()
    await serving
