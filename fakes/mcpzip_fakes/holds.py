"""Calls that wait until the test releases them.

The rule: a release is an event of the record (`release`), so that a test can release the calls of any process
of a server. A release also counts for later calls; without a record a call waits until it is cancelled.
"""

import asyncio
from collections.abc import Mapping

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.record import Line, Record
from mcpzip_fakes.request import as_object

RELEASE = "release"
_POLL = 0.005


class Holds:
    """The held calls of one process. One task reads the record for all of them."""

    def __init__(self, record: Record | None) -> None:
        self._record = record
        self._held: dict[asyncio.Future[None], tuple[str, JsonObject]] = {}
        self._watching: asyncio.Task[None] | None = None

    async def released(self, tool: str, arguments: JsonObject) -> None:
        """Wait until calls of ``tool`` with these arguments are released."""
        waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._held[waits] = (tool, arguments)
        if self._record is not None and (self._watching is None or self._watching.done()):
            self._watching = asyncio.create_task(self._watch(self._record))
        try:
            await waits
        finally:
            del self._held[waits]

    async def _watch(self, record: Record) -> None:
        while self._held:
            releases = record.events(RELEASE)
            for waits, (tool, arguments) in self._held.items():
                if not waits.done() and any(_applies(line, tool, arguments) for line in releases):
                    waits.set_result(None)
            await asyncio.sleep(_POLL)


def release(tool: str, arguments: Mapping[str, object]) -> JsonObject:
    """The details of the event that releases the calls of ``tool`` whose arguments have these members."""
    return {"tool": tool, "arguments": dict(arguments)}


def _applies(line: Line, tool: str, arguments: JsonObject) -> bool:
    wanted = as_object(line.detail.get("arguments"))
    return line.detail.get("tool") == tool and wanted.items() <= arguments.items()
