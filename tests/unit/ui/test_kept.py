"""A kept result, part by part: whatever an answer has, and every character once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.results.document import read_result
from mcpzip.results.reading import read_kept
from mcpzip.results.reply import reply
from mcpzip.ui.kept import PART, KeptPart, arguments_of, handle_of, is_handle, kept_part
from mcpzip.wire import split_object

HANDLE = "r1-madnawbx2cwm5gkt"


def result_of(text: str) -> bytes:
    return json.dumps({"content": [{"type": "text", "text": text}]}).encode()


def read(result: bytes, first: int, tokens: int = 10_000) -> KeptPart | str:
    return kept_part(HANDLE, read_kept(result, split_object(arguments_of(first)), tokens).result)


@pytest.mark.parametrize("tokens", [2_000, 10_000])
@pytest.mark.parametrize(
    "text", ["one line " * 3_000, "a\nb\n" * 9_000, "開卷" * 9_000, json.dumps(list(range(9_000)))]
)
def test_all_parts_together_are_the_result(text: str, tokens: int) -> None:
    found, at = [], 1
    while at:
        part = read(result_of(text), at, tokens)
        assert isinstance(part, KeptPart)
        assert part.first == at
        assert part.total == len(text)
        found.append(part.text)
        assert part.before == max(0, at - PART) + (at > 1 and at <= PART)
        at = part.after
    assert "".join(found) == text
    assert len(found) > 2


def test_a_place_that_is_not_there_is_said() -> None:
    said = read(result_of("short"), 1)
    assert isinstance(said, KeptPart)
    assert (said.before, said.after) == (0, 0)
    answer = json.dumps({"isError": True, "content": [{"type": "text", "text": "'chars' begins at 9"}]})
    assert kept_part(HANDLE, answer.encode()) == "'chars' begins at 9"


@given(st.binary(max_size=60) | st.text().map(result_of))
def test_whatever_is_answered(answer: bytes) -> None:
    assert isinstance(kept_part(HANDLE, answer), str)
    assert handle_of(answer) == ""


def test_the_handle_is_that_of_the_reply() -> None:
    result = result_of("word " * 20_000)
    sent = reply(
        result, read_result(result), 20_000, HANDLE, f"mcpzip-result:{HANDLE}", "execute_tool"
    ).result
    assert handle_of(sent) == HANDLE


@pytest.mark.parametrize("said", ["r1-madnawbx2cwm5gk", "<script>", "", 7, None, ["r1"], {"a": 1}])
def test_what_is_no_handle_is_none(said: object) -> None:
    assert handle_of(json.dumps({"_meta": {"mcpzip/kept": {"handle": said}}}).encode()) == ""
    assert not is_handle(str(said))
