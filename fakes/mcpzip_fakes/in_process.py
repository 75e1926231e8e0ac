"""A scenario as a stdio server without a process: its lines are passed in this event loop.

The rule: what it writes is what `stdio_server` writes, because it is the same server. Faults are not played
here, because most of them are of a process or a pipe.
"""

import asyncio
from collections.abc import Callable

from mcpzip_fakes import process
from mcpzip_fakes.faults import Plan
from mcpzip_fakes.record import begun
from mcpzip_fakes.scenario import Scenario
from mcpzip_fakes.stdio_server import StdioServer


def can_play(scenario: Scenario) -> bool:
    """Whether the client can't tell that ``scenario`` has no process of its own."""
    return not scenario.faults and not scenario.record_env and scenario.replay is None


class InProcess:
    """One server with one client. Must be made on the event loop."""

    def __init__(self, scenario: Scenario, record_path: str, received: Callable[[bytes], None]) -> None:
        """received: called in the loop with what the server writes."""
        assert can_play(scenario), "a fault needs a process"
        number, self._record = begun(record_path, process.described("in-process"))
        self._loop = asyncio.get_running_loop()
        self._server = StdioServer(
            scenario, Plan(scenario.faults, number), self._record, _Output(self._loop, received)
        )
        self._is_open = True

    def write(self, data: bytes) -> None:
        """Passes ``data`` to the server. Does nothing once it is closed."""
        if self._is_open:
            self._loop.call_soon(self._server.received, data)

    async def close(self) -> None:
        """Ends its input, and waits until the server has ended."""
        if self._is_open:
            self._is_open = False
            self._loop.call_soon(self._server.received, b"")
            await self._server.done.wait()
            self._record.event("exit", {"reason": "end of input", "code": 0})
            self._record.close()


class _Output:
    """See `mcpzip_fakes.stdio_server.Output`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, received: Callable[[bytes], None]) -> None:
        self._loop, self._received = loop, received

    def write(self, data: bytes) -> None:
        self._loop.call_soon(self._received, data)

    async def drained(self) -> None:
        await asyncio.sleep(0)

    async def roomy(self) -> None:
        await asyncio.sleep(0)

    def flush(self) -> None:
        pass
