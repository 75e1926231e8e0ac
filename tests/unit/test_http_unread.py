"""Which connection goes when clients read too little."""

from typing import Any, cast

import pytest

from mcpzip.server.http.connection import Connection, Shared

MB = 1 << 20


class Transport:
    def __init__(self) -> None:
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True


class Client:
    """A connection as `Shared` sees it."""

    def __init__(self, unread: int) -> None:
        self.unread, self.transport = unread, Transport()


class Loop:
    now = 100.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    made = Loop()
    monkeypatch.setattr("mcpzip.server.http.connection.asyncio.get_running_loop", lambda: made)
    return made


def silent(shared: Shared, unread: int) -> Client:
    client = Client(unread)
    shared.falls_silent(cast(Connection, cast(Any, client)))
    return client


def test_who_reads_steadily_outlasts_who_reads_nothing(loop: Loop) -> None:
    """An answer of 40 MB that is read for half a minute weighed more than two fresh ones of 64 MB."""
    shared = Shared(128 * MB)
    steady = silent(shared, 40 * MB)
    for _ in range(30):
        loop.now += 1
        steady.unread -= MB
        shared.more_waits()
    newcomers = [silent(shared, 64 * MB) for _ in range(2)]
    assert not steady.transport.aborted
    assert [each.transport.aborted for each in newcomers].count(True) == 1


def test_of_two_who_read_nothing_the_one_goes_whose_bytes_wait_longer(loop: Loop) -> None:
    shared = Shared(10 * MB)
    old = silent(shared, 4 * MB)
    loop.now += 60
    new = silent(shared, 7 * MB)
    assert old.transport.aborted
    assert not new.transport.aborted


def test_what_is_ready_to_be_written_counts(loop: Loop) -> None:
    """It waited in a coroutine, and in no sum."""
    shared = Shared(10 * MB)
    client = silent(shared, MB)
    client.unread += 10 * MB
    shared.more_waits()
    assert client.transport.aborted
