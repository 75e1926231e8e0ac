"""Plays the recorded sessions of a server to one client, without I/O: messages and times in, events out.

The rules:

1. A request starts the exchange in which it was recorded (`matching`): of this session the next that wasn't
   played yet, or else the last one again; or else one of another session.
2. The events of the session that is played come in the order of the recording: one comes as soon as all that
   was recorded before it has happened. So a client that sends its next request before the answer to the last
   one hears what it heard then.
3. A message of the client that was recorded earlier than one that came, or that doesn't come within
   ``patience`` seconds while something waits for it, isn't waited for any more. So a client that does less,
   or one thing after the other, never waits for ever.
4. What followed an answer of the client waits for that answer, as long as it takes. Exchanges of other
   sessions, or that are played again, have only the order of their own events.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from mcpzip.cassettes.cassette import CLOSE, Event
from mcpzip.model.quoting import quoted, shortened
from mcpzip.wire import INVALID_PARAMS, METHOD_NOT_FOUND, quote
from mcpzip.wire.canonical_json import Object, decoded, written
from mcpzip_fakes.replay.differences import told
from mcpzip_fakes.replay.matching import Matcher, Recorded
from mcpzip_fakes.replay.messages import CANCELLED, Ids, Message, id_key, read
from mcpzip_fakes.replay.run import SENT, Run

LAST_EVENT_ID = "last-event-id"
_MILLION = 1_000_000


class Happening(Struct, frozen=True, kw_only=True):
    """What the server does now. data: of the event, for this client. run: None if the event belongs to no
    recorded exchange; then it is the ``reply`` to ``message``."""

    event: Event
    data: bytes
    run: Run | None = None
    message: Message | None = None


class _Item(Struct, frozen=True):
    """A place in the order of a session: the message of the client (``event`` -1), or an event."""

    recorded: Recorded
    event: int


class Session:
    """One client's session.

    number: of the recorded session that is played; timing: the factor of the recorded times, None: nothing
    waits. unmatched: what was written about requests that weren't found, to be told to the user.
    """

    def __init__(
        self,
        source: str,
        exchanges: Sequence[Recorded],
        matcher: Matcher,
        *,
        number: int,
        repeat: bool,
        timing: float | None,
        now: float,
        patience: float,
    ) -> None:
        """source: the cassette, as messages name it. exchanges: of all sessions, in their order."""
        self._source, self._exchanges, self._matcher = source, exchanges, matcher
        self._repeat, self._timing, self._patience = repeat, timing, patience
        self._ids = Ids()
        self._used: set[int] = set()
        self._by_id: dict[bytes, Run] = {}
        self._questions: dict[bytes, tuple[Run, int]] = {}
        self._asked: set[bytes] = set()
        self._loose: list[Run] = []
        self._out: list[Happening] = []
        self._wake: float | None = None
        self._last = (now, 0.0)
        self._met = self._closed = False
        self.unmatched: list[str] = []
        self.beyond: Callable[[Message], None] | None = None
        """Gets the requests that aren't in the cassette; without it they fail."""
        self._play(number, now)

    def _play(self, number: int, now: float) -> None:
        """Play the recorded session ``number`` from its beginning."""
        self.number = number
        self._own = [each for each in self._exchanges if each.exchange.session == number]
        self._items = _in_order(self._own)
        self._at = 0
        self._runs: dict[int, Run] = {}
        self._unordered: set[int] = set()
        self._following: set[int] = set()
        """Those of the exchanges without a message that were recorded after the client had closed."""
        closed = False
        for each in self._own:
            if each.exchange.verb == CLOSE:
                closed = True
            elif _alone(each):
                self._runs[each.number] = Run(each, None, now, Ids(self._ids))
                if closed:
                    self._following.add(each.number)

    # In

    def receive(self, message: Message, now: float) -> Run | None:
        """The client sent ``message``. Returns what it started; None if it started nothing."""
        if message.kind == "response":
            if message.id_key in self._questions:
                self._answer(message, now)
            sent = (each for each in self._own if each.message.kind == "response" and self._awaited(each))
            chosen = next((each for each in sent if each.message.id_key == message.id_key), None)
            return None if chosen is None else self._start(chosen, None, now)
        if message.method == CANCELLED and message.kind == "notification":
            self._cancel(message, now)
            return None
        chosen = self._choose(message)
        if chosen is not None:
            return self._start(chosen, message, now)
        if message.kind == "notification":
            chosen = next((each for each in self._matcher.of_method(message) if self._awaited(each)), None)
            return None if chosen is None else self._start(chosen, message, now)
        if message.kind == "request":
            self._refuse(message)
        return None

    def request(self, verb: str, last_event: str, now: float, *, exactly: bool = False) -> Run | None:
        """The client sent an HTTP request without a body. last_event: its ``Last-Event-ID``; exactly: only a
        recorded one with the same will do. Returns what it started; None if all recorded ones were played.
        """
        found = [each for each in self._own if each.exchange.verb == verb and self._awaited(each)]
        same = [each for each in found if each.exchange.headers.get(LAST_EVENT_ID, "") == last_event]
        for chosen in same or (() if exactly else found):
            return self._start(chosen, None, now)
        return None

    def close(self, now: float) -> None:
        """The client closed the server's input: what is left of open exchanges comes at once."""
        for at, item in enumerate(self._items):
            closing = item.recorded
            if closing.exchange.verb == CLOSE and item.event < 0 and closing.number not in self._used:
                if at < self._at:  # it was given up, with all that followed it
                    self._at = at
                    self._unordered -= {closing.number, *self._following}
                self._start(closing, None, now)
        self._closed = True

    def stop(self, run: Run, reply: bytes | None = None) -> None:
        """Nothing of ``run`` is sent any more but, if given, this reply."""
        run.over = True
        if reply is not None:
            self._out.append(Happening(event=_REPLY, data=reply, message=run.message))

    # Out

    def happenings(self, now: float) -> list[Happening]:
        """What the server does now, in this order."""
        while True:
            self._wake = None
            before = len(self._out)
            self._advance(now)
            for run in list(self._loose):
                self._advance_alone(run, now)
            if len(self._out) == before:
                break
        found, self._out = self._out, []
        return found

    @property
    def wakes(self) -> float | None:
        """The time at which `happenings` has more even if nothing is received; None: not before."""
        return self._wake

    @property
    def exit_code(self) -> int:
        """The recorded exit code of the session's process, 0 if it is unknown."""
        codes = [event.code for each in self._own for event in each.exchange.events if event.kind == "end"]
        return next((code for code in reversed(codes) if code is not None), 0)

    def _choose(self, message: Message) -> Recorded | None:
        """The exchange that ``message`` starts."""
        found = self._matcher.found(message)
        if found and not self._met and message.kind == "request":
            self._met = True
            if all(each.exchange.session != self.number for each in found):
                self._play(found[0].exchange.session, self._last[0])
                self._skip_beginning()
        own = [each for each in found if each.exchange.session == self.number]
        others = [each for each in found if each.exchange.session != self.number]
        for each in own:
            if each.number not in self._used:
                return each
        if own and self._repeat:
            return own[-1]
        for each in others:
            if each.number not in self._used:
                return each
        return others[-1] if others and self._repeat else None

    def _skip_beginning(self) -> None:
        """What the server of this session sent before the client's first message isn't sent."""
        while self._at < len(self._items) and self._items[self._at].event >= 0:
            self._runs[self._items[self._at].recorded.number].passed()
            self._at += 1

    def _awaited(self, recorded: Recorded) -> bool:
        return recorded.exchange.session == self.number and recorded.number not in self._used

    def _start(self, chosen: Recorded, message: Message | None, now: float) -> Run:
        run = Run(chosen, message, now, Ids(self._ids))
        if message is not None and message.id:
            run.ids.meet(chosen.message, message)
            self._by_id[message.id_key] = run
        in_order = self._awaited(chosen) and chosen.number not in self._unordered
        self._used.add(chosen.number)
        if not in_order:
            self._loose.append(run)
            return run
        self._runs[chosen.number] = run
        self._overtake(chosen)
        self._last = (now, chosen.exchange.at)
        return run

    def _overtake(self, arrived: Recorded) -> None:
        """Wait for no message that was recorded before ``arrived``, because the client has passed over it."""
        for at in range(self._at, len(self._items)):
            item = self._items[at]
            if item.event < 0 and item.recorded is arrived:
                return
            run = self._runs.get(item.recorded.number)
            if run is None:
                self._unordered.add(item.recorded.number)
            elif item.event >= 0 and item.recorded.number not in self._unordered:
                event = item.recorded.exchange.events[item.event]
                if event.kind == "receive" and item.event not in run.answers:
                    self._detach(run)

    def _detach(self, run: Run) -> None:
        """From now on only the order of its own events counts."""
        number = run.recorded.number
        if number not in self._unordered:
            self._unordered.add(number)
            self._loose.append(run)
            if run.message is None:
                real, then = self._last
                run.rebase(real, then - run.recorded.exchange.at)

    def _answer(self, message: Message, now: float) -> None:
        run, asked_at = self._questions.pop(message.id_key)
        if run.over:
            return
        found = run.answered(asked_at, message, now)
        if found is None:
            return
        assert run.message is not None
        others = [each for each in self._matcher.found(run.message) if each is not run.recorded]
        if (turned := run.turn(others, asked_at, message, now)) is not None:
            self._used.add(turned.number)
            self._unordered.add(turned.number)
            self._detach(run)
            return
        asked = described(read(run.events[asked_at].data))
        about = f"{described(run.message)}: the client answered {asked} otherwise than in"
        text = f"{about} {place(run.recorded)} of {self._source}\n{told(found)}"
        self.unmatched.append(text)
        self.stop(run, error_line(run.message.id, INVALID_PARAMS, text))

    def _cancel(self, message: Message, now: float) -> None:
        run = self._by_id.get(cancelled_id(message))
        if run is None:
            return
        wanted = run.recorded.message.id_key
        for each in self._matcher.of_method(message):
            same = each.exchange.session == run.recorded.exchange.session
            if same and cancelled_id(each.message) == wanted:
                if self._awaited(each):
                    self._start(each, message, now)
                return  # it was cancelled then too, so what follows is what the server did
        run.over = True

    def _refuse(self, message: Message) -> None:
        if message.method == "ping":  # clients send it when they please
            line = b'{"jsonrpc":"2.0","id":%b,"result":{}}' % message.id
            self._out.append(Happening(event=_REPLY, data=line, message=message))
            return
        if self.beyond is not None:
            self.beyond(message)
            return
        code, text = self._unmatched(message)
        self.unmatched.append(text)
        self._out.append(Happening(event=_REPLY, data=error_line(message.id, code, text), message=message))

    def _unmatched(self, message: Message) -> tuple[int, str]:
        what = described(message)
        if not self._matcher.of_method(message):
            return METHOD_NOT_FOUND, f"{what}: {self._source} has no request of this method"
        if self._matcher.found(message):
            return (
                INVALID_PARAMS,
                f"{what}: all recorded answers of {self._source} were given, and match.repeat is false",
            )
        near = self._matcher.nearest(message)
        assert near is not None
        text = f"{what} is not in {self._source}. The nearest is {place(near[0])}, which differs in\n"
        return INVALID_PARAMS, text + told(near[1])

    # The order

    def _advance(self, now: float) -> None:
        """Go on in the order of the session as far as possible."""
        while self._at < len(self._items):
            item = self._items[self._at]
            number = item.recorded.number
            run = self._runs.get(number)
            if number not in self._unordered and not self._passes(item, run, now):
                return
            self._at += 1

    def _passes(self, item: _Item, run: Run | None, now: float) -> bool:
        """Whether the ``item`` has happened, happens now, or isn't waited for any more."""
        if run is None:
            if self._gives_up(item, None, now):
                self._unordered.add(item.recorded.number)
                if item.recorded.exchange.verb == CLOSE:
                    self._unordered |= self._following
                return True
            return False
        if item.event < run.position or run.over:
            return True
        event = run.events[item.event]
        if event.kind == "receive":
            if item.event in run.answers:
                self._last = (run.answers[item.event][1], item.recorded.exchange.at + event.after)
                run.passed()
                return True
            if self._gives_up(item, run, now):
                self._detach(run)
                return True
            return False
        if self._closed and _alone(item.recorded) and not self._still_comes(item):
            return True
        due = self._due(run, event)
        if now < due and not self._closed:
            self._wait_until(due)
            return False
        self._last = (now, item.recorded.exchange.at + event.after)
        self._happen(run, event)
        return True

    def _still_comes(self, item: _Item) -> bool:
        """Whether something that the server sent on its own comes although the client has closed."""
        if item.recorded.number in self._following:
            return True
        later = (self._items[at] for at in range(self._at + 1, len(self._items)))
        return any(
            each.event < 0 and each.recorded.number in self._runs and each.recorded.exchange.verb != CLOSE
            for each in later
        )

    def _due(self, run: Run, event: Event) -> float:
        if run.message is not None or self._timing is None:
            return run.due(event, self._timing)
        real, then = self._last
        return real + (run.recorded.exchange.at + event.after - then) * self._timing

    def _gives_up(self, item: _Item, waiting: Run | None, now: float) -> bool:
        """Whether ``item``, a message of the client, isn't waited for any more. waiting: the exchange it
        belongs to, if that has begun."""
        if self._closed:
            return True
        if item.event < 0 and item.recorded.message.method == "ping":
            return True
        ends = [
            max(run.due(following, self._timing), run.due(run.events[0], None))
            for run in self._runs.values()
            if run is not waiting
            and run.message is not None
            and run.recorded.number not in self._unordered
            and (following := run.next) is not None
            and following.kind in SENT
        ]
        if not ends:
            return False
        end = min(ends) + self._patience
        if now < end:
            self._wait_until(end)
            return False
        return True

    def _advance_alone(self, run: Run, now: float) -> None:
        while (event := run.next) is not None:
            if event.kind == "receive":
                if run.waits:
                    break
                run.passed()
                continue
            due = run.due(event, self._timing)
            if now < due and not self._closed:
                self._wait_until(due)
                return
            self._happen(run, event)
        if run.next is None or self._closed:
            self._loose.remove(run)

    def _wait_until(self, time: float) -> None:
        self._wake = time if self._wake is None else min(self._wake, time)

    def _happen(self, run: Run, event: Event) -> None:
        """The server makes ``event``, the next of ``run``."""
        at = run.position
        run.passed()
        data: bytes | None = event.data
        if event.kind == "send" and b'"method"' in event.data:
            self._ask(run, at, event)
        if event.kind in ("send", "reply"):
            data = run.ids.adapted(event.data)
        if data is not None:
            self._out.append(Happening(event=event, data=data, run=run, message=run.message))

    def _ask(self, run: Run, at: int, event: Event) -> None:
        """If the event is a request of the server, wait for the answer; an id is used once."""
        message = read(event.data)
        if message.kind != "request":
            return
        id, number = message.id, len(self._asked)
        while id_key(id) in self._asked:
            number += 1
            id = b'"again-%d"' % number
        if id is not message.id:
            run.ids.renamed(message.id, id)
        self._asked.add(id_key(id))
        self._questions[id_key(id)] = (run, at)


_REPLY = Event(kind="reply", after=0.0)


def _alone(recorded: Recorded) -> bool:
    """Whether the server sent on its own."""
    return not recorded.exchange.request and not recorded.exchange.verb


def _in_order(own: Sequence[Recorded]) -> list[_Item]:
    """The messages and events of a session, by time."""
    timed: list[tuple[int, int, _Item]] = []
    for each in own:
        at = each.exchange.at
        if not _alone(each):
            timed.append((_millionths(at), len(timed), _Item(each, -1)))
        for number, event in enumerate(each.exchange.events):
            timed.append((_millionths(at + event.after), len(timed), _Item(each, number)))
    return [item for _, _, item in sorted(timed, key=lambda each: each[:2])]


def _millionths(seconds: float) -> int:
    return round(seconds * _MILLION)


def cancelled_id(message: Message) -> bytes:
    """The key of the id of the request that a cancellation names."""
    value = decoded(message.params or b"{}")
    id = dict(value).get("requestId") if isinstance(value, Object) else None
    return b"" if id is None else id_key(written(id))


def described(message: Message) -> str:
    """A request, as messages name it: its method, and the tool, prompt or resource."""
    value = decoded(message.params or b"{}")
    named = dict(value) if isinstance(value, Object) else {}
    name = named.get("name", named.get("uri"))
    return shortened(message.method) + (f" {quoted(name, 80)}" if isinstance(name, str) else "")


def place(recorded: Recorded) -> str:
    """Where an exchange is in the cassette, as messages name it."""
    return f"exchange {recorded.number} (session {recorded.exchange.session})"


def error_line(id: bytes, code: int, text: str) -> bytes:
    """A JSON-RPC error as the answer to the request ``id`` (JSON text), without a newline."""
    return b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":%b}}' % (id, code, quote(text))
