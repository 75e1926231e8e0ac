"""Made values: their size, and that a seed gives the same data everywhere."""

import base64
import csv
import hashlib
import io
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_fakes.answer import Answer
from mcpzip_fakes.errors import ScenarioError
from mcpzip_fakes.launch import described
from mcpzip_fakes.made import KINDS, Made
from mcpzip_fakes.scenario import Scenario

TEXTS = [kind for kind in KINDS if kind not in ("rows", "base64")]


@given(st.sampled_from(TEXTS), st.integers(0, 5_000), st.integers(0, 2**64))
def test_a_text_has_exactly_its_size_and_survives_json(kind: str, size: int, seed: int) -> None:
    text = Made(kind=kind, size=size, seed=seed).value
    assert isinstance(text, str)
    assert len(text) == size
    assert json.loads(json.dumps(text)) == text
    text.encode()  # no half of a surrogate pair


@given(st.integers(0, 5_000), st.integers(0, 2**64))
def test_bytes_in_base64_have_their_size_or_up_to_three_more(size: int, seed: int) -> None:
    text = Made(kind="base64", size=size, seed=seed).value
    assert isinstance(text, str)
    assert size <= len(text) < size + 4
    assert len(base64.b64decode(text, validate=True)) == len(text) // 4 * 3


@given(st.integers(0, 5_000), st.integers(0, 2**64))
def test_rows_have_the_size_of_their_json_or_a_little_more(size: int, seed: int) -> None:
    rows = Made(kind="rows", size=size, seed=seed).value
    assert size <= len(msgspec.json.encode(rows)) + 1 <= size + 200


@pytest.mark.parametrize(
    ("kind", "digest"),
    [
        ("log", "a82b31c85d86c904"),
        ("csv", "d1ac0dc3fa04eca1"),
        ("odd", "7bf6a14593af2e37"),
        ("base64", "ad4c093182822482"),
        ("rows", "8e309cbaa1351ddf"),
    ],
)
def test_the_same_seed_gives_the_same_data_on_every_machine(kind: str, digest: str) -> None:
    value = msgspec.json.encode(Made(kind=kind, size=10_000, seed=7).value)
    assert hashlib.sha256(value).hexdigest()[:16] == digest
    assert msgspec.json.encode(Made(kind=kind, size=10_000, seed=8).value) != value


def test_the_kinds_are_what_they_are_called() -> None:
    log, table, odd = (Made(kind=kind, size=20_000).value for kind in TEXTS)
    assert isinstance(log, str)
    assert isinstance(table, str)
    assert isinstance(odd, str)
    assert log.isascii()
    lines = log.splitlines()
    assert len(set(lines)) == len(lines) > 300
    header, *rows = csv.reader(io.StringIO(table[: table.rindex("\r\n")], newline=""))
    assert header == ["number", "title", "amount"]
    assert [int(row[0]) for row in rows] == list(range(len(rows)))
    assert {len(row) for row in rows} == {3}
    assert {"\r\n", "\U0001f600", "\\ud83d", "\x00", "\u2028"} == {
        part for part in ("\r\n", "\U0001f600", "\\ud83d", "\x00", "\u2028") if part in odd
    }


def test_an_answer_can_have_several_with_the_types_they_have() -> None:
    answer = Answer(
        made={"log": Made(kind="log", size=100), "rows": Made(kind="rows", size=300)},
        content=[{"type": "text", "text": "{log}"}, {"type": "text", "text": "{name}: {log}"}],
        structured={"rows": "{rows}"},
    )
    result = answer.result({"name": "x", "log": "not this"}, b"{}", 1)
    assert isinstance(result, dict)
    log = Made(kind="log", size=100).value
    assert result["content"] == [{"type": "text", "text": log}, {"type": "text", "text": f"x: {log}"}]
    assert result["structuredContent"] == {"rows": Made(kind="rows", size=300).value}
    text = Answer(made={"log": Made(kind="log", size=100)}, text="{log}!").result({}, b"{}", 1)
    assert text == {"content": [{"type": "text", "text": f"{log}!"}]}


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ({"log": {"kind": "logs", "size": 1}}, "kind is 'logs'; choose from log, csv"),
        ({"log": {"kind": "log", "size": 200_000_000}}, "size is 200000000; write 0 to 100,000,000"),
        ({"log": {"kind": "log", "size": -1}}, "size is -1"),
        ({"log": {"kind": "log"}}, "'size' is missing"),
        ({"log": {"kind": "log", "sise": 1}}, "the nearest is 'size'"),
        ({"a.b": {"kind": "log", "size": 1}}, "the name 'a.b'; write letters"),
        ({f"m{n}": {"kind": "log", "size": 1} for n in range(9)}, "has 9 values; make 8 at most"),
    ],
)
def test_a_mistake_is_one_sentence(made: object, says: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        described(None, tools=[{"name": "tell", "result": {"made": made}}])
    told = str(raised.value).replace("; ", ": ")
    assert says.replace("; ", ": ") in told, told


def test_every_result_of_the_scenario_large_has_a_megabyte() -> None:
    tools = Scenario.load("large").tools
    assert len(tools) == 10
    for tool in tools:
        assert len(msgspec.json.encode(tool.result.result({}, b"{}", 1))) > 1_050_000, tool.name
