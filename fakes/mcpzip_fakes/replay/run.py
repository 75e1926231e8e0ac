"""One recorded exchange that is being played (pure)."""

from collections.abc import Callable, Sequence

from mcpzip.cassettes.cassette import Event
from mcpzip.wire.canonical_json import Object, decoded, written
from mcpzip_fakes.replay.differences import Difference, differences, fits
from mcpzip_fakes.replay.matching import Recorded
from mcpzip_fakes.replay.messages import Ids, Message, read

SENT = ("send", "reply", "stderr", "end")
"""The kinds of events that the server made."""


class Run:
    """The state of one exchange.

    recorded: what is played; events: of it, and position: of the next one; message: the client's message now,
    None if the server sends on its own; ids: those of its messages; answers: the client's answers by the
    position of the event, each with the time at which it came; over: nothing of it is sent any more.
    """

    def __init__(self, recorded: Recorded, message: Message | None, now: float, ids: Ids) -> None:
        self.recorded, self.message, self.ids = recorded, message, ids
        self.events: Sequence[Event] = recorded.exchange.events
        self.position = 0
        self.answers: dict[int, tuple[Message, float]] = {}
        self.over = False
        self._began, self._began_after = now, 0.0

    @property
    def next(self) -> Event | None:
        """The next event; None if there is none."""
        if self.over or self.position >= len(self.events):
            return None
        return self.events[self.position]

    @property
    def waits(self) -> bool:
        """Whether the client must answer before it goes on."""
        following = self.next
        return following is not None and following.kind == "receive" and self.position not in self.answers

    def passed(self) -> None:
        """The next event has happened."""
        if (answer := self.answers.get(self.position)) is not None:
            self.rebase(answer[1], self.events[self.position].after)
        self.position += 1

    def rebase(self, real: float, after: float) -> None:
        """What was recorded ``after`` so many seconds happened at the time ``real``."""
        self._began, self._began_after = real, after

    def due(self, event: Event, timing: float | None) -> float:
        """The time at which ``event`` is due. timing: the factor of the recorded times, None: at once."""
        return self._began + (event.after - self._began_after) * (timing or 0.0)

    def answered(self, asked_at: int, answer: Message, now: float) -> list[Difference] | None:
        """The client answered the request that the server sent as event ``asked_at``. Returns where the
        answer differs from the recorded one; then nothing else is done. None: it was the recorded one, or
        none was recorded.
        """
        at = self._receive_of(asked_at)
        if at is None:
            return None
        found = _answer_differences(read(self.events[at].data), answer)
        if found and self.message is not None:
            return found
        self.answers[at] = (answer, now)
        return None

    def turn(self, others: Sequence[Recorded], asked_at: int, answer: Message, now: float) -> Recorded | None:
        """Goes on as that of the ``others`` in which the client gave all these answers, if there is one."""
        at = self._receive_of(asked_at)
        if at is None or self.message is None:
            return None
        given = [*(self.answers[each][0] for each in sorted(self.answers)), answer]
        for other in others:
            after = _same_until(self.events[: at + 1], other.exchange.events, given)
            if other is self.recorded or after is None:
                continue
            self.events = (*self.events[:at], *other.exchange.events[after:])
            self.answers[at] = (answer, now)
            self.ids.meet(other.message, self.message)
            return other
        return None

    def _receive_of(self, asked_at: int) -> int | None:
        """The position of the recorded answer to the server's request at ``asked_at``."""
        id = read(self.events[asked_at].data).id_key
        for at in range(asked_at + 1, len(self.events)):
            if self.events[at].kind == "receive" and read(self.events[at].data).id_key == id:
                return at
        return None


def _same_until(mine: Sequence[Event], others: Sequence[Event], given: Sequence[Message]) -> int | None:
    """The position in ``others`` of the answer with which ``mine`` ends, if the server asked the same until
    then, and got the answers ``given``; else None."""
    asked = [_question(event) for event in mine if _is_question(event)]
    answers = iter(given)
    left = len(given)
    for at, event in enumerate(others):
        if event.kind == "receive":
            if _answer_differences(read(event.data), next(answers)):
                return None
            left -= 1
            if not left:
                return None if asked else at
        elif _is_question(event) and (not asked or asked.pop(0) != _question(event)):
            return None
    return None


def _is_question(event: Event) -> bool:
    return event.kind == "send" and b'"method"' in event.data and read(event.data).kind == "request"


def _question(event: Event) -> tuple[str, bytes]:
    message = read(event.data)
    return message.method, written(decoded(message.params or b"{}"))


def _answer_differences(recorded: Message, present: Message) -> list[Difference]:
    """Where two answers of a client differ. Of errors only the code counts."""
    if recorded.failed != present.failed:
        one, other = ("an error" if it.failed else "a result" for it in (recorded, present))
        return [Difference("answer", one, other)]
    one_value, other_value = decoded(recorded.answer), decoded(present.answer)
    pick: Callable[[object], object] = _code if recorded.failed else _without_meta
    one_value, other_value = pick(one_value), pick(other_value)
    if fits(one_value, other_value):
        return []
    return differences(one_value, other_value, "error.code" if recorded.failed else "result")


def _code(error: object) -> object:
    return dict(error).get("code") if isinstance(error, Object) else error


def _without_meta(result: object) -> object:
    if not isinstance(result, Object):
        return result
    return Object(member for member in result if member[0] != "_meta")
