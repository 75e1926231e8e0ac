"""A short run of the fuzzer, always the same one; `python tests/fuzz` is the long one."""

from collections import Counter
from random import Random

import answers
import growth
import oracles
import pytest

EXECUTIONS = 400
ANSWERED = 600
SIZE = 1 << 12


def test_a_short_run_finds_nothing_and_meets_every_kind_of_event() -> None:
    seen: Counter[str] = Counter()
    for number in range(EXECUTIONS):
        oracles.check(Random(f"short/{number}"), seen)
    assert seen.keys() == oracles.KINDS


def test_a_short_run_of_http_answers_finds_nothing_and_meets_every_kind_of_outcome() -> None:
    seen: Counter[str] = Counter()
    for number in range(ANSWERED):
        answers.check(Random(f"short/{number}"), seen)
    assert seen.keys() == answers.KINDS


@pytest.mark.parametrize("shape", answers.STREAMS)
def test_the_work_of_an_event_stream_grows_no_faster_than_the_stream(shape: str) -> None:
    unit = answers.STREAMS[shape]
    short, long = (unit * (size // len(unit)) for size in (SIZE, 4 * SIZE))
    play = answers.as_events
    assert growth.calls(play, long) <= 4.1 * growth.calls(play, short) + 100
    assert growth.peak(play, long) <= growth.MOST_HELD * len(long)


@pytest.mark.parametrize("use", growth.USES)
@pytest.mark.parametrize("shape", growth.SHAPES)
def test_work_and_memory_grow_no_faster_than_the_input(shape: str, use: str) -> None:
    play = growth.USES[use]
    short, long = (growth.shaped(shape, size) for size in (SIZE, 4 * SIZE))
    assert growth.calls(play, long) <= 4.1 * growth.calls(play, short) + 100
    assert growth.peak(play, long) <= growth.MOST_HELD * len(long)


@pytest.mark.parametrize("limit", [1000, 100_000])
@pytest.mark.parametrize("shape", ["text", "members", "brackets", "backslashes", "not UTF-8", "spaces alone"])
def test_a_line_beyond_the_limit_is_an_error_and_is_not_held(shape: str, limit: int) -> None:
    line = growth.shaped(shape, 2_000_000)
    assert growth.flooded(line, limit) <= growth.held_of_a_flood(limit)


def test_an_answer_beyond_the_limit_fails_the_request_it_is_for() -> None:
    growth.answered_at_length(growth.shaped("text", 1_000_000), limit=500_000)
