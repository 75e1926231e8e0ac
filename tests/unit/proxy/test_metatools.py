"""What every client carries on every message: short, stable, and enough to know when to search."""

import json

from helpers.tokenizer import tokens
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.proxy.metatools import INSTRUCTIONS_BYTES, definitions, instructions, names

SERVER_NAMES = st.from_regex(r"[A-Za-z0-9.-]([A-Za-z0-9_.-]{0,200}[A-Za-z0-9.-])?", fullmatch=True)


def tools_list(default_limit: int, *, split: bool = False) -> bytes:
    """The result of `tools/list` as JSON text."""
    tools = definitions(default_limit, split=split)
    return json.dumps({"tools": tools}, separators=(",", ":"), ensure_ascii=False).encode()


def test_there_are_three_tools_in_the_order_they_are_used() -> None:
    assert [tool["name"] for tool in definitions(5)] == ["search_tools", "describe_tool", "execute_tool"]


def test_a_split_adds_one_tool_and_changes_no_other() -> None:
    *before, added = definitions(5, split=True)
    assert before == definitions(5)
    assert added["name"] == "execute_read_tool"
    assert added["annotations"] == {"readOnlyHint": True, "openWorldHint": True}
    execute = before[-1]
    assert "annotations" not in execute  # so it may do anything, by the specification's defaults
    assert added["inputSchema"] == execute["inputSchema"]
    assert added["_meta"] == execute["_meta"]
    for split in (False, True):
        assert [tool["name"] for tool in definitions(5, split=split)] == list(names(split=split))


def test_every_schema_is_one_that_strict_clients_take() -> None:
    for tool in definitions(5, split=True, code=True):
        schema = tool["inputSchema"]
        assert isinstance(schema, dict)
        assert schema["type"] == "object"
        assert set(schema["required"]) <= set(schema["properties"])


def test_the_list_is_the_same_bytes_every_time() -> None:
    assert tools_list(5) == tools_list(5)
    assert tools_list(5) == json.dumps(json.loads(tools_list(5)), separators=(",", ":")).encode()


def test_the_list_costs_no_more_than_350_tokens() -> None:
    assert tokens(tools_list(5).decode()) <= 350


def test_a_split_costs_no_more_than_130_tokens() -> None:
    cost = tokens(tools_list(5, split=True).decode()) - tokens(tools_list(5).decode())
    told = tokens(instructions(["slack"], split=True)) - tokens(instructions(["slack"]))
    assert cost + told <= 130


def test_programs_add_one_tool_and_one_parameter() -> None:
    *before, added = definitions(5, code=True)
    assert added["name"] == "run_code"
    execute = before[-1]["inputSchema"]
    assert isinstance(execute, dict)
    assert execute["properties"].pop("run") == {"type": "string"}
    assert before == definitions(5)
    for split in (False, True):
        tools = definitions(5, split=split, code=True)
        assert [tool["name"] for tool in tools] == list(names(split=split, code=True))


def test_with_programs_a_model_reads_no_more_than_355_tokens() -> None:
    """No model reads ``_meta``: it is for the client."""
    tools = [{k: v for k, v in tool.items() if k != "_meta"} for tool in definitions(5, code=True)]
    assert tokens(json.dumps({"tools": tools}, separators=(",", ":"))) <= 355


def test_asking_better_is_explained() -> None:
    search = definitions(5)[0]
    said = json.dumps(search)
    assert all(part in said for part in ("server:", "-word", "a phrase", "read_only", "several"))


def test_the_default_limit_is_the_configs() -> None:
    (search, *_) = json.loads(tools_list(7))["tools"]
    assert search["inputSchema"]["properties"]["limit"]["default"] == 7


@given(st.lists(SERVER_NAMES, max_size=60, unique=True), st.booleans())
def test_instructions_name_the_servers_in_no_more_than_two_kibibytes(servers: list[str], split: bool) -> None:
    text = instructions(servers, split=split)
    assert len(text.encode()) <= INSTRUCTIONS_BYTES
    assert text == instructions(list(reversed(servers)), split=split)
    shown = [name for name in sorted(servers) if name in text]
    assert "search_tools" in text
    assert ("execute_read_tool" in text) == split
    if len(shown) < len(servers):
        assert "more" in text


def test_instructions_say_when_to_search_and_how_many_are_left_out() -> None:
    few = instructions(["slack", "github"])
    assert few.endswith("Servers: github, slack.")
    many = instructions([f"server-number-{n}" for n in range(1000)])
    assert " and " in many
    assert many.endswith(" more.")


def test_without_servers_that_is_said() -> None:
    assert "No servers" in instructions([])
