"""The lines of a stdio server, in and out: recorded, and out as the faults of stage ``reply`` change them."""

import asyncio
from typing import Protocol

from mcpzip_fakes import process
from mcpzip_fakes.distort import Exit, Pad, Pause, Step, Write, distort
from mcpzip_fakes.faults import Firing
from mcpzip_fakes.record import Writer


class Output(Protocol):
    """Where a server writes to."""

    def write(self, data: bytes) -> None:
        """Send ``data``. Raises BrokenPipeError if the reader has closed."""

    async def drained(self) -> None:
        """Wait until everything is written, or the reader has closed."""

    async def roomy(self) -> None:
        """Wait until little is left to write, or the reader has closed."""

    def flush(self) -> None:
        """Block until everything is written or the reader has closed; before the process exits."""


class ReceivedLines:
    """Records what a client sends."""

    def __init__(self, record: Writer) -> None:
        self._record = record
        self._partial = bytearray()

    def received(self, data: bytes) -> None:
        """Bytes from the client; b"" is the end."""
        self._partial += data
        if data and b"\n" not in data:
            return
        *lines, rest = self._partial.split(b"\n")
        if not data:  # the last line may lack its newline
            lines, rest = [*lines, rest], bytearray()
        self._partial = rest
        for line in lines:
            if line.strip():
                self._record.message("in", bytes(line))


class LineWriter:
    """Writes lines. done: is set when the reader has closed, and ends padding when it is set."""

    def __init__(self, output: Output, record: Writer, done: asyncio.Event) -> None:
        self._output, self._record, self._done = output, record, done
        self._alone = asyncio.Lock()
        self._torn = False
        self._held: list[bytes] = []

    async def send_answer(self, line: bytes, firing: Firing) -> None:
        """Writes an answer as the faults change it."""
        if not firing.faults:
            self.send(line)
            return
        steps: list[Step] = distort(line, firing)
        async with self._alone:  # the pieces of a torn reply are not interleaved
            left = iter(steps)
            try:
                for step in left:
                    match step:
                        case Write():
                            self._put(step.data)
                        case Pause():
                            self._torn = True
                            await asyncio.sleep(step.seconds)
                        case Pad():
                            self._torn = True
                            await self._pad(step)
                        case Exit():
                            self._output.flush()
                            process.leave(self._record, "crash", step.code, step.text)
            finally:
                self._torn = False
                pieces = [step.data for step in left if isinstance(step, Write)]
                for data in pieces + self._held:
                    self._put(data)
                self._held.clear()

    async def _pad(self, padding: Pad) -> None:
        """Writes padding, which is not recorded because it can be larger than the disk."""
        for piece in padding.pieces():
            if self._done.is_set():
                return
            self._write(piece)
            await self._output.roomy()

    def send(self, data: bytes) -> None:
        """Writes a line; after the answer that is written in pieces, if there is one."""
        if self._torn:
            self._held.append(data)
        else:
            self._put(data)

    def _put(self, data: bytes) -> None:
        if data:
            self._record.message("out", data)
            self._write(data)

    def _write(self, data: bytes) -> None:
        try:
            self._output.write(data)
        except BrokenPipeError:
            self._done.set()
