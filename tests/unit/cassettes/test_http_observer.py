"""HTTP requests become exchanges, each in the session of its id."""

import gzip

import pytest

from mcpzip.cassettes.cassette import Exchange
from mcpzip.cassettes.http_observer import HttpObserver, response_headers
from mcpzip.cassettes.masking import Masker

JSON = [("Content-Type", "application/json")]
EVENTS = [("Content-Type", "text/event-stream; charset=utf-8")]
QUESTION = b'{"jsonrpc":"2.0","id":"q","method":"roots/list"}'
ANSWER = b'{"jsonrpc":"2.0","id":"q","result":{}}'


class Script:
    """Plays requests: each thing happens a second after the last one."""

    def __init__(self) -> None:
        self.done: list[Exchange] = []
        self.sessions = 1
        self.observer = HttpObserver(self.done.append, Masker(), 1, self._another)
        self.now = 0.0

    def _another(self) -> int:
        self.sessions += 1
        return self.sessions

    def tick(self) -> float:
        self.now += 1
        return self.now

    def begin(self, key: str, body: bytes = b"", verb: str = "POST", **headers: str) -> None:
        given = [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.observer.began(key, verb, given, body, self.tick())

    def head(self, key: str, headers: list[tuple[str, str]], status: int = 200) -> None:
        self.observer.responded(key, status, headers, self.tick())

    def whole(self, key: str, body: bytes, headers: list[tuple[str, str]], status: int = 200) -> None:
        self.head(key, headers, status)
        if body:
            self.observer.received(key, body, self.tick())
        self.observer.ended(key, self.tick())


@pytest.fixture
def script() -> Script:
    return Script()


def test_each_session_id_is_a_session_that_begins_with_its_request(script):
    for session in ("0f8b2c4d6e8f0a1b", "1a2b3c4d5e6f7a8b"):
        script.begin("i", b'{"jsonrpc":"2.0","id":1,"method":"initialize"}')
        script.whole("i", b"{}", [*JSON, ("Mcp-Session-Id", session)])
        script.begin("p", b'{"jsonrpc":"2.0","id":2,"method":"ping"}', mcp_session_id=session)
        script.whole("p", b"{}", JSON)
    assert [(each.session, each.at) for each in script.done] == [(1, 1.0), (1, 5.0), (2, 0.0), (2, 4.0)]


def test_answers_of_the_client(script):
    script.begin("get", verb="GET")
    script.head("get", EVENTS)
    script.observer.received("get", b"data: %b\n\n" % QUESTION, script.tick())
    script.begin("refused", ANSWER)
    script.whole("refused", b"no", JSON, 400)
    script.begin("taken", ANSWER)
    script.whole("taken", b"", [], 202)
    script.begin("again", ANSWER)
    script.whole("again", b"", [], 202)
    script.observer.close(script.tick())
    refused, again, get = script.done
    assert (refused.response.status, again.request) == (400, ANSWER)
    assert [event.kind for event in get.events] == ["send", "receive"]
    assert [event.after for event in get.events] == [2.0, 7.0]


@pytest.mark.parametrize("status", [202, 400])
def test_an_answer_whose_response_ends_after_the_call(script, status):
    script.begin("call", b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}')
    script.head("call", EVENTS)
    script.observer.received("call", b"data: %b\n\n" % QUESTION, script.tick())
    script.begin("answer", ANSWER)
    script.observer.received("call", b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n', script.tick())
    script.observer.ended("call", script.tick())
    assert script.done == []
    script.whole("answer", b"" if status == 202 else b"no", [], status)
    kinds = {each.verb + str(len(each.events)): [event.kind for event in each.events] for each in script.done}
    if status == 202:
        assert kinds == {"POST3": ["send", "receive", "reply"]}
    else:
        assert kinds == {"POST1": ["reply"], "POST2": ["send", "reply"]}


def test_bodies_that_can_not_be_decoded_are_left_out(script):
    for coding, body in (("gzip", b"nonsense"), ("br", b"x"), ("gzip", gzip.compress(b"{}"))):
        script.begin("p", b"{}")
        script.whole("p", body, [*JSON, ("Content-Encoding", coding)])
    assert [each.reply for each in script.done] == [None, None, b"{}"]


def test_events_in_any_pieces_and_several_answers(script):
    batch = b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]'
    script.begin("p", batch)
    script.head("p", EVENTS)
    first, second = b'{"jsonrpc":"2.0","id":1,"result":{}}', b'{"jsonrpc":"2.0","id":2,"result":{}}'
    text = b": ping\n\nid: 5\ndata: %b\n\ndata: %b\n\n" % (first, second)
    for at in range(0, len(text), 7):
        script.observer.received("p", text[at : at + 7], script.tick())
    script.observer.ended("p", script.tick())
    (exchange,) = script.done
    assert [(event.kind, event.data, event.fields) for event in exchange.events] == [
        ("reply", first, ("id: 5",)),
        ("reply", second, ()),
    ]


def test_equal_headers_are_joined():
    given = [("Set-Cookie", "a=1"), ("Date", "now"), ("set-cookie", "b=2"), ("X", "y")]
    assert response_headers(given) == {"set-cookie": "a=1, b=2", "x": "y"}
