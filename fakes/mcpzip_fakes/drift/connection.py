"""One connection to the server that is checked: requests one after another, each with a time limit.

The rule: everything that the server sends is looked at. Questions are answered as the recorded client
answered them; notifications are noted.
"""

import queue
import threading
import time
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from mcpzip.wire import METHOD_NOT_FOUND, join_object, quote, split_object
from mcpzip_fakes.cassettes.messages import Message, read_message
from mcpzip_fakes.clients.channel import Channel, Sink

_BEHIND = 256 << 20
"""Bytes that wait to be looked at."""
Outcome = Literal["answer", "no answer", "silent", "ended"]


class Reply(NamedTuple):
    """What came of a request. ``answer``: message is the server's. ``no answer``: it can't come any more,
    over HTTP; ``silent``: none came in time; ``ended``: the connection ended. why: of the others, a phrase.
    """

    outcome: Outcome
    message: Message | None = None
    why: str = ""


class Listener(Protocol):
    """Who is told of what comes beside answers."""

    def notified(self, message: Message) -> None:
        """A notification came."""

    def asked(self, message: Message) -> bytes | None:
        """The server asks: the recorded answer of the client (its JSON text), None if there is none."""

    def babbled(self, raw: bytes) -> None:
        """Something came that is no message."""


class SweptChannel(Channel, Protocol):
    """A channel that ends all that it started."""

    def sweep(self) -> None:
        """End it at once, with the processes that it started."""


Connect = Callable[[Sink], SweptChannel]
"""Opens a connection. Raises OSError."""


class _Lost(NamedTuple):
    """No answer comes any more. id: of the request, None for all."""

    id: object
    why: str


class Connection:
    """A `Sink` that keeps what comes until somebody waits for it. If that is much, the server waits too."""

    def __init__(self, connect: Connect, listener: Listener) -> None:
        self._listener = listener
        self._came: queue.SimpleQueue[bytes | _Lost] = queue.SimpleQueue()
        self._room = threading.Condition()
        self._waiting = 0  # bytes
        self._closes = False
        self._ended: str | None = None
        self.channel = connect(self)

    def took(self, raw: bytes) -> None:
        """See `Sink`."""
        with self._room:
            while self._waiting > _BEHIND and not self._closes:
                self._room.wait()
            self._waiting += len(raw)
        self._came.put(raw)

    def unanswered(self, id: object, why: str) -> None:
        """See `Sink`."""
        self._came.put(_Lost(id, why))

    def ended(self, why: str) -> None:
        """See `Sink`."""
        self._came.put(_Lost(None, why))

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended."""
        return self._ended is not None

    def request(self, text: bytes, id: object, headers: dict[str, str], timeout: float) -> Reply:
        """Sends a request and waits for its answer. timeout: seconds."""
        self.channel.send_text(text, id, headers)
        return self._wait(id, timeout)

    def until(self, wanted: Callable[[], bool], timeout: float) -> None:
        """Listens until ``wanted`` is true, the connection ends, or the time is over."""
        deadline = time.monotonic() + timeout
        while not wanted() and not self.is_over:
            if self._next(deadline) is None:
                return

    def close(self) -> None:
        """Ends the connection, the processes that it started included."""
        with self._room:
            self._closes = True
            self._room.notify_all()
        try:
            self.channel.close()
        finally:
            self.channel.sweep()

    def _wait(self, id: object, timeout: float) -> Reply:
        deadline = time.monotonic() + timeout
        while not self.is_over:
            came = self._next(deadline)
            if came is None:
                return Reply("silent", why=f"no answer within {timeout:g} s")
            if isinstance(came, _Lost):
                if _same(came.id, id):
                    return Reply("no answer", why=came.why)
            elif not came.method and _same(came.id, id):
                return Reply("answer", came)
        return Reply("ended", why=self._ended or "")

    def _next(self, deadline: float) -> "Message | _Lost | None":
        """The next that came, after the listener has been told of it; None if the time is over."""
        try:
            came = self._came.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        if isinstance(came, _Lost):
            if came.id is None:
                self._ended = came.why
            return came
        with self._room:
            self._waiting -= len(came)
            self._room.notify_all()
        message = read_message(came)
        if message is None or not (message.method or message.id is not None or message.error is not None):
            self._listener.babbled(came)
            return _Lost(..., "")
        if message.method and message.id is None:
            self._listener.notified(message)
        elif message.method:
            self._answer(came, message)
        return message

    def _answer(self, raw: bytes, question: Message) -> None:
        number = split_object(raw)["id"]
        text = b'{"jsonrpc":"2.0","id":%b,"result":{}}' % number
        if question.method != "ping":
            recorded = self._listener.asked(question)
            fields = split_object(recorded) if recorded is not None else {}
            error = join_object(
                {"code": b"%d" % METHOD_NOT_FOUND, "message": quote("the recorded client was not asked this")}
            )
            answer = {key: fields[key] for key in fields if key in ("result", "error")} or {"error": error}
            text = join_object({"jsonrpc": b'"2.0"', "id": number, **answer})
        self.channel.send_text(text)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other
