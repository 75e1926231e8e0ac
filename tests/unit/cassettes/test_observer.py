"""The observer groups messages into exchanges; nothing is lost, and the order by time stays."""

import itertools
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.cassettes.cassette import CLOSE, Cassette, Event, Exchange, Response
from mcpzip.cassettes.masking import Masker
from mcpzip.cassettes.observer import CANCELLED_WAIT, MOST_EVENTS, Observer


class Script:
    """Plays a conversation: each message comes a second after the last one."""

    def __init__(self) -> None:
        self.done: list[Exchange] = []
        self.observer = Observer(self.done.append, Masker())
        self.now = 0.0

    def client(self, *messages: object) -> None:
        for message in messages:
            self.now += 1
            self.observer.client(line(message), self.now)

    def server(self, *messages: object) -> None:
        for message in messages:
            self.now += 1
            self.observer.server(line(message), self.now)

    def stderr(self, text: str) -> None:
        self.now += 1
        self.observer.stderr(text.encode(), self.now)


def line(message: object) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message, separators=(",", ":")).encode()


def request(id: object, method: str = "tools/call", **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def notice(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def result(id: object, value: object = None) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "result": value or {}}


def error(id: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": -32700, "message": "no"}}


def outline(exchange: Exchange) -> list[tuple[str, object]]:
    """What an exchange holds, for comparison."""
    begun = [(exchange.verb or "request", json.loads(exchange.request))] if exchange.request else []
    return begun + [(event.kind, json.loads(event.data)) for event in exchange.events]


@pytest.fixture
def script() -> Script:
    return Script()


def test_a_request_and_its_answer(script):
    script.client(request(1))
    assert script.done == []
    script.server(result(1))
    (exchange,) = script.done
    assert (exchange.at, exchange.events[0].kind, exchange.events[0].after) == (1.0, "reply", 1.0)
    assert exchange.request == line(request(1))


@pytest.mark.parametrize("id", [7, "7", -1, "ä", 1.5, None, [1], {"a": 1}, True])
def test_ids_of_any_type(script, id):
    other = request("other", "ping")
    script.client(other, request(id))
    script.server(result(id, {"it": 1}), result("other"))
    assert [outline(each) for each in script.done] == [
        [("request", request(id)), ("reply", result(id, {"it": 1}))],
        [("request", other), ("reply", result("other"))],
    ]


def test_progress_belongs_to_its_request_and_logs_to_the_newest(script):
    first, second = request(1, _meta={"progressToken": "a"}), request(2, _meta={"progressToken": 2})
    progress, log = (
        notice("notifications/progress", progressToken="a", progress=1),
        notice("notifications/message"),
    )
    script.client(first, second)
    script.server(progress, log, result(2), result(1))
    assert [outline(each) for each in script.done] == [
        [("request", second), ("send", log), ("reply", result(2))],
        [("request", first), ("send", progress), ("reply", result(1))],
    ]


def test_a_question_and_the_answer_of_the_client(script):
    asked = request("q", "elicitation/create")
    script.client(request(1))
    script.server(asked)
    script.client(result("q"))
    script.server(result(1))
    (exchange,) = script.done
    assert outline(exchange) == [
        ("request", request(1)),
        ("send", asked),
        ("receive", result("q")),
        ("reply", result(1)),
    ]


def test_a_question_after_a_notification(script):
    ready, roots = notice("notifications/initialized"), request(0, "roots/list")
    script.client(ready)
    script.server(roots)
    script.client(request(1))
    script.client(result(0))
    script.server(result(1))
    assert [outline(each) for each in script.done] == [
        [("request", ready)],
        [("send", roots), ("receive", result(0))],
        [("request", request(1)), ("reply", result(1))],
    ]


def test_a_question_that_the_server_withdraws(script):
    taken_back = notice("notifications/cancelled", requestId="q")
    script.client(request(1))
    script.server(request("q", "sampling/createMessage"), taken_back, result(1))
    script.client(result("q"))
    assert [outline(each) for each in script.done] == [
        [
            ("request", request(1)),
            ("send", request("q", "sampling/createMessage")),
            ("send", taken_back),
            ("reply", result(1)),
        ],
        [("request", result("q"))],
    ]


def test_a_cancelled_request_ends_without_a_reply(script):
    cancelled = notice("notifications/cancelled", requestId=1)
    script.client(request(1), cancelled)
    script.now += CANCELLED_WAIT
    script.client(request(2))
    script.server(result(2))
    script.stderr("late")
    assert [each.reply for each in script.done] == [None, line(result(2)), None]
    assert script.done[2].request == line(request(1))


def test_a_late_answer_to_a_cancelled_request(script):
    script.client(request(1), notice("notifications/cancelled", requestId=1))
    script.server(error(1))
    assert [each.reply for each in script.done] == [None, line(error(1))]


def test_a_batch_is_over_with_its_last_answer(script):
    batch = [request(1), notice("notifications/x"), request(2)]
    script.client(batch)
    script.server([result(1)])
    assert script.done == []
    script.server(result(2))
    (exchange,) = script.done
    assert outline(exchange) == [("request", batch), ("reply", [result(1)]), ("reply", result(2))]


def test_answers_in_a_batch(script):
    script.client(request(1))
    script.server([request("a", "ping"), request("b", "ping")])
    script.client([result("a"), result("b")])
    script.server(result(1))
    assert [kind for kind, _ in outline(script.done[0])] == ["request", "send", "receive", "reply"]


def test_a_subscription_stays_open(script):
    listen = request("s", "subscriptions/listen")
    changed = notice(
        "notifications/tools/list_changed", _meta={"io.modelcontextprotocol/subscriptionId": "s"}
    )
    script.client(listen, request(1))
    script.server(changed, notice("notifications/message"), result(1))
    script.stderr("alone")
    script.observer.close()
    by_request = {each.request: [event.kind for event in each.events] for each in script.done}
    assert by_request == {line(request(1)): ["send", "reply"], line(listen): ["send"], b"": ["stderr"]}


def test_lines_that_are_no_messages(script):
    script.server(b"Welcome!")
    script.client(b"{nonsense")
    script.server(error(None))
    script.observer.close()
    assert [each.request for each in script.done] == [b"", b"{nonsense", b""]
    assert [event.data for each in script.done for event in each.events] == [b"Welcome!", line(error(None))]


def test_the_server_ends_by_itself(script):
    script.client(request(1))
    script.observer.server_ended(9.0, code=3, rest=b'{"half')
    (exchange,) = script.done
    assert exchange.events == (Event(kind="end", after=8.0, data=b'{"half', code=3),)


def test_the_client_closes_first(script):
    script.client(request(1))
    script.observer.client_closed(2.0)
    script.stderr("bye")
    script.observer.server(line(result(1)), 3.0)
    script.observer.server_ended(4.0, code=0)
    assert [(each.verb, [event.kind for event in each.events]) for each in script.done] == [
        ("", ["stderr", "reply"]),
        (CLOSE, ["end"]),
    ]


def test_too_many_events(script):
    script.client(request(1))
    for _ in range(MOST_EVENTS):
        script.server(notice("notifications/message"))
    assert len(script.done) == 1
    script.server(result(1))
    script.observer.close()
    assert [len(each.events) for each in script.done] == [MOST_EVENTS, 1]


def test_http_responses_of_legacy_sse(script):
    pending = script.observer.client(line(request(1)), 1.0, verb="POST", awaits_response=True)
    script.observer.server(line(result(1)), 2.0, ("event: message",))
    assert script.done == []
    script.observer.responded(pending, Response(status=202), b"Accepted", 3.0)
    (exchange,) = script.done
    assert exchange.response == Response(status=202)
    assert [event.data for event in exchange.events] == [line(result(1)), b"Accepted"]


def test_a_refused_message_of_legacy_sse(script):
    pending = script.observer.client(line(request(1)), 1.0, verb="POST", awaits_response=True)
    script.observer.responded(pending, Response(status=400), b"", 3.0)
    assert [each.response for each in script.done] == [Response(status=400)]


def test_secrets_are_masked_everywhere(script):
    script.client(request(1, token="abc-123-x"))
    script.stderr("got abc-123-x")
    script.server(notice("notifications/message", data="abc-123-x"), result(1, {"said": "abc-123-x"}))
    assert "abc-123-x" not in repr(script.done)


# Properties

ids = st.integers(0, 3) | st.sampled_from(["0", "a", None])
tokens = st.integers(0, 3)
messages = st.one_of(
    st.builds(request, ids, st.sampled_from(["ping", "subscriptions/listen", "initialize"])),
    st.builds(lambda id, token: request(id, _meta={"progressToken": token}), ids, tokens),
    st.builds(result, ids),
    st.builds(error, ids),
    st.builds(lambda token: notice("notifications/progress", progressToken=token), tokens),
    st.builds(lambda id: notice("notifications/cancelled", requestId=id), ids),
    st.just(notice("notifications/message")),
)
lines = messages.map(line) | st.lists(messages, max_size=3).map(line) | st.binary(max_size=6)
steps = st.lists(
    st.tuples(st.sampled_from(["client", "server", "stderr"]), lines, st.floats(0, 8)), max_size=30
)


@given(steps, st.sampled_from(["server", "client", "none"]))
def test_nothing_is_lost_and_the_order_stays(steps, end):
    done: list[Exchange] = []
    observer = Observer(done.append, Masker())
    said, now = [], 0.0
    for who, data, pause in steps:
        now += pause
        getattr(observer, who)(data, now)
        said.append((who, data))
    if end == "client":
        observer.client_closed(now)
    if end != "none":
        observer.server_ended(now, code=1)
    observer.close()
    exchanges = Cassette().with_exchanges(done).exchanges
    heard = sorted(
        [(each.at, "client", each.request) for each in exchanges if each.request or each.verb == ""]
        + [
            (each.at + event.after, WHO[event.kind], event.data)
            for each in exchanges
            for event in each.events
        ]
    )
    sounds = [(who, data) for _, who, data in heard if data and who != "end"]
    assert sounds == [(who, data) for who, data in said if data]
    times = [at for at, who, data in heard if data or who == "end"]
    assert all(round(later - earlier, 7) >= 1e-6 for earlier, later in itertools.pairwise(times))
    assert all(each.events == tuple(sorted(each.events, key=after)) for each in exchanges)
    assert [event.kind for each in exchanges for event in each.events].count("end") == (end != "none")


WHO = {"send": "server", "reply": "server", "receive": "client", "stderr": "stderr", "end": "end"}
after: Callable[[Event], float] = lambda event: event.after  # noqa: E731
