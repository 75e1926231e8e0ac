"""One recorded session over HTTP: what happens in it goes to the responses that wait for it."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcpzip.cassettes.cassette import Event
from mcpzip_fakes.engine import Note
from mcpzip_fakes.replay.messages import Message
from mcpzip_fakes.replay.report import report
from mcpzip_fakes.replay.run import Run
from mcpzip_fakes.replay.session import Happening, Session

if TYPE_CHECKING:
    from mcpzip_fakes.replay.real_http_server import RealHttpSession

Receiver = Callable[[Happening], None]


class HttpSession:
    """A client's session. id: the value of its header ``Mcp-Session-Id``, or "" without one."""

    def __init__(self, session: Session, note: Note, id: str = "", rest: Receiver | None = None) -> None:
        """note: records an event."""
        self.id = id
        self._note = note
        self.rest = rest
        """Gets what no other response waits for."""
        self.opened = False
        """Whether the server has accepted its `initialize`."""
        self.real: RealHttpSession | None = None
        """What answers the requests that aren't in the cassette, if anything does."""
        self._session = session
        self.beyond: Message | None = None
        """The latest request that isn't in the cassette, if another server answers those (`pass_beyond`)."""
        self._loop = asyncio.get_running_loop()
        self._receivers: dict[int, Receiver] = {}
        """By the identity of what they wait for: an exchange that is played, or a refused message."""
        self._timer: asyncio.TimerHandle | None = None
        self.go_on()

    @property
    def number(self) -> int:
        """Of the recorded session that is played."""
        return self._session.number

    def pass_beyond(self) -> None:
        """From now on another server answers the requests that aren't in the cassette."""

        def note(message: Message) -> None:
            self.beyond = message

        self._session.beyond = note

    def receive(self, message: Message, receiver: Receiver | None) -> Run | None:
        """The client sent ``message``; ``receiver`` gets what comes because of it. See `Session.receive`."""
        run = self._session.receive(message, self._loop.time())
        self._played(run)
        if receiver is not None:
            self._receivers[id(message)] = receiver
            if run is not None:
                self._receivers[id(run)] = receiver
        self.go_on()
        return run

    def request(self, verb: str, last_event: str, receiver: Receiver, *, exactly: bool = False) -> Run | None:
        """The client sent a request without a body. See `Session.request`."""
        run = self._session.request(verb, last_event, self._loop.time(), exactly=exactly)
        self._played(run)
        if run is not None:
            self._receivers[id(run)] = receiver
            self.go_on()
        return run

    def _played(self, run: Run | None) -> None:
        if run is not None:
            self._note("played", {"exchange": run.recorded.number})

    def stop(self, run: Run) -> None:
        """Nothing more of ``run`` is sent."""
        self._session.stop(run)

    def leave(self, *of: Run | Message | None) -> None:
        """The receiver of what comes because of these has gone."""
        for each in of:
            self._receivers.pop(id(each), None)

    def go_on(self) -> None:
        """Do what is due, and come back when more is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for happening in self._session.happenings(self._loop.time()):
            of = happening.run or happening.message
            receiver = self._receivers.get(id(of), self.rest)
            if receiver is not None:
                receiver(happening)
        for text in self._session.unmatched:
            self._note("unmatched", {"text": text})
            report(text)
        self._session.unmatched.clear()
        if (wakes := self._session.wakes) is not None:
            self._timer = self._loop.call_at(wakes, self.go_on)

    def close(self) -> None:
        """The session is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def event_text(event: Event, data: bytes) -> bytes:
    """A server-sent event: its recorded fields, and ``data``."""
    lines = [field.encode() for field in event.fields]
    if data or not lines:
        lines += [b"data: " + line for line in data.split(b"\n")]
    return b"\r\n".join((*lines, b"", b""))
