"""Where two schemas differ, and for whom that breaks something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_fakes.drift.schemas import schema_drifts

OBJECT = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
    "required": ["a"],
}
A, C = {"a": {}}, {"a": {}, "c": {}}


def changed(**keys: object) -> dict[str, object]:
    return {**OBJECT, **keys}


@pytest.mark.parametrize(
    ("before", "after", "path", "written", "read"),
    [
        (OBJECT, changed(required=["a", "b"]), "s.required.b", "breaking", "added"),
        (OBJECT, changed(required=[]), "s.required.a", "changed", "breaking"),
        (OBJECT, changed(properties={"a": {"type": "string"}}), "s.properties.b", "breaking", "breaking"),
        (
            changed(properties=A),
            changed(properties=C),
            "s.properties.c",
            "added",
            "added",
        ),
        (
            changed(properties=A),
            changed(properties=C, required=["a", "c"]),
            "s.properties.c",
            "breaking",
            "added",
        ),
        ({"type": "string"}, {"type": ["string", "null"]}, "s.type", "changed", "breaking"),
        ({"type": ["string", "null"]}, {"type": "string"}, "s.type", "breaking", "changed"),
        ({"type": "string"}, {"type": "integer"}, "s.type", "breaking", "breaking"),
        ({"enum": [1, 2]}, {"enum": [1]}, "s.enum", "breaking", "changed"),
        ({"enum": [1]}, {"enum": [1, 2]}, "s.enum", "added", "changed"),
        ({"enum": [1, 2]}, {"enum": [2, 1]}, "s.enum", "changed", "changed"),
        ({}, {"additionalProperties": False}, "s.additionalProperties", "breaking", "changed"),
        ({"items": {"type": "string"}}, {"items": {"type": "null"}}, "s.items.type", "breaking", "breaking"),
        (
            {"anyOf": [{}, {"enum": [1]}]},
            {"anyOf": [{}, {"enum": [2, 1]}]},
            "s.anyOf.1.enum",
            "added",
            "changed",
        ),
        (
            {"$defs": {"x": {"title": "a"}}},
            {"$defs": {"x": {"title": "b"}}},
            "s.$defs.x.title",
            "changed",
            "changed",
        ),
        (True, False, "s", "breaking", "changed"),
    ],
)
def test_severities(before: object, after: object, path: str, written: str, read: str) -> None:
    for is_written, severity in ((True, written), (False, read)):
        (drift,) = schema_drifts(before, after, "s", written=is_written)
        assert (drift.path, drift.severity) == (path, severity)


@given(
    st.recursive(
        st.booleans() | st.text(max_size=3), lambda inner: st.dictionaries(st.text(max_size=9), inner)
    )
)
def test_any_schema_equals_itself_and_differs_from_another(schema: object) -> None:
    assert list(schema_drifts(schema, schema, "s", written=True)) == []
    assert list(schema_drifts({"x": schema}, {"x": [schema]}, "s", written=True)) != []


def test_a_member_that_is_no_schema_is_compared_as_it_is() -> None:
    (drift,) = schema_drifts(
        {"properties": 1, "title": "a"}, {"properties": 1, "title": "b"}, "s", written=True
    )
    assert drift.path == "s.title"
    assert list(schema_drifts({"required": "a"}, {"required": "b"}, "s", written=True)) == []
