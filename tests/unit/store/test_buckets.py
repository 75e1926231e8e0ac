"""Token buckets: never more than fits into one and comes back, and all or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model import limits
from mcpzip.store.buckets import Bucket, Shortage, check_requests, take

BUCKETS = st.builds(Bucket, st.just("a"), st.integers(1, 5), st.integers(1, 1_000))


@given(BUCKETS, st.lists(st.integers(0, 2_000), max_size=60))
def test_no_more_than_fits_into_it_and_comes_back(bucket: Bucket, pauses: list[int]) -> None:
    now, full_at, taken = 10**15, dict[str, int](), list[int]()
    for pause in pauses:
        now += pause
        changed, short = take((bucket,), full_at, now)
        full_at |= changed
        if short:
            later = now + short.microseconds
            assert take((bucket,), full_at, later - 1)[1]
            assert take((bucket,), full_at, later)[1] is None
        else:
            taken.append(now)
    for number, begin in enumerate(taken):
        for end in taken[number:]:
            within = sum(begin <= at <= end for at in taken)
            assert within <= bucket.most + (end - begin) // bucket.interval


@given(BUCKETS, st.integers(-(10**12), 10**12))
def test_a_clock_that_is_set_anew_leaves_a_bucket_that_fills_in_its_time(bucket: Bucket, by: int) -> None:
    now, full_at = 10**15, dict[str, int]()
    for _ in range(bucket.most):
        full_at |= take((bucket,), full_at, now)[0]
    changed, short = take((bucket,), full_at, now + by)
    assert short is None or short.microseconds <= bucket.interval
    assert take((bucket,), full_at | changed, now + by + bucket.interval)[1] is None


def test_from_all_or_from_none() -> None:
    small, large = Bucket("small", 1, 100), Bucket("large", 2, 30)
    full_at, short = take((large, small), {}, 1_000)
    assert (full_at, short) == ({"large": 1_030, "small": 1_100}, None)
    assert take((large, small), full_at, 1_010) == ({}, Shortage(1, 90))
    full_at |= take((large,), full_at, 1_010)[0]
    assert full_at["large"] == 1_060
    assert take((large, small), full_at, 1_010) == ({}, Shortage(1, 90))
    assert take((large, small), full_at, 1_100) == ({"large": 1_130, "small": 1_200}, None)
    assert take((large, small), full_at, 500) == ({"large": 560, "small": 600}, Shortage(1, 100))


@pytest.mark.parametrize(
    "buckets",
    [
        (),
        (Bucket("a", 1, 1), Bucket("a", 2, 1)),
        (Bucket("a b", 1, 1),),
        (Bucket("a", 0, 1),),
        (Bucket("a", 1, 0),),
        (Bucket("a", 1 << 40, 1 << 20),),
        tuple(Bucket(str(each), 1, 1) for each in range(limits.STORE_BUCKETS + 1)),
    ],
)
def test_what_is_no_bucket(buckets: tuple[Bucket, ...]) -> None:
    with pytest.raises(ValueError, match=r"isn't from|is there twice|not a name"):
        check_requests([buckets])


def test_how_many_requests_there_may_be() -> None:
    bucket = Bucket("a", 1, 1)
    check_requests([(bucket,)] * limits.STORE_BUCKETS)
    for requests in ([], [(bucket,)] * (limits.STORE_BUCKETS + 1), [(bucket,), ()]):
        with pytest.raises(ValueError, match="isn't from"):
            check_requests(requests)
