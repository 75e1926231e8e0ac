"""What was recorded, free of its era and transport: requests with what was said until their answer (pure).

The rule: one conversation is one request as the user of a client sees it. In the legacy era that is one
exchange, in which the server asks the client with requests of its own; in the modern era it is a chain of
exchanges, of which all but the last are answered with ``input_required``.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from msgspec import Struct

from mcpzip.cassettes.cassette import Event
from mcpzip.wire import SERVER_INFO_KEY, NotAnObject, join_object, split_object, without_members
from mcpzip_fakes.answer import Ask
from mcpzip_fakes.replay.matching import Recorded
from mcpzip_fakes.replay.messages import Message, read

CHANGES: Mapping[str, str] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
    "notifications/resources/updated": "",
}
"""The notifications of changes, each with its list."""
_ROUND = ("inputResponses", "requestState")
"""The members of params that a modern client adds when it answers questions."""
_OF_RESULT = ("resultType", "ttlMs", "cacheScope")
"""The members of a result that only the modern era has."""
_NO_QUESTIONS = ("ping",)


class Said(Struct, frozen=True):
    """A notification during a request, ``wait`` seconds after what was before it."""

    method: str
    params: bytes
    wait: float


class Round(Struct, frozen=True):
    """What the server said, and then asked together. answers: the client's, by the name of the question, as
    JSON text; those that it didn't give are missing."""

    said: tuple[Said, ...]
    asks: tuple[Ask, ...]
    answers: Mapping[str, bytes]


class Conversation(Struct, frozen=True, kw_only=True, eq=False):
    """One request and its answer.

    asked: the request without the members that only answers to questions have. rounds: of questions; said:
    after the last of them; wait: seconds from there to the answer. answer: of the server; None if there was
    none. changes: the notifications of changes that came after it, until the next request.
    """

    asked: Recorded
    rounds: tuple[Round, ...]
    said: tuple[Said, ...]
    wait: float
    answer: Message | None
    changes: tuple[Said, ...] = ()


def conversations(exchanges: Sequence[Recorded]) -> list[Conversation]:
    """Those of a cassette, in the order in which they began."""
    found: list[Conversation] = []
    continued: set[int] = set()
    changes = _changes(exchanges)
    answers: dict[int, list[Recorded]] = {}
    for each in exchanges:
        if each.message.kind == "response":
            answers.setdefault(each.exchange.session, []).append(each)
    for at, each in enumerate(exchanges):
        if each.message.kind != "request" or each.number in continued:
            continue
        chain = [each]
        while (following := _continuation(chain[-1], exchanges[at + 1 :])) is not None:
            if following.number in continued:
                break
            continued.add(following.number)
            chain.append(following)
        found.append(_conversation(chain, changes, answers))
    return found


def base(message: Message) -> Message:
    """The request without the client's answers to questions."""
    if not message.params:
        return message
    try:
        params = without_members(message.params, _ROUND)
    except NotAnObject:
        return message
    return Message(kind=message.kind, raw=message.raw, id=message.id, method=message.method, params=params)


def plain_result(result: bytes) -> bytes:
    """A result without the members that only the modern era has."""
    try:
        fields = split_object(result)
        kept = without_members(result, _OF_RESULT)
        meta = fields.get("_meta")
        if meta is None or SERVER_INFO_KEY not in split_object(meta):
            return kept
        left = without_members(meta, (SERVER_INFO_KEY,))
    except NotAnObject:
        return result
    if not split_object(left):
        return without_members(kept, ("_meta",))
    return join_object({key: left if key == "_meta" else value for key, value in split_object(kept).items()})


def _members(raw: bytes) -> dict[str, bytes]:
    try:
        return split_object(raw or b"{}")
    except NotAnObject:
        return {}


def answer_to(recorded: Recorded) -> Message | None:
    """The server's answer to a request; None if it gave none. Over HTTP other bodies can come before it."""
    replies = (read(event.data) for event in recorded.exchange.events if event.kind == "reply")
    return next((reply for reply in replies if reply.kind == "response"), None)


_Answers = Mapping[int, Sequence[Recorded]]
"""By session: the exchanges that are answers of the client."""


def _events(recorded: Recorded, answers: _Answers) -> Sequence[Event]:
    """The events of an exchange, with the client's answers that were requests of their own (HTTP+SSE)."""
    asked = {read(event.data).id_key for event in recorded.exchange.events if event.kind == "send"} - {b""}
    begin = recorded.exchange.at
    given = [
        Event(kind="receive", after=each.exchange.at - begin, data=each.exchange.request)
        for each in answers.get(recorded.exchange.session, ())
        if each.exchange.at > begin and each.message.id_key in asked
    ]
    return sorted((*recorded.exchange.events, *given), key=lambda event: event.after)


def _continuation(asked: Recorded, later: Sequence[Recorded]) -> Recorded | None:
    """The request with which the client answered the questions in the answer to ``asked``."""
    reply = answer_to(asked)
    result = {} if reply is None or reply.failed else _members(reply.answer)
    if result.get("resultType") != b'"input_required"':
        return None
    state = result.get("requestState")
    method, first = asked.message.method, base(asked.message).params
    for each in later:
        fields = _members(each.message.params)
        if each.message.method != method or each.exchange.session != asked.exchange.session:
            continue
        goes_on = fields.get("requestState") == state and ("inputResponses" in fields or state is not None)
        if goes_on and _without_meta(base(each.message).params) == _without_meta(first):
            return each
    return None


def _without_meta(params: bytes) -> Mapping[str, bytes]:
    return {key: value for key, value in _members(params).items() if key != "_meta"}


def _conversation(
    chain: Sequence[Recorded], changes: Mapping[int, Sequence[Said]], answers: _Answers
) -> Conversation:
    first, last = chain[0], chain[-1]
    rounds: list[Round] = []
    said: list[Said] = []
    before = 0.0
    for each, following in zip(chain, [*chain[1:], None], strict=True):
        asked_in_it, said, before = _segments(_events(each, answers), len(rounds))
        rounds += asked_in_it
        if following is not None:
            rounds.append(_modern_round(each, following, tuple(said)))
            said, before = [], 0.0
    reply = answer_to(last)
    end = next((it.after for it in last.exchange.events if it.kind == "reply"), before)
    answer = (
        None if reply is None else Message(kind="response", raw=b"", answer=reply.answer, failed=reply.failed)
    )
    return Conversation(
        asked=Recorded(number=first.number, exchange=first.exchange, message=base(first.message)),
        rounds=tuple(rounds),
        said=tuple(said),
        wait=max(end - before, 0.0),
        answer=answer,
        changes=tuple(said for each in chain for said in changes.get(each.number, ())),
    )


def _modern_round(asked: Recorded, answered: Recorded, said: tuple[Said, ...]) -> Round:
    reply = answer_to(asked)
    questions = _members(_members(reply.answer).get("inputRequests", b"")) if reply is not None else {}
    asks = []
    for name, question in questions.items():
        fields = _members(question)
        method = fields.get("method", b'""').strip(b'"').decode()
        asks.append(Ask(method=method, params=fields.get("params", b"{}").decode(), name=name))
    given = _members(_members(answered.message.params).get("inputResponses", b""))
    return Round(said, tuple(asks), {name: given[name] for name in questions if name in given})


def _segments(events: Sequence[Event], number: int) -> tuple[list[Round], list[Said], float]:
    """The rounds of questions in the events of one exchange, what was said after them, and the time of the
    last of all that. number: of the rounds before."""
    rounds: list[Round] = []
    said: list[Said] = []
    open_: dict[bytes, Ask] = {}
    answers: dict[str, bytes] = {}
    before = 0.0

    def close() -> None:
        nonlocal said, open_, answers
        rounds.append(Round(tuple(said), tuple(open_.values()), dict(answers)))
        said, open_, answers = [], {}, {}

    for event in events:
        message = read(event.data)
        if event.kind == "receive" and message.id_key in open_:
            ask = open_[message.id_key]
            if not message.failed:
                answers[ask.name] = message.answer
            before = event.after
        elif event.kind == "send" and message.kind == "request" and message.method not in _NO_QUESTIONS:
            if answers:  # the answers to the round before have come
                close()
            name = f"question-{number + len(rounds) + 1}-{len(open_) + 1}"
            params = message.params.decode() if message.params else "{}"
            open_[message.id_key] = Ask(method=message.method, params=params, name=name)
            before = event.after
        elif event.kind == "send" and message.kind == "notification":
            if message.method in CHANGES or message.method == "notifications/cancelled":
                continue
            if open_ and answers:
                close()
            said.append(Said(message.method, message.params, max(event.after - before, 0.0)))
            before = event.after
    if open_:
        close()
    return rounds, said, before


def _changes(exchanges: Sequence[Recorded]) -> dict[int, list[Said]]:
    """The notifications of changes, by the number of the exchange whose request came last before them."""
    requests: dict[int, list[tuple[float, int]]] = {}
    for each in exchanges:
        if each.message.kind == "request":
            requests.setdefault(each.exchange.session, []).append((each.exchange.at, each.number))
    found: dict[int, list[tuple[float, Said]]] = {}
    for each in exchanges:
        for event in each.exchange.events:
            if event.kind != "send" or not any(method.encode() in event.data for method in CHANGES):
                continue
            message, time = read(event.data), each.exchange.at + event.after
            before = requests.get(each.exchange.session, [])
            at = bisect_left(before, (time, 0)) - 1
            if message.method in CHANGES and at >= 0:
                said = Said(message.method, message.params, 0.0)
                found.setdefault(before[at][1], []).append((time, said))
    return {
        number: [said for _, said in sorted(changes, key=lambda pair: pair[0])]
        for number, changes in found.items()
    }
