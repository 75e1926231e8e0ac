"""The order in which a recorded session is played, on a clock that only the tests move."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_fakes.replay.matching import Matcher, recorded
from mcpzip_fakes.replay.messages import read
from mcpzip_fakes.replay.session import Session

from mcpzip.cassettes.cassette import CLOSE, Cassette, Event, Exchange, Match

PATIENCE = 1.0


def line(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def call(id: object, tool: str = "pay", **arguments: object) -> bytes:
    return line(id=id, method="tools/call", params={"name": tool, "arguments": arguments})


def result(id: object, said: object = None) -> bytes:
    return line(id=id, result={"said": said})


def notice(said: object) -> bytes:
    return line(method="notifications/message", params={"data": said})


def reply(after: float, data: bytes) -> Event:
    return Event(kind="reply", after=after, data=data)


def send(after: float, data: bytes) -> Event:
    return Event(kind="send", after=after, data=data)


def receive(after: float, data: bytes) -> Event:
    return Event(kind="receive", after=after, data=data)


class Player:
    """Plays a cassette; ``heard`` is everything that the client has got so far."""

    def __init__(
        self, exchanges: Sequence[Exchange], *, number: int = 1, timing: float | None = None, **match: Any
    ) -> None:
        cassette = Cassette(match=Match(**match)).with_exchanges(exchanges)
        every = recorded(cassette.exchanges)
        self.now = 100.0
        self.session = Session(
            "shop.toml",
            every,
            Matcher(every, cassette.match),
            number=number,
            repeat=cassette.match.repeat,
            timing=timing,
            now=self.now,
            patience=PATIENCE,
        )
        self.heard: list[bytes] = []
        self.listen()

    def listen(self) -> list[bytes]:
        """What comes now."""
        new = [it.data for it in self.session.happenings(self.now)]
        self.heard += new
        return new

    def say(self, *lines: bytes) -> list[bytes]:
        for each in lines:
            self.session.receive(read(each), self.now)
        return self.listen()

    def wait(self) -> list[bytes]:
        """Let time pass until something comes, or nothing can."""
        while (wakes := self.session.wakes) is not None:
            assert wakes > self.now
            self.now = wakes
            if new := self.listen():
                return new
        return []

    def close(self) -> list[bytes]:
        self.session.close(self.now)
        return self.listen()


def error(raw: bytes) -> tuple[int, str]:
    told = json.loads(raw)["error"]
    return told["code"], told["message"]


# The order


@st.composite
def sessions(draw: st.DrawFn) -> tuple[list[Exchange], list[tuple[bool, bytes]]]:
    """A recorded session, and its messages in order, each with whether the client sent it."""
    timeline: list[tuple[bool, bytes]] = []
    begun: list[tuple[int, bytes, list[Event]]] = []
    alone: list[tuple[int, Event]] = []
    questions = 0
    waiting: dict[int, bytes] = {}  # by exchange: the id of an open question
    done: set[int] = set()
    for at in range(draw(st.integers(1, 25))):
        kind = draw(
            st.sampled_from(["request", "request", "send", "send", "reply", "alone", "ask", "answer"])
        )
        open_ = [number for number in range(len(begun)) if number not in done]
        free = [number for number in open_ if number not in waiting]
        if kind == "request":
            asked = call(len(begun), n=draw(st.integers(0, 3)))
            begun.append((at, asked, []))
            timeline.append((True, asked))
        elif kind == "alone":
            alone.append((at, send(0, notice(at))))
            timeline.append((False, notice(at)))
        elif kind == "answer" and waiting:
            number = draw(st.sampled_from(sorted(waiting)))
            answer = result(waiting.pop(number).decode(), at)
            begun[number][2].append(receive(at - begun[number][0], answer))
            timeline.append((True, answer))
        elif free:
            number = draw(st.sampled_from(free))
            if kind == "ask":
                questions += 1
                waiting[number] = f"q{questions}".encode()
                told = line(id=f"q{questions}", method="elicitation/create", params={"n": at})
                event = send(at - begun[number][0], told)
            elif kind == "reply":
                done.add(number)
                event = reply(at - begun[number][0], result(number, at))
            else:
                event = send(at - begun[number][0], notice(at))
            begun[number][2].append(event)
            timeline.append((False, event.data))
    exchanges = [Exchange(at=at, request=asked, events=tuple(events)) for at, asked, events in begun]
    return [*exchanges, *(Exchange(at=at, events=(event,)) for at, event in alone)], timeline


@given(sessions(), st.sampled_from([None, 1.0, 0.25]))
def test_the_same_client_hears_the_same(
    told: tuple[list[Exchange], list[tuple[bool, bytes]]], timing: float | None
) -> None:
    """It sends each message when it has heard what it had heard then."""
    exchanges, timeline = told
    player = Player(exchanges, timing=timing)
    expected: list[bytes] = []
    for of_client, message in timeline:
        if of_client:
            while len(player.heard) < len(expected):
                assert player.wait()
            player.say(message)
        else:
            expected.append(message)
    while player.wait():
        pass
    assert player.heard == expected


@given(sessions(), st.data())
def test_any_other_client_gets_its_answers_without_waiting_for_ever(
    told: tuple[list[Exchange], list[tuple[bool, bytes]]], data: st.DataObject
) -> None:
    exchanges, _ = told
    player = Player(exchanges)
    asked = [each for each in exchanges if each.request]
    silent = {
        json.loads(each.request)["params"]["arguments"]["n"]
        for each in asked
        if each.reply is None or any(event.kind == "receive" for event in each.events)
    }
    for each in data.draw(st.permutations(asked)):
        request = json.loads(each.request)
        if request["params"]["arguments"]["n"] in silent:
            continue
        before = len(player.heard)
        player.say(each.request)
        while not any(json.loads(it).get("id") == request["id"] for it in player.heard[before:]):
            assert player.wait()
    assert player.now <= 100.0 + PATIENCE * len(asked)


def test_a_message_that_is_not_sent_is_waited_for_once() -> None:
    together = [Exchange(at=n, request=call(n, n=n), events=(reply(9, result(n)),)) for n in range(3)]
    player = Player(together)
    assert player.say(call(0, n=0)) == []
    assert player.wait() == [result(0)]
    assert player.now == 100.0 + PATIENCE
    assert player.say(call(1, n=1)) == [result(1)]
    assert player.say(call(2, n=2)) == [result(2)]


def test_pings_are_not_waited_for() -> None:
    ping = line(id=1, method="ping")
    player = Player(
        [
            Exchange(at=0, request=call(0), events=(reply(2, result(0)),)),
            Exchange(at=1, request=ping, events=(reply(0.1, result(1)),)),
        ]
    )
    assert player.say(call(0)) == [result(0)]
    assert player.say(ping) == [result(1)]
    assert player.say(line(id=8, method="ping")) == [result(8)]


def test_recorded_times_are_kept_and_scaled() -> None:
    exchanges = [
        Exchange(at=1, events=(send(0, notice("later")),)),
        Exchange(at=2, request=call(0), events=(send(1, notice("half")), reply(2, result(0)))),
    ]
    player = Player(exchanges, timing=0.5)
    assert player.heard == []
    assert player.wait() == [notice("later")]
    assert player.now == 100.5
    player.now = 200.0
    assert player.say(call(0)) == []
    assert player.wait() == [notice("half")]
    assert player.now == 200.5
    assert player.wait() == [result(0)]
    assert player.now == 201.0


def test_what_the_server_does_by_itself_comes_in_its_turn() -> None:
    end = Event(kind="end", after=0.6, data=b"half a li", code=1)
    player = Player(
        [
            Exchange(at=0, events=(Event(kind="stderr", after=0, data=b"starting"),)),
            Exchange(at=1, request=call(0), events=(reply(0.5, result(0)),)),
            Exchange(at=2, events=(send(0, notice("changed")),)),
            Exchange(at=3, request=call(1, n=1), events=(send(0.5, b"a line"), end)),
        ]
    )
    assert player.heard == [b"starting"]
    assert player.say(call(0)) == [result(0), notice("changed")]
    assert player.say(call(1, n=1)) == [b"a line", b"half a li"]


def test_what_followed_the_end_of_the_input_waits_for_it() -> None:
    player = Player(
        [
            Exchange(at=0, request=call(0), events=(reply(9, result(0)),)),
            Exchange(at=5, verb=CLOSE, events=(Event(kind="end", after=9, code=4),)),
            Exchange(at=8, events=(Event(kind="stderr", after=0, data=b"bye"),)),
        ]
    )
    player.say(call(0))
    assert player.wait() == [result(0)]
    assert player.wait() == []
    assert player.close() == [b"bye", b""]
    assert player.session.exit_code == 4


def test_the_end_of_the_input_flushes_open_exchanges() -> None:
    player = Player(
        [
            Exchange(at=0, request=call(0), events=(send(1, notice(1)), reply(9, result(0)))),
            Exchange(at=1.5, events=(send(0, notice("by the way")),)),
            Exchange(at=2, request=call(1, n=1), events=(reply(1, result(1)),)),
            Exchange(at=5, events=(send(0, notice("much later")),)),
        ],
        timing=1.0,
    )
    player.say(call(0))
    assert player.close() == [notice(1), result(0)]
    assert player.session.wakes is None


# Which exchange


def test_the_nth_request_gets_the_nth_answer_and_the_last_again() -> None:
    twice = [Exchange(at=n, request=call(n), events=(reply(0.5, result(n, n)),)) for n in range(2)]
    player = Player(twice)
    said = [player.say(call(10 + n))[0] for n in range(4)]
    assert said == [result(10, 0), result(11, 1), result(12, 1), result(13, 1)]
    once = Player(twice, repeat=False)
    once.say(call(10), call(11))
    code, text = error(once.say(call(12))[0])
    assert code == -32602
    assert "all recorded answers of shop.toml were given, and match.repeat is false" in text


def test_the_session_of_this_process_is_preferred_to_others() -> None:
    exchanges = [
        Exchange(session=n, at=0, request=call(0), events=(reply(0.5, result(0, n)),)) for n in (1, 2)
    ]
    other = Exchange(session=1, at=2, request=call(1, n=1), events=(reply(0.5, result(1, "of 1")),))
    player = Player([*exchanges, other], number=2)
    assert player.say(call(0)) == [result(0, 2)]
    assert player.say(call(1)) == [result(1, 2)]
    assert player.say(call(1, n=1)) == [result(1, "of 1")]


def test_the_session_with_the_protocol_version_of_the_client_is_played() -> None:
    def opened(id: int, version: str) -> bytes:
        return line(id=id, method="initialize", params={"protocolVersion": version})

    def session(number: int, version: str) -> list[Exchange]:
        return [
            Exchange(session=number, at=0, events=(send(0, notice(f"banner {number}")),)),
            Exchange(
                session=number, at=1, request=opened(0, version), events=(reply(1, result(0, version)),)
            ),
            Exchange(session=number, at=3, request=call(1), events=(reply(1, result(1, number)),)),
        ]

    exchanges = [*session(1, "2025-06-18"), *session(2, "2025-11-25")]
    player = Player(exchanges)
    assert player.say(opened(7, "2025-11-25")) == [result(7, "2025-11-25")]
    assert player.say(call(8)) == [result(8, 2)]
    assert player.heard[0] == notice("banner 1")
    assert Player(exchanges).say(opened(7, "1999-01-01")) == [result(7, "2025-06-18")]


def test_an_unmatched_request_is_told_with_the_nearest() -> None:
    player = Player([Exchange(request=call(n, n=n, where={"city": "Rome"})) for n in range(3)])
    (told,) = player.say(call(9, n=2, where={"city": "Oslo"}))
    assert error(told) == (
        -32602,
        "tools/call “pay” is not in shop.toml. The nearest is exchange 3 (session 1), which differs in\n"
        '    params.arguments.where.city\n      - "Rome"\n      + "Oslo"',
    )
    (told,) = player.say(line(id=10, method="prompts/list"))
    assert error(told) == (-32601, "prompts/list: shop.toml has no request of this method")
    assert len(player.session.unmatched) == 2


# Answers of the client


def asking(at: float, answer: bytes, said: object) -> Exchange:
    question = line(id="q", method="elicitation/create", params={"message": "Sure?"})
    events = (send(1, question), receive(2, answer), reply(3, result(0, said)))
    return Exchange(at=at, request=call(0), events=events)


YES, NO, NEVER = (line(id="q", result={"action": word}) for word in ("accept", "decline", "cancel"))
QUESTION = asking(0, YES, "").events[0].data


def test_what_followed_an_answer_waits_for_it() -> None:
    player = Player([asking(0, YES, "paid")])
    assert player.say(call(5)) == [QUESTION]
    assert player.wait() == []
    assert player.say(YES) == [result(5, "paid")]


def test_another_answer_goes_on_with_the_exchange_that_had_it() -> None:
    player = Player([asking(0, YES, "paid"), asking(9, NO, "not paid")])
    assert player.say(call(5)) == [QUESTION]
    assert player.say(NO) == [result(5, "not paid")]
    assert player.say(call(6)) == [QUESTION.replace(b'"q"', b'"again-2"')]
    assert player.say(YES.replace(b'"q"', b'"again-2"')) == [result(6, "paid")]


def test_an_answer_that_was_never_given_fails_the_request() -> None:
    player = Player([asking(0, YES, "paid")])
    player.say(call(5))
    (told,) = player.say(NEVER)
    assert error(told) == (
        -32602,
        "tools/call “pay”: the client answered elicitation/create otherwise than in exchange 1 (session 1) of"
        ' shop.toml\n    result.action\n      - "accept"\n      + "cancel"',
    )


def test_requests_of_the_server_that_belong_to_no_request_take_any_answer() -> None:
    roots = line(id=1, method="roots/list")
    events = (send(0, roots), receive(1, line(id=1, result={"roots": ["a"]})), send(2, notice("thanks")))
    player = Player([Exchange(events=events)])
    assert player.heard == [roots]
    assert player.say(line(id=1, result={"roots": ["b"]})) == [notice("thanks")]


# Cancellation


def cancel(id: object) -> bytes:
    return line(method="notifications/cancelled", params={"requestId": id})


@pytest.mark.parametrize("late", [False, True])
def test_a_cancelled_request_is_as_it_was(late: bool) -> None:
    answer = (reply(5, result(0)),) if late else ()
    player = Player(
        [
            Exchange(at=0, request=call(0), events=(send(1, notice(1)), *answer)),
            Exchange(at=2, request=cancel(0)),
        ]
    )
    assert player.say(call(7)) == [notice(1)]
    assert player.say(cancel(7)) == ([result(7)] if late else [])


def test_a_request_that_was_not_cancelled_then_ends_now() -> None:
    player = Player([asking(0, YES, "paid")])
    player.say(call(7))
    player.say(cancel(7))
    assert player.say(YES) == []
    assert player.wait() == []
