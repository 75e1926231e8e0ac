"""stdio: a message a line, on the pipes of a process of its own."""

from collections.abc import Mapping
from pathlib import Path

from mcpzip.wire import FrameTooLong, LineFramer
from mcpzip_conformance.channel import Sink
from mcpzip_conformance.errors import Finding
from mcpzip_conformance.processes import Process


class StdioChannel:
    """See `mcpzip_conformance.channel.Channel`."""

    process: Process

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._framer = LineFramer()

    @classmethod
    async def start(
        cls, command: list[str], sink: Sink, *, env: Mapping[str, str], cwd: Path
    ) -> "StdioChannel":
        """Start ``command``. Raises Finding if it can't be started."""
        channel = cls(sink)
        try:
            channel.process = await Process.start(command, channel._received, env=env, cwd=cwd)
        except OSError as error:
            raise Finding(f"{command[0]} can't be started: {error.strerror}.") from error
        return channel

    def last_words(self) -> str:
        """See `Process.last_words`."""
        return self.process.last_words()

    def write(self, raw: bytes) -> None:
        """Send a line; a missing newline is added."""
        self.process.write(raw.rstrip(b"\n") + b"\n")

    def cancel(self, id: bytes, notification: bytes) -> bool:
        """Do nothing: on stdio only the notification cancels."""
        self.write(notification)
        return True

    def pause(self) -> None:
        """See `Channel`."""
        self.process.pause()

    async def leave(self) -> None:
        """Close stdin."""
        self.process.close_stdin()

    async def crash(self) -> None:
        """SIGKILL for the process alone."""
        self.process.kill()
        await self.process.exited.wait()

    async def end(self, grace: float) -> None:
        """See `Process.end`."""
        await self.process.end(grace)

    def _received(self, data: bytes) -> None:
        if not data:
            self._sink.ended()
            return
        for frame in self._framer.feed(data):
            self._sink.line(frame.head if isinstance(frame, FrameTooLong) else frame)
