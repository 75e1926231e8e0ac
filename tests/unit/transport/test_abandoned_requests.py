"""Requests that nobody waits for any more: whose they were, and for how long that counts."""

from mcpzip.model.limits import ABANDONED
from mcpzip.transport.abandoned_requests import AbandonedRequests


def test_an_owner_counts_until_the_time_is_over() -> None:
    requests, one = AbandonedRequests(), object()
    assert requests.owners(0.0) == []
    requests.add(one, 5.0)
    assert requests.owners(5.0) == [one]
    assert requests.owners(5.0 + ABANDONED) == []


def test_an_owner_counts_from_its_latest_request() -> None:
    requests, one = AbandonedRequests(), object()
    requests.add(one, 0.0)
    requests.add(one, 10.0)
    assert requests.owners(ABANDONED) == [one]


def test_the_latest_two_owners_are_kept() -> None:
    requests, owners = AbandonedRequests(), [object() for _ in range(4)]
    for now, owner in enumerate(owners):
        requests.add(owner, float(now))
    assert requests.owners(4.0) == owners[-2:]
