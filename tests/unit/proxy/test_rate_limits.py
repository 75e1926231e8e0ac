"""Limits of calls: token buckets, each person's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config.schema import RateLimit
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import TooManyCallsError
from mcpzip.model.principal import Principal
from mcpzip.proxy.rate_limits import RateLimits

ANN, BOB = (Principal("https://i", name, groups=frozenset({name})) for name in ("ann", "bob"))
GET, PUT = (Entry.parse("crm", b'{"name":"%b"}' % name) for name in (b"get", b"put"))
NOW = Entry.parse("time", b'{"name":"now"}')


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def may(rates: RateLimits, who: Principal, entry: Entry) -> bool:
    try:
        rates.begin(who, entry)()
    except TooManyCallsError:
        return False
    return True


def test_so_many_at_once_and_as_many_again_in_the_time() -> None:
    clock = Clock()
    rates = RateLimits((RateLimit(calls=3, seconds=60),), clock)
    assert [may(rates, ANN, GET) for _ in range(4)] == [True, True, True, False]
    assert may(rates, BOB, GET)
    with pytest.raises(TooManyCallsError, match=r"3 calls in 60 s.*try again in 20 s") as error:
        rates.begin(ANN, NOW)
    assert error.value.retry_after == 20
    clock.now = 19.9
    assert not may(rates, ANN, GET)
    clock.now = 20.0
    assert [may(rates, ANN, GET) for _ in range(2)] == [True, False]
    clock.now = 1e6
    assert [may(rates, ANN, GET) for _ in range(4)] == [True, True, True, False]


def test_what_is_counted_together() -> None:
    rates = RateLimits((RateLimit(of=("crm__get", "time"), calls=1),), Clock())
    assert [may(rates, ANN, each) for each in (GET, NOW, PUT, PUT)] == [True, False, True, True]


def test_whom_a_limit_is_for() -> None:
    rates = RateLimits((RateLimit(calls=1, groups=frozenset({"bob"})),), Clock())
    assert [may(rates, ANN, GET), may(rates, ANN, GET)] == [True, True]
    assert [may(rates, BOB, GET), may(rates, BOB, GET)] == [True, False]


def test_so_many_at_a_time() -> None:
    rates = RateLimits((RateLimit(concurrent=2),), Clock())
    first, second = rates.begin(ANN, GET), rates.begin(ANN, NOW)
    with pytest.raises(TooManyCallsError, match="2 calls at a time"):
        rates.begin(ANN, PUT)
    assert may(rates, BOB, GET)
    first()
    assert may(rates, ANN, PUT)
    second()


def test_a_call_that_one_limit_refuses_counts_for_no_other() -> None:
    rates = RateLimits((RateLimit(calls=2), RateLimit(of=("crm",), calls=1)), Clock())
    assert [may(rates, ANN, each) for each in (GET, GET, GET, NOW, NOW)] == [True, False, False, True, False]


def test_not_everybody_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RATE_BUCKETS", 10)
    rates = RateLimits((RateLimit(calls=1),), Clock())
    for number in range(30):
        assert may(rates, Principal("https://i", str(number)), GET)
    assert len(rates._buckets) == 10


@given(
    st.integers(1, 5),
    st.floats(0.5, 100),
    st.lists(st.floats(0, 20), max_size=60),
)
def test_never_more_than_the_limit_in_any_time(calls: int, seconds: float, pauses: list[float]) -> None:
    clock, made = Clock(), list[float]()
    rates = RateLimits((RateLimit(calls=calls, seconds=seconds),), clock)
    for pause in pauses:
        clock.now += pause
        if may(rates, ANN, GET):
            made.append(clock.now)
    for at, begin in enumerate(made):
        within = [each for each in made[at:] if each < begin + seconds * 0.999]
        assert len(within) <= 2 * calls  # a bucket that is full, and what comes back meanwhile
