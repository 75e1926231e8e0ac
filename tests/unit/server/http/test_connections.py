"""Which connection goes when clients read too little."""

import pytest

from mcpzip.server.http.connections import Connections
from mcpzip.server.http.limits import Limits

MB = 1 << 20


class Client:
    """A connection as `Connections` sees it."""

    def __init__(self, unread: int) -> None:
        self.unread, self.aborted = unread, False

    def abort(self) -> None:
        self.aborted = True

    def read_more(self) -> bool:
        return False

    shutdown = abort


def limited(unread_by_all: int) -> Connections:
    return Connections(Limits(unread_by_all=unread_by_all), 100)


class Loop:
    now = 100.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    made = Loop()
    monkeypatch.setattr("mcpzip.server.http.connections.asyncio.get_running_loop", lambda: made)
    return made


def silent(connections: Connections, unread: int) -> Client:
    client = Client(unread)
    connections.client_stalls(client)
    return client


def test_who_reads_steadily_outlasts_who_reads_nothing(loop: Loop) -> None:
    """An answer of 40 MB that is read for half a minute weighed more than two fresh ones of 64 MB."""
    connections = limited(128 * MB)
    steady = silent(connections, 40 * MB)
    for _ in range(30):
        loop.now += 1
        steady.unread -= MB
        connections.check_unread()
    newcomers = [silent(connections, 64 * MB) for _ in range(2)]
    assert not steady.aborted
    assert [each.aborted for each in newcomers].count(True) == 1


def test_of_two_who_read_nothing_the_one_goes_whose_bytes_wait_longer(loop: Loop) -> None:
    connections = limited(10 * MB)
    old = silent(connections, 4 * MB)
    loop.now += 60
    new = silent(connections, 7 * MB)
    assert old.aborted
    assert not new.aborted


def test_what_is_ready_to_be_written_counts(loop: Loop) -> None:
    """It waited in a coroutine, and in no sum."""
    connections = limited(10 * MB)
    client = silent(connections, MB)
    client.unread += 10 * MB
    connections.check_unread()
    assert client.aborted


def test_a_connection_that_was_accepted_as_the_server_ends_is_closed() -> None:
    connections, before, after = limited(MB), Client(0), Client(0)
    assert connections.add(before)
    connections.shutdown()
    connections.add(after)
    assert (before.aborted, after.aborted) == (True, True)
