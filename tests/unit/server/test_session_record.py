"""What is remembered of a session, so that another daemon can go on with it."""

import json
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from mcpzip.server import session_record
from mcpzip.server.session_record import LOST, SessionRecord
from mcpzip.wire import Peer, Role

Json = dict[str, Any]
IDS = st.one_of(st.integers(), st.text(max_size=8), st.floats(allow_nan=False, allow_infinity=False))
INITIALIZE: Json = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}}


def line(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":")).encode() + b"\n"


def request(id: object, method: str, params: Json | None = None) -> bytes:
    return line(id=id, method=method, params=params or {})


def call(id: object, name: str = "execute_tool", **more: object) -> bytes:
    return request(id, "tools/call", {"name": name, "arguments": {}, **more})


def messages(data: bytes) -> list[Json]:
    return [json.loads(each) for each in data.split(b"\n") if each]


def in_chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(places)]


def key(id: object) -> tuple[type, object]:
    return type(id), id


def passed_on(record: SessionRecord, data: bytes) -> bytes:
    """What the client is sent of ``data``, which came from the daemon."""
    if record.is_line(data):
        record.line_sent(data)
        return data
    return record.daemon_sent(data)[0]


@given(data=st.data(), cuts=st.lists(st.integers(0, 10_000), max_size=6))
def test_every_request_ends_once_and_none_that_may_do_harm_runs_twice(
    data: st.DataObject, cuts: list[int]
) -> None:
    ids = data.draw(st.lists(IDS, max_size=8, unique_by=lambda id: (type(id), id)))
    harmful = [data.draw(st.booleans()) for _ in ids]
    sent = [
        call(id) if harm else request(id, "resources/list") for id, harm in zip(ids, harmful, strict=True)
    ]
    answered = [data.draw(st.booleans()) for _ in ids]
    daemon = Peer(role=Role.SERVER)
    record = SessionRecord()
    for chunk in in_chunks(b"".join(sent), cuts):
        record.client_sent(chunk)
    daemon.receive(b"".join(sent))
    raw = dict(zip(map(key, ids), daemon.unanswered, strict=True))
    replies = [
        daemon.result(raw[key(id)], b"{}")
        if data.draw(st.booleans())
        else daemon.error(raw[key(id)], -1, "no")
        for id, done in zip(ids, answered, strict=True)
        if done
    ]
    passing = data.draw(st.sampled_from([replies, in_chunks(b"".join(replies), cuts)]))
    heard = b"".join(passed_on(record, chunk) for chunk in passing)
    assert heard == b"".join(replies)
    left = record.lost(record.end)
    open_ones = [(id, harm) for id, harm, done in zip(ids, harmful, answered, strict=True) if not done]
    assert [key(each["id"]) for each in messages(left.to_client)] == [
        key(id) for id, harm in open_ones if harm
    ]
    assert [key(each["id"]) for each in messages(left.to_daemon)] == [
        key(id) for id, harm in open_ones if not harm
    ]
    assert not record.waits or left.to_daemon


@given(IDS, st.lists(st.integers(0, 10_000), max_size=4))
def test_a_question_that_nobody_waits_for_any_more_is_cancelled(id: object, cuts: list[int]) -> None:
    daemon = Peer(role=Role.SERVER, first_id=77)
    first, second = (daemon.request("roots/list")[1] for _ in range(2))
    record = SessionRecord()
    for chunk in in_chunks(first + second, cuts):
        passed_on(record, chunk)
    record.client_sent(line(id=77, result={}))
    (cancelled,) = messages(record.lost(record.end).to_client)
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == 78


@given(st.lists(st.booleans(), min_size=1, max_size=10), st.integers(0, 10))
def test_what_was_not_processed_is_sent_again(harmful: list[bool], processed: int) -> None:
    lines = [call(at) if harm else request(at, "ping") for at, harm in enumerate(harmful)]
    processed = min(processed, len(lines))
    record = SessionRecord()
    record.client_sent(b"".join(lines))
    left = record.lost(read=sum(map(len, lines[:processed])))
    assert [each["id"] for each in messages(left.to_client)] == [
        at for at, harm in enumerate(harmful) if harm and at < processed
    ]
    assert [each["id"] for each in messages(left.to_daemon)] == [
        at for at, harm in enumerate(harmful) if not (harm and at < processed)
    ]


def test_a_lost_call_says_that_it_may_have_run() -> None:
    record = SessionRecord()
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    record.client_sent(call("a") + call("b", _meta=meta) + call("c", "search_tools"))
    left = record.lost(record.end)
    legacy, modern = messages(left.to_client)
    assert legacy["result"] == {"content": [{"type": "text", "text": LOST}], "isError": True}
    assert modern["result"] == {**legacy["result"], "resultType": "complete"}
    assert [each["id"] for each in messages(left.to_daemon)] == ["c"]


def test_a_server_that_is_shown_unchanged_may_have_a_tool_of_that_name() -> None:
    record = SessionRecord()
    record.names_are_ours = False
    record.client_sent(call(1, "search_tools"))
    left = record.lost(record.end)
    assert [each["id"] for each in messages(left.to_client)] == [1]
    assert left.to_daemon == b""


def test_what_was_agreed_and_set_is_replayed() -> None:
    record = SessionRecord()
    subscribe = [request(at, "resources/subscribe", {"uri": f"u:{at}"}) for at in (3, 4, 5)]
    level = request(2, "logging/setLevel", {"level": "debug"})
    lines = [
        request(1, "initialize", INITIALIZE),
        line(method="notifications/initialized"),
        level,
        *subscribe,
    ]
    record.client_sent(b"".join(lines))
    for at in (1, 2, 3, 4):
        record.daemon_sent(line(id=at, result={}))
    record.daemon_sent(line(id=5, error={"code": 1, "message": "no"}))
    record.client_sent(request(6, "resources/unsubscribe", {"uri": "u:3"}))
    record.daemon_sent(line(id=6, result={}))
    assert record.replay.splitlines(keepends=True) == [*lines[:3], subscribe[1]]
    again = SessionRecord(record.replay)
    assert again.replay == record.replay
    assert not again.waits


def test_what_was_agreed_comes_first() -> None:
    record = SessionRecord()
    begin = request(1, "initialize", INITIALIZE)
    record.client_sent(begin)
    record.daemon_sent(line(id=1, result={}))
    record.client_sent(line(method="notifications/initialized"))
    assert record.replay == begin + line(method="notifications/initialized")


def test_a_cancelled_request_gets_no_response() -> None:
    record = SessionRecord()
    record.client_sent(call(1) + line(method="notifications/cancelled", params={"requestId": 1}))
    left = record.lost(record.end)
    assert (left.to_client, left.to_daemon) == (b"", b"")


def test_a_line_that_was_cut_is_sent_whole() -> None:
    record = SessionRecord()
    whole = request(1, "ping")
    record.client_sent(whole[:10])
    assert record.lost(record.end).to_daemon == whole[:10]
    record.client_sent(whole)
    record.daemon_sent(b'{"jsonrpc":"2.0","id":1,"res')
    left = record.lost(record.end)
    assert (left.to_client, left.to_daemon) == (b"", whole)


def test_notices_are_not_for_the_client() -> None:
    record = SessionRecord()
    to_client, notices = record.daemon_sent(b'!ok {}\n{"jsonrpc":"2.0","method":"x"}\n!warning "y"\n{"id"')
    assert to_client == b'{"jsonrpc":"2.0","method":"x"}\n'
    assert notices == [b"!ok {}", b'!warning "y"']


def test_a_batch_is_not_sent_again() -> None:
    record = SessionRecord()
    batch = [json.loads(call(1)), json.loads(request(2, "ping"))]
    record.client_sent(json.dumps(batch).encode() + b"\n")
    assert sorted(each["id"] for each in messages(record.lost(record.end).to_client)) == [1, 2]
    record.client_sent(json.dumps(batch).encode() + b"\n")
    record.daemon_sent(
        json.dumps([{"jsonrpc": "2.0", "id": at, "result": {}} for at in (1, 2)]).encode() + b"\n"
    )
    assert not record.waits


def test_more_than_may_be_kept_is_answered_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_record, "KEPT", 1000)
    record = SessionRecord()
    record.client_sent(request(1, "ping", {"x": "y" * 2000}) + request(2, "ping"))
    left = record.lost(record.end)
    (failed,) = messages(left.to_client)
    assert failed["id"] == 1
    assert "send it again" in failed["error"]["message"]
    assert [each["id"] for each in messages(left.to_daemon)] == [2]


@given(st.binary(max_size=300))
@example(b'{"id":0}')
def test_nothing_raises(data: bytes) -> None:
    record = SessionRecord(data)
    record.client_sent(data + b"\n")
    record.daemon_sent(data + b"\n")
    record.daemon_sent(b'{"jsonrpc":"2.0","id":' + data + b"\n")
    record.lost(record.end)


def test_a_call_in_a_batch_with_the_initialized_notification_is_not_replayed() -> None:
    record = SessionRecord()
    initialized = line(method="notifications/initialized")
    record.client_sent(request(1, "initialize", INITIALIZE))
    record.daemon_sent(line(id=1, result={}))
    record.client_sent(b"[%b,%b]\n" % (initialized.strip(), call(2).strip()))
    record.daemon_sent(b"[%b]\n" % line(id=2, result={}).strip())
    assert [each.get("method") for each in messages(record.replay)] == [
        "initialize",
        "notifications/initialized",
    ]


@pytest.mark.parametrize(
    "refused",
    [b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"x":NaN}}\n', call(True)],
)
def test_a_request_that_is_refused_without_its_id_is_not_waited_for(refused: bytes) -> None:
    record = SessionRecord()
    record.client_sent(refused)
    record.daemon_sent(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}\n')
    assert not record.waits
    assert record.lost(record.end).to_client == b""


def test_what_a_batch_set_is_replayed_without_the_rest_of_the_batch() -> None:
    record = SessionRecord()
    record.client_sent(request(1, "initialize", INITIALIZE))
    record.daemon_sent(line(id=1, result={}))
    level = json.loads(request("l", "logging/setLevel", {"level": "debug"}))
    one, other = (json.loads(request(at, "resources/subscribe", {"uri": f"u:{at}"})) for at in (3, 4))
    record.client_sent(json.dumps([level, json.loads(call(2)), one, other]).encode() + b"\n")
    ended = [
        {"jsonrpc": "2.0", "id": "l", "result": {}},
        {"jsonrpc": "2.0", "id": 2, "result": {}},
        {"jsonrpc": "2.0", "id": 3, "result": {}},
        {"jsonrpc": "2.0", "id": 4, "error": {"code": 1, "message": "no"}},
    ]
    record.daemon_sent(json.dumps(ended).encode() + b"\n")
    assert messages(record.replay)[1:] == [level, one]
    away = json.loads(request(5, "resources/unsubscribe", {"uri": "u:3"}))
    record.client_sent(json.dumps([away]).encode() + b"\n")
    record.daemon_sent(b'[{"jsonrpc":"2.0","id":5,"result":{}}]\n')
    assert messages(record.replay)[1:] == [level]


def test_settings_beyond_their_size_are_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_record, "SETTINGS_SIZE", 1000)
    record = SessionRecord()
    uris = ["a", "b" * 2000, "c", "d" * 800]
    for at, uri in enumerate(("x", *uris)):
        method, params = ("resources/subscribe", {"uri": uri}) if at else ("initialize", INITIALIZE)
        record.client_sent(request(at, method, params))
        record.daemon_sent(line(id=at, result={}))
    assert [each["params"].get("uri") for each in messages(record.replay)] == [None, "a", "c"]


def test_a_batch_that_was_not_processed_is_sent_again_whole() -> None:
    record = SessionRecord()
    batches = [[json.loads(call(at)), json.loads(request(at + 1, "ping"))] for at in (1, 3, 5, 7)]
    lines = [json.dumps(batch).encode() + b"\n" for batch in batches]
    record.client_sent(b"".join(lines))
    record.client_sent(line(method="notifications/cancelled", params={"requestId": 8}))
    left = record.lost(read=len(lines[0]))
    assert left.to_daemon == lines[1] + lines[2]
    ran, failed, not_run = messages(left.to_client)
    assert [ran["id"], failed["id"], not_run["id"]] == [1, 2, 7]
    assert "may have run" in ran["result"]["content"][0]["text"]
    assert "did not run" in not_run["result"]["content"][0]["text"]
    assert record._kept == 0
