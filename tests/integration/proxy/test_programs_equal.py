"""The value of a program is what the same calls give one by one, for every kind of content."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.bridging import bridged
from helpers.driver import Json
from helpers.programs import META, run_code
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BLOCKS = st.sampled_from(
    [
        {"type": "text", "text": "words\nand more"},
        {"type": "text", "text": '{"a": [1, 2.50, "é"]}'},
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "a://b", "blob": "aGVsbG8="}},
        {"type": "resource", "resource": {"uri": "a://b", "text": "inner"}},
        {"type": "resource_link", "uri": "a://b", "name": "b"},
    ]
)
RESULTS = st.fixed_dictionaries(
    {"content": st.lists(BLOCKS, max_size=3)},
    optional={"structuredContent": st.just({"n": 1.0, "big": 10**30, "text": "\u2028é"})},
)


EXAMPLES = 25


def drawn() -> list[list[Json]]:
    """Results for the calls of some programs."""
    found: list[list[Json]] = []

    @settings(max_examples=EXAMPLES, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(RESULTS, min_size=1, max_size=3))
    def draw(results: list[Json]) -> None:
        found.append(results)

    draw()
    return found


def is_binary(block: Json) -> bool:
    return "data" in block or "blob" in block.get("resource", {})


def expected_value(result: Json, markers: list[Json]) -> Any:
    """The value of ``result`` in a program. markers: what stands for its images."""
    content, structured = result["content"], result.get("structuredContent")
    others = [block for block in content if block["type"] not in ("text", "resource") or is_binary(block)]
    if any(map(is_binary, content)):
        taken = iter(markers)
        blocks = [next(taken) if is_binary(block) else block for block in content]
        return blocks if structured is None else [*blocks, {"type": "structuredContent", "value": structured}]
    if structured is not None:
        return structured
    if others:
        return content
    texts = [block.get("text") or block["resource"]["text"] for block in content]
    parsed = [json.loads(text) if text.startswith("{") else None for text in texts]
    if all(each is not None for each in parsed):
        return parsed[0] if len(parsed) == 1 else parsed
    return "\n".join(texts)


def markers_in(value: Any) -> list[Json]:
    return (
        [each for each in value if isinstance(each, dict) and "$kept" in each]
        if isinstance(value, list)
        else []
    )


@pytest.mark.parametrize(
    ("client", "server"),
    [("legacy", "legacy"), ("legacy", "modern"), ("modern", "legacy"), ("modern", "modern")],
)
async def test_a_value_is_what_the_same_calls_give_one_by_one(
    tmp_path: Path, client: str, server: str
) -> None:
    async with bridged(tmp_path, server, **META) as bridge:
        wire = await bridge.legacy() if client == "legacy" else bridge.modern()
        for results in drawn():
            single = [
                (
                    await wire.call(
                        {"name": "up__look", "arguments": {"do": [["result", each]]}}, "execute_tool"
                    )
                )["result"]
                for each in results
            ]
            calls = ", ".join(f"up__look(do=[['result', {each!r}]])" for each in results)
            ended = await run_code(wire, f"return [{calls}]")
            found = json.loads(ended["content"][0]["text"])
            assert found == [
                expected_value(one, markers_in(value)) for one, value in zip(single, found, strict=True)
            ]
            images = [block for one in single for block in one["content"] if is_binary(block)]
            assert ended["content"][1:-1] == images
