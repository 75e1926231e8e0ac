"""Recorded messages keep their bytes; only ids and tokens change."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_fakes.replay.messages import Ids, read

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
IDS = st.integers(-3, 3) | st.text(max_size=5)


def request(id: object, token: object = None) -> bytes:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "x", "params": meta}).encode()


def ids(recorded: bytes, present: bytes) -> Ids:
    shared = Ids()
    own = Ids(shared)
    own.meet(read(recorded), read(present))
    return own


@given(IDS, IDS, st.sampled_from(["", " ", "  "]), st.booleans())
def test_an_answer_is_the_recorded_one_with_the_id_of_the_request(
    was: object, now: object, space: str, failed: bool
) -> None:
    member = "error" if failed else "result"
    line = f'{{{space}"{member}" :{space}{{"n": 1.0,"n":[{{"id":%s}}]}} ,"id":{space}%s,"x":null}}'
    then, here = json.dumps(was), json.dumps(now)
    adapted = ids(request(was), request(now)).adapted((line % (then, then)).encode())
    assert adapted == (line % (then, here)).encode()


@given(IDS, IDS)
def test_progress_has_the_token_of_the_request(was: object, now: object) -> None:
    line = '{"method":"notifications/progress","params":{"message":"é", "progressToken":%s}}'
    both = ids(request(1, was), request(2, now))
    assert both.adapted((line % json.dumps(was)).encode()) == (line % json.dumps(now)).encode()
    none = ids(request(1, was), request(2))
    assert none.adapted((line % json.dumps(was)).encode()) is None
    foreign = (line % '"somebody-else-7"').encode()
    assert both.adapted(foreign) == foreign


def test_subscriptions_have_the_id_of_the_request() -> None:
    both = ids(request(1), request("a"))
    line = '{"method":"notifications/tools/list_changed","params":{"_meta":{"%s":%s}}}'
    assert both.adapted((line % (SUBSCRIPTION, 1)).encode()) == (line % (SUBSCRIPTION, '"a"')).encode()
    ended = '{"id":%s,"result":{"_meta":{"%s":%s}}}'
    assert both.adapted((ended % (1, SUBSCRIPTION, 1)).encode()) == (
        (ended % ('"a"', SUBSCRIPTION, '"a"')).encode()
    )
    gone = '{"method":"notifications/cancelled","params":{"requestId":%s}}'
    assert both.adapted((gone % 1).encode()) == (gone % '"a"').encode()


@pytest.mark.parametrize(
    "line", [b"DEBUG", b"", b"\xff\xfe", b"[1]", b'{"id":9,"result":{}}', b'{"id":1', b'{"method":7,"id":1}']
)
def test_what_is_no_answer_to_the_request_stays(line: bytes) -> None:
    assert ids(request(1, 1), request(2, 2)).adapted(line) == line


def test_a_renamed_request_of_the_server() -> None:
    both = ids(request(1), request(1))
    both.renamed(b'"q"', b'"again-1"')
    line = b'{"id": "q","method":"ping"}'
    assert both.adapted(line) == line.replace(b'"q"', b'"again-1"')
