"""What is remembered of calls: how it fades, adds up, survives damage, and is forgotten."""

import asyncio
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model import limits
from mcpzip.model.limits import LEARNED_WORDS
from mcpzip.proxy import usage_store as module
from mcpzip.proxy.tool_usage import (
    HALF_LIFE,
    MAX_TOOLS,
    UnusableUsageFileError,
    UseCount,
    added,
    counts,
    forget,
    is_success,
    load,
    save,
    usage_path,
)
from mcpzip.proxy.usage_store import UsageStore

NOW = 1_763_000_000.0
DAY = 86_400.0

times = st.floats(0, 400 * DAY)
terms = st.dictionaries(st.sampled_from(["pay", "invoic", "weather"]), st.floats(0.01, 1_000), max_size=3)
uses = st.builds(UseCount, st.floats(0.01, 1_000), times, terms)
many = st.dictionaries(st.sampled_from("abcdef"), uses)


# --- counting -----------------------------------------------------------------------------------------------


def test_a_call_counts_one_and_half_as_much_a_fortnight_later() -> None:
    use = UseCount(1.0, NOW)
    assert use.now(NOW) == 1
    assert use.now(NOW + 14 * DAY) == pytest.approx(0.5)
    assert use.now(NOW + 28 * DAY) == pytest.approx(0.25)


@given(uses, times, times)
def test_what_counts_never_grows_by_waiting(use: UseCount, one: float, other: float) -> None:
    earlier, later = sorted((one, other))
    assert 0 <= use.now(later) <= use.now(earlier) <= use.calls


@given(many, many, many, st.floats(400 * DAY, 500 * DAY))
def test_in_which_order_it_is_added_up_changes_nothing(
    one: dict[str, UseCount], two: dict[str, UseCount], three: dict[str, UseCount], now: float
) -> None:
    left = {name: use.now(now) for name, use in added(added(one, two), three).items()}
    right = {name: use.now(now) for name, use in added(three, added(two, one)).items()}
    assert left.keys() == right.keys() == one.keys() | two.keys() | three.keys()
    assert left == pytest.approx(right)
    alone = {name: sum(each[name].now(now) for each in (one, two, three) if name in each) for name in left}
    assert left == pytest.approx(alone)
    words = [added(added(one, two), three), added(three, added(two, one))]
    for name in left:
        decayed = [
            {word: weight * each[name].decay(now) for word, weight in each[name].words.items()}
            for each in words
        ]
        assert decayed[0] == pytest.approx(decayed[1])


def test_a_clock_that_goes_back_changes_nothing() -> None:
    assert UseCount(2.0, NOW).now(NOW - DAY) == 2


def test_what_counts_next_to_nothing_is_dropped_and_so_is_what_is_too_much() -> None:
    assert counts({"old": UseCount(1.0, NOW - 6 * HALF_LIFE), "new": UseCount(1.0, NOW)}, NOW) == {"new": 1.0}
    crowd = {f"t{n}": UseCount(1.0 + n, NOW) for n in range(MAX_TOOLS + 50)}
    kept = counts(crowd, NOW)
    assert len(kept) == MAX_TOOLS
    assert next(iter(kept)) == f"t{MAX_TOOLS + 49}"
    assert "t0" not in kept


@pytest.mark.parametrize(
    ("result", "good"),
    [
        (b'{"content":[]}', True),
        (b'{"content":[],"isError":false}', True),
        (b'{"content":[{"type":"text","text":"\\"isError\\": true"}]}', True),
        (b'{"content":[],"structuredContent":{"isError":true}}', True),
        (b'{"content":[],"isError":true}', False),
        (b'{"content":[], "isError" : true }', False),
        (b'{"resultType":"input_required","inputRequests":{}}', False),
        (b'["isError"]', False),
    ],
)
def test_what_a_success_is(result: bytes, good: bool) -> None:
    assert is_success(result) is good


LONG = b'{"content":[{"type":"text","text":"%b"}]%b}'


@pytest.mark.parametrize(
    ("end", "good"),
    [
        (b"", True),
        (b',"isError":false', True),
        (b',"isError": true', False),
        (b',"resultType":"input_required"', False),
    ],
)
def test_a_long_result_is_told_by_its_end(end: bytes, good: bool) -> None:
    assert is_success(LONG % (b'a \\"isError\\": true ' * 10_000, end)) is good


# --- words --------------------------------------------------------------------------------------------------


def test_words_fade_with_the_count_and_those_of_next_to_nothing_go() -> None:
    use = UseCount(2.0, NOW, {"pay": 2.0, "invoic": 0.06})
    assert use.words_now(NOW) == {"pay": 2.0, "invoic": 0.06}
    assert use.words_now(NOW + HALF_LIFE) == {"pay": 1.0}
    assert use.words_now(NOW - DAY) == use.words_now(NOW)


def test_few_words_of_few_tools_are_kept(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LEARNED_TOOLS", 2)
    words = {"w" + "x" * n: 1.0 + n for n in range(LEARNED_WORDS - 1)}
    many = {**words, "least": 0.5, "some": 0.6}
    save(path, {name: UseCount(3.0 + n, NOW, many) for n, name in enumerate("abc")}, NOW)
    kept = load(path)[0]
    assert {name: len(use.words) for name, use in kept.items()} == {
        "a": 0,
        "b": LEARNED_WORDS,
        "c": LEARNED_WORDS,
    }
    assert kept["b"].words.keys() == words.keys() | {"some"}


def test_words_that_nobody_learned_are_passed_over(path: str) -> None:
    odd = {
        "pay": 1,
        "ann@example.org": 1,
        "x1": 1,
        "\u001b[31m": 1,
        "a" * 25: 1,
        "neg": -1,
        "": 1,
        "all": 1e300,
    }
    file = {"format": "mcpzip-usage", "version": 1, "tools": {"a": {"calls": 1, "at": NOW, "words": odd}}}
    write(path, json.dumps(file).encode())
    assert load(path)[0] == {"a": UseCount(1.0, NOW, {"pay": 1.0})}


async def test_words_are_kept_merged_and_forgotten_with_the_tool(path: str) -> None:
    one, other = (UsageStore(path, pytest.fail, lambda: NOW) for _ in range(2))
    one.record("a__x", {"pay": 1.0, "invoic": 2.0})
    one.record("a__x")
    other.record("a__x", {"pay": 1.0})
    other.record("b__y", {"weather": 1.0})
    revision = other.revision
    await one.close()
    await other.close()
    assert load(path)[0] == {
        "a__x": UseCount(3.0, NOW, {"invoic": 2.0, "pay": 2.0}),
        "b__y": UseCount(1.0, NOW, {"weather": 1.0}),
    }
    assert other.revision != revision  # because of what the other one learned
    if os.name != "nt":
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert forget(path, ["a__x"], NOW) == ("a__x",)
    assert b"invoic" not in read(path)
    other.record("b__y")
    await other.close()
    assert load(path)[0] == {"b__y": UseCount(2.0, NOW, {"weather": 1.0})}
    forget(path, None, NOW)
    assert not there(path)


async def test_the_largest_record_is_smaller_than_the_largest_that_is_read(path: str) -> None:
    words = [f"{chr(0x4E00 + n)}" * limits.LEARNED_WORD for n in range(LEARNED_WORDS)]
    full = UseCount(1.0, NOW, dict.fromkeys(words, 123.4567))
    crowd = {f"{'s' * 60}__{'t' * 60}{n}": full for n in range(MAX_TOOLS)}
    assert len(save(path, crowd, NOW)) == MAX_TOOLS
    assert sum(bool(use.words) for use in load(path)[0].values()) == limits.LEARNED_TOOLS


# --- the file -----------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> str:
    return usage_path(str(tmp_path / "config.json"))


def write(path: str, data: bytes) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_bytes(data)


def read(path: str) -> bytes:
    return Path(path).read_bytes()


def there(path: str) -> bool:
    return Path(path).exists()


def test_every_config_has_a_file_of_its_own_beside_its_snapshot() -> None:
    assert usage_path(os.path.join("a", "config.json")) == os.path.join("a", "cache", "usage.json")
    assert usage_path(os.path.join("a", "b.json")) == os.path.join("a", "cache", "b.json.usage.json")


def test_what_is_kept_is_names_numbers_and_times_for_the_owner_alone(path: str) -> None:
    save(path, {"b__x": UseCount(1.0, NOW), "a__y": UseCount(2.5, NOW), "old": UseCount(1.0, 0.0)}, NOW)
    assert json.loads(Path(path).read_bytes()) == {
        "format": "mcpzip-usage",
        "version": 1,
        "tools": {"a__y": {"calls": 2.5, "at": NOW}, "b__x": {"calls": 1.0, "at": NOW}},
    }
    assert load(path) == ({"a__y": UseCount(2.5, NOW), "b__x": UseCount(1.0, NOW)}, ())
    if os.name != "nt":
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_where_there_is_no_file_nothing_is_remembered_and_nothing_told(path: str) -> None:
    assert load(path) == ({}, ())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"format":"mcpzip-usage","version":1}',
        b'{"format":"mcpzip-usage","version":1,"tools":{"a":{"calls":1}}}',
        b'{"format":"mcpzip-usage","version":1,"tools":{"a":{"calls":1,"at":2}}',
        b'{"format":"something-else","version":9,"tools":{}}',
        b"[" * 100_000,
    ],
)
async def test_a_damaged_file_is_nothing_and_a_warning_and_is_learnt_anew(path: str, data: bytes) -> None:
    write(path, data)
    found, warnings = load(path)
    assert found == {}
    assert len(warnings) == 1
    assert path in warnings[0]
    told: list[str] = []
    used = UsageStore(path, told.append, lambda: NOW)
    used.record("a__x")
    await used.close()
    assert told == list(warnings)
    assert load(path) == ({"a__x": UseCount(1.0, NOW)}, ())


@pytest.mark.parametrize("calls", [b"-1", b"0", b"1e300"])
def test_a_number_that_can_not_be_is_passed_over(path: str, calls: bytes) -> None:
    Path(path).parent.mkdir()
    Path(path).write_bytes(
        b'{"format":"mcpzip-usage","version":1,"tools":{"a":{"calls":%b,"at":2},"b":{"calls":1,"at":3}}}'
        % calls
    )
    assert load(path) == ({"b": UseCount(1.0, 3.0)}, ())


async def test_a_file_of_a_later_version_is_left_alone(path: str) -> None:
    data = b'{"format":"mcpzip-usage","version":2,"tools":[]}'
    write(path, data)
    told: list[str] = []
    used = UsageStore(path, told.append)
    assert used.counts() == {}
    used.record("a__x")
    await used.close()
    with pytest.raises(UnusableUsageFileError):
        forget(path, None, NOW)
    assert read(path) == data
    assert len(told) == 1
    assert "newer version" in told[0]


async def test_a_disk_that_refuses_is_told_once_and_costs_nothing_else(path: str) -> None:
    Path(path).parent.write_text("not a folder")
    told: list[str] = []
    used = UsageStore(path, told.append)
    used.record("a__x")
    assert used.counts()["a__x"] > 0.99
    await used.close()
    used.record("a__x")
    await used.close()
    assert len(told) == 1


async def test_what_is_counted_is_on_disk_at_the_end_and_there_again(path: str) -> None:
    clock = [NOW]
    used = UsageStore(path, pytest.fail, lambda: clock[0])
    for _ in range(3):
        used.record("a__x")
    clock[0] += HALF_LIFE
    used.record("a__x")
    used.record("b__y")
    assert used.counts() == pytest.approx({"a__x": 2.5, "b__y": 1})
    assert not there(path)
    await used.close()
    again = UsageStore(path, pytest.fail, lambda: clock[0])
    assert again.counts() == pytest.approx({"a__x": 2.5, "b__y": 1})


async def test_it_is_saved_while_running_too(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAVE_AFTER", 0.0)
    used = UsageStore(path, pytest.fail, lambda: NOW)
    used.record("a__x")
    deadline = asyncio.get_running_loop().time() + 20
    while not there(path):
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.001)
    await used.close()
    assert load(path)[0] == {"a__x": UseCount(1.0, NOW)}


async def test_nobody_who_counts_nothing_writes(path: str) -> None:
    used = UsageStore(path, pytest.fail)
    assert used.counts() == {}
    await used.close()
    assert not there(os.path.dirname(path))


async def test_several_processes_add_up(path: str) -> None:
    one, other = (UsageStore(path, pytest.fail, lambda: NOW) for _ in range(2))
    one.record("a__x")
    other.record("a__x")
    other.record("b__y")
    await one.close()
    await other.close()
    assert other.counts() == {"a__x": 2.0, "b__y": 1.0}
    assert {name: use.calls for name, use in load(path)[0].items()} == {"a__x": 2.0, "b__y": 1.0}


async def test_it_says_when_more_than_time_has_changed(path: str) -> None:
    used = UsageStore(path, pytest.fail)
    before = used.revision
    used.counts()
    assert used.revision == before
    used.record("a__x")
    assert used.revision != before
    await used.close()


async def test_what_is_forgotten_stays_forgotten(path: str) -> None:
    used = UsageStore(path, pytest.fail, lambda: NOW)
    for name in ("a__x", "b__y", "c__z"):
        used.record(name)
    await used.close()
    assert forget(path, ["a__x", "unknown"], NOW) == ("a__x",)
    used.record("b__y")  # who remembers it in memory doesn't bring it back
    await used.close()
    assert set(used.counts()) == {"b__y", "c__z"}
    assert forget(path, None, NOW) == ("b__y", "c__z")
    assert not there(path)
    assert forget(path, None, NOW) == ()


async def test_a_name_that_no_file_can_hold_is_not_kept(path: str) -> None:
    used = UsageStore(path, pytest.fail, lambda: NOW)
    used.record("a__\ud800")
    used.record("a__x")
    await used.close()
    assert set(load(path)[0]) == {"a__x"}
