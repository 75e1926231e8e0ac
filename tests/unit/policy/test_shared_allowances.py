"""What a person has allowed, in a store that processes share."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers.memory_store import Flaky
from msgspec.structs import replace

from mcpzip.policy.allowances import Allowance, AllowedError
from mcpzip.policy.shared_allowances import NAME, TABLE, SharedAllowances
from mcpzip.store.memory_backend import Memory
from mcpzip.store.seen import SeenCounters
from mcpzip.store.store import Store
from mcpzip.store.thread import StoreThread
from mcpzip.system.sealing import KeyRing

NOW = 1_795_489_200.0
NEW, OLD = b"n" * 32, b"o" * 32
Make = Callable[..., SharedAllowances]


def one(name: str = "git__merge", *, once: bool = False, arguments: str = "") -> Allowance:
    return Allowance(name, NOW + 3_600, NOW, "d", arguments, once)


@pytest.fixture
def backend() -> Flaky:
    return Flaky(Memory())


@pytest.fixture
def make(backend: Flaky, tmp_path: Path) -> Iterator[Make]:
    """The list as one more process on a machine has it."""
    made: list[SharedAllowances] = []

    def another(machine: str = "a", *keys: bytes, namespace: str = "team") -> SharedAllowances:
        seen = SeenCounters(str(tmp_path / machine / "cache" / "seen.json"), "memory", namespace)
        thread, ring = StoreThread(lambda: Store(backend, deadline=2.0)), KeyRing(keys or (NEW,))
        made.append(SharedAllowances(thread, lambda: ring, namespace, "memory", seen, "mcpzip allow --clear"))
        return made[-1]

    yield another
    for each in made:
        each.close()


def test_what_one_machine_allows_counts_on_all_at_once(make: Make) -> None:
    here, there = make("a"), make("b")
    assert there.all(NOW) == []
    here.allow(one())
    assert there.use("git__merge", "d", "x", NOW + 3_599)
    assert not there.use("git__merge", "d", "x", NOW + 3_600)
    assert not there.use("git__merge", "another definition", "x", NOW)
    assert there.revoke("git__merge", NOW) == 1
    assert here.revoke("git__merge", NOW) == 0
    assert not here.use("git__merge", "d", "x", NOW)


def test_nothing_of_it_is_readable_in_the_store(make: Make, backend: Flaky) -> None:
    make().allow(one())
    assert b"git" not in backend.values(TABLE)[NAME].data


def test_what_is_allowed_once_is_used_by_one_process(make: Make) -> None:
    processes = [make(str(number)) for number in range(6)]
    processes[0].allow(one(once=True, arguments="x"))
    go = threading.Barrier(len(processes))

    def use(process: SharedAllowances) -> bool:
        process.all(NOW)
        go.wait()
        return process.use("git__merge", "d", "x", NOW)

    with ThreadPoolExecutor(len(processes)) as pool:
        assert sorted(pool.map(use, processes)) == [False] * 5 + [True]
    assert processes[0].all(NOW) == []


def test_commands_at_the_same_time_lose_nothing(make: Make) -> None:
    names = [f"git__{number}" for number in range(5)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: make(name).allow(one(name)), names))
    assert sorted(each.name for each in make().all(NOW)) == names


@pytest.mark.parametrize("how", ["away", "is_full"])
def test_a_store_that_cannot_be_used_allows_nothing_and_says_so(make: Make, backend: Flaky, how: str) -> None:
    allowances = make()
    allowances.allow(one(once=True))
    setattr(backend, how, True)
    for work in (
        lambda: allowances.use("git__merge", "d", "x", NOW),
        lambda: allowances.allow(one()),
        lambda: allowances.revoke("git__merge", NOW),
        allowances.clear,
    ):
        with pytest.raises(AllowedError, match=r"memory has the list of allowed calls, but it"):
            work()
    setattr(backend, how, False)
    assert allowances.use("git__merge", "d", "x", NOW)


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("earlier", "is an earlier one than was seen here"),
        ("another namespace's", "was changed, or is for something else"),
        ("with another key", "sealed with a key that isn't in the ring"),
        ("garbage", "because it is none"),
        ("another with the same counter", "is another one than was seen here"),
    ],
)
def test_what_somebody_put_there_allows_nothing(
    make: Make, backend: Flaky, monkeypatch: pytest.MonkeyPatch, what: str, why: str
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000)
    allowances, data = make(), b"garbage"
    allowances.allow(one(once=True))
    if what == "earlier":
        data = backend.values(TABLE)[NAME].data
        assert allowances.use("git__merge", "d", "x", NOW)
    elif what != "garbage":
        backend.put(TABLE, NAME, None)
        keys = [OLD] if what == "with another key" else []
        make("b", *keys, namespace="other" if what.startswith("another n") else "team").allow(one())
        data = backend.values(TABLE)[NAME].data
    backend.put(TABLE, NAME, data)
    for each in (allowances, make("a")):
        for work in (
            lambda each=each: each.use("git__merge", "d", "x", NOW),
            lambda each=each: each.allow(one()),
            lambda each=each: each.revoke("git__merge", NOW),
        ):
            with pytest.raises(AllowedError) as caught:
                work()
            assert why in str(caught.value)
            assert "Nothing in it counts. To begin a new one: mcpzip allow --clear" in str(caught.value)
    assert backend.values(TABLE)[NAME].data == data, "it is left as it is"
    make("a").clear()
    assert allowances.all(NOW) == make("b").all(NOW) == []
    make("b").allow(replace(one(), at=NOW + 1))
    assert allowances.use("git__merge", "d", "x", NOW + 2)


def test_a_list_that_was_deleted_allows_nothing(make: Make, backend: Flaky) -> None:
    allowances = make()
    allowances.allow(one())
    backend.put(TABLE, NAME, None)
    assert not allowances.use("git__merge", "d", "x", NOW)
    make("b").allow(one())
    assert allowances.use("git__merge", "d", "x", NOW)
