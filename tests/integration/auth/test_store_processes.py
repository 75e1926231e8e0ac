"""Several processes at one store: whatever they do, each sign-in stays whole and with its own server."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from helpers import store_process
from helpers.store_process import URLS, minted, wrong
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mcpzip.auth.codec import decode
from mcpzip.auth.store import Store, open_store
from mcpzip.config.schema import AuthStore, Config
from mcpzip.system.files import remove_drafts

TESTS = Path(store_process.__file__).parents[1]
BACKEND = "helpers.folder_keyring.FolderKeyring"
PROCESSES = 3
STORES: tuple[AuthStore, ...] = ("file", "keyring")

Step = tuple[str, int]

numbers = st.integers(0, len(URLS) - 1)
few_numbers = st.sampled_from((0, 1))  # where most of them meet
kinds = st.sampled_from(
    ("login", "refresh", "refresh", "refresh", "load", "all", "logout", "login unlocked", "logout unlocked")
)
steps = st.tuples(kinds, few_numbers | numbers)


class User:
    """A process that uses the store."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "helpers.store_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS), "PYTHON_KEYRING_BACKEND": BACKEND},
        )

    def begin(self, place: Path, store: AuthStore, program: list[Step]) -> None:
        assert self.process.stdin
        said = {"config": str(place / "config.json"), "store": store, "steps": program}
        self.process.stdin.write(json.dumps(said) + "\n")
        self.process.stdin.flush()

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def play(self, place: Path, store: AuthStore, program: list[Step]) -> dict[str, list[str]]:
        self.begin(place, store, program)
        answer: dict[str, list[str]] = json.loads(self.line())
        return answer

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def users() -> Iterator[list[User]]:
    started = [User() for _ in range(PROCESSES)]
    yield started
    for user in started:
        user.end()


@pytest.fixture(autouse=True)
def one_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keyring of the processes, here too."""
    import keyring.core

    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", BACKEND)
    monkeypatch.setattr(keyring.core, "_keyring_backend", None)
    monkeypatch.setenv("KEYRING_FOLDER", "")


def opened(place: Path, store: AuthStore, amiss: list[str]) -> Store:
    config = str(place / "config.json")
    os.environ["KEYRING_FOLDER"] = config + ".keyring"
    return open_store(Config(config, {}, auth_store=store), amiss.append)


def in_the_keyring(place: Path) -> set[str]:
    folder = place / "config.json.keyring"
    return {path.name for path in folder.glob("mcpzip*")} if folder.is_dir() else set()


def check(place: Path, store: AuthStore) -> None:
    """Every file is valid, and holds what was made for its server; nothing else is left."""
    amiss: list[str] = []
    for grant in opened(place, store, amiss).all():
        amiss += wrong(grant, URLS.index(grant.url))
    assert amiss == []
    parts = set()
    for path in (place / "auth").glob("*"):
        if path.suffix == ".json":
            kept = decode(path.read_bytes(), path.stem)
            assert (kept.keyring is None) == (store == "file")
            if kept.keyring is not None:
                assert not kept.grant.secrets
                slot, count = kept.keyring.slot, kept.keyring.parts
                parts |= {f"mcpzip@mcpzip-{path.stem}-{slot}{each}" for each in range(count)}
        elif path.name != ".gitignore":
            assert path.suffix == ".lock"
            assert path.read_bytes() == b""
    assert in_the_keyring(place) == parts


@pytest.mark.parametrize("store", STORES)
def test_any_interleaving_leaves_whole_files_and_each_token_with_its_own_server(
    users: list[User], store: AuthStore
) -> None:
    # What went wrong between processes seldom does so again: there is nothing to shrink it with.
    @settings(max_examples=settings().max_examples // 6, phases=[Phase.generate])
    @given(st.lists(st.lists(steps, min_size=5, max_size=30), min_size=PROCESSES, max_size=PROCESSES))
    def holds(programs: list[list[Step]]) -> None:
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(PROCESSES) as pool:
            place = Path(folder)
            answers = list(pool.map(lambda user, program: user.play(place, store, program), users, programs))
            assert [answer["amiss"] for answer in answers] == [[]] * PROCESSES
            exchanged = Counter(token for answer in answers for token in answer["exchanged"])
            assert [token for token, times in exchanged.items() if times > 1] == []
            check(place, store)

    holds()


@pytest.mark.parametrize("store", STORES)
def test_all_refresh_at_once_and_no_refresh_token_is_used_twice(
    users: list[User], store: AuthStore, tmp_path: Path
) -> None:
    opened(tmp_path, store, []).save(minted(0))
    program: list[Step] = [("refresh", 0), ("load", 0)] * 20
    with ThreadPoolExecutor(PROCESSES) as pool:
        answers = list(pool.map(lambda user: user.play(tmp_path, store, program), users))
    assert [answer["amiss"] for answer in answers] == [[]] * PROCESSES
    exchanged = [token for answer in answers for token in answer["exchanged"]]
    assert len(exchanged) == len(set(exchanged)) == 20 * PROCESSES
    check(tmp_path, store)


async def test_a_lock_ends_with_the_process_that_holds_it(users: list[User], tmp_path: Path) -> None:
    store = opened(tmp_path, "file", [])
    store.save(minted(0))
    holder = User()
    try:
        holder.begin(tmp_path, "file", [("hold", 0)])
        assert holder.line() == "held"
        with pytest.raises(TimeoutError, match="locked by another process"):
            async with store.locked(URLS[0], 0.05):
                pass
        async with store.locked(URLS[1], 0):
            pass  # another server's lock is another lock
    finally:
        holder.end()
    answer = await asyncio.to_thread(users[0].play, tmp_path, "file", [("refresh", 0)])
    assert (len(answer["exchanged"]), answer["amiss"]) == (1, [])
    check(tmp_path, "file")


@pytest.mark.parametrize("store", STORES)
def test_a_writer_killed_at_any_moment_leaves_a_whole_sign_in(store: AuthStore, tmp_path: Path) -> None:
    number = 4  # its tokens take several passwords
    for saves in (1, 2):
        writer = User()
        writer.begin(tmp_path, store, [("login on and on", number)])
        for _ in range(saves):
            assert writer.line() == "saved"
        writer.end()
        amiss: list[str] = []
        found = opened(tmp_path, store, amiss).load(URLS[number])
        assert found is not None
        assert wrong(found, number) + amiss == []
    after = opened(tmp_path, store, amiss)
    after.save(minted(number))
    remove_drafts(str(tmp_path / "auth"), age=-10)
    check(tmp_path, store)
    assert after.remove(URLS[number])
    assert in_the_keyring(tmp_path) == set()
