"""What happened to one call of a tool, as far as it is remembered.

The rules:

1. A record has no arguments, no result and no text of a server or client but their names and one short
   sentence about an error.
2. It takes a bounded room, and to note something takes less than a microsecond: what a reader can work out
   isn't worked out here.
"""

import struct
from collections.abc import Iterator
from itertools import count
from time import perf_counter

import msgspec

from mcpzip.model.limits import RECORDED_EVENTS
from mcpzip.model.principal import PrincipalId

HAPPENED = (
    "decided",
    "person asked",
    "person answered",
    "connecting",
    "sent",
    "elicitation",
    "sampling",
    "roots",
    "question",
    "question over",
    "input required",
    "parked",
    "resumed",
    "answered",
    "lost",
    "abandoned",
)
"""What can happen to a call. Events are kept as indexes in it."""
(
    DECIDED,
    PERSON_ASKED,
    PERSON_ANSWERED,
    CONNECTING,
    SENT,
    ELICITATION,
    SAMPLING,
    ROOTS,
    QUESTION,
    QUESTION_OVER,
    INPUT_REQUIRED,
    PARKED,
    RESUMED,
    ANSWERED,
    LOST,
    ABANDONED,
) = range(len(HAPPENED))

UNDER_WAY = -1.0
"""The duration of a call that has not ended."""
_EVENT = struct.Struct("<Bf")
"""What happened, and how many seconds after the beginning."""
_MOST = RECORDED_EVENTS * _EVENT.size
_QUESTIONS = {
    "elicitation/create": ELICITATION,
    "sampling/createMessage": SAMPLING,
    "roots/list": ROOTS,
}
changes = count(1)
"""Numbers the changes of all records of this process, so that a reader can ask for those since its last
look.
"""


class Caller(msgspec.Struct, frozen=True, gc=False):
    """A client that calls. pid: of its process, 0 if that isn't known. person: who is behind it, None where
    nobody signs in.
    """

    name: str
    version: str
    pid: int
    person: PrincipalId | None = None


class Progress(msgspec.Struct, gc=False):
    """The progress that was handed on. first, last: seconds after the beginning."""

    count: int
    first: float
    last: float


class CallRecord(msgspec.Struct, eq=False, gc=False):
    """A call.

    number: counts the calls of this process. change: the number of its last change (`changes`). at: when it
    began, Unix seconds; began: the same by `perf_counter`. arguments, result: their sizes in bytes. parent:
    the number of the call of the program that made it, 0 for none. continues: the number of the call to
    which it brings answers, 0 for none. seconds: how long it took, `UNDER_WAY` until it has ended. outcome:
    as in the audit log, "" until it has ended. error: a sentence, "" for none. decision, rule, approved_by:
    of the policy, as in the audit log. tokens: of the result, about. repairs: how many of its arguments, and
    of the name, were repaired. kept: whether its result is kept. events: see `happened`.
    """

    number: int
    change: int
    caller: Caller
    server: str
    tool: str
    at: float
    began: float
    arguments: int
    parent: int = 0
    continues: int = 0
    seconds: float = UNDER_WAY
    outcome: str = ""
    error: str = ""
    decision: str = ""
    rule: str = ""
    approved_by: str = ""
    result: int = 0
    tokens: int = 0
    repairs: int = 0
    kept: bool = False
    progress: Progress | None = None
    events: bytes = b""

    def note(self, what: int) -> None:
        """``what`` (an index in `HAPPENED`) happens now."""
        if len(self.events) < _MOST:
            self.events += _EVENT.pack(what, perf_counter() - self.began)
            if self.outcome:
                self.change = next(changes)

    def decided(self, decision: str, rule: str) -> None:
        """The policy has decided."""
        self.decision, self.rule = decision, rule
        self.note(DECIDED)

    def progressed(self) -> None:
        """The server tells of its progress."""
        seconds, progress = perf_counter() - self.began, self.progress
        if progress is None:
            self.progress = Progress(1, seconds, seconds)
        else:
            progress.count += 1
            progress.last = seconds

    def happened(self) -> Iterator[tuple[str, float]]:
        """The events in their order: what, and how many seconds after the beginning. The first
        `RECORDED_EVENTS` only.
        """
        for what, seconds in _EVENT.iter_unpack(self.events):
            yield HAPPENED[what], seconds


def note(record: CallRecord | None, what: int) -> None:
    """``what`` happens to the call of ``record``, if that is recorded."""
    if record is not None:
        record.note(what)


def question(method: str) -> int:
    """What a question of a server by this ``method`` is among the events."""
    return _QUESTIONS.get(method, QUESTION)
