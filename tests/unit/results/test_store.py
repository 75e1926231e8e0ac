"""Which results are kept, for whom, and for how long."""

import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config.schema import ResultsConfig
from mcpzip.model import limits
from mcpzip.results.store import KeptResults, StoredResult
from mcpzip.results.threshold import limit_by_glob


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("mcpzip.results.store.time.monotonic", lambda: now[0])
    return now


def keep(kept: KeptResults, owner: object, result: bytes = b"x") -> str:
    """Its handle."""
    found = kept.keep(owner, "a__b", StoredResult(result))
    assert found is not None
    return found.handle


def test_a_result_is_the_bytes_that_came_and_only_for_its_client() -> None:
    kept, mine, other = KeptResults(), object(), object()
    handle = keep(kept, mine, b"\x00 any bytes")
    found = kept.get(mine, handle)
    assert found is not None
    assert (found.tool, found.stored.read()) == ("a__b", b"\x00 any bytes")
    assert kept.get(other, handle) is None
    assert kept.get(None, handle) is None
    assert kept.get(mine, handle[:-1]) is None


def test_no_two_handles_are_alike() -> None:
    kept = KeptResults()
    handles = {keep(kept, None) for _ in range(100)}
    assert len({handle.partition("-")[2] for handle in handles}) == 100


def test_it_is_kept_for_a_time_after_its_last_use(clock: list[float]) -> None:
    kept = KeptResults()
    handle = keep(kept, None)
    for _ in range(3):
        clock[0] += limits.KEPT_SECONDS
        assert kept.get(None, handle) is not None
    clock[0] += limits.KEPT_SECONDS + 1
    kept.remove_old()
    assert len(kept) == 0
    assert kept.get(None, handle) is None


def test_what_was_used_longest_ago_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEPT", 10)
    kept, mine, other = KeptResults(), object(), object()
    theirs = keep(kept, other, b"12345")
    first, second = keep(kept, mine, b"12345"), keep(kept, mine, b"12345")
    assert kept.get(mine, first)
    third = keep(kept, mine, b"1234")
    assert [bool(kept.get(mine, each)) for each in (first, second, third)] == [True, False, True]
    assert kept.get(other, theirs)
    assert kept.keep(mine, "t", StoredResult(b"12345678901")) is None
    monkeypatch.setattr(limits, "KEPT_OF_ALL", 9)
    keep(kept, mine, b"1")
    assert kept.get(other, theirs) is not None
    assert len(kept) == 2  # and the last one


def test_a_client_that_leaves_takes_its_results_along() -> None:
    kept, mine, other = KeptResults(), object(), object()
    handle, theirs = keep(kept, mine), keep(kept, other)
    kept.remove_owner(mine)
    assert kept.get(mine, handle) is None
    assert kept.get(other, theirs)


def test_a_large_one_is_on_the_disk_without_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(limits, "KEPT_IN_MEMORY", 10)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = KeptResults()
    found = kept.get(None, keep(kept, None, b"x" * 11))
    assert found is not None
    file = found.stored._file
    assert file is not None
    assert found.stored._result == b""
    kept.close()
    assert [found.stored.read() for _ in range(2)] == [b"x" * 11] * 2, "it was forgotten while it is read"
    del found
    assert file.closed
    assert list(tmp_path.iterdir()) == []


def test_threads_read_the_same_one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEPT_IN_MEMORY", 10)
    result = random.Random(1).randbytes(1_000_000)
    stored = StoredResult(result)
    with ThreadPoolExecutor(4) as pool:
        assert all(read == result for read in pool.map(lambda _: stored.read(), range(40)))


def test_without_a_disk_it_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(limits, "KEPT_IN_MEMORY", 10)
    monkeypatch.setattr("mcpzip.results.store.tempfile.TemporaryFile", full)
    assert StoredResult(b"x" * 11).read() == b"x" * 11


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 6)), max_size=40))
def test_the_bytes_of_a_client_stay_bounded(steps: list[tuple[bool, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "KEPT", 12)
        patch.setattr(limits, "KEPT_OF_ALL", 20)
        patch.setattr(limits, "KEPT_NUMBER", 4)
        kept, clients = KeptResults(), (object(), object())
        for which, size in steps:
            keep(kept, clients[which], b"x" * size)
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
