"""Groups the messages between a client and a server into exchanges, without I/O.

    observer = Observer(writer.add, masker)
    observer.client(b'{"jsonrpc":"2.0","id":1,"method":"ping"}', 0.1)
    observer.server(b'{"jsonrpc":"2.0","id":1,"result":{}}', 0.2)       # the exchange is over: writer.add(…)
    observer.server_ended(0.3, code=0)
    observer.close()

The rules: nothing that was said is left out. A message of the server belongs to the request that it names, by
its id, progress token or subscription; one that names none belongs to the newest open request, or to none if
there is none. An answer of the client belongs to where the server asked. No two messages have the same time.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from mcpzip.cassettes.cassette import CLOSE, Event, Exchange, Kind, Response
from mcpzip.cassettes.grouping import key_of, member_of, method_of, params_of, parts_of
from mcpzip.cassettes.masking import Masker
from mcpzip.model.limits import CALLS
from mcpzip.wire import SUBSCRIPTION_ID_KEY, progress_token
from mcpzip.wire.envelope import ABSENT, Envelope

MOST_EVENTS = 10_000
"""Events of one exchange. With more it counts as over, and what follows belongs to no request."""
CANCELLED_WAIT = 5.0
"""Seconds in which a server may still answer a cancelled request."""
_CANCELLED, _PROGRESS, _LISTEN = "notifications/cancelled", "notifications/progress", "subscriptions/listen"
_MICROSECONDS = 1_000_000


class Pending:
    """An exchange that isn't over."""

    def __init__(self, number: int, at: int, request: bytes, verb: str, headers: Mapping[str, str]) -> None:
        self.number, self.at, self.request, self.verb, self.headers = number, at, request, verb, headers
        self.response: Response | None = None
        self.events: list[Event] = []
        self.ids: dict[bytes, int] = {}  # of the requests that aren't answered, each with how many have it
        self.tokens: set[bytes] = set()
        self.questions: set[bytes] = set()
        self.awaits_response = False
        self.listens = False
        self.cancelled_at: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more is expected."""
        return not (self.ids or self.questions or self.awaits_response)


class Observer:
    """The conversation of one client with a server; ``add`` gets each exchange when it is over.

    Times are seconds from the beginning of the session, and never decrease.
    """

    def __init__(self, add: Callable[[Exchange], None], masker: Masker, *, session: int = 1) -> None:
        """session: the number of the session."""
        self._add, self._masker, self._session = add, masker, session
        self._last = -1
        self._number = 0
        self._open: dict[int, Pending] = {}  # by number, oldest first
        self._by_id: dict[bytes, list[Pending]] = {}
        self._by_token: dict[bytes, Pending] = {}
        self._asked: dict[bytes, Pending] = {}
        self._alone: Pending | None = None
        self._closing: Pending | None = None

    def client(
        self,
        data: bytes,
        at: float,
        *,
        verb: str = "",
        headers: Mapping[str, str] | None = None,
        awaits_response: bool = False,
    ) -> Pending:
        """The client sent a message. awaits_response: whether `responded` will be called for it."""
        now = self._now(at)
        parts = parts_of(data)
        if parts and all(part.method is ABSENT for part in parts):
            asked = [each for part in parts if (each := self._asked.get(key_of(part.id))) is not None]
            if asked and not awaits_response:
                self._event(asked[0], "receive", now, data)
                self._answered(parts)
                return asked[0]
        self._leave_alone()
        pending = self._begin(now, data, verb, headers or {})
        pending.awaits_response = awaits_response
        self._answered(parts)
        self._expect(pending, parts)
        for part in parts:
            if method_of(part) == _CANCELLED and (found := self._cancelled(part)):
                found.cancelled_at = now
        if len(self._open) > CALLS:
            self._end(next(iter(self._open.values())))
        self._end_if_over(pending)
        return pending

    def responded(
        self,
        pending: Pending,
        response: Response | None,
        body: bytes,
        at: float,
        fields: tuple[str, ...] = (),
    ) -> None:
        """The HTTP response to a request of the client came (legacy SSE); None: there was none. body: of it,
        or the first event of the stream, with its fields."""
        now = self._now(at)
        pending.awaits_response = False
        if pending.number in self._open:
            pending.response = response
            if body:
                self._event(pending, "send" if fields else "reply", now, body, fields)
            if response is None or response.status >= 400:  # nobody will answer on the stream
                self._forget_ids(pending)
            self._end_if_over(pending)

    def client_closed(self, at: float) -> None:
        """The client closed the server's input (stdio)."""
        self._leave_alone()
        if self._closing is None:
            self._closing = self._alone = self._begin(self._now(at), b"", CLOSE, {})

    def server(self, data: bytes, at: float, fields: tuple[str, ...] = ()) -> None:
        """The server sent a message, or a line that is none. fields: see `Event`."""
        now = self._now(at)
        parts = parts_of(data)
        answered = [each for part in parts if (each := self._answered_by(part)) is not None]
        if answered:
            self._event(answered[0], "reply", now, data, fields)
        else:
            named = next((each for part in parts if (each := self._named_by(part)) is not None), None)
            target = named or self._newest(now)
            for part in parts:
                if part.method is not ABSENT and part.id is not ABSENT:
                    target.questions.add(key_of(part.id))
                    self._asked[key_of(part.id)] = target
            self._event(target, "send", now, data, fields)
        for pending in {each.number: each for each in answered}.values():
            self._end_if_over(pending)

    def stderr(self, line: bytes, at: float) -> None:
        """The server wrote a line to its standard error."""
        now = self._now(at)
        self._event(self._newest(now), "stderr", now, line)

    def server_ended(
        self, at: float, *, code: int | None = None, rest: bytes = b"", cut: bool = False
    ) -> None:
        """The server's output ended. code, rest, cut: see `Event`."""
        now = self._now(at)
        end = self._closing if self._alone and self._alone is self._closing else self._newest(now)
        end.events.append(Event(kind="end", after=_seconds(now - end.at), data=rest, code=code, cut=cut))
        self.close()

    def close(self) -> None:
        """Hands out what isn't over."""
        for pending in sorted(self._open.values(), key=lambda each: each.at):
            self._end(pending)
        self._leave_alone()

    # Who belongs to what

    def _expect(self, pending: Pending, parts: Iterable[Envelope]) -> None:
        for part in parts:
            if part.method is ABSENT or part.id is ABSENT:
                continue
            key = key_of(part.id)
            pending.ids[key] = pending.ids.get(key, 0) + 1
            self._by_id.setdefault(key, []).append(pending)
            pending.listens = pending.listens or method_of(part) == _LISTEN
            params = params_of(part)
            if params is not None and (token := progress_token(params)) is not None:
                self._by_token[key_of(token)] = pending
                pending.tokens.add(key_of(token))

    def _answered_by(self, part: Envelope) -> Pending | None:
        """The exchange whose request ``part`` answers, which no longer expects it."""
        if part.method is not ABSENT or (part.result is ABSENT and part.error is ABSENT):
            return None
        waiting = self._by_id.get(key_of(part.id))
        if not waiting:
            return None
        pending = waiting[0]
        self._forget_id(pending, key_of(part.id))
        return pending

    def _forget_id(self, pending: Pending, key: bytes) -> None:
        pending.ids[key] -= 1
        if not pending.ids[key]:
            del pending.ids[key]
        waiting = self._by_id[key]
        waiting.remove(pending)
        if not waiting:
            del self._by_id[key]

    def _forget_ids(self, pending: Pending) -> None:
        for key in list(pending.ids):
            while key in pending.ids:
                self._forget_id(pending, key)

    def _named_by(self, part: Envelope) -> Pending | None:
        """The exchange that a message of the server names, or None."""
        method, params = method_of(part), params_of(part)
        if params is None:
            return None
        if method == _PROGRESS:
            token = member_of(params, "progressToken")
            return None if token is None else self._by_token.get(key_of(token))
        if method == _CANCELLED:
            asked = member_of(params, "requestId")
            found = None if asked is None else self._asked.pop(key_of(asked), None)
            if found is not None and asked is not None:
                found.questions.discard(key_of(asked))
            return found
        if SUBSCRIPTION_ID_KEY.encode() in params:
            meta = member_of(params, "_meta")
            id = None if meta is None else member_of(meta, SUBSCRIPTION_ID_KEY)
            waiting = None if id is None else self._by_id.get(key_of(id))
            return waiting[0] if waiting else None
        return None

    def _cancelled(self, part: Envelope) -> Pending | None:
        params = params_of(part)
        id = None if params is None else member_of(params, "requestId")
        waiting = None if id is None else self._by_id.get(key_of(id))
        return waiting[0] if waiting else None

    def _answered(self, parts: Iterable[Envelope]) -> None:
        """The client answered questions of the server."""
        for part in parts:
            if part.method is ABSENT and (pending := self._asked.pop(key_of(part.id), None)):
                pending.questions.discard(key_of(part.id))
                if pending is not self._alone:
                    self._end_if_over(pending)

    def _newest(self, now: int) -> Pending:
        """The newest open request, or else what the server sends on its own."""
        for pending in list(self._open.values()):
            if pending.cancelled_at is None:
                continue
            if now - pending.cancelled_at > CANCELLED_WAIT * _MICROSECONDS:
                self._end(pending)
        for pending in reversed(self._open.values()):
            if pending.ids and not pending.listens and pending.cancelled_at is None:
                return pending
        if self._alone is None:
            self._alone = self._begin(now, b"", "", {})
        return self._alone

    def _leave_alone(self) -> None:
        """What the server sent on its own is over, unless it waits for an answer of the client."""
        pending, self._alone = self._alone, None
        if pending is not None:
            self._end_if_over(pending)

    # Exchanges

    def _now(self, at: float) -> int:
        """Microseconds, later than any before."""
        self._last = max(round(at * _MICROSECONDS), self._last + 1)
        return self._last

    def _begin(self, at: int, request: bytes, verb: str, headers: Mapping[str, str]) -> Pending:
        self._number += 1
        pending = self._open[self._number] = Pending(self._number, at, request, verb, headers)
        return pending

    def _event(
        self, pending: Pending, kind: Kind, now: int, data: bytes, fields: tuple[str, ...] = ()
    ) -> None:
        pending.events.append(Event(kind=kind, after=_seconds(now - pending.at), data=data, fields=fields))
        if len(pending.events) >= MOST_EVENTS and pending.number in self._open:
            self._end(pending)

    def _end_if_over(self, pending: Pending) -> None:
        if pending.is_over and pending.number in self._open:
            self._end(pending)

    def _end(self, pending: Pending) -> None:
        del self._open[pending.number]
        self._forget_ids(pending)
        for key in [key for key in pending.tokens if self._by_token.get(key) is pending]:
            del self._by_token[key]
        for key in [key for key in pending.questions if self._asked.get(key) is pending]:
            del self._asked[key]
        if self._alone is pending:
            self._alone = None
        self._add(self._masked(pending))

    def _masked(self, pending: Pending) -> Exchange:
        number = pending.number
        request = f"request {number}"
        return Exchange(
            session=self._session,
            at=_seconds(pending.at),
            request=self._masker.message(pending.request, request),
            verb=pending.verb,
            headers=masked_headers(self._masker, pending.headers, request),
            response=masked_response(self._masker, pending.response, f"answer {number}"),
            events=tuple(masked_event(self._masker, event, number) for event in pending.events),
        )


def masked_headers(masker: Masker, headers: Mapping[str, str], where: str) -> dict[str, str]:
    """``headers`` without their secrets."""
    return {name: masker.header(name, value, where) for name, value in headers.items()}


def masked_response(masker: Masker, response: Response | None, where: str) -> Response | None:
    """``response`` without its secrets."""
    if response is None:
        return None
    return msgspec.structs.replace(response, headers=masked_headers(masker, response.headers, where))


_PLACES: Mapping[Kind, str] = {
    "send": "message of the server after request",
    "receive": "answer of the client in request",
    "reply": "answer",
    "stderr": "standard error after request",
    "end": "unfinished line after request",
}


def masked_event(masker: Masker, event: Event, number: int, *, after: float | None = None) -> Event:
    """``event`` without its secrets. number: of the exchange. after: replaces its time."""
    where = f"{_PLACES[event.kind]} {number}"
    data = masker.line(event.data, where) if event.kind == "stderr" else masker.message(event.data, where)
    fields = tuple(masker.text(field, where) for field in event.fields)
    return msgspec.structs.replace(
        event, data=data, fields=fields, after=event.after if after is None else after
    )


def _seconds(microseconds: int) -> float:
    return microseconds / _MICROSECONDS
