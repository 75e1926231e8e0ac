"""Counts of used tools that machines tell each other through the store."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.memory_store import KEY, Flaky
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config.schema import Secret, StoreConfig
from mcpzip.proxy import shared_usage, usage_store
from mcpzip.proxy.shared_usage import LOG, SharedUsage, _entries
from mcpzip.proxy.tool_usage import UseCount, counts, forget, load, save
from mcpzip.proxy.usage_store import UsageStore
from mcpzip.store.memory_backend import Memory
from mcpzip.store.records import Entry
from mcpzip.store.sealed_log import LARGEST_ENTRY
from mcpzip.store.store import Store
from mcpzip.store.thread import StoreThread

NOW = 1_763_000_000.0
Make = Callable[..., UsageStore]


class Unreliable(Flaky):
    """Also for logs."""

    async def append(self, log: str, data: bytes, keep: int) -> int:
        self._look()
        return await super().append(log, data, keep)

    async def entries(self, log: str, after: int, most: int) -> list[Entry]:
        self._look()
        return await super().entries(log, after, most)


@pytest.fixture
def backend() -> Unreliable:
    return Unreliable(Memory())


@pytest.fixture
def make(tmp_path: Path, backend: Unreliable, monkeypatch: pytest.MonkeyPatch) -> Make:
    """What one process has whose file is called ``name``."""
    monkeypatch.setattr(shared_usage, "store_thread", lambda config: StoreThread(lambda: Store(backend, 2.0)))
    monkeypatch.setattr(usage_store, "SAVE_AFTER", 0.0)

    def made(name: str, clock: float = NOW, key: str = KEY) -> UsageStore:
        shared = SharedUsage(StoreConfig("redis://x", (Secret(key),), "team"))
        return UsageStore(str(tmp_path / f"{name}.json"), pytest.fail, lambda: clock, shared)

    return made


def used(make: Make, name: str, *tools: str, clock: float = NOW) -> dict[str, float]:
    """The counts of a process that used ``tools``, looked, and has ended."""

    async def run() -> dict[str, float]:
        usage = make(name, clock)
        usage.counts()
        for tool in tools:
            usage.record(tool)
        usage.look()
        await usage.close()
        return usage.counts()

    return asyncio.run(run())


def test_what_one_machine_counts_the_others_have(make: Make) -> None:
    assert used(make, "a", "x__one", "x__one") == {"x__one": 2}
    assert used(make, "b", "x__two") == {"x__one": 2, "x__two": 1}
    assert used(make, "a") == {"x__one": 2, "x__two": 1}
    assert used(make, "c") == {"x__one": 2, "x__two": 1}


def test_words_do_not_leave_the_machine(make: Make, tmp_path: Path) -> None:
    (told,) = _entries("a", {"x__one": UseCount(1.0, NOW, {"invoic": 1.0})})
    assert b"x__one" in told
    assert b"invoic" not in told
    path = str(tmp_path / "b.json")
    save(path, {"x__one": UseCount(1.0, NOW, {"invoic": 1.0})}, NOW)
    used(make, "a", "x__one")
    assert used(make, "b", "x__one") == {"x__one": 3}
    assert load(path)[0] == {"x__one": UseCount(3.0, NOW, {"invoic": 1.0})}
    assert used(make, "a") == {"x__one": 2}
    assert load(str(tmp_path / "a.json"))[0] == {"x__one": UseCount(2.0, NOW)}


def test_it_is_taken_up_once_by_all_processes_that_share_a_file(make: Make) -> None:
    used(make, "a", "x__one")
    for _ in range(3):
        assert used(make, "a") == {"x__one": 1}
        assert used(make, "b") == {"x__one": 1}


def test_what_is_forgotten_does_not_come_back(make: Make, tmp_path: Path) -> None:
    used(make, "a", "x__one")
    used(make, "b", "x__two")
    assert forget(str(tmp_path / "b.json"), None, NOW) == ("x__one", "x__two")
    assert used(make, "b") == {}
    used(make, "a", "x__one")
    assert used(make, "b") == {"x__one": 1}


def test_what_can_not_be_told_waits_and_nothing_is_lost_here(make: Make, backend: Unreliable) -> None:
    async def run() -> None:
        usage = make("a")
        backend.away = True
        usage.record("x__one")
        await usage._saving.flush()
        assert usage.counts() == {"x__one": 1}
        backend.away = False
        usage.record("x__one")
        await usage.close()

    asyncio.run(run())
    assert used(make, "b") == {"x__one": 2}


def test_a_store_that_is_away_is_no_error(make: Make, backend: Unreliable, tmp_path: Path) -> None:
    backend.away = True
    assert used(make, "a", "x__one") == {"x__one": 1}
    assert counts(load(str(tmp_path / "a.json"))[0], NOW) == {"x__one": 1}


def test_a_clock_that_is_ahead_makes_nothing_count_longer(make: Make, tmp_path: Path) -> None:
    used(make, "a", "x__one", clock=NOW + 1e6)
    used(make, "b")
    assert load(str(tmp_path / "b.json"))[0]["x__one"].at <= NOW


def test_what_is_no_entry_of_ours_is_left_out(make: Make, backend: Unreliable) -> None:
    used(make, "a", "x__one")
    log = backend.memory.logs[LOG]
    log.append(Entry(backend.memory.next(), b"\xff"))
    log.append(Entry(backend.memory.next(), log[0].data[:-4] + b"AAAA"))
    assert b"x__one" not in b"".join(entry.data for entry in log)
    assert used(make, "b") == {"x__one": 1}


def test_a_machine_with_another_key_hears_nothing(make: Make) -> None:
    used(make, "a", "x__one")
    other = KEY.replace("k", "l")
    assert used(lambda name, clock: make(name, clock, other), "b") == {}


names = st.text(min_size=1, max_size=600)


@given(st.dictionaries(names, st.builds(UseCount, st.floats(0.01, 1e6), st.just(NOW)), max_size=200))
def test_entries_have_room(uses: dict[str, UseCount]) -> None:
    assert all(len(entry) <= LARGEST_ENTRY for entry in _entries("o" * 16, uses))


def test_many_names_are_several_entries() -> None:
    uses = {f"{'n' * 400}{number}": UseCount(1.0, NOW) for number in range(500)}
    found = list(_entries("o", uses))
    assert len(found) > 1
    assert all(len(entry) <= LARGEST_ENTRY for entry in found)
    assert sum(entry.count(b'"calls"') for entry in found) == 500
