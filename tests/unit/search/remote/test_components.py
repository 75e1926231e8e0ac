"""The parts of the remote tiers that need no server: rests, prompts, vectors, caches, word pieces."""

import asyncio
import json
import math
import random
import time
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search.packed_matrix import INT8, PackedMatrix, quantize
from mcpzip.search.remote.llm_cache import MAX_ANSWERS, TTL, LlmCache, key_of
from mcpzip.search.remote.prompt import BEGIN, END, parse_selection, prompt, schema, scores
from mcpzip.search.remote.semantic_tier import (
    LONGEST_TEXT,
    RemoteSemanticTier,
    brief_texts,
    texts_to_embed,
)
from mcpzip.search.remote.service import Service, Unavailable
from mcpzip.search.remote.vector_file import VectorFile
from mcpzip.search.remote.wordpiece import WordPieces
from mcpzip.search.tiers import TierAnswer

# --- a service ----------------------------------------------------------------------------------------------


async def attempts(*outcomes: str | Unavailable, deadline: float = 60) -> tuple[str, int, Service]:
    """What came of asking a service that behaves so, how often it was asked, and the service."""
    left = list(outcomes)

    async def attempt() -> str:
        outcome = left.pop(0)
        if isinstance(outcome, Unavailable):
            raise outcome
        return outcome

    service = Service(clock=lambda: 0.0)
    try:
        said = await service.ask(attempt, deadline)
    except Unavailable as error:
        said = error.reason
    return said, len(outcomes) - len(left), service


@pytest.mark.parametrize(
    ("outcomes", "said", "times"),
    [
        (["yes"], "yes", 1),
        ([Unavailable("busy", transient=True), "yes"], "yes", 2),
        ([Unavailable("busy", transient=True), Unavailable("still", transient=True), "yes"], "still", 2),
        ([Unavailable("busy", transient=True, retry_after=0.0), "yes"], "yes", 2),
        ([Unavailable("busy", transient=True, retry_after=3600), "yes"], "busy", 1),
        ([Unavailable("no"), "yes"], "no", 1),
    ],
)
async def test_what_may_pass_is_tried_once_more(outcomes, said, times):
    assert (await attempts(*outcomes))[:2] == (said, times)


async def test_there_is_no_second_try_after_the_deadline():
    async def never() -> str:
        await asyncio.Event().wait()
        return "never"

    service = Service()
    with pytest.raises(Unavailable, match=r"no answer within 0\.5 s") as raised:
        await service.ask(never, 0.5, spent=0.48)
    assert raised.value.timed_out
    assert (await attempts(Unavailable("busy", transient=True), "yes", deadline=0.1))[:2] == ("busy", 1)


async def test_a_request_that_was_refused_says_nothing_about_the_service():
    _, _, service = await attempts(Unavailable("too long", bad_request=True))
    assert service.paused() is None
    _, _, service = await attempts(Unavailable("broken"))
    assert service.paused() == "broken; not tried again for a while"


def test_the_rest_is_what_the_service_asked_for_if_that_is_longer():
    now = 0.0
    service = Service(clock=lambda: now)
    service.failed("over", 3_600)
    now = 3_599
    assert service.paused()
    now = 3_600
    assert service.paused() is None
    for _ in range(2_000):  # the doubling is bounded
        service.failed("over")
    now += 600
    assert service.paused() is None


# --- the prompt ---------------------------------------------------------------------------------------------


def entry(name: str, description: str = "", **schema: object) -> Entry:
    server, tool = name.split("__", 1)
    raw = {"name": tool, "description": description, "inputSchema": {"type": "object", "properties": schema}}
    return Entry.parse(server, json.dumps(raw).encode())


def tool_lines(text: str) -> list[str]:
    lines = text.splitlines()
    return lines[lines.index(BEGIN) + 1 : lines.index(END)]


@given(st.text(max_size=300), st.text(max_size=60))
def test_no_tool_and_no_query_leaves_its_line(description, query):
    asked = prompt(query, [entry("a__b", description), entry("c__d")], 5)
    lines = asked.text.splitlines()
    assert len(lines) == 6
    assert lines[2] == BEGIN
    assert lines[3].startswith("a__b")
    assert lines[4] == "c__d []"
    assert lines[5] == END
    assert not set('`"{}<>=\\') & set(lines[3])


@given(st.text(min_size=1, max_size=30))
def test_whatever_a_tool_is_called_its_name_leads_back_to_it(name):
    only = Entry.parse("s", msgspec.json.encode({"name": name}))
    asked = prompt("x", [only], 5)
    ((shown, known),) = asked.names.items()
    assert known == only.name
    assert len(tool_lines(asked.text)) == 1
    assert tool_lines(asked.text)[0].startswith(shown)
    assert parse_selection(json.dumps({"tools": [shown]}), asked, 5).names == (only.name,)


def test_the_budget_holds_lines_in_full_then_names_then_nothing():
    many = [
        entry(f"s__tool_{number}", "Does something or other. " * 4, a={"type": "string"})
        for number in range(900)
    ]
    asked = prompt("x", many, 5, budget=2_000)
    lines = tool_lines(asked.text)
    full = [line for line in lines if ":" in line]
    assert lines[: len(full)] == full
    assert 30 < len(full) < 80
    assert 50 < len(lines) - len(full) < 200
    assert len(asked.names) == len(lines)
    assert sum(len(line) + 1 for line in lines) <= 8_000
    few = prompt("x", many[:60], 5, budget=2_000)
    assert all(":" in line for line in tool_lines(few.text))


def test_tools_that_would_look_alike_are_offered_once():
    twins = [entry("a__b", "one"), entry("a__b", "two"), entry("a__" + "n" * 200)]
    assert tool_lines(prompt("x", twins, 5).text) == ["a__b: one []"]


@pytest.mark.parametrize(
    ("answer", "names", "dropped"),
    [
        ('{"tools": ["a__b", "c__d"]}', ("a__b", "c__d"), 0),
        ('{"tools": ["c__d", "c__d", "x__y", "A__B"]}', ("c__d",), 3),
        ('{"tools": []}', (), 0),
        ('{"tools": ["a__b"], "why": "because"}', ("a__b",), 0),
        ('{"tools": ["a__b", "c__d", "e__f"]}', ("a__b", "c__d"), 0),
    ],
)
def test_only_what_was_offered_can_be_picked(answer, names, dropped):
    asked = prompt("x", [entry("a__b"), entry("c__d"), entry("e__f")], 2)
    found = parse_selection(answer, asked, 2)
    assert (found.names, found.invalid) == (names, dropped)


@pytest.mark.parametrize(
    "answer", ["", "a__b", "[]", "{}", '{"tools": "a__b"}', '{"tools": [1]}', "[" * 9_000]
)
def test_an_answer_of_another_shape_is_none(answer):
    with pytest.raises(ValueError, match="not the JSON"):
        parse_selection(answer, prompt("x", [entry("a__b")], 2), 2)


def test_scores_fall_evenly_and_stay_above_a_half():
    assert scores(["a", "b", "c", "d"]) == {"a": 1.0, "b": 0.875, "c": 0.75, "d": 0.625}
    assert scores([]) == {}
    assert schema(7)["required"] == ["tools"]


# --- vectors ------------------------------------------------------------------------------------------------

NUMBERS = st.floats(-1, 1, width=32)


@given(st.lists(st.lists(NUMBERS, min_size=6, max_size=6), min_size=1, max_size=8))
def test_lanes_give_the_cosines_of_the_packed_numbers(vectors):
    usable = [vector for vector in vectors if max(map(abs, vector)) > 1e-6]
    kept = [quantize(vector, INT8) for vector in usable]
    lanes = PackedMatrix(kept, 6, INT8)
    for query in kept:
        for cosine, other in zip(lanes.cosines(query), kept, strict=True):
            a, b = ([number - INT8.zero_point for number in each] for each in (query, other))
            exact = sum(map(lambda x, y: x * y, a, b)) / (math.hypot(*a) * math.hypot(*b))
            assert cosine == pytest.approx(exact, abs=1e-12)


def test_eight_bits_cost_little():
    draw = random.Random(1)
    vectors = [[draw.gauss(0, 1) for _ in range(384)] for _ in range(50)]
    query = vectors[0]
    found = PackedMatrix([quantize(vector, INT8) for vector in vectors], 384, INT8).cosines(
        quantize(query, INT8)
    )
    for cosine, vector in zip(found, vectors, strict=True):
        exact = sum(map(lambda x, y: x * y, query, vector)) / (math.hypot(*query) * math.hypot(*vector))
        assert cosine == pytest.approx(exact, abs=0.003)
    assert found[0] == pytest.approx(1)


def test_the_longest_vectors_overflow_no_lane():
    worst = quantize([1.0] * INT8.max_dimension, INT8)
    assert set(worst) == {INT8.zero_point + INT8.levels}
    assert PackedMatrix([worst, worst], INT8.max_dimension, INT8).cosines(worst) == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("vector", [[0.0, 0.0], [math.inf, 1.0], [1e-320, 0.0]])
def test_a_vector_needs_a_direction(vector):
    with pytest.raises(ValueError, match="without a direction"):
        quantize(vector, INT8)


def test_vectors_of_two_dimensions_are_not_compared():
    with pytest.raises(ValueError, match="one dimension"):
        PackedMatrix([b"ab", b"abc"], 2, INT8)
    assert PackedMatrix([], 1, INT8).cosines(b"a") == []


@given(st.dictionaries(st.binary(min_size=32, max_size=32), st.binary(min_size=5, max_size=5), max_size=6))
def test_a_vector_file_gives_back_what_it_was_given(tmp_path_factory, vectors):
    path = str(tmp_path_factory.mktemp("cache") / "embeddings.bin")
    assert VectorFile(path, "me").load() == {}
    assert VectorFile(path, "me").save(vectors)
    assert VectorFile(path, "me").load() == vectors
    assert VectorFile(path, "another").load() == {}


@given(st.binary(max_size=200), st.integers(0, 5))
def test_any_bytes_are_a_vector_file_or_an_empty_one(tmp_path_factory, noise, kept):
    path = tmp_path_factory.mktemp("cache") / "embeddings.bin"
    VectorFile(str(path), "me").save({bytes([number]) * 32: b"abc" for number in range(kept)})
    path.write_bytes(path.read_bytes()[: 200 - len(noise)] + noise)
    assert set(VectorFile(str(path), "me").load().values()) <= {b"abc"}


def test_a_disk_that_refuses_is_no_error(tmp_path):
    (tmp_path / "cache").write_text("a file where a folder should be")
    path = str(tmp_path / "cache" / "embeddings.bin")
    assert not VectorFile(path, "me").save({bytes(32): b"abc"})
    assert VectorFile(path, "me").load() == {}
    answers = LlmCache(str(tmp_path / "cache" / "llm-answers.json"))
    answers.put("key", ["a__b"])
    answers.save()
    assert answers.get("key") == ("a__b",)


# --- what is embedded ---------------------------------------------------------------------------------------


def test_a_tool_is_embedded_by_what_it_says_of_itself():
    tool = entry("slack__send_message", "Send a\nmessage.", channel={"type": "string"}, thread_ts={})
    titled = Entry.parse("s", b'{"name": "getX-y", "title": "The X", "description": "Does x v1.5"}')
    assert texts_to_embed([tool, titled]) == [
        "slack send message",
        "s get X y",
        "slack send message: Send a message. channel thread ts",
        "s get X y: The X. Does x v1.5",
    ]
    assert max(map(len, texts_to_embed([entry("a__b", "word " * 5_000)]))) <= LONGEST_TEXT


def test_a_brief_embedder_is_given_a_sentence_of_each_tool():
    tools = [
        entry("slack__send_message", "Send a message to a\nchannel. Needs a token.", channel={}),
        Entry.parse("s", b'{"name": "getX-y", "title": "The X"}'),
        Entry.parse("s", b'{"name": "getX"}'),
        entry("weather__get", "Says e.g. if it rains tomorrow! And more."),
        Entry.parse("wetter", '{"name": "get", "description": "天气预报"}'.encode()),
    ]
    assert brief_texts(tools) == [
        "slack send message: Send a message to a channel.",
        "s get X y: The X",
        "s get X",
        "weather get: Says e.g. if it rains tomorrow!",
        "wetter get: weather forecast 天气预报",
    ]
    assert len(brief_texts([entry("a__b", "word " * 5_000)])[0]) <= LONGEST_TEXT


class Brief:
    """An embedder of `brief` texts: a vector says which of some words a text has."""

    method, identity, batch, brief = "brief", "brief", 2, True

    def __init__(self) -> None:
        self.service = Service(time.monotonic)
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        self.texts += texts
        return [[1.0, *(float(word in text) for word in ("send", "list"))] for text in texts]

    async def warm_up(self) -> None: ...

    async def aclose(self) -> None: ...


async def test_a_brief_embedder_has_one_vector_of_each_tool():
    embedder = Brief()
    tier = RemoteSemanticTier(embedder, "")
    tier.index([])
    await tier.settled()
    assert await tier.ask("send it") == TierAnswer("semantic", "brief", {})
    same = "Does something to it."
    entries = [entry(name, same) for name in ("a__send", "b__list", "c__other")]
    embedder.texts.clear()
    tier.index(entries)
    await tier.settled()
    assert tier.progress == (3, 3)
    assert sorted(embedder.texts) == [f"{name}: {same}" for name in ("a send", "b list", "c other")]
    answer = await tier.ask("send it")
    assert list(answer.scores) == ["a__send", "c__other", "b__list"]
    assert answer.scores["a__send"] == pytest.approx(1, abs=0.01)
    assert answer.scores["b__list"] == pytest.approx(0.5, abs=0.01)
    await tier.aclose()


@given(st.text(max_size=200))
def test_every_text_can_be_sent(description):
    tool = entry("a__b", description)
    assert all(text.encode() for text in (*texts_to_embed([tool]), *brief_texts([tool])))


# --- the model's answers ------------------------------------------------------------------------------------


def test_an_answer_is_kept_for_a_week(tmp_path):
    now = 1_000_000.0
    path = str(tmp_path / "llm-answers.json")
    first = LlmCache(path, lambda: now)
    first.put("key", ["a__b", "c__d"])
    first.save()
    assert LlmCache(path, lambda: now + TTL - 1).get("key") == ("a__b", "c__d")
    assert LlmCache(path, lambda: now + TTL).get("key") is None
    assert LlmCache(path, lambda: now - 1).get("key") is None  # a clock that was set back
    assert first.get("other") is None


def test_two_processes_keep_their_answers_in_one_file(tmp_path):
    path = str(tmp_path / "llm-answers.json")
    one, other = LlmCache(path), LlmCache(path)
    one.put("a", ["a__b"])
    other.put("c", ["c__d"])
    one.save()
    other.save()
    assert (LlmCache(path).get("a"), LlmCache(path).get("c")) == (("a__b",), ("c__d",))


def test_the_youngest_answers_are_kept(tmp_path):
    now = 0.0
    answers = LlmCache(str(tmp_path / "llm-answers.json"), lambda: now)
    for number in range(MAX_ANSWERS + 10):
        now += 1
        answers.put(str(number), ["a__b"])
    assert answers.get("9") is None
    assert answers.get("10") == ("a__b",)
    answers.save()
    again = LlmCache(str(tmp_path / "llm-answers.json"), lambda: now)
    assert (again.get("9"), again.get("10")) == (None, ("a__b",))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"format": "else", "version": 1, "answers": {"key": {"at": 1, "names": ["a"]}}}',
        b'{"format": "mcpzip-llm-answers", "version": 2, "answers": {"key": {"at": 1, "names": ["a"]}}}',
        b'{"format": "mcpzip-llm-answers", "version": 1, "answers": {"key": {"at": "x", "names": 7}}}',
    ],
)
def test_a_damaged_file_is_no_answer(tmp_path, content):
    path = tmp_path / "llm-answers.json"
    path.write_bytes(content)
    answers = LlmCache(str(path), lambda: 2.0)
    assert answers.get("key") is None
    answers.put("key", ["a__b"])
    answers.save()
    assert LlmCache(str(path), lambda: 2.0).get("key") == ("a__b",)


def test_an_answer_is_known_by_all_it_depends_on():
    base = key_of("v1", "m", "Send it", 10, ["a__b", "c__d"])
    assert key_of("v1", "m", " send  IT ", 10, ["c__d", "a__b"]) == base
    others = [
        key_of("v2", "m", "Send it", 10, ["a__b", "c__d"]),
        key_of("v1", "n", "Send it", 10, ["a__b", "c__d"]),
        key_of("v1", "m", "Sendit", 10, ["a__b", "c__d"]),
        key_of("v1", "m", "Send it", 11, ["a__b", "c__d"]),
        key_of("v1", "m", "Send it", 10, ["a__b"]),
    ]
    assert len({base, *others}) == 6


# --- word pieces --------------------------------------------------------------------------------------------


# As the tokenizer that the model was trained with reads them.
READ = [
    ("send a message", [101, 4604, 1037, 4471, 102]),
    ("", [101, 102]),
    ("Ünïcode tokenizing", [101, 27260, 19204, 6026, 102]),
    ("don't $5+3", [101, 2123, 1005, 1056, 1002, 1019, 1009, 1017, 102]),
    ("天气 weather", [101, 1811, 100, 4633, 102]),
    ("a" * 101, [101, 100, 102]),
    ("x\u200by\x00z\u2028q", [101, 1060, 2100, 2480, 1053, 102]),
]


@pytest.mark.parametrize(("text", "numbers"), READ)
def test_texts_are_read_as_the_model_learnt_them(text, numbers):
    assert WordPieces().numbers(text, 256) == numbers


def test_a_long_text_is_cut():
    numbers = WordPieces().numbers("word " * 1_000, 16)
    assert len(numbers) == 16
    assert (numbers[0], numbers[-1]) == (101, 102)
