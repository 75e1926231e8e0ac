"""Parts of a kept result: what is shown, and what is said of the rest."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.results import reading, slices
from mcpzip.results.document import read_result
from mcpzip.results.reading import Part, read_kept, read_part


def text(*texts: str, **more: Any) -> bytes:
    return json.dumps({"content": [{"type": "text", "text": each} for each in texts], **more}).encode()


def part(result: bytes, tokens: int = 1_000, **arguments: Any) -> Part:
    raw = {key: json.dumps(value).encode() for key, value in arguments.items()}
    return read_part(read_result(result), raw, tokens)


LINES = text("\n".join(f"line {number}" for number in range(1, 101)))
ITEMS = text(structuredContent={"items": [{"n": n, "s": "odd" if n % 2 else "even"} for n in range(10)]})


@pytest.mark.parametrize(
    ("arguments", "shown", "note"),
    [
        ({"lines": "3-5"}, "line 3\nline 4\nline 5", "Lines 3 to 5 of 100."),
        ({"lines": "99-"}, "line 99\nline 100", "Lines 99 to 100 of 100."),
        ({"lines": [7, 8]}, "line 7\nline 8", "Lines 7 to 8 of 100."),
        ({"lines": 7}, "line 7", "Lines 7 to 7 of 100."),
        ({"head": 2}, "line 1\nline 2", "Lines 1 to 2 of 100."),
        ({"tail": 1}, "line 100", "Lines 100 to 100 of 100."),
        ({"grep": "line 5*0"}, "50: line 50", "1 of 1 matches in 100 lines."),
        ({"grep": "LINE 33|44"}, "44: line 44", "1 of 1 matches in 100 lines."),
        ({"grep": "line 3", "head": 2}, "3: line 3\n30: line 30", "2 of 11 matches in 100 lines."),
        ({"grep": "nothing"}, "", "None of the 100 lines matches."),
        ({"chars": "6-11"}, "1\nline", "Characters 6 to 11 of 791."),
    ],
)
def test_lines_of_a_text(arguments: dict[str, Any], shown: str, note: str) -> None:
    assert part(LINES, **arguments) == (shown, note)


@pytest.mark.parametrize(
    ("arguments", "shown", "note"),
    [
        ({"path": "items[0:3].n"}, "[0,1,2]", ""),
        ({"path": "items[4].s"}, "even", ""),
        ({"path": "items[4].n"}, "4", ""),
        ({"path": "/items/4/n"}, "4", ""),
        ({"path": "items", "tail": 1}, '[{"n": 9, "s": "odd"}]', "Elements 10 to 10 of 10."),
        (
            {"path": "items", "grep": "odd", "head": 1},
            '[{"n": 1, "s": "odd"}]',
            "1 of 5 matches in 10 elements (numbers 2).",
        ),
        ({"grep": "items", "path": "items[0]"}, "", "None of the 2 members matches."),
        ({"head": 1, "path": "items[0]"}, '{"n":0}', "Members 1 to 1 of 2."),
    ],
)
def test_parts_of_a_value(arguments: dict[str, Any], shown: str, note: str) -> None:
    assert part(ITEMS, **arguments) == (shown, note)


@pytest.mark.parametrize(
    "arguments",
    [
        {"what": 1},
        {"lines": "1-2", "head": 3},
        {"lines": "0-2"},
        {"lines": "5-2"},
        {"lines": "a"},
        {"lines": "101-"},
        {"lines": ""},
        {"head": 0},
        {"tail": "x"},
        {"grep": ""},
        {"grep": "*"},
        {"grep": "x" * 501},
        {"grep": 5},
        {"path": "a"},
        {"chars": "900-901"},
    ],
)
def test_arguments_that_mean_nothing_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentsError):
        part(LINES, **arguments)


def test_what_does_not_fit_is_read_on() -> None:
    first = part(LINES, 100, lines="10-90")
    assert first.note.startswith("Lines 10 to ")
    assert ' Read on: {"lines": "' in first.note
    rest = json.loads(first.note.partition("Read on: ")[2].removesuffix("."))
    shown = first.text.split("\n")
    assert part(LINES, 10_000, **rest).text.split("\n")[0] == f"line {10 + len(shown)}"


def test_one_long_line_is_read_by_its_characters() -> None:
    found = part(text("x" * 5_000), 100)
    assert len(found.text) == 300
    assert "Line 1 alone has 5,000 characters" in found.note
    assert part(text("ab" * 5_000), 100, chars="5000-5003").text == "baba"


def test_a_large_member_is_named_by_its_path() -> None:
    result = text(structuredContent={"a b": ["x" * 1_000] * 9, "n": 1})
    note = part(result, 100).note
    arguments = json.loads(note.partition("Read on: ")[2].removesuffix("."))
    assert arguments["path"] == "a b"
    note = part(result, 100, path="a b").note
    arguments = json.loads(note.partition("Read on: ")[2].removesuffix("."))
    assert arguments["path"] == "a b[0]"
    assert part(result, 1_000, **arguments).text == "x" * 1_000


def test_what_the_sdk_wraps_is_read_with_its_key_and_without() -> None:
    wrapped = text(structuredContent={"result": [1, 2, 3]})
    assert part(wrapped, path="[1]") == part(wrapped, path="result[1]") == ("2", "")
    words = text("a\nb", structuredContent={"result": "a\nb"})
    assert part(words, lines="2").text == part(words, path="result", lines="2").text == "b"


def test_blocks_that_the_sdk_wraps_are_read_as_their_texts() -> None:
    block = {"type": "text", "text": '{"rows": [1, 2]}', "annotations": None, "_meta": None}
    assert part(text(structuredContent={"result": [block]}), path="rows[1]") == ("2", "")
    many = [{"type": "text", "text": "[1]"}, {"type": "text", "text": '{"a": 3}'}]
    assert part(text(structuredContent={"result": many}), path="[1].a") == ("3", "")
    words = text("a\nb", structuredContent={"result": [{"type": "text", "text": "a\nb"}]})
    assert part(words, lines="2").text == "b"
    for more in ({"id": 5}, {"annotations": {"audience": []}}):  # then it is data
        data = [{"type": "text", "text": "x", **more}]
        assert part(text(structuredContent={"result": data}), path="[0].text") == ("x", "")


def test_more_pieces_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "KEPT_PIECES", 99)
    with pytest.raises(InvalidArgumentsError, match="more than 99 lines"):
        part(LINES, head=1)
    assert part(LINES, chars="1-4").text == "line"


@given(st.text(max_size=300), st.integers(1, 200))
def test_all_characters_can_be_read_one_part_after_another(words: str, tokens: int) -> None:
    result, found = text(words), ""
    while len(found) < len(words):
        more = part(result, tokens, chars=f"{len(found) + 1}-").text
        assert more
        found += more
    assert found == words


def test_an_object_with_too_many_members_is_read_in_another_way() -> None:
    result = text(structuredContent={str(number): number for number in range(slices.MEMBERS + 1)})
    with pytest.raises(InvalidArgumentsError, match="more than 100,000 members"):
        read_kept(result, {"head": b"1"}, 1_000)
    assert part(result, chars="1-8").text == '{"0": 0,'
    with pytest.raises(InvalidArgumentsError, match="This part can't be read"):
        read_kept(b"[]", {"head": b"1"}, 1_000)


def test_a_part_is_a_result_with_a_note() -> None:
    result = json.loads(read_kept(LINES, {"lines": b'"3"'}, 1_000).result)
    assert [block["text"] for block in result["content"]] == ["line 3", "Lines 3 to 3 of 100."]
