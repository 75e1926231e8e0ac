"""Processes that share one sign-in, of which the refresh token is good for one refresh: in a real store.

The authorization server is as strict as RFC 9700 lets one be: a refresh token that is shown twice ends all.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import refreshing_process
from helpers.driver import until
from helpers.grants import Caller, grant_of, server_at
from helpers.grants import auth as auth
from helpers.grants import shop as shop
from helpers.refreshing_process import TIMES
from helpers.store_servers import SERVERS, PostgresServer, StoreServer, running
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.oauth.controls import AuthControls

from mcpzip.auth.grant import Grant
from mcpzip.auth.shared_store import SharedStore, Times
from mcpzip.auth.sign_ins import SignIns
from mcpzip.config.reading import load
from mcpzip.model.errors import StoreError
from mcpzip.store.opening import open_store
from mcpzip.store.store import Store
from mcpzip.store.thread import StoreThread
from mcpzip.system.sealing import KeyRing

TESTS = Path(refreshing_process.__file__).parents[1]
PROCESSES, ROUNDS, CALLS = 5, 6, 3  # an hour
ROUNDS_OF_FAULTS = {"killed": 2, "paused": 1}
KEY = "k" * 43 + "="


@pytest.fixture(scope="module", params=[*SERVERS])
def server(request: pytest.FixtureRequest) -> Iterator[StoreServer]:
    with running(SERVERS[request.param]()) as server:
        yield server


@pytest.fixture
def config(server: StoreServer, shop: FakeServer, tmp_path: Path) -> Path:
    """A config with ``shop``, whose store has a namespace of its own."""
    path = tmp_path / "config.json"
    store = {"url": server.url, "keys": [KEY], "namespace": f"test-{time.time_ns()}"}
    auth = {"mcp_remote": False}
    path.write_text(json.dumps({"mcpServers": {"shop": {"url": shop.url, "auth": auth}}, "store": store}))
    return path


class Replica:
    """A process that calls the server of ``config``. dies: see `refreshing_process`."""

    def __init__(self, config: Path, dies: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "helpers.refreshing_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
        self.tell({"config": str(config), "dies": dies})

    def tell(self, line: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout
        found: dict[str, Any] = json.loads(self.process.stdout.readline() or "{}")
        return found

    def call(self, now: float, calls: int = CALLS) -> None:
        self.tell({"now": now, "calls": calls})

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def start(config: Path) -> Iterator[Callable[..., Replica]]:
    """Starts one more process, and waits until it is ready."""
    begun: list[Replica] = []

    def another(dies: str = "") -> Replica:
        begun.append(Replica(config, dies))
        assert begun[-1].answer() == {}
        return begun[-1]

    yield another
    for each in begun:
        each.end()


@pytest.fixture
def signed_in(config: Path, shop: FakeServer, auth: AuthControls) -> None:
    """Somebody has signed in."""
    store = SignIns(load(str(config), os.environ), pytest.fail).store
    store.save(grant_of(auth, shop.url))
    store.close()


def refusals(auth: AuthControls) -> list[str]:
    """What became of the sign-in, if it is not one family of tokens of which the last is good."""
    ended = [token.ended for token in auth.tokens("refresh")]
    return [] if ended == ["rotated"] * (len(ended) - 1) + [""] else ended


ALL_FINE = {"statuses": [200] * CALLS, "failure": None, "needs_login": False, "warnings": []}


@pytest.mark.usefixtures("signed_in")
def test_five_processes_refresh_one_rotating_token(start: Callable[..., Replica], auth: AuthControls) -> None:
    replicas = [start() for _ in range(PROCESSES)]
    for round in range(ROUNDS):
        for replica in replicas:
            replica.call(auth.now)
        assert [replica.answer() for replica in replicas] == [ALL_FINE] * PROCESSES
        assert len(auth.refreshes()) == round
        auth.advance(601)
    assert refusals(auth) == []


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize("where", ["locked", "begun", "written"])
def test_a_process_killed_inside_a_refresh_loses_no_sign_in(
    start: Callable[..., Replica], auth: AuthControls, where: str
) -> None:
    first, others = start(where), [start() for _ in range(2)]
    auth.advance(601)
    first.call(auth.now)
    assert first.answer() == {}  # it is dead
    assert first.process.wait() == -signal.SIGKILL
    for replica in others:
        replica.call(auth.now)
    assert [replica.answer() for replica in others] == [ALL_FINE] * 2
    assert len(auth.refreshes()) == 1
    assert refusals(auth) == []


@pytest.mark.usefixtures("signed_in")
def test_a_process_killed_before_it_was_answered_loses_no_sign_in(
    start: Callable[..., Replica], auth: AuthControls
) -> None:
    first, other = start(), start()
    auth.advance(601)
    auth.configure(faults=[{"kind": "hang", "times": 1}])
    first.call(auth.now)
    until(lambda: len(auth.refreshes()) == 1)
    first.process.kill()
    other.call(auth.now)
    assert other.answer() == ALL_FINE
    assert refusals(auth) == []


@pytest.mark.usefixtures("signed_in")
def test_only_an_answer_that_nobody_wrote_down_ends_a_sign_in(
    start: Callable[..., Replica], auth: AuthControls
) -> None:
    """With a server this strict nobody can know the tokens then. People are told, and sign in again."""
    first, other = start("answered"), start()
    auth.advance(601)
    first.call(auth.now)
    assert first.answer() == {}
    other.call(auth.now)
    told = other.answer()
    assert told["statuses"] == [401] * CALLS
    assert told["needs_login"]
    assert "the sign-in has ended" in told["failure"]


# ---- the store itself fails


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize("how", ["killed", "paused"])
def test_a_store_that_fails_again_and_again_loses_no_sign_in(
    start: Callable[..., Replica], server: StoreServer, auth: AuthControls, how: str
) -> None:
    replicas, moments = [start() for _ in range(3)], random.Random(how)
    for round in range(ROUNDS_OF_FAULTS[how]):
        auth.advance(601)
        for replica in replicas:
            replica.call(auth.now)
        time.sleep(moments.uniform(0, 0.05))
        if how == "killed":
            server.kill()
            server.start()
        else:
            server.signal_all(signal.SIGSTOP)
            time.sleep(1.5 * TIMES.lease)
            server.signal_all(signal.SIGCONT)
        said = [replica.answer() for replica in replicas]
        end = time.monotonic() + 30
        while not all(each["statuses"] == [200] * CALLS for each in said):
            assert time.monotonic() < end, said
            assert not any(each["needs_login"] for each in said), said
            for replica in replicas:
                replica.call(auth.now)
            said = [replica.answer() for replica in replicas]
        assert refusals(auth) == []
        assert len(auth.refreshes()) >= round + 1


def opened(config: Path, warnings: list[str], times: Times = TIMES) -> SharedStore:
    """The store of ``config`` as another process has it, with times for tests."""
    told = load(str(config), os.environ).store
    assert told
    thread = StoreThread(lambda: open_store(told.url, told.namespace, 2.0))
    return SharedStore(thread, lambda: KeyRing([b"k" * 32]), told.namespace, warnings.append, times)


@pytest.fixture
def warnings() -> list[str]:
    """Of the process in this test."""
    return []


@pytest.fixture
def store(config: Path, warnings: list[str]) -> Iterator[SharedStore]:
    store = opened(config, warnings)
    yield store
    store.close()


@pytest.fixture
def other(config: Path) -> Iterator[SharedStore]:
    """The same store as another process has it."""
    other = opened(config, [])
    yield other
    other.close()


def calling(store: SharedStore, shop: FakeServer, auth: AuthControls) -> Caller:
    return Caller(store, server_at(shop.url, mcp_remote=False), lambda: auth.now)


async def test_what_was_granted_while_the_store_was_away_is_written_when_it_is_back(
    store: SharedStore,
    other: SharedStore,
    server: StoreServer,
    shop: FakeServer,
    auth: AuthControls,
    warnings: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store.save(grant_of(auth, shop.url))
    auth.advance(601)
    save = store.save

    def late(grant: Grant) -> Grant:
        server.kill()
        return save(grant)

    monkeypatch.setattr(store, "save", late)
    async with calling(store, shop, auth) as one, calling(other, shop, auth) as two:
        try:
            assert await one.status() == 200
            assert await one.status() == 200  # without the store
            with pytest.raises(StoreError):
                await two.status()
        finally:
            await asyncio.to_thread(server.start)
        # It waits for what the first one brings, however long its lease is over.
        assert await two.status() == 200
        assert two.oauth.grant == one.oauth.grant
    assert len(auth.refreshes()) == 1
    assert refusals(auth) == []
    [warning] = warnings
    assert "is not in the store yet" in warning


@pytest.mark.parametrize("what", ["read-only", "away"])
async def test_no_token_is_shown_that_could_not_be_kept(
    store: SharedStore,
    server: StoreServer,
    shop: FakeServer,
    auth: AuthControls,
    what: str,
) -> None:
    store.save(grant_of(auth, shop.url))
    async with calling(store, shop, auth) as client:
        assert await client.status() == 200
        await (asyncio.to_thread(server.kill) if what == "away" else asyncio.to_thread(read_only, server))
        try:
            assert await client.status() == 200  # what is good needs no store
            auth.advance(601)
            assert await client.status() == 401
            assert client.oauth.failure
            assert not client.oauth.failure.needs_login
            assert what in client.oauth.failure.reason.replace("can't be used", "away")
        finally:
            await asyncio.to_thread(server.start if what == "away" else lambda: server.read_only(on=False))
        assert auth.refreshes() == []
        async with asyncio.timeout(20):
            while await client.status() != 200:
                pass
    assert len(auth.refreshes()) == 1
    assert refusals(auth) == []


async def test_requests_ask_the_store_nothing(
    config: Path, shop: FakeServer, auth: AuthControls, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    within = Store._within

    async def counted(self: Store, work: Coroutine[Any, Any, Any]) -> object:
        asked.append(work.__qualname__)
        return await within(self, work)

    monkeypatch.setattr(Store, "_within", counted)
    store = opened(config, [], Times(poll=60.0))
    try:
        store.save(grant_of(auth, shop.url))
        async with calling(store, shop, auth) as client:
            assert await client.status() == 200
            # It looks once at first, and once when it listens: then only after a message, or a minute.
            await asyncio.to_thread(until, lambda: sum("versions" in each for each in asked) >= 2)
            assert await client.status() == 200  # which reads what that brought
            before = [*asked]
            assert [await client.status() for _ in range(50)] == [200] * 50
            assert asked == before
    finally:
        store.close()


def read_only(server: StoreServer) -> None:
    """Has ``server`` take no writes, and waits until it doesn't."""
    server.read_only(on=True)
    if isinstance(server, PostgresServer):
        until(lambda: server.setting("default_transaction_read_only") == "on")
