"""The type checker is told what a tool takes, as far as its schema says it beyond doubt."""

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.programs.problems import MOST, blocking
from mcpzip.programs.stubs import stubs


def tool(schema: object) -> Entry:
    return Entry.parse("a", json.dumps({"name": "b", "inputSchema": schema}).encode())


def line(schema: object) -> str:
    return stubs({"a__b": tool(schema)}, ()).splitlines()[-1]


@pytest.mark.parametrize(
    ("schema", "parameters"),
    [
        ({"type": "object", "properties": {}}, "**others: Any"),
        ({"type": "object"}, "**others: Any"),
        (
            {
                "type": "object",
                "properties": {"q": {"type": "string"}, "n": {"type": "integer"}},
                "required": ["q"],
            },
            "*, q: str, n: int | None = ...",
        ),
        (
            {"type": "object", "properties": {"q": {"type": "number"}}, "additionalProperties": True},
            "*, q: float | None = ..., **others: Any",
        ),
        ({"type": "object", "properties": {"from": {"type": "string"}}}, "**others: Any"),
        ({"type": "object", "properties": {"a-b": {}}, "required": ["a-b"]}, "**others: Any"),
        ({"type": "object", "properties": {"q": {"enum": ["x"]}}}, "*, q: Any = ..."),
        (
            {"type": "object", "properties": {"q": {"type": "array", "items": {"type": "string"}}}},
            "*, q: list[Any] | tuple[Any, ...] | None = ...",
        ),
        ({"type": "object", "properties": {"q": {"type": "object"}}}, "*, q: dict[Any, Any] | None = ..."),
        ({"type": "object", "properties": {"q": {"type": ["string", "integer"]}}}, "*, q: Any = ..."),
        (True, "**others: Any"),
    ],
)
def test_parameters(schema: object, parameters: str) -> None:
    assert line(schema) == f"def a__b({parameters}) -> Any: ..."


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["type", "properties", "required", "enum", "items", "$ref", "x", "class", "a b"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_any_schema_makes_a_stub_that_python_reads(schema: object) -> None:
    ast.parse(stubs({"a__b": tool(schema)}, ["x", "class", "a b", "__x"]))


def test_variables_are_known() -> None:
    assert "\nx: Any\n" in stubs({}, ["x", "not a name"])


def test_only_what_is_certainly_wrong_blocks() -> None:
    entry = tool({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]})
    found = [
        "main.py:3:5: error[unknown-argument] "
        "Argument `p` does not match any known parameter of function `a__b`",
        "main.py:2:1: error[invalid-syntax] `return` statement outside of a function",
        "main.py:4:1: error[unsupported-operator] Operator `+` is not supported",
        "no line of it",
    ]
    assert blocking(found, {"a__b": entry}, ()) == (
        "Line 2: Argument 'p' does not match any known parameter of function 'a__b'. a__b [q:string*]."
    )
    assert blocking(found[1:], {}, ()) == ""
    assert blocking([found[0]] * (MOST + 3), {}, ()).endswith("And 3 more.")
