"""Makes exchanges of HTTP requests and their responses, without I/O (Streamable HTTP).

    observer = HttpObserver(writer.add, masker, writer.session, writer.add_session)
    key = observer.began("POST", headers, body, 0.1)
    observer.responded(key, 200, headers, 0.2)
    observer.received(key, chunk, 0.3)      # the body as it was on the wire, compressed or not
    observer.ended(key, 0.4)                # the exchange is over: writer.add(…)

The rules: each HTTP request is an exchange. An answer of the client to a question of the server is no request
of its own but belongs to the question, if the server only accepted it. Each ``Mcp-Session-Id`` is a session
of the cassette; requests before the first one belong to the first session.
"""

from collections.abc import Callable, Iterable, Mapping

from mcpzip.cassettes.cassette import Event, Exchange, Response
from mcpzip.cassettes.grouping import is_answer, key_of, parts_of, requests_in
from mcpzip.cassettes.masking import Masker
from mcpzip.cassettes.observer import masked_event, masked_headers, masked_response
from mcpzip.model.limits import MESSAGE
from mcpzip.wire.content_coding import ContentCodingError, Identity, decoder
from mcpzip.wire.envelope import ABSENT
from mcpzip.wire.event_stream import EventReader, EventTooLongError

SESSION_ID = "mcp-session-id"
_REQUEST_HEADERS = ("mcp-", "last-event-id")
_NOT_RECORDED = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "te",
        "trailer",
        "transfer-encoding",
    }
    | {"upgrade", "content-length", "content-encoding", "date", "alt-svc"}
)
"""Headers of a response that belong to the connection, or to the coding of its body, which is decoded."""
_MICROSECONDS = 1_000_000


def request_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Those that MCP defines, with names in lower case."""
    return {name: value for name, value in _lowered(headers) if name.startswith(_REQUEST_HEADERS)}


def response_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Those that are recorded, with names in lower case. Equal ones are joined (RFC 9110, 5.3)."""
    found: dict[str, str] = {}
    for name, value in _lowered(headers):
        if name not in _NOT_RECORDED:
            found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _lowered(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in headers]


class _Open:
    """A request whose response hasn't ended. questions: of the server, in it, that wait for an answer."""

    def __init__(self, number: int, verb: str, headers: Mapping[str, str], body: bytes, at: int) -> None:
        self.number, self.verb, self.headers, self.request, self.at = number, verb, headers, body, at
        self.session = headers.get(SESSION_ID, "")
        self.ids = requests_in(parts_of(body)) if body else set()
        self.answers = {key_of(part.id) for part in parts_of(body)} if is_answer(body) else set()
        self.response: Response | None = None
        self.events: list[tuple[int, Event]] = []
        self.questions: set[bytes] = set()
        self.replied = False
        self.body = Body()

    def add(self, at: int, event: Event) -> None:
        self.events.append((at, event))


class Body:
    """Decodes a body: its events if it is an event stream, else the whole."""

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        """headers: of the response."""
        headers = headers or {}
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        self.reader = EventReader(MESSAGE) if kind == "text/event-stream" else None
        self._coding = headers.get("content-encoding", "")
        self._decoder: Identity | None = None
        self._whole = bytearray()
        self.broken = False

    @property
    def whole(self) -> bytes:
        """What has arrived, of a body that is no event stream."""
        return bytes(self._whole)

    def feed(self, data: bytes) -> list[tuple[bytes, tuple[str, ...]]]:
        """The events that ``data`` completes, each with its fields. What can't be decoded is left out."""
        if self.broken:
            return []
        events: list[tuple[bytes, tuple[str, ...]]] = []
        try:
            self._decoder = self._decoder or decoder(self._coding)
            for piece in self._decoder.feed(data):
                if self.reader is None:
                    self._whole += piece
                    self.broken = len(self._whole) > MESSAGE
                    if self.broken:
                        self._whole.clear()
                        break
                else:
                    events += [
                        (event.data, tuple(field.decode("utf-8", "replace") for field in event.fields))
                        for event in self.reader.feed(piece)
                    ]
        except (ContentCodingError, EventTooLongError):
            self.broken = True
        return events


class HttpObserver:
    """The requests of clients to one server; ``add`` gets each exchange when it is over.

    Times are seconds from the beginning of the first session, and never decrease. A key is that of a request.
    """

    def __init__(
        self,
        add: Callable[[Exchange], None],
        masker: Masker,
        session: int,
        add_session: Callable[[], int],
    ) -> None:
        """session: the number of the first session. add_session: begins another one, and gives its number."""
        self._add, self._masker, self._add_session = add, masker, add_session
        self._sessions = {"": (session, 0)}  # by id, each with its number and its beginning
        self._first: str | None = None
        self._last = -1
        self._number = 0
        self._open: dict[object, _Open] = {}
        self._asked: dict[tuple[str, bytes], _Open] = {}
        self._waiting: list[_Open] = []
        """Those that are over but for answers whose own responses haven't ended."""

    def began(
        self, key: object, verb: str, headers: Iterable[tuple[str, str]], body: bytes, at: float
    ) -> None:
        """The client sent a request. key: by which the others name it."""
        now = self._now(at)
        self._number += 1
        self._open[key] = _Open(self._number, verb, request_headers(headers), body, now)

    def responded(self, key: object, status: int, headers: Iterable[tuple[str, str]], at: float) -> None:
        """The head of the response came."""
        now = self._now(at)
        open = self._open[key]
        given = _lowered(headers)
        open.response = Response(status=status, headers=response_headers(given))
        open.body = Body(dict(given))
        id = open.response.headers.get(SESSION_ID, "")
        if id and id not in self._sessions and not open.session:
            self._begin_session(id, open, now)

    def _begin_session(self, id: str, open: _Open, now: int) -> None:
        if self._first is None:
            self._first = id
            self._sessions[id] = self._sessions[""]
        else:
            self._sessions[id] = self._add_session(), open.at
        open.session = id

    def received(self, key: object, data: bytes, at: float) -> None:
        """A part of the body came, as it was on the wire."""
        open = self._open[key]
        for message, fields in open.body.feed(data):
            now = self._now(at)
            parts = parts_of(message) if message else []
            answered = {key_of(part.id) for part in parts if part.method is ABSENT and part.id is not ABSENT}
            is_reply = bool(answered & open.ids) or (bool(answered) and not open.request)
            open.ids -= answered
            open.replied = open.replied or is_reply
            for question in requests_in(parts):
                open.questions.add(question)
                self._asked[open.session, question] = open
            kind = "reply" if is_reply else "send"
            open.add(now, Event(kind=kind, after=0.0, data=message, fields=fields))  # type: ignore[arg-type]

    def ended(self, key: object, at: float, *, cut: bool = False, left: bool = False) -> None:
        """The response ended. cut: its connection broke. left: the client left before its end."""
        now = self._now(at)
        open = self._open.pop(key)
        rest = open.body.whole
        if cut:
            open.add(now, Event(kind="end", after=0.0, data=rest, cut=True))
        elif rest:
            open.add(now, Event(kind="reply", after=0.0, data=rest))
        elif open.body.reader is not None and not left and (open.ids or not open.replied):
            open.add(now, Event(kind="end", after=0.0))
        asking = self._asking(open)
        if not self._is_taken(open, asking, rest):
            self._over(open)
        if asking is not None and asking in self._waiting:
            self._waiting.remove(asking)
            self._over(asking)

    def _over(self, open: _Open) -> None:
        """Nothing more comes of it, but maybe the end of an answer to one of its questions."""
        if any(self._asking(each) is open for each in self._open.values()):
            self._waiting.append(open)
            return
        for question in open.questions:
            self._asked.pop((open.session, question), None)
        self._hand_out(open)

    def _asking(self, open: _Open) -> _Open | None:
        """The request whose question the client answers with ``open``."""
        found = (self._asked.get((open.session, id)) for id in open.answers)
        return next((each for each in found if each is not None), None)

    def _is_taken(self, open: _Open, asking: _Open | None, body: bytes) -> bool:
        """Whether the request was an accepted answer to a question of ``asking``, of which it is now a
        part."""
        if asking is None or body or open.response is None or not 200 <= open.response.status < 300:
            return False
        for id in open.answers:
            asking.questions.discard(id)
            self._asked.pop((open.session, id), None)
        asking.add(open.at, Event(kind="receive", after=0.0, data=open.request))
        return True

    def close(self, at: float) -> None:
        """The recorder ends: hands out what isn't over, as if the clients left."""
        for key in list(self._open):
            self.ended(key, at, left=True)

    def _now(self, at: float) -> int:
        self._last = max(round(at * _MICROSECONDS), self._last + 1)
        return self._last

    def _hand_out(self, open: _Open) -> None:
        number, begun = self._sessions.get(open.session) or self._sessions[""]
        masker, request = self._masker, f"request {open.number}"
        events = [
            masked_event(masker, event, open.number, after=(at - open.at) / _MICROSECONDS)
            for at, event in sorted(open.events, key=lambda pair: pair[0])
        ]
        self._add(
            Exchange(
                session=number,
                at=(open.at - begun) / _MICROSECONDS,
                request=masker.message(open.request, request),
                verb=open.verb,
                headers=masked_headers(masker, open.headers, request),
                response=masked_response(masker, open.response, f"answer {open.number}"),
                events=tuple(events),
            )
        )
