"""Answers of the LLM tier that machines share through the store."""

import asyncio
from pathlib import Path

import pytest
from helpers.memory_store import KEY, Flaky

from mcpzip.config.schema import Config, SearchConfig, Secret, StoreConfig
from mcpzip.model.entry import Entry
from mcpzip.search.remote import RemoteTiers, shared_answers
from mcpzip.search.remote.gemini import Gemini
from mcpzip.search.remote.shared_answers import LOG
from mcpzip.search.tiers import LLM, TierAnswer
from mcpzip.store.memory_backend import Memory
from mcpzip.store.records import Entry as LogEntry
from mcpzip.store.store import Store
from mcpzip.store.thread import StoreThread

SEND, READ = (Entry.parse("mail", b'{"name":"%b"}' % name) for name in (b"send", b"read"))


class Counting(Flaky):
    """Also for logs."""

    async def entries(self, log: str, after: int, most: int) -> list[LogEntry]:
        self._look()
        return await super().entries(log, after, most)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Counting:
    backend = Counting(Memory())
    opened = lambda config: StoreThread(lambda: Store(backend, 2.0))  # noqa: E731
    monkeypatch.setattr(shared_answers, "store_thread", opened)
    return backend


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the model was asked."""
    asked: list[str] = []

    async def rank(self: Gemini, query: str, shortlist: list[Entry], limit: int) -> TierAnswer:
        asked.append(query)
        return TierAnswer(LLM, "gemini", {"mail__send": 1.0})

    monkeypatch.setattr(Gemini, "rank", rank)
    return asked


def ask(folder: Path, query: str, *shortlist: Entry, version: str = "v1", key: str = KEY) -> list[str]:
    """What a machine is answered that has ``folder``, and begins and ends with it."""

    folder.mkdir(exist_ok=True)

    async def run() -> list[str]:
        store = StoreConfig("redis://x", (Secret(key),), "team")
        config = Config(
            path=str(folder / "config.json"),
            servers={},
            gemini_api_key=Secret("g"),
            search=SearchConfig(model="m"),
            store=store,
        )
        tiers = RemoteTiers(config)
        tiers.index(shortlist, version)
        answers, _ = await tiers.ask(query, shortlist, 5)
        await tiers.aclose()
        return [name for answer in answers for name in answer.scores]

    return asyncio.run(run())


def test_the_model_is_asked_once_for_all_machines(
    tmp_path: Path, backend: Counting, asked: list[str]
) -> None:
    for machine in ("a", "b", "c"):
        assert ask(tmp_path / machine, "send it", SEND, READ) == ["mail__send"]
    assert asked == ["send it"]
    assert not any(b"send" in entry.data for entry in backend.memory.logs[LOG])


def test_who_sees_other_tools_has_an_answer_of_their_own(
    tmp_path: Path, backend: Counting, asked: list[str]
) -> None:
    ask(tmp_path / "a", "send it", SEND, READ)
    ask(tmp_path / "b", "send it", SEND)
    ask(tmp_path / "c", "send it", SEND, READ, version="v2")
    ask(tmp_path / "d", "send it", SEND, READ, key=KEY.replace("k", "l"))
    assert asked == ["send it"] * 4


def test_a_store_that_fails_costs_an_answer_of_the_model(
    tmp_path: Path, backend: Counting, asked: list[str]
) -> None:
    ask(tmp_path / "a", "send it", SEND)
    backend.away = True
    assert ask(tmp_path / "b", "send it", SEND) == ["mail__send"]
    assert asked == ["send it"] * 2


def test_a_store_that_hangs_holds_up_a_search_for_a_moment_only(
    tmp_path: Path, backend: Counting, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def entries(log: str, after: int, most: int) -> list[LogEntry]:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(backend, "entries", entries)
    monkeypatch.setattr(shared_answers, "STORE_COUNTING", 0.01)
    assert ask(tmp_path / "a", "send it", SEND) == ["mail__send"]
