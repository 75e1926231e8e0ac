"""The messages of one connection, in both directions, in order."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcpzip.model import sanitize

SHOWN = 400
"""Characters of one message that are shown to people."""
_ENDS = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


@dataclass(frozen=True, slots=True)
class Message:
    """One line. sent: by the client, None: a remark of the transport; at: seconds since the connection
    opened; raw: without its newline."""

    sent: bool | None
    at: float
    raw: bytes

    def __str__(self) -> str:
        text = printable(self.raw.decode("utf-8", "backslashreplace"))
        if len(text) > SHOWN:
            text = f"{text[:SHOWN]}… ({len(self.raw)} bytes)"
        mark = "·" if self.sent is None else "→" if self.sent else "←"
        return f"{self.at:7.3f} {mark} {text}"


@dataclass(slots=True)
class Transcript:
    """It grows while the connection is open."""

    messages: list[Message] = field(default_factory=list)
    _opened: float = field(default_factory=time.monotonic)

    def add(self, raw: bytes, *, sent: bool) -> Message:
        """Add one message."""
        message = Message(sent, time.monotonic() - self._opened, raw)
        self.messages.append(message)
        return message

    def remark(self, text: str) -> None:
        """Add a remark about the transport."""
        self.messages.append(Message(None, time.monotonic() - self._opened, text.encode()))

    def received(self) -> Iterator[bytes]:
        """The lines that came in."""
        return (message.raw for message in self.messages if message.sent is False)

    def lines(self) -> tuple[str, ...]:
        """One printable line a message."""
        return tuple(map(str, self.messages))


def printable(text: str) -> str:
    """``text`` on one line, with escapes for characters that act, hide or reorder text
    (`mcpzip.model.sanitize`), line ends and tabs too."""
    return sanitize.one_line(text.translate(_ENDS), sys.maxsize)
