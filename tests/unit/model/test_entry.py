"""An entry reads a tool, keeps its bytes, and forgives every field but the name."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidToolError


def test_the_fields_are_read_and_the_bytes_kept():
    raw = (
        b'{ "name":"a.b/c", "title":"T", "description":"D\\u00e9", "x-new":[1.0,1E2],'
        b'"inputSchema":{"type":"object"},'
        b'"annotations":{"title":"other","readOnlyHint":true,"idempotentHint":true} }'
    )
    entry = Entry.parse("slack", raw)
    assert entry.raw == raw
    assert (entry.server, entry.tool, entry.name) == ("slack", "a.b/c", "slack__a.b/c")
    assert (entry.title, entry.description) == ("T", "Dé")
    assert (entry.read_only, entry.idempotent) == (True, True)
    assert entry.definition()["x-new"] == [1.0, 100.0]
    assert entry.input_schema() == {"type": "object"}


@pytest.mark.parametrize(
    ("fields", "title", "read_only"),
    [
        ({"annotations": {"title": "From the annotations"}}, "From the annotations", False),
        ({"title": 7, "annotations": {"title": "Kept"}}, "Kept", False),
        ({"annotations": "none"}, "", False),
        ({"annotations": {"readOnlyHint": "true"}}, "", False),
        ({"annotations": {"readOnlyHint": True}}, "", True),
        ({"description": ["no text"]}, "", False),
        ({"inputSchema": True}, "", False),
        ({"inputSchema": None}, "", False),
    ],
)
def test_a_field_of_the_wrong_type_is_absent(fields, title, read_only):
    entry = Entry.parse("s", json.dumps({"name": "t", **fields}).encode())
    assert (entry.title, entry.description, entry.read_only, entry.idempotent) == (
        title,
        "",
        read_only,
        False,
    )
    assert entry.input_schema() == {}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"name"',
        b"{}",
        b'{"name":""}',
        b'{"name":7}',
        b'{"name":null}',
        b"[" * 5000,
    ],
)
def test_what_no_name_can_call_is_no_tool(raw):
    with pytest.raises(InvalidToolError, match=r"^a tool of 'slack' "):
        Entry.parse("slack", raw)


@given(
    name=st.text(min_size=1),
    others=st.dictionaries(
        st.sampled_from(["title", "description", "annotations", "inputSchema", "outputSchema", "_meta"]),
        st.none()
        | st.booleans()
        | st.text()
        | st.lists(st.integers())
        | st.dictionaries(st.text(), st.text()),
    ),
)
def test_any_object_with_a_name_is_a_tool(name, others):
    raw = json.dumps({"name": name, **others}).encode()
    entry = Entry.parse("s", raw)
    assert entry.raw == raw
    assert entry.definition() == {"name": name, **others}
