"""The lines of stdio to a fake in this process: the direct side of a comparison needs no process."""

from mcpzip_fakes.in_process import InProcess
from mcpzip_fakes.record import Record
from mcpzip_fakes.scenario import Scenario

from mcpzip.wire import FrameTooLong, LineFramer
from mcpzip_conformance.channel import Sink
from mcpzip_conformance.processes import Process


class InProcessChannel:
    """See `mcpzip_conformance.channel.Channel`."""

    def __init__(self, scenario: Scenario, record: Record, sink: Sink) -> None:
        self._sink = sink
        self._framer = LineFramer()
        self._is_paused = False
        self._server = InProcess(scenario, str(record.path), self._received)

    @property
    def process(self) -> Process:
        """There is none."""
        raise AssertionError("no process was started for this connection")

    def last_words(self) -> str:
        """See `Channel`."""
        return "."

    def write(self, raw: bytes) -> None:
        """Send a line; a missing newline is added."""
        self._server.write(raw.rstrip(b"\n") + b"\n")

    def cancel(self, id: bytes, notification: bytes) -> bool:
        """Send the notification, which cancels on stdio."""
        self.write(notification)
        return True

    def pause(self) -> None:
        """Pass nothing more on."""
        self._is_paused = True

    async def leave(self) -> None:
        """End the server's input, and wait for its end."""
        await self._server.close()
        self._sink.ended()

    async def crash(self) -> None:
        """As `leave`: for the server it makes no difference."""
        await self.leave()

    async def end(self, grace: float) -> None:
        """As `leave`."""
        await self.leave()

    def _received(self, data: bytes) -> None:
        for frame in () if self._is_paused else self._framer.feed(data):
            self._sink.line(frame.head if isinstance(frame, FrameTooLong) else frame)
