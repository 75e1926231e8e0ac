"""Limits of calls: token buckets, each person's own, and what becomes of calls that a store counts."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config.schema import RateLimit
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import NotCountedError, StoreError, TooManyCallsError
from mcpzip.model.principal import Principal, PrincipalId
from mcpzip.proxy.rate_limits import RateLimits
from mcpzip.proxy.statistics import Statistics

ANN, BOB = (Principal("https://i", name, groups=frozenset({name})) for name in ("ann", "bob"))
GET, PUT = (Entry.parse("crm", b'{"name":"%b"}' % name) for name in (b"get", b"put"))
NOW = Entry.parse("time", b'{"name":"now"}')


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def may(rates: RateLimits, who: Principal, entry: Entry) -> bool:
    try:
        (await rates.begin(who, entry))()
    except TooManyCallsError:
        return False
    return True


async def test_so_many_at_once_and_as_many_again_in_the_time() -> None:
    clock = Clock()
    rates = RateLimits((RateLimit(calls=3, seconds=60),), clock)
    assert [await may(rates, ANN, GET) for _ in range(4)] == [True, True, True, False]
    assert await may(rates, BOB, GET)
    with pytest.raises(TooManyCallsError, match=r"3 calls in 60 s.*try again in 20 s") as error:
        await rates.begin(ANN, NOW)
    assert error.value.retry_after == 20
    clock.now = 19.9
    assert not await may(rates, ANN, GET)
    clock.now = 20.0
    assert [await may(rates, ANN, GET) for _ in range(2)] == [True, False]
    clock.now = 1e6
    assert [await may(rates, ANN, GET) for _ in range(4)] == [True, True, True, False]


async def test_what_is_counted_together() -> None:
    rates = RateLimits((RateLimit(of=("crm__get", "time"), calls=1),), Clock())
    assert [await may(rates, ANN, each) for each in (GET, NOW, PUT, PUT)] == [True, False, True, True]


async def test_whom_a_limit_is_for() -> None:
    rates = RateLimits((RateLimit(calls=1, groups=frozenset({"bob"})),), Clock())
    assert [await may(rates, ANN, GET), await may(rates, ANN, GET)] == [True, True]
    assert [await may(rates, BOB, GET), await may(rates, BOB, GET)] == [True, False]


async def test_so_many_at_a_time() -> None:
    rates = RateLimits((RateLimit(concurrent=2),), Clock())
    first, second = await rates.begin(ANN, GET), await rates.begin(ANN, NOW)
    with pytest.raises(TooManyCallsError, match="2 calls at a time"):
        await rates.begin(ANN, PUT)
    assert await may(rates, BOB, GET)
    first()
    assert await may(rates, ANN, PUT)
    second()


async def test_a_call_that_one_limit_refuses_counts_for_no_other() -> None:
    rates = RateLimits((RateLimit(calls=2), RateLimit(of=("crm",), calls=1)), Clock())
    assert [await may(rates, ANN, each) for each in (GET, GET, GET, NOW, NOW)] == [
        True,
        False,
        False,
        True,
        False,
    ]


async def test_not_everybody_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RATE_BUCKETS", 10)
    rates = RateLimits((RateLimit(calls=1),), Clock())
    for number in range(30):
        assert await may(rates, Principal("https://i", str(number)), GET)
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
        if run(may(rates, ANN, GET)):
            made.append(clock.now)
    for at, begin in enumerate(made):
        within = [each for each in made[at:] if each < begin + seconds * 0.999]
        assert len(within) <= 2 * calls  # a bucket that is full, and what comes back meanwhile


def run(work: "Coroutine[Any, Any, bool]") -> bool:
    """The result of what waits for nothing."""
    try:
        work.send(None)
    except StopIteration as ended:
        return bool(ended.value)
    raise AssertionError("it waits")


# ---- counted in a store

SLOW = StoreError("memory", "slow", "it does not answer")
EVERY = RateLimit(calls=3, seconds=60)


class Counts:
    """A store in which others have taken ``used``, and that answers when it is let."""

    def __init__(self, answer: tuple[RateLimit, float] | StoreError | None = None) -> None:
        self.answer, self.asked, self.open = answer, list[tuple[RateLimit, ...]](), asyncio.Event()
        self.open.set()

    async def take(self, person: PrincipalId, counted: Sequence[RateLimit]) -> tuple[RateLimit, float] | None:
        self.asked.append(tuple(counted))
        await self.open.wait()
        if isinstance(self.answer, StoreError):
            raise self.answer
        return self.answer


async def test_only_calls_with_a_limit_ask_the_store() -> None:
    crm, busy = RateLimit(of=("crm",), calls=3), RateLimit(concurrent=5)
    store = Counts()
    rates = RateLimits((crm, busy), Clock(), store)
    for entry in (GET, NOW, PUT):
        assert await may(rates, ANN, entry)
    assert store.asked == [(crm,), (crm,)]


async def test_what_the_store_refuses_is_refused_here_until_a_call_has_come_back() -> None:
    clock, store, statistics = Clock(), Counts((EVERY, 12.0)), Statistics()
    rates = RateLimits((EVERY,), clock, store, statistics)
    for _ in range(1_000):
        with pytest.raises(TooManyCallsError, match=r"3 calls in 60 s.*try again in 12 s") as error:
            await rates.begin(ANN, GET)
    assert error.value.retry_after == 12
    assert len(store.asked) == 1
    assert statistics.rate_limited == 1_000
    clock.now, store.answer = 12.01, None
    assert [await may(rates, ANN, GET) for _ in range(2)] == [True, False]
    assert len(store.asked) == 2


async def test_what_the_store_refuses_counts_for_no_limit_here() -> None:
    crm, clock = RateLimit(of=("crm",), calls=3, seconds=60), Clock()
    store = Counts((crm, 7.0))
    rates = RateLimits((EVERY, crm, RateLimit(concurrent=1)), clock, store)
    assert not await may(rates, ANN, GET)
    store.answer = SLOW
    assert [await may(rates, ANN, NOW) for _ in range(4)] == [True, True, True, False]


async def test_who_makes_many_calls_at_once_costs_the_store_no_more_than_they_may() -> None:
    store = Counts()
    rates = RateLimits((EVERY,), Clock(), store)
    store.open.clear()
    calls = [asyncio.create_task(may(rates, ANN, GET)) for _ in range(100)]
    await asyncio.sleep(0)
    assert len(store.asked) == 3
    store.open.set()
    assert sum(await asyncio.gather(*calls)) == 3


async def test_without_the_store_each_process_counts() -> None:
    store, statistics = Counts(), Statistics()
    rates = RateLimits((EVERY,), Clock(), store, statistics)
    assert await may(rates, ANN, GET)
    store.answer = SLOW
    assert [await may(rates, ANN, GET) for _ in range(3)] == [True, True, False]
    assert (statistics.counted_locally, statistics.rate_limited) == (2, 1)


async def test_without_the_store_calls_are_refused_if_the_config_says_so() -> None:
    store = Counts(SLOW)
    denying = RateLimit(of=("crm",), calls=3, if_store_fails="deny")
    rates = RateLimits((EVERY, denying, RateLimit(concurrent=1)), Clock(), store)
    for _ in range(5):
        with pytest.raises(NotCountedError, match="Nothing ran: try again in 5 s"):
            await rates.begin(ANN, GET)
    assert await may(rates, ANN, NOW)
    store.answer = None
    assert [await may(rates, ANN, GET) for _ in range(3)] == [True, True, False]


async def test_a_call_that_is_cancelled_while_it_is_counted_is_not_under_way() -> None:
    store = Counts()
    rates = RateLimits((RateLimit(calls=2, concurrent=1),), Clock(), store)
    store.open.clear()
    call = asyncio.create_task(may(rates, ANN, GET))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait({call})
    store.open.set()
    assert [await may(rates, ANN, GET) for _ in range(2)] == [True, False]
