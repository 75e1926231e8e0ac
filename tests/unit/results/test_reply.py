"""What a client is sent instead of a large result."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.tokens import estimate
from mcpzip.results.document import exceeds, read_result
from mcpzip.results.excerpt import abbreviated, beginning
from mcpzip.results.reply import HEAD, contents, reply
from mcpzip.results.shape import shape
from mcpzip.results.slices import UnreadableError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=200), inner, max_size=20),
    max_leaves=200,
)


def replied(raw: bytes) -> bytes:
    return reply(raw, read_result(raw), 9_999, "r1-x", "mcpzip-result:r1-x", "execute_tool").result


def shown(result: dict[str, Any]) -> dict[str, Any]:
    raw = json.dumps(result).encode()
    return json.loads(replied(raw))


def test_a_long_text_is_cut_and_all_else_stays() -> None:
    image = {"type": "image", "data": "aaaa", "mimeType": "image/png"}
    words = "\n".join(f"line {number}" for number in range(9_000))
    found = shown(
        {
            "content": [{"type": "text", "text": words}, image],
            "isError": True,
            "_meta": {"a": 1},
            "x": [2],
        }
    )
    first, second, link = found["content"]
    assert first["text"].startswith("Kept as r1-x: 9,000 lines of text, about ")
    assert "line 0\nline 1\n" in first["text"]
    assert "line 8000" not in first["text"]
    assert second == image
    assert (link["type"], link["uri"], link["size"]) == ("resource_link", "mcpzip-result:r1-x", len(words))
    assert (found["isError"], found["_meta"]["a"], found["x"]) == (True, 1, [2])
    assert found["_meta"]["mcpzip/kept"]["handle"] == "r1-x"
    assert "structuredContent" not in found


def test_a_value_is_cut_alike_in_both_places() -> None:
    items = [{"id": number, "title": f"Title {number}"} for number in range(5_000)]
    found = shown(
        {"content": [{"type": "text", "text": json.dumps(items)}], "structuredContent": {"result": items}}
    )
    head = found["structuredContent"]["head"]
    assert head[0] == items[0]
    assert head[-1].endswith(" more")
    assert found["structuredContent"]["kept"] == "r1-x"
    assert json.loads(found["content"][0]["text"].split("\n")[1]) == head
    assert "5,000 objects {id:int title:str}" in found["content"][0]["text"]
    assert '{"path": "[0:20].id"}' in found["content"][0]["text"]


def test_texts_that_are_each_a_value_are_a_list() -> None:
    texts = [{"type": "text", "text": json.dumps({"id": number})} for number in range(3)]
    assert json.loads(read_result(json.dumps({"content": texts}).encode()).value)[2] == {"id": 2}


def test_its_resource_is_the_whole_text() -> None:
    raw = json.dumps({"content": [{"type": "text", "text": "a\nü"}]}).encode()
    assert json.loads(contents(raw, "u:1"))["contents"] == [
        {"uri": "u:1", "mimeType": "text/plain", "text": "a\nü"}
    ]


@given(VALUES)
def test_a_reply_is_short_whatever_the_value_is(value: Any) -> None:
    raw = json.dumps({"content": [], "structuredContent": {"value": value}}).encode()
    found = replied(raw)
    assert len(json.loads(found)["content"][0]["text"]) < 12 * HEAD + 4_000


@given(VALUES, st.integers(20, 500))
def test_an_abbreviated_value_is_of_the_same_kind(value: Any, tokens: int) -> None:
    found = json.loads(abbreviated(json.dumps(value).encode(), tokens))
    assert type(found) is type(value)


@given(VALUES)
def test_what_is_short_is_not_abbreviated(value: Any) -> None:
    raw = json.dumps(value).encode()
    if len(raw) <= 200:
        assert json.loads(abbreviated(raw, 10_000)) == value


@given(st.text(), st.integers(1, 100))
def test_a_beginning_fits(words: str, tokens: int) -> None:
    found = beginning(words, tokens)
    assert words.startswith(found)
    assert "\n" not in found or estimate(found) <= tokens + found.count("\n")


@given(st.text(min_size=1), st.integers(1, 50))
def test_a_result_exceeds_what_its_text_has_in_tokens(words: str, tokens: int) -> None:
    raw = json.dumps({"content": [{"type": "text", "text": words}]}).encode()
    assert exceeds(read_result(raw), tokens) == (estimate(words) > tokens)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"[]", "an empty array"),
        (b"[1,2]", "array of 2 int"),
        (b'[1,"a",null,1.5]', "array of 4 int|str|null|number"),
        (b'[{"a":1}]', "1 object {a:int}"),
        (b'{"a":{"b":{"c":[1]}},"d e":true}', "{a:{b:{c:[…]}} 'd e':bool}"),
        (b'{"a":[{"b":1},{"b":1,"c":2}]}', "{a:[{b:int c:int}]}"),
    ],
)
def test_shapes(value: bytes, expected: str) -> None:
    assert shape(value) == expected


@pytest.mark.parametrize(
    "raw",
    [b"[]", b'{"content":5}', b'{"content":[5]}', b'{"content":[{"type":"text","text":5}]}'],
)
def test_what_is_no_result_is_not_read(raw: bytes) -> None:
    with pytest.raises(UnreadableError):
        read_result(raw)


def test_a_result_with_lone_surrogates_is_read() -> None:
    raw = b'{"content":[{"type":"text","text":"a\\ud800"}],"structuredContent":{"k\\ud800":["\\udfff"]}}'
    document = read_result(raw)
    assert document.value == b'{"k\\ud800":["\\udfff"]}'
    assert json.loads(replied(raw))
