"""Plays the requests of a cassette against a real server, and compares what comes.

The rules:

1. A request that may do more than read is not sent unless the user says so: a contract test must not pay an
   invoice. A tool only reads if the server says so now, and said so when it was recorded.
2. Each recorded session is one connection, or one for each era that its client spoke: over stdio a server
   speaks only one. Its requests are sent one after another, with their own ids. A list is read whole, with
   the cursors that the server gives now. A server that ends is started again, for the rest of the session.
3. What the server sends of its own accord is compared by session, because its time varies.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mcpzip.cassettes.cassette import Cassette
from mcpzip.model.limits import LIST_ITEMS, LIST_PAGES
from mcpzip.wire import CLIENT_CAPABILITIES_KEY, CLIENT_INFO_KEY, PROTOCOL_VERSION_KEY
from mcpzip.wire.param_headers import NAMED_BY, header_value, param_headers
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.cassettes.messages import HANDSHAKE, Heard, Message, heard, server_info_of
from mcpzip_fakes.drift.answers import Compared, answer_drifts
from mcpzip_fakes.drift.catalog import LISTS, handshake_drifts, list_drifts, server_info_drifts
from mcpzip_fakes.drift.connection import Connect, Connection, Reply
from mcpzip_fakes.drift.differences import ignored_by
from mcpzip_fakes.drift.drift import Area, Drift, NotSent, Report, Severity, shown
from mcpzip_fakes.drift.expected import (
    PROGRESS,
    Questions,
    babbles,
    is_modern,
    listings,
    notification_drifts,
    notifications,
    only_read,
    progress_token,
    question_drifts,
    questions,
)
from mcpzip_fakes.drift.settings import Settings
from mcpzip_fakes.request import as_object

_READS = {
    *HANDSHAKE,
    *LISTS,
    "ping",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
}
"""The requests that do nothing but read, or set something for their own session."""
_OPENING = ("initialize", "notifications/initialized")
_LISTEN = "subscriptions/listen"
_MODERN = (PROTOCOL_VERSION_KEY, CLIENT_INFO_KEY, CLIENT_CAPABILITIES_KEY)
_LATE = 1.0
"""Seconds to wait, at the end of a session, for notifications that have not come yet."""
_RESTARTS = 5
"""How often a server that ended is started again in one session."""
_SILENT = 3
"""Requests of a session without an answer in time after which the rest is not sent."""
_MOST_KINDS = 1_000
"""Methods of notifications, and of questions, that are remembered."""
_REPEATED = ("nextCursor", "requestState")
"""Members of a result whose values the client repeats in a later request."""
_MASKED = re.compile(rb"\[masked \d+\]")


def check(cassette: Cassette, connect: Connect, settings: Settings, *, names: tuple[str, str]) -> Report:
    """Checks a server. names: of the cassette and the server, for the report. Raises OSError if the server
    can't be reached at all.
    """
    settings = settings.with_check(cassette.check)
    report = Report(*names)
    exchanges = list(heard(cassette.exchanges))
    recorded: list[JsonObject] = []
    for number in sorted({each.exchange.session for each in exchanges}):
        recorded += _tools(each for each in exchanges if each.exchange.session == number)
    hints = only_read(recorded)
    for number in sorted({each.exchange.session for each in exchanges}):
        own = [each for each in exchanges if each.exchange.session == number]
        for part in (
            [each for each in own if not is_modern(each)],
            [each for each in own if is_modern(each)],
        ):
            opening = [] if part and is_modern(part[0]) else _opening(exchanges, part)
            _Session(part, connect, settings, report, hints, opening).check()
    return report


def _opening(exchanges: Sequence[Heard], part: Sequence[Heard]) -> Sequence[Heard]:
    """The handshake of another session for one of the legacy era that has none: what `--new` has added."""
    if any(each.request is not None and each.request.method == "initialize" for each in part):
        return []
    for number in dict.fromkeys(each.exchange.session for each in exchanges):
        found = [
            each
            for each in exchanges
            if each.exchange.session == number
            and each.request is not None
            and each.request.method in _OPENING
        ]
        if found and found[0].reply is not None and found[0].reply.error is None:
            return found[:2]
    return []


def _tools(exchanges: Iterable[Heard]) -> list[JsonObject]:
    every = list(exchanges)
    methods = {each.number: each.request.method for each in every if each.request}
    found = [each for number, each in listings(every).items() if methods[number] == "tools/list"]
    return [tool for listing in found for tool in listing.items]


class _Session:
    """One recorded session. It is also the `Listener` of the connection."""

    def __init__(
        self,
        exchanges: Sequence[Heard],
        connect: Connect,
        settings: Settings,
        report: Report,
        hints: Mapping[str, bool],
        opening: Sequence[Heard],
    ) -> None:
        """opening: what is sent before, because the session has no handshake of its own."""
        self._exchanges, self._connect, self._settings, self._report = exchanges, connect, settings, report
        self._hints, self._opening = hints, opening
        self._live_hints: dict[str, bool] | None = None
        self._live_tools: dict[str, JsonObject] = {}
        self._listings = listings(exchanges)
        self._questions = Questions(each.exchange for each in exchanges)
        self._asked: set[str] = set()
        self._came: set[tuple[str, str]] = set()
        self._expected: set[tuple[str, str]] = set()
        self._expected_questions: set[str] = set()
        self._tokens: dict[object, str] = {}
        self._values: dict[str, str] = {}  # recorded cursors and states, and the present ones
        self._own = 0
        self._silent = self._restarts = 0
        self._skipped = False
        self._babbles = any(map(babbles, exchanges))
        self._handshake: list[Heard] = []

    # What the server sends beside answers: see `Listener`

    def notified(self, message: Message) -> None:
        """See `Listener`."""
        title = self._tokens.get(_hashable(progress_token(message)), "") if message.method == PROGRESS else ""
        if len(self._came) < _MOST_KINDS:
            self._came.add((message.method, title))

    def asked(self, message: Message) -> bytes | None:
        """See `Listener`."""
        if len(self._asked) < _MOST_KINDS:
            self._asked.add(message.method)
        answer = self._questions.answer(message.method)
        return self._unmasked(answer) if answer is not None else None

    def babbled(self, raw: bytes) -> None:
        """See `Listener`. The first one is told, unless the recorded server did the same."""
        if self._babbles:
            return
        self._babbles = True
        said = shown(raw[:200].decode("utf-8", "replace"))
        self._add("changed", "no-message", "the session", f"the server writes what is no message: {said}", "")

    # The session

    def check(self) -> None:
        """Plays it."""
        if not any(each.request is not None and each.request.method for each in self._exchanges):
            return
        self._connection = Connection(self._connect, self)
        try:
            for each in self._opening:
                self._play(each)
            for place, each in enumerate(self._exchanges):
                if not self._play(each):
                    self._skip(self._exchanges[place + 1 :], "the server did not get so far")
                    break
            self._listen_to_the_end()
        finally:
            self._connection.close()

    def _play(self, each: Heard) -> bool:
        """Sends what was sent in an exchange, and compares the outcome. Returns whether to go on."""
        request = each.request
        if request is None or not request.method:
            if request is None and each.exchange.request.lstrip()[:1] == b"[":
                self._report.not_sent.append(NotSent("a batch", "batches are not compared"))
            return True
        if not request.is_request:
            self._notify(request, each.exchange.request)
            return True
        if request.method == _LISTEN and self._settings.only != "catalog":
            self._listen(each, request)
            return True
        if why := self._refused(each, request):
            if why != _SAYS_NOTHING:
                self._report.not_sent.append(NotSent(request.title, why))
                self._skipped = True
            return True
        if request.method in LISTS and "cursor" not in request.params and each.number in self._listings:
            return self._compare_list(each, request)
        reply = self._ask(each, request)
        if request.method in HANDSHAKE:
            self._handshake.append(each)
        return self._compare(each, request, reply)

    def _refused(self, each: Heard, request: Message) -> str:
        """Why a request is not sent, "" if it is."""
        only = self._settings.only
        if request.method in LISTS and "cursor" in request.params:
            return _SAYS_NOTHING  # the list is read whole
        if only == "catalog" and request.method not in (*HANDSHAKE, *LISTS):
            return _SAYS_NOTHING
        if each.took is None and not _failed(each):
            return "it was not answered when it was recorded"
        if request.method == "tools/call" and (why := self._may_write(request)):
            return why
        if request.method not in _READS and request.method != "tools/call" and not self._settings.call_all:
            return "it may do more than read; --call-all sends it"
        if _MASKED.search(self._text(each)):
            return "it holds a masked secret; --unmask gives its value"
        return ""

    def _may_write(self, request: Message) -> str:
        tool = request.name
        if self._settings.call_all or tool in self._settings.call:
            return ""
        if not self._hints.get(tool, True):
            return f"the tool may do more than read; --call {tool} or --call-all sends it"
        if self._live_hints is None:
            self._remember(self._read_list("tools/list", request, {}) or [])
        assert self._live_hints is not None
        if tool not in self._live_hints:
            return f"the server does not list the tool; --call {tool} or --call-all sends it"
        if not self._live_hints[tool]:
            return f"the tool may do more than read; --call {tool} or --call-all sends it"
        return ""

    # Sending

    def _text(self, each: Heard) -> bytes:
        """The recorded message with the values that the server gives now."""
        text = self._unmasked(each.exchange.request)
        params = each.request.params if each.request else {}
        for old in (params.get("requestState"), params.get("cursor")):
            if isinstance(old, str) and old in self._values:
                text = text.replace(msgspec.json.encode(old), msgspec.json.encode(self._values[old]), 1)
        return text

    def _unmasked(self, text: bytes) -> bytes:
        for mask, value in self._settings.unmasked.items():
            text = text.replace(mask.encode(), msgspec.json.encode(value)[1:-1])
        return text

    def _headers(self, request: Message) -> dict[str, str]:
        """The headers of a modern request over HTTP, which repeat parts of its body."""
        meta = as_object(request.params.get("_meta"))
        version = meta.get(PROTOCOL_VERSION_KEY)
        if not isinstance(version, str):
            return {}
        headers = {"MCP-Protocol-Version": version, "Mcp-Method": request.method}
        if (key := NAMED_BY.get(request.method)) and isinstance(name := request.params.get(key), str):
            headers["Mcp-Name"] = header_value(name)
        if request.method == "tools/call" and (tool := self._live_tools.get(request.name)):
            headers |= param_headers(tool.get("inputSchema"), request.params.get("arguments"))
        return headers

    def _notify(self, request: Message, text: bytes) -> None:
        if request.method == "notifications/cancelled":
            return  # what it cancels was answered, or not sent
        self._connection.channel.send_text(self._unmasked(text), headers=self._headers(request))
        if request.method == "notifications/initialized":
            self._connection.channel.opened()

    def _listen(self, each: Heard, request: Message) -> None:
        """Subscribes, without waiting: its answer comes when the server leaves."""
        self._expect(each)
        self._report.sent += 1
        self._connection.channel.send_text(self._text(each), request.id, self._headers(request))

    def _expect(self, each: Heard) -> None:
        self._expected |= notifications(each)
        self._expected_questions |= questions(each)

    def _ask(self, each: Heard, request: Message) -> Reply:
        self._expect(each)
        if (token := progress_token(request)) is not None:
            self._tokens[_hashable(token)] = each.title
        return self._request(self._text(each), request, self._timeout(each))

    def _timeout(self, each: Heard) -> float:
        """Seconds for the answer: also what took long when it was recorded may take that long."""
        return max(self._settings.timeout, 2 * (each.took or 0))

    def _request(self, text: bytes, request: Message, timeout: float) -> Reply:
        self._report.sent += 1
        return self._connection.request(text, request.id, self._headers(request), timeout)

    def _read_list(self, method: str, like: Message, params: JsonObject) -> list[JsonObject] | None:
        """A whole list now. like: a request of the same client; params: those of the first page. None if the
        server refuses."""
        meta = as_object(like.params.get("_meta"))
        kept = {key: meta[key] for key in _MODERN if key in meta}
        if kept:
            params = {**params, "_meta": {**as_object(params.get("_meta")), **kept}}
        items: list[JsonObject] = []
        for _ in range(LIST_PAGES):
            self._own += 1
            page = Message(method=method, id=f"mcpzip-check-{self._own}", params=params)
            told = {"jsonrpc": "2.0", "id": page.id, "method": method, "params": params}
            reply = self._request(msgspec.json.encode(told), page, self._settings.timeout)
            result = as_object(reply.message.result) if reply.message else {}
            found = result.get(LISTS[method][0])
            if not isinstance(found, list):
                return None
            items += [as_object(item) for item in found]
            if not isinstance(result.get("nextCursor"), str) or len(items) > LIST_ITEMS:
                break
            params = {**params, "cursor": result["nextCursor"]}
        return items

    def _remember(self, tools: list[JsonObject]) -> None:
        self._live_hints = only_read(tools)
        self._live_tools = {str(tool.get("name")): tool for tool in tools}

    # Comparing

    def _compare_list(self, each: Heard, request: Message) -> bool:
        reply = self._ask(each, request)
        if reply.message is None or reply.message.error is not None or each.reply is None:
            return self._compare(each, request, reply)
        result, recorded = as_object(reply.message.result), as_object(each.reply.result)
        key = LISTS[request.method][0]
        items = [as_object(item) for item in _list(result.get(key))]
        if isinstance(cursor := result.get("nextCursor"), str):
            items += self._read_list(request.method, request, {**request.params, "cursor": cursor}) or []
        if request.method == "tools/list":
            self._remember(items)
        self._report_all(server_info_drifts(recorded, result) if server_info_of(recorded) else ())
        listing = self._listings[each.number]
        drifts = list_drifts(request.method, listing.items, items)
        self._report_all(
            drift for drift in drifts if listing.is_whole or not drift.kind.endswith("-added") or drift.path
        )
        return True

    def _compare(self, each: Heard, request: Message, reply: Reply) -> bool:
        place = f"{request.title} (exchange {each.number})"
        if reply.outcome == "answer" and reply.message is not None:
            self._compare_answers(each, request, reply.message, place)
            return True
        if reply.outcome == "silent":
            said = f"the server does not answer within {self._timeout(each):g} s"
            self._add("breaking", "hangs", place, said, request.method)
            self._silent += 1
            self._cancel(request)
            return request.method not in HANDSHAKE and self._silent < _SILENT
        if reply.outcome == "ended":
            if each.took is None:
                return self._again()  # it also ended when it was recorded
            self._add("breaking", "ends", place, f"the server ends: {reply.why}", request.method)
            return request.method not in HANDSHAKE and self._again()
        before = each.exchange.response
        if before is None or before.status < 400 or not reply.why.startswith(f"HTTP {before.status}"):
            said = f"is not answered now: {reply.why}"
            self._add("breaking", "unanswered", place, said, request.method)
        return request.method not in HANDSHAKE

    def _compare_answers(self, each: Heard, request: Message, after: Message, place: str) -> None:
        before = each.reply
        if before is None:
            said = "the server ended" if each.took is None else "the answer was no message"
            said = f"is answered now; when it was recorded, {said}"
            self._add("changed", "answers-now", place, said, request.method)
            return
        old, new = as_object(before.result), as_object(after.result)
        for key in _REPEATED:
            if isinstance(one := old.get(key), str) and isinstance(other := new.get(key), str):
                self._values[one] = other
        if request.method in HANDSHAKE and before.error is None and after.error is None:
            self._report_all(handshake_drifts(old, new, request.method))
            return
        if server_info_of(old):
            self._report_all(server_info_drifts(old, new))
        tool = request.name if request.method == "tools/call" else ""
        ignored = ignored_by(self._settings.ignored_in(tool))
        self._report_all(answer_drifts(before, after, Compared(place, ignored, self._settings.shape)))

    def _cancel(self, request: Message) -> None:
        if request.method not in HANDSHAKE:
            params = {"requestId": request.id, "reason": "no answer in time"}
            told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            self._connection.channel.send_text(msgspec.json.encode(told))

    def _again(self) -> bool:
        """Starts the server again and repeats the handshake. Returns whether it is there."""
        self._restarts += 1
        if self._restarts > _RESTARTS:
            return False
        self._connection.close()
        self._connection = Connection(self._connect, self)
        for each in self._handshake:
            if each.request is not None and self._ask(each, each.request).message is None:
                return False
        for each in (*self._opening, *self._exchanges):
            if each.request is not None and each.request.method == "notifications/initialized":
                self._notify(each.request, each.exchange.request)
                break
        return True

    def _listen_to_the_end(self) -> None:
        """Compares what came beside the answers, in the whole session."""
        if self._settings.only == "catalog":
            return
        known, known_questions = set[tuple[str, str]](), set[str]()
        for each in self._exchanges:
            known |= notifications(each)
            known_questions |= questions(each)
            if not self._skipped and (each.request is None or not each.request.is_request):
                self._expect(each)  # what the server sent on its own may be because of a request
        self._connection.until(
            lambda: self._expected <= self._came and self._expected_questions <= self._asked, _LATE
        )
        self._report_all(notification_drifts(self._expected, known, self._came))
        self._report_all(question_drifts(self._expected_questions, known_questions, self._asked))

    def _skip(self, exchanges: Sequence[Heard], why: str) -> None:
        for each in exchanges:
            if each.request is not None and each.request.is_request:
                self._report.not_sent.append(NotSent(each.request.title, why))
        self._skipped = True

    def _add(self, severity: Severity, kind: str, place: str, what: str, method: str) -> None:
        area: Area = "catalog" if method in (*HANDSHAKE, *LISTS) else "answers"
        self._report_all([Drift(severity=severity, area=area, kind=kind, place=place, what=what)])

    def _report_all(self, drifts: Iterable[Drift]) -> None:
        only = self._settings.only
        self._report.add(drift for drift in drifts if only in (None, drift.area))


_SAYS_NOTHING = "-"
"""The reason of a request that is not sent, and of which nothing is told."""


def _failed(each: Heard) -> bool:
    """Whether a request without an answer had another end: the server's, or an HTTP error."""
    status = each.exchange.response.status if each.exchange.response else 0
    return status >= 400 or any(event.kind == "end" for event in each.exchange.events)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _hashable(value: object) -> object:
    return value if isinstance(value, str | int) else None
