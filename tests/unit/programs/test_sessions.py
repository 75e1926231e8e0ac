"""Variables and paused programs belong to one client, and are forgotten in time."""

import time

import pytest

from mcpzip.model import limits
from mcpzip.programs.sessions import Sessions

NONE: frozenset[str] = frozenset()


@pytest.fixture
def sessions() -> Sessions[str]:
    return Sessions()


def test_variables_are_of_their_owner(sessions: Sessions[str]) -> None:
    sessions.store("a", b"1", frozenset("x"), NONE)
    assert sessions.variables("a").state == b"1"
    assert sessions.variables("b").state == b""
    sessions.remove_owner("a")
    assert sessions.variables("a").state == b""


def test_nobody_in_particular_has_none(sessions: Sessions[str]) -> None:
    sessions.store(None, b"1", frozenset("x"), NONE)
    assert sessions.variables(None).state == b""
    assert len(sessions) == 0


def test_a_paused_program_goes_on_once_and_for_its_owner(sessions: Sessions[str]) -> None:
    name = sessions.pause("a", "program", 1)
    assert sessions.paused("b", name) is None
    assert sessions.take("b", name) is None
    assert sessions.paused("a", name) == "program"
    assert sessions.take("a", name) == "program"
    assert sessions.take("a", name) is None


def test_ids_cannot_be_guessed(sessions: Sessions[str]) -> None:
    names = {sessions.pause(None, "x", 1).partition("-")[2] for _ in range(50)}
    assert len(names) == 50
    assert {len(name) for name in names} == {16}


def test_a_client_has_so_many_paused_programs(sessions: Sessions[str]) -> None:
    other = sessions.pause("b", "other", 1)
    names = [sessions.pause("a", "x", 1) for _ in range(limits.PROGRAMS_OF_CLIENT + 1)]
    assert sessions.paused("a", names[0]) is None
    assert sessions.paused("a", names[1]) == "x"
    assert sessions.paused("b", other) == "other"


def test_all_clients_have_so_many(sessions: Sessions[str]) -> None:
    names = [sessions.pause(None, "x", 1) for _ in range(limits.PROGRAMS_PAUSED + 1)]
    assert [sessions.paused(None, name) for name in names[:2]] == [None, "x"]


def test_what_is_not_used_is_forgotten(sessions: Sessions[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sessions.store("a", b"1", NONE, NONE)
    name = sessions.pause("a", "x", 1)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + limits.KEPT_SECONDS + 1)
    assert sessions.paused("a", name) is None
    assert sessions.variables("a").state == b""


def test_the_variables_of_all_have_a_limit(sessions: Sessions[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PROGRAM_STATES", 10)
    for owner in "abc":
        sessions.store(owner, b"12345", NONE, NONE)
    assert [sessions.variables(owner).state for owner in "abc"] == [b"", b"12345", b"12345"]


def test_paused_programs_have_a_size(sessions: Sessions[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """256 of 64 MiB each would be 16 GiB."""
    monkeypatch.setattr(limits, "PROGRAMS_OF_CLIENT_SIZE", 10)
    monkeypatch.setattr(limits, "PROGRAMS_PAUSED_SIZE", 20)
    names = {owner: [sessions.pause(owner, "x", 5) for _ in range(3)] for owner in ("a", "b")}
    assert [sessions.paused("a", name) for name in names["a"]] == [None, "x", "x"]
    sessions.pause(None, "x", 9)
    assert [sessions.paused("a", name) for name in names["a"]] == [None, None, None]
    assert [sessions.paused("b", name) for name in names["b"]] == [None, "x", "x"]
