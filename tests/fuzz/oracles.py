"""What must hold of the wire for every input. Each check raises AssertionError (or whatever the wire raised).

The reference is Python's own `json`, made as strict as RFC 8259; it shares no code with what is tested.
"""

import json
from collections import Counter
from dataclasses import dataclass
from random import Random

import mutations
from mutations import Object

from mcpzip.model import limits
from mcpzip.wire import (
    Cancelled,
    Closed,
    Error,
    Event,
    Invalid,
    NotAMessage,
    NotAnObject,
    Notification,
    Peer,
    Progress,
    Request,
    Result,
    Role,
    Unmatched,
    is_json,
    progress_token,
    read_opening,
    split_object,
    stamp_request,
    stamp_result,
    unquote,
    unstamp_request,
    with_members,
    with_progress_token,
    without_members,
    without_progress_token,
)
from mcpzip.wire.json_object import scan

TOO_DEEP = 400
"""From so many brackets on, a text may be refused as nested too deeply."""
ASKED = ("tools/call", "subscriptions/listen", "tools/list")
"""The requests of ours that are open when the first byte comes; their ids are 1, 2, 3."""
MIN_FRAME, MAX_FRAME = 60, 1 << 20


_NONE = object()
"""What the reference makes of a text that is no JSON."""


@dataclass(frozen=True)
class _Integer:
    spelling: str


@dataclass(frozen=True)
class _Fraction:
    spelling: str


class _UnjudgedError(Exception):
    """The reference can't say: the text is too deep for it."""


def check(random: Random, seen: Counter[str]) -> int:
    """One execution: everything below, for one conversation that ``random`` makes up. Its size in bytes."""
    lines = mutations.lines(random)
    end = random.choice((b"\n", b"\r\n"))
    data = end.join(lines) + random.choice((b"", end))
    role = random.choice(tuple(Role))
    max_frame = random.choice((MIN_FRAME, 500, MAX_FRAME, MAX_FRAME))
    events = check_splits(random, role, data, max_frame)
    seen.update(kind(event) for event in events)
    check_events(data, events)
    check_outcomes(events)
    check_answers(random, role, data)
    for frame in data.split(b"\n"):
        check_verdict(frame.strip(b" \t\r"))
        check_texts(frame)
    return len(data)


def kind(event: Event) -> str:
    """What an event is, as finely as coverage is counted."""
    match event:
        case Unmatched(kind=about):
            return f"Unmatched {about}"
        case Error(ours=True):
            return "Error of ours"
        case Invalid(id=None):
            return "Invalid without id"
    return type(event).__name__


KINDS = frozenset(
    {
        *("Request", "Notification", "Result", "Error", "Error of ours", "Progress", "Cancelled", "Invalid"),
        *(
            "Invalid without id",
            "NotAMessage",
            "Unmatched answer",
            "Unmatched progress",
            "Unmatched cancelled",
            "Closed",
        ),
    }
)
"""Every kind there is: a fuzzer that misses one looks past it."""


def _told(role: Role, pieces: list[bytes], max_frame: int) -> list[Event]:
    peer = Peer(role=role, max_frame=max_frame)
    for method in ASKED:
        peer.request(method)
    return [event for piece in pieces for event in peer.receive(piece)] + peer.eof()


def check_splits(random: Random, role: Role, data: bytes, max_frame: int) -> list[Event]:
    """The events are the same however the bytes are cut, and the next message is understood."""
    whole = _told(role, [data], max_frame)
    assert _told(role, mutations.pieces(random, data), max_frame) == whole
    sane = b'\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    assert _told(role, [data, sane], max_frame)[-2:] == [
        Notification("notifications/initialized", None),
        Closed(whole[-1].ids if isinstance(whole[-1], Closed) else ()),
    ]
    return whole


def check_events(data: bytes, events: list[Event]) -> None:
    """What an event holds for the caller to pass on is JSON, and stood so in the input."""
    for event in events:
        match event:
            case Request(id=id, params=params):
                texts = [id, params]
            case Notification(params=text) | Progress(params=text) | Result(result=text) | Cancelled(id=text):
                texts = [text]
            case Error(error=error):
                texts = [error.data]
            case Invalid(id=id):
                texts = [id]
            case NotAMessage(data=shown):
                assert shown in data
                assert len(shown) <= 2048
                continue
            case _:
                continue
        for text in texts:
            if text is not None:
                assert text in data
                assert _reference(text) is not _NONE, text


def check_outcomes(events: list[Event]) -> None:
    """Each request of ours has one outcome."""
    outcomes = [event.id for event in events if isinstance(event, Result | Error)]
    assert isinstance(events[-1], Closed)
    assert sorted([*outcomes, *events[-1].ids]) == [1, 2, 3]


def check_answers(random: Random, role: Role, data: bytes) -> None:
    """Each of the peer's requests can be answered once and not again, and never when it was cancelled."""
    peer = Peer(role=role, max_frame=MAX_FRAME)
    for method in ASKED:
        peer.request(method)
    open: list[bytes] = []
    for line in data.split(b"\n"):
        for event in peer.receive(line + b"\n"):
            match event:
                case Request(id=id):
                    assert id not in open
                    open.append(id)
                case Invalid(id=None, code=code, message=message):
                    assert _said(peer.error(None, code, message))["id"] is None
                case Invalid(id=id, code=code, message=message):
                    assert _said(peer.error(id, code, message))["id"] == _loads(id)
                    assert peer.error(id, code, message) == b""
                case Cancelled(id=id):
                    open.remove(id)
                    assert peer.result(id, b"{}") == b""
        while open and random.random() < 0.4:
            id = open.pop(random.randrange(len(open)))
            answer = (
                peer.result(id, b'{"a":\n1}') if random.random() < 0.5 else peer.error(id, -1, "no", b"1")
            )
            assert _said(answer)["id"] == _loads(id)
            assert peer.result(id, b"{}") == b""
    assert sorted(peer.unanswered) == sorted(open)


def _said(line: bytes) -> dict[str, object]:
    """A line of ours: one, and JSON."""
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    message = dict(_loads(line))
    assert message["jsonrpc"] == "2.0"
    return message


def check_verdict(frame: bytes) -> None:
    """A line by itself is taken for what the reference takes it for."""
    events = Peer(role=Role.SERVER).receive(frame + b"\n")
    if not frame:
        assert events == []
        return
    (event,) = events
    try:
        message = _reference(frame.removeprefix(b"\xef\xbb\xbf"))
    except _UnjudgedError:
        return
    if isinstance(event, Invalid) and event.message == "nested too deeply":
        assert _is_deep(frame)
        return
    if isinstance(event, Invalid) and event.message == f"an id has up to {limits.ID} bytes":
        assert len(frame) > limits.ID
        return
    expected = _expected(message)
    assert kind(event).split()[0] in expected, (event, expected)
    if isinstance(event, Request | Notification) and not _is_deep(frame):
        assert isinstance(message, Object)
        fields = dict(message)
        assert event.method == fields["method"]
        if event.params is not None:
            assert _loads(event.params) == fields["params"]


def _is_deep(text: bytes) -> bool:
    return text.count(b"[") + text.count(b"{") > TOO_DEEP


def _expected(message: object) -> tuple[str, ...]:
    """What a server with nothing open makes of a message."""
    if not isinstance(message, Object):
        return ("Invalid",)
    fields = dict(message)
    method, id, params = fields.get("method"), fields.get("id", ""), fields.get("params")
    if "result" in fields or "error" in fields:
        return ("Invalid",) if "method" in fields else ("Unmatched",)
    if not isinstance(method, str) or fields.get("jsonrpc") != "2.0":
        return ("Invalid",)
    if params is not None and not isinstance(params, list):
        return ("Invalid",)
    if "id" in fields:
        return ("Request",) if isinstance(id, _Integer | str) else ("Invalid",)
    if method in ("notifications/progress", "notifications/cancelled"):
        return ("Unmatched",)
    return ("Notification",)


def check_texts(raw: bytes) -> None:
    """What reads and edits one level of a text says NotAnObject, or leaves everything else as it was."""
    for _ in scan(raw, {}):
        pass
    try:
        unquote(raw)
    except ValueError:
        pass
    try:
        value = _reference(raw)
        deep = False
    except _UnjudgedError:
        value, deep = _NONE, True
    deep = deep or _is_deep(raw)
    read_opening("tools/call", raw)
    progress_token(raw)
    try:
        fields = split_object(raw)
    except NotAnObject:
        assert deep or not isinstance(value, Object)
        return
    assert deep or isinstance(value, Object)
    edited = {
        "set": with_members(raw, {"_meta": b"[1]", "new": b"2"}),
        "removed": without_members(raw, ("_meta", "id")),
        "stamped": stamp_request(raw, "2026-07-28", b"{}", b"{}", "info"),
        "unstamped": unstamp_request(stamp_request(raw, "2026-07-28", b"{}", b"{}", "info")),
        "result": stamp_result(raw, server_info=b"{}", ttl_ms=1, cache_scope="private"),
        "token": without_progress_token(with_progress_token(raw, b"1")),
    }
    if deep:
        return
    assert isinstance(value, Object)
    assert [(key, _loads(text)) for key, text in fields.items()] == list(dict(value).items())
    meta, new = [_Integer("1")], _Integer("2")
    assert _loads(edited["set"]) == [
        *((key, {"_meta": meta, "new": new}.get(key, kept)) for key, kept in value),
        *((key, put) for key, put in {"_meta": meta, "new": new}.items() if key not in dict(value)),
    ]
    assert _loads(edited["removed"]) == [pair for pair in value if pair[0] not in ("_meta", "id")]
    for text in edited.values():
        kept = [pair for pair in value if pair[0] not in ("_meta", "id")]
        assert [pair for pair in _loads(text) if pair in kept] == kept
        assert is_json(text)


def _reference(raw: bytes) -> object:
    """The value of a JSON text, or `_NONE`."""
    try:
        return _loads(raw)
    except ValueError:
        return _NONE
    except RecursionError:
        raise _UnjudgedError from None


def _loads(raw: bytes) -> object:
    return json.loads(
        raw.decode(),
        object_pairs_hook=Object,
        parse_int=_Integer,
        parse_float=_Fraction,
        parse_constant=_refuse,
    )


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")
