"""Which results are kept, for whom, and for how long."""

import tempfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config.schema import ResultsConfig
from mcpzip.model import limits
from mcpzip.results.limits import limit_by_glob
from mcpzip.results.store import KeptResults


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("mcpzip.results.store.time.monotonic", lambda: now[0])
    return now


def test_a_result_is_the_bytes_that_came_and_only_for_its_client() -> None:
    kept, mine, other = KeptResults(), object(), object()
    handle = kept.keep(mine, "a__b", b"\x00 any bytes")
    assert handle is not None
    found = kept.get(mine, handle)
    assert found is not None
    assert (found.tool, found.result) == ("a__b", b"\x00 any bytes")
    assert kept.get(other, handle) is None
    assert kept.get(None, handle) is None
    assert kept.get(mine, handle[:-1]) is None


def test_no_two_handles_are_alike() -> None:
    kept = KeptResults()
    handles = {kept.keep(None, "a__b", b"x") for _ in range(100)}
    assert len(handles) == 100
    assert len({handle.partition("-")[2] for handle in handles if handle}) == 100


def test_it_is_kept_for_a_time_after_its_last_use(clock: list[float]) -> None:
    kept = KeptResults()
    handle = kept.keep(None, "a__b", b"x")
    assert handle is not None
    for _ in range(3):
        clock[0] += limits.KEPT_SECONDS
        assert kept.get(None, handle) is not None
    clock[0] += limits.KEPT_SECONDS + 1
    assert kept.get(None, handle) is None
    assert len(kept) == 0


def test_what_was_used_longest_ago_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEPT", 10)
    kept, mine, other = KeptResults(), object(), object()
    theirs = kept.keep(other, "t", b"12345")
    first, second = kept.keep(mine, "t", b"12345"), kept.keep(mine, "t", b"12345")
    assert first
    assert second
    assert theirs
    assert kept.get(mine, first)
    third = kept.keep(mine, "t", b"1234")
    assert third
    assert [bool(kept.get(mine, each)) for each in (first, second, third)] == [True, False, True]
    assert kept.get(other, theirs)
    assert kept.keep(mine, "t", b"12345678901") is None
    monkeypatch.setattr(limits, "KEPT_OF_ALL", 9)
    assert kept.keep(mine, "t", b"1")
    assert kept.get(other, theirs) is not None
    assert len(kept) == 2  # and the last one


def test_a_client_that_leaves_takes_its_results_along() -> None:
    kept, mine, other = KeptResults(), object(), object()
    handle, theirs = kept.keep(mine, "t", b"x"), kept.keep(other, "t", b"x")
    assert handle
    assert theirs
    kept.remove_owner(mine)
    assert kept.get(mine, handle) is None
    assert kept.get(other, theirs)


def test_a_large_one_is_on_the_disk_without_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(limits, "KEPT_IN_MEMORY", 10)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = KeptResults()
    handle = kept.keep(None, "t", b"x" * 11)
    assert handle
    entry = kept._entries[handle]
    assert entry._file is not None
    assert entry._result == b""
    for _ in range(2):
        found = kept.get(None, handle)
        assert found
        assert found.result == b"x" * 11
    kept.close()
    assert entry._file.closed
    assert list(tmp_path.iterdir()) == []


def test_without_a_disk_it_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(limits, "KEPT_IN_MEMORY", 10)
    monkeypatch.setattr("mcpzip.results.store.tempfile.TemporaryFile", full)
    kept = KeptResults()
    handle = kept.keep(None, "t", b"x" * 11)
    assert handle
    found = kept.get(None, handle)
    assert found
    assert found.result == b"x" * 11


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 6)), max_size=40))
def test_the_bytes_of_a_client_stay_bounded(steps: list[tuple[bool, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "KEPT", 12)
        patch.setattr(limits, "KEPT_OF_ALL", 20)
        patch.setattr(limits, "KEPT_NUMBER", 4)
        kept, clients = KeptResults(), (object(), object())
        for which, size in steps:
            assert kept.keep(clients[which], "t", b"x" * size)
            for client in clients:
                own = [entry for entry in kept._entries.values() if entry.owner is client]
                assert sum(entry.size for entry in own) <= 12
                assert len(own) <= 4
            assert sum(entry.size for entry in kept._entries.values()) <= 20


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("github__list", 2_000),
        ("github__get_file", None),
        ("files__read", 700),
        ("other__read", 5_000),
    ],
)
def test_the_most_specific_glob_decides(name: str, tokens: int | None) -> None:
    globs = (("github__*", 2_000), ("github__get_*", None), ("files__*", 600), ("files__?*", 700))
    assert limit_by_glob(ResultsConfig(5_000, globs))(name) == tokens
