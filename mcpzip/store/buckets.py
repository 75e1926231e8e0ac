"""Token buckets of a store (pure).

A bucket is one number: the time at which it is full again if nothing more is taken. That is the generic cell
rate algorithm (ITU-T I.371, "virtual scheduling"). So a bucket that nobody uses is full, and needs no place.
Times are whole microseconds of the store's clock. All stores calculate what `take` does; each has it in its
own language.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mcpzip.model import limits
from mcpzip.store.records import HIGHEST, check_name, check_number


class Bucket(NamedTuple):
    """most: tokens in it when it is full. interval: microseconds after which one comes back."""

    name: str
    most: int
    interval: int


class Shortage(NamedTuple):
    """Why nothing was taken. number: of the bucket that has a token last, in the order of the request.
    microseconds: until it has one, if nobody else takes it.
    """

    number: int
    microseconds: int


def check_requests(requests: Sequence[Sequence[Bucket]]) -> None:
    """Raises ValueError unless a token can be taken from each bucket of each request."""
    check_number(sum(map(len, requests)), limits.STORE_BUCKETS, least=1)
    for buckets in requests:
        check_number(len(buckets), limits.STORE_BUCKETS, least=1)
        if len({check_name(bucket.name) for bucket in buckets}) < len(buckets):
            raise ValueError("a bucket is there twice")
        for bucket in buckets:
            check_number(bucket.most, least=1)
            check_number(bucket.interval, least=1)
            check_number(bucket.most * bucket.interval, HIGHEST >> 2)  # so that a time can be added to it


def take(
    buckets: Sequence[Bucket], full_at: Mapping[str, int], now: int
) -> tuple[dict[str, int], Shortage | None]:
    """Takes a token from each bucket, or, if one of them has none, from none.

    full_at: when each is full, by name. Returns what changes of that, and why nothing was taken.
    """
    taken, short, set_back = dict[str, int](), None, dict[str, int]()
    for number, bucket in enumerate(buckets):
        capacity, before = bucket.most * bucket.interval, max(full_at.get(bucket.name, now) - now, 0)
        if before > capacity:  # the clock was set back; the bucket is empty, and fills again from now on
            before = capacity
            set_back[bucket.name] = now + capacity
        wait = before - (bucket.most - 1) * bucket.interval
        if wait > (short.microseconds if short else 0):
            short = Shortage(number, wait)
        taken[bucket.name] = now + before + bucket.interval
    return (set_back if short else taken), short
