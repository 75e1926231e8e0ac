"""The tokens of a conversation, counted by hand: a word is a token."""

import pytest
from helpers.traces import conversation, raw, words

from bench.traces.account import CACHED, WRITTEN, Cost, cost, direct, sized
from bench.traces.keeping import Candidate, Kept

TRACE = conversation("I look.", raw("a b c d e f g h i j"), "I look again.", raw("k l"), "Done.")
"""Prompt 2; answer 2 + call 2; result 10; answer 3 + call 2; result 2; answer 1."""


def test_every_request_sends_all_before() -> None:
    found = cost(sized(TRACE, words), direct)
    sent = (2, 2 + 4 + 10, 2 + 4 + 10 + 5 + 2)
    assert found == Cost(
        input=sum(sent),
        priced=pytest.approx(WRITTEN * sent[2] + CACHED * (sent[0] + sent[1])),
        output=4 + 5 + 1,
        last=sent[2],
        requests=3,
    )


def test_a_beginning_takes_the_place_of_a_result() -> None:
    found = cost(sized(TRACE, words), lambda each: Kept(3) if each.tokens == 10 else None)
    assert found.input == 2 + (2 + 4 + 3) + (2 + 4 + 3 + 5 + 2)
    assert (found.kept, found.read, found.whole, found.extra, found.requests) == (1, 0, 0, 0, 3)


def test_reading_on_is_a_request_whose_answer_stays() -> None:
    found = cost(sized(TRACE, words), lambda each: Kept(3, 1, 5) if each.tokens == 10 else None)
    first = 2 + 4 + 3
    assert found.input == 2 + first + (first + 6) + (first + 6 + 5 + 2)
    assert (found.extra, found.resent, found.requests, found.output) == (1, first, 4, 11)


def test_results_that_came_together_are_read_in_one_request() -> None:
    from bench.traces.trace import Call, Recorder

    told = Recorder()
    for key in ("1", "2"):
        told.call(key, Call("list", "{}"))
    for key in ("1", "2"):
        told.result(key, raw("a b c"))
    told.words("Done.")
    found = cost(sized(told.trace("t"), words), lambda each: Kept(1, 1, 2, is_whole=True))
    assert (found.extra, found.kept, found.read, found.whole) == (1, 2, 2, 2)
    assert found.input == 0 + (4 + 2) + (4 + 2 + 2 + 4)


def test_a_result_that_no_model_read_costs_nothing() -> None:
    trace = conversation("I look.", raw("a b c"))
    assert [len(turn.results) for turn in sized(trace, words)] == [0]
    assert len(list(trace.results())) == 1


def test_costs_are_added() -> None:
    total = Cost()
    for _ in range(2):
        total.add(cost(sized(TRACE, words), direct))
    assert (total.input, total.requests) == (2 * 41, 6)


def test_a_candidate_has_the_tokens_of_its_text() -> None:
    [_, turn, _] = sized(TRACE, words)
    assert isinstance(turn.results[0], Candidate)
    assert [each.tokens for each in turn.results] == [10]
