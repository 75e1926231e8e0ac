"""What a change lets a server do that it couldn't do before."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.checks import compare
from mcpzip.model import limits
from mcpzip.model.surface import Item


def tool(schema: object, **hints: bool) -> Item:
    body = {"name": "run", "inputSchema": schema, "annotations": hints}
    return Item("tool", "run", json.dumps(body).encode())


def takes(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


S = {"type": "string"}
CLOSED_BUT = {"additionalProperties": False, "patternProperties": {"^x": {}}}


@pytest.mark.parametrize(
    ("old", "new", "check", "path"),
    [
        (takes(), takes(b=S), "change.widened", "/properties/b"),
        (takes(), takes(note=S), "change.sink", "/properties/note"),
        (takes(), takes(bcc=S), "change.sink", "/properties/bcc"),
        (takes(a={"enum": [1]}), takes(a={"enum": [1, 2]}), "change.widened", "/properties/a/enum"),
        (takes(a={"enum": [1]}), takes(a={}), "change.widened", "/properties/a/enum"),
        (takes(a=S | {"pattern": "x"}), takes(a=S), "change.widened", "/properties/a/pattern"),
        (
            takes(a=S | {"maxLength": 3}),
            takes(a=S | {"maxLength": 4}),
            "change.widened",
            "/properties/a/maxLength",
        ),
        (takes(a=S | {"maxLength": 3}), takes(a=S), "change.widened", "/properties/a/maxLength"),
        (takes(a={"minimum": 3}), takes(a={"minimum": 2}), "change.widened", "/properties/a/minimum"),
        (takes(a=S), takes(a={"type": ["string", "null"]}), "change.widened", "/properties/a/type"),
        (takes(a=S), takes(a={}), "change.widened", "/properties/a/type"),
        (takes(a={"type": "integer"}), takes(a={"type": "number"}), "change.widened", "/properties/a/type"),
        ({"additionalProperties": False}, {}, "change.widened", "/additionalProperties"),
        (takes(a={"anyOf": [S]}), takes(a={"anyOf": [S, {}]}), "change.widened", "/properties/a/anyOf"),
        (
            takes(a={"items": S | {"const": 1}}),
            takes(a={"items": S}),
            "change.widened",
            "/properties/a/items/const",
        ),
        (
            takes(a=takes()),
            takes(a=takes(b={"type": "number"})),
            "change.widened",
            "/properties/a/properties/b",
        ),
        ({"allOf": [{"required": ["a"]}]}, {}, "change.widened", "/allOf"),
        (takes(a=False), takes(a=S), "change.widened", "/properties/a"),
        ({"unevaluatedProperties": False}, {}, "change.widened", "/unevaluatedProperties"),
        ({"dependentRequired": {"a": ["b"]}}, {}, "change.widened", "/dependentRequired"),
        (takes(a={"uniqueItems": True}), takes(a={}), "change.widened", "/properties/a/uniqueItems"),
        (takes(a={"prefixItems": [S]}), takes(a={}), "change.widened", "/properties/a/prefixItems"),
        ({"additionalProperties": False}, CLOSED_BUT, "change.widened", "/patternProperties/^x"),
    ],
)
def test_a_schema_that_accepts_more(old: object, new: object, check: str, path: str) -> None:
    found = [one for one in compare(tool(old), tool(new)) if one.severity == "risky"]
    assert [(one.check, one.path) for one in found] == [(check, "/inputSchema" + path)]
    assert [
        one for one in compare(tool(new), tool(old)) if one.path.endswith(path) and "enum" not in path
    ] == []


@pytest.mark.parametrize(
    ("old", "new", "severity"),
    [
        ({"readOnlyHint": False}, {"readOnlyHint": True}, "risky"),
        ({"readOnlyHint": True}, {}, "risky"),
        ({"destructiveHint": True}, {}, "risky"),
        ({}, {"destructiveHint": False}, "risky"),
        ({}, {"destructiveHint": True}, "note"),
        ({}, {"readOnlyHint": False}, "note"),
        ({"openWorldHint": True}, {"openWorldHint": False}, "risky"),
    ],
)
def test_hints(old: dict[str, bool], new: dict[str, bool], severity: str) -> None:
    found = compare(tool({}, **old), tool({}, **new))
    assert [(one.check, one.severity) for one in found] == [("change.hints", severity)]


def test_other_spelling_is_no_change() -> None:
    old = b'{"name":"run","inputSchema":{"properties":{"a":{"minimum":1,"enum":[{"x":1,"y":2}]}}}}'
    new = b'{ "inputSchema":{"properties":{"a":{"enum":[{"y":2.0,"x":1}],"minimum":1.0}}},"name":"run"}'
    assert compare(Item("tool", "run", old), Item("tool", "run", new)) == []


schemas = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "number", "object"]),
            "enum": st.lists(st.integers(0, 3), max_size=3),
            "maxLength": st.integers(0, 9),
            "additionalProperties": st.booleans(),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {"properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3)}
    ),
    max_leaves=6,
)


@given(schemas)
def test_the_same_schema_is_no_change(schema: dict[str, object]) -> None:
    reordered = dict(reversed(schema.items()))
    assert compare(tool(schema), tool(reordered)) == []


def test_what_is_too_much_to_compare_is_told() -> None:
    deep, other = takes(a=S), takes(a={})
    for _ in range(limits.SCHEMA_DEPTH):
        deep, other = takes(a=deep), takes(a=other)
    wide = {f"a{number}": takes(b=S) for number in range(limits.SCHEMA_WORK // 2)}
    for before, after in ((deep, other), (takes(**wide), takes(**wide, z=takes(b=S)))):
        found = compare(tool(before), tool(after))
        assert "too much to compare" in " ".join(one.excerpt for one in found)
    assert compare(tool(deep), tool(deep)) == []


def test_another_reference_may_accept_anything() -> None:
    before, after = takes(a=S), takes(a=S | {"$ref": "#/$defs/x"})
    for one, other in ((before, after), (after, before)):
        assert [each.path for each in compare(tool(one), tool(other))] == ["/inputSchema/properties/a/$ref"]


def test_what_a_reference_leads_to_is_compared_wherever_it_stands() -> None:
    def at(of: object) -> Item:
        return tool({"properties": {"a": {"$ref": "#/x/y"}}, "x": {"y": of}})

    assert [one.path for one in compare(at({"type": "integer"}), at({}))] == ["/inputSchema/x"]


def test_a_long_text_before_it_hides_no_change_of_a_schema() -> None:
    """Values were compared by their first 1,000 characters."""

    def one_of(*names: str) -> Item:
        branch = {"description": "word " * 300, "properties": dict.fromkeys(names, S)}
        return tool({"anyOf": [branch]})

    assert [one.check for one in compare(one_of("a"), one_of("a", "b"))] == ["change.widened"]


@pytest.mark.parametrize("more", [b'"inputSchema":{"properties":{"a":{},"b":{}}},', b'"x":1,"x":2,'])
def test_a_member_that_occurs_twice_is_a_change(more: bytes) -> None:
    """The first one counts for some readers, the last for others."""
    body = b'{"name":"run",%b"inputSchema":{"properties":{"a":{}}}}'
    old, new = Item("tool", "run", body % b""), Item("tool", "run", body % more)
    assert {one.check for one in compare(old, new)} == {"change.widened"}
    assert compare(new, new) == []


@pytest.mark.parametrize("depth", [200, 600, 900])
def test_a_change_that_is_nested_too_deep_to_be_compared_is_one(depth: int) -> None:
    def nested(value: bytes) -> Item:
        deep = b"[" * depth + value + b"]" * depth
        return Item("tool", "run", b'{"inputSchema":{"const":%b}}' % deep)

    assert {one.check for one in compare(nested(b"1"), nested(b"2"))} == {"change.widened"}
