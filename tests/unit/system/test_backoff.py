"""Pauses before something is tried again."""

import random

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.system.backoff import Backoff

spans = st.tuples(st.floats(0.001, 100), st.floats(0.001, 100)).map(sorted)


@given(spans, st.floats(1, 10), st.integers(1, 5_000))
def test_pauses_grow_from_the_shortest_to_the_longest(span: list[float], factor: float, times: int) -> None:
    backoff = Backoff(*span, factor=factor)
    pauses = [backoff.next() for _ in range(min(times, 200))]
    assert pauses[0] == span[0]
    assert pauses == sorted(pauses)
    assert backoff.pause(times) <= span[1]
    assert pauses == [backoff.pause(number) for number in range(1, len(pauses) + 1)]


@given(spans, st.integers(1, 100))
def test_a_pause_is_twice_the_one_before_it_or_the_longest(span: list[float], number: int) -> None:
    backoff = Backoff(*span)
    assert backoff.pause(number + 1) == min(span[1], 2 * backoff.pause(number))


@given(spans, st.floats(0, 1), st.integers(1, 200), st.integers())
def test_jitter_takes_its_share_of_a_pause_at_most(
    span: list[float], jitter: float, times: int, seed: int
) -> None:
    backoff = Backoff(*span, jitter=jitter, source=random.Random(seed))
    pauses = [backoff.next() for _ in range(times)]
    whole = [backoff.pause(number) for number in range(1, times + 1)]
    assert all((1 - jitter) * most <= pause <= most for pause, most in zip(pauses, whole, strict=True))


@given(spans, st.integers(1, 100))
def test_a_reset_begins_again(span: list[float], times: int) -> None:
    backoff = Backoff(*span)
    for _ in range(times):
        backoff.next()
    assert backoff.taken == times
    backoff.reset()
    assert backoff.taken == 0
    assert backoff.next() == span[0]
