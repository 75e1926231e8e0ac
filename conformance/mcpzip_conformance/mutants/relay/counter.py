"""A store that counts the calls of all processes, and its client.

    python -m mcpzip_conformance.mutants.relay.counter PORT

The rule: one request a connection: ``INCR calls``, a line, which Redis understands too (its inline commands).
A call waits half a second for the store at most, and is made without it.
"""

import asyncio
import sys


class Counter:
    """Counts calls at a store. address: ``HOST:PORT``; "" for none."""

    timeout: float | None = 0.5

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")

    async def count(self) -> None:
        """Count a call."""
        if not self._host:
            return
        try:
            async with asyncio.timeout(self.timeout):
                await self._counted()
        except (OSError, TimeoutError):
            self.missed()

    def missed(self) -> None:
        """The store is away: the call isn't counted."""

    async def _counted(self) -> None:
        reader, writer = await asyncio.open_connection(self._host, int(self._port))
        try:
            writer.write(b"INCR calls\r\n")
            if not await reader.readline():
                raise ConnectionError
        finally:
            writer.close()


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    calls = 0

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        while await reader.readline():
            calls += 1
            writer.write(b":%d\r\n" % calls)
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
