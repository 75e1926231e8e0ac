"""Reading a schema takes so many steps and no more, whoever wrote it; an ordinary one is read to its end.

One tool's schema of 1 MB once kept every client of the proxy waiting for a minute.
"""

import json
import urllib.parse
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.model.limits import SCHEMA_WORK, SIGNATURE, URI
from mcpzip.model.schema_reader import SchemaReader
from mcpzip.model.signature import parameters, signature

UNBOUNDED = 10**9


def work_of(schema: object, work: int = SCHEMA_WORK) -> int:
    """Steps that it takes to read all of ``schema``."""
    reader = SchemaReader(schema, work)
    found = reader.members(schema)
    for name in found.properties:
        reader.type(found.properties[name])
    return reader.work


class Counted(list):
    """A list that counts how many of its elements were looked at."""

    looked_at = 0

    def __iter__(self) -> Iterator[object]:
        for value in super().__iter__():
            self.looked_at += 1
            yield value


class CountedDict(dict):
    """The same for an object."""

    looked_at = 0

    def items(self):
        self.looked_at += len(self)
        return super().items()

    def values(self):
        self.looked_at += len(self)
        return super().values()


def references(to: str, count: int) -> dict[str, object]:
    return {f"p{number}": {"$ref": to} for number in range(count)}


def test_many_references_to_one_large_enum_look_at_it_once():
    values = Counted(f"value-{number}" for number in range(10_000))
    schema = {"properties": references("#/$defs/e", 500), "$defs": {"e": {"enum": values}}}
    assert "p0:string" in parameters(schema)
    assert values.looked_at <= len(values)


def test_an_enum_of_more_values_than_the_budget_is_not_looked_at_and_takes_nothing_with_it():
    values = Counted(f"value-{number}" for number in range(SCHEMA_WORK * 5))
    schema = {
        "properties": {
            **references("#/$defs/e", 400),
            "typed": {"type": "string", "enum": values},
            "z": {"type": "null"},
        },
        "$defs": {"e": {"enum": values}},
    }
    shown = parameters(schema)
    assert values.looked_at == 0
    assert "p0:any" in shown
    assert "typed:string" in shown
    assert "z:null" in shown


def test_a_large_base_that_is_combined_again_and_again_is_read_within_the_budget():
    base = CountedDict((f"p{number}", {"type": "string"}) for number in range(2_000))
    schema = {"allOf": [{"$ref": "#/$defs/base"}] * 500, "$defs": {"base": {"properties": base}}}
    parameters(schema)
    assert base.looked_at <= SCHEMA_WORK
    assert work_of(schema) <= SCHEMA_WORK


def test_a_percent_encoded_pointer_is_decoded_once(monkeypatch):
    decoded = []

    def unquote(text: str) -> str:
        decoded.append(text)
        return original(text)

    original = urllib.parse.unquote
    monkeypatch.setattr(urllib.parse, "unquote", unquote)
    pointer = "#/$defs/" + "%61" * 2_000
    schema = {"properties": references(pointer, 150), "$defs": {"a" * 2_000: {"type": "integer"}}}
    assert "p0:integer" in parameters(schema)
    assert len(decoded) == 1


@pytest.mark.parametrize("reference", ["#/" + "%61" * URI, "#" + "a" * URI, "#/" + "a/" * URI])
def test_a_longer_pointer_than_a_uri_may_be_leads_nowhere(reference):
    assert parameters({"properties": {"a": {"$ref": reference}, "b": {"type": "null"}}}) == "[a:any, b:null]"


def test_anchors_are_looked_for_once():
    schemas = CountedDict((f"d{number}", {"$anchor": f"a{number}"}) for number in range(5_000))
    schema = {"properties": references("#nowhere", 500), "$defs": schemas}
    parameters(schema)
    assert schemas.looked_at <= 5_000


def test_an_anchor_among_more_schemas_than_the_budget_is_not_looked_for():
    schemas = CountedDict((f"d{number}", {"$anchor": f"a{number}"}) for number in range(SCHEMA_WORK + 1))
    parameters({"properties": references("#a1", 50), "$defs": schemas})
    assert schemas.looked_at == 0


def test_a_schema_that_branches_into_itself_is_read_within_the_budget():
    tree = {"anyOf": [{"$ref": "#/$defs/tree"}, {"$ref": "#/$defs/tree"}, {"type": "string"}]}
    schema = {"properties": references("#/$defs/tree", 900), "$defs": {"tree": tree}}
    assert work_of(schema) < SCHEMA_WORK


def test_a_schema_of_very_many_properties_names_some_and_goes_no_further():
    schema = {"properties": {f"p{number:06}": {"type": "string"} for number in range(SCHEMA_WORK * 3)}}
    assert "p000000:" in parameters(schema)
    assert work_of(schema) <= SCHEMA_WORK


def test_a_line_has_an_end_however_many_parameters_are_required():
    names = [f"{number:05}" + "n" * 300 for number in range(3_000)]
    tool = {"name": "t", "inputSchema": {"properties": {key: {} for key in names}, "required": names}}
    line = signature(Entry.parse("s", json.dumps(tool).encode()))
    assert len(line) < SIGNATURE + 500
    assert line.endswith("more]")


# --- whatever the schema ------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d e"])
TYPES = st.sampled_from(["string", "integer", "null", "array", "object", "weird"])
SAID = st.one_of(TYPES, st.lists(TYPES, max_size=4))
REFERENCES = st.sampled_from(
    ["#", "#/$defs/a", "#/$defs/b", "#x", "other", "#/$defs/%61", "#/properties/a", "#/allOf/0", "#/nowhere"]
)
VALUES = st.lists(
    st.one_of(
        st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(["a", "string", "x y", "l" * 60, ""])
    ),
    max_size=9,
)


def _larger(schemas: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    several = st.lists(schemas, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": SAID,
            "enum": VALUES,
            "$ref": REFERENCES,
            "properties": st.dictionaries(NAMES, schemas, max_size=4),
            "required": st.lists(NAMES, max_size=3),
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "items": schemas,
            "prefixItems": several,
            "$anchor": st.just("x"),
            "$id": st.just("other"),
        },
    )


LEAVES = st.one_of(
    st.booleans(), st.fixed_dictionaries({}, optional={"type": SAID, "enum": VALUES, "$ref": REFERENCES})
)
SCHEMAS = st.recursive(LEAVES, _larger, max_leaves=16)
ROOTS = st.builds(
    lambda schema, defined: {**(schema if isinstance(schema, dict) else {}), "$defs": defined},
    SCHEMAS,
    st.dictionaries(st.sampled_from(["a", "b"]), SCHEMAS, max_size=2),
)


@given(ROOTS, st.integers(0, 300))
def test_no_schema_takes_more_steps_than_it_may(schema, work):
    assert work_of(schema, work) <= work
    assert work_of(schema) <= SCHEMA_WORK


@given(ROOTS)
def test_what_fits_the_budget_reads_as_it_would_without_one(schema):
    bounded, unbounded = SchemaReader(schema), SchemaReader(schema, UNBOUNDED)
    found, whole = bounded.members(schema), unbounded.members(schema)
    if work_of(schema, UNBOUNDED) > SCHEMA_WORK:
        return
    assert found == whole
    for name in found.properties:
        assert bounded.type(found.properties[name]) == unbounded.type(whole.properties[name])


@given(ROOTS, st.integers(1, 8))
def test_a_schema_that_is_a_thousandfold_of_another_is_read_within_the_same_budget(schema, many):
    copies = {f"p{number}": schema for number in range(1_000 * many)}
    assert work_of({"properties": copies, "allOf": [schema] * 1_000 * many}) <= SCHEMA_WORK
