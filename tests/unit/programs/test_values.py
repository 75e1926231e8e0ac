"""What a program computes with, and which blocks its value brings."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.programs.values import MARKERS, Marker, block_of, error_text, has_binary, markers, value_of
from mcpzip.results.document import read_result

Json = dict[str, Any]
IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
BLOB = {"type": "resource", "resource": {"uri": "a://b", "mimeType": "x/y", "blob": "aGVsbG8="}}
LINK = {"type": "resource_link", "uri": "a://b", "name": "b"}


def value(result: Json, handle: str = "r1-a") -> Any:
    return json.loads(value_of(read_result(json.dumps(result).encode()), handle))


def text(of: str) -> Json:
    return {"type": "text", "text": of}


def test_the_value_of_a_result() -> None:
    assert value({"content": [text("a"), text("b")]}) == "a\nb"
    assert value({"content": [text('{"a": 1}')]}) == {"a": 1}
    assert value({"content": [text("x")], "structuredContent": {"a": 1}}) == {"a": 1}
    assert value({"content": [text("x")], "structuredContent": {"result": [1]}}) == [1]
    assert value({"content": []}) == []
    assert value({"content": [text("x"), LINK], "structuredContent": {"a": 1}}) == {"a": 1}
    assert value({"content": [text("x"), LINK]}) == [text("x"), LINK]


def test_images_are_markers() -> None:
    found = value({"content": [text("x"), IMAGE, BLOB], "structuredContent": {"a": 1}})
    assert found == [
        text("x"),
        {"type": "image", "mimeType": "image/png", "bytes": 6, "$kept": "r1-a", "block": 1},
        {"type": "resource", "uri": "a://b", "mimeType": "x/y", "bytes": 6, "$kept": "r1-a", "block": 2},
        {"type": "structuredContent", "value": {"a": 1}},
    ]
    assert markers(json.dumps(found)) == [Marker("r1-a", 1), Marker("r1-a", 2)]


def test_a_marker_brings_its_block() -> None:
    result = json.dumps({"content": [text("x"), IMAGE]}).encode()
    assert has_binary(read_result(result))
    assert json.loads(block_of(result, 1) or b"") == IMAGE
    assert block_of(result, 2) is None
    assert block_of(result, 10**9) is None
    assert block_of(b"[]", 0) is None


def test_markers_are_found_anywhere_and_once() -> None:
    one = {"$kept": "r1-a", "block": 0}
    assert markers(json.dumps({"a": [one, {"b": one}]})) == [Marker("r1-a", 0)]
    many = [{"$kept": "r1-a", "block": number} for number in range(100)]
    assert markers(json.dumps(many)) == [Marker("r1-a", number) for number in range(MARKERS)]
    for no in ({"$kept": 1, "block": 0}, {"$kept": "a", "block": -1}, {"$kept": "a"}, "$kept"):
        assert markers(json.dumps([no])) == []
    assert markers('{"$kept": ') == []


def test_the_text_of_an_error() -> None:
    assert error_text(read_result(b'{"content": [{"type": "text", "text": "no"}]}'), 10) == "no"
    assert error_text(read_result(b'{"content": [{"type": "text", "text": "aaaa"}]}'), 2) == "aa"
    assert "no reason" in error_text(read_result(b'{"content": []}'), 10)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(st.text(min_size=1).filter(lambda key: key != "result"), JSON, max_size=4))
def test_structured_content_is_the_value(content: Json) -> None:
    result = {"content": [text(json.dumps(content))], "structuredContent": content}
    assert value(result) == content
    assert value({"content": [text(json.dumps(content))]}) == content


@given(st.lists(st.sampled_from([text("x"), text("[1]"), IMAGE, BLOB, LINK]), max_size=6), JSON)
def test_no_block_is_lost(blocks: list[Json], structured: object) -> None:
    result = {"content": blocks, "structuredContent": {"s": structured}}
    found = value(result)
    if IMAGE in blocks or BLOB in blocks:
        assert len(found) == len(blocks) + 1
        assert found[-1]["value"] == {"s": structured}
        raw = json.dumps(result).encode()
        for each, block in zip(found, blocks, strict=False):
            if "$kept" in each:
                assert json.loads(block_of(raw, each["block"]) or b"") == block
            else:
                assert each == block
    else:
        texts = [str(block["text"]) for block in blocks if block["type"] == "text"]
        words = "\n".join(texts)
        if len(words) <= 2 * len(json.dumps({"s": structured})):
            assert found == {"s": structured}
        elif "x" in texts:
            assert found == words  # what the model reads, because the structured content has far less
        else:
            assert found == ([[1]] * len(texts) if len(texts) > 1 else [1])
