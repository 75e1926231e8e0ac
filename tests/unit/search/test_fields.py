"""What of a tool is searched, however its schema is written."""

import json

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search.fields import DESCRIPTION_WORDS, PARAMETER_WORDS, Fields


def fields(**tool: object) -> Fields:
    return Fields.of(Entry.parse("notes", json.dumps({"name": "add_note", **tool}).encode()))


def test_every_field() -> None:
    found = fields(
        title="Add a note",
        description="Writes a note.",
        inputSchema={
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What to write"},
                "colour": {"enum": ["red", 3, "blue", None]},
                "tags": {"type": "array", "items": {"type": "string", "enum": ["urgent"]}},
                "place": {"properties": {"latitude": {"description": "Degrees"}}},
                "when": {"anyOf": [{"type": "null"}, {"properties": {"hour": {}}, "enum": ["now"]}]},
            },
        },
    )
    assert found == Fields(
        name="add_note",
        server="notes",
        title="Add a note",
        description="Writes a note.",
        parameters="text colour tags place latitude when hour",
        values="red blue urgent now",
        parameter_descriptions="What to write Degrees",
    )


def test_alternatives_of_the_whole_schema() -> None:
    found = fields(inputSchema={"oneOf": [{"properties": {"path": {}}}, {"properties": {"url": {}}}]})
    assert found.parameters == "path url"


def test_descriptions_are_cut() -> None:
    found = fields(
        description="word " * 500, inputSchema={"properties": {"a": {"description": "word " * 500}}}
    )
    assert len(found.description.split()) == DESCRIPTION_WORDS
    assert len(found.parameter_descriptions.split()) == PARAMETER_WORDS


def test_a_text_without_spaces_is_cut_too() -> None:
    assert len(fields(description="文" * 30_000).description) < 20 * DESCRIPTION_WORDS


def test_a_generated_schema_ends_somewhere() -> None:
    nested: dict[str, object] = {"properties": {"deepest": {}}}
    for _ in range(30):
        nested = {"properties": {"level": nested}}
    found = fields(
        inputSchema={"properties": {"nested": nested} | {f"p{number}": {} for number in range(5000)}}
    )
    assert "deepest" not in found.parameters
    assert 100 < len(found.parameters.split()) < 1000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["properties", "items", "enum", "anyOf", "oneOf", "allOf", "description", "type", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(json_values, json_values)
def test_no_schema_is_too_odd(schema: object, description: object) -> None:
    found = fields(inputSchema=schema, description=description, title=schema)
    assert (found.name, found.server) == ("add_note", "notes")
