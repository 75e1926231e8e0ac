"""The compact form: exactly as promised, one line, and never an exception."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.model.signature import BUDGET, parameters, signature, summary


def entry(name="send_message", description="Send a Slack message", schema=None, server="slack", **fields):
    tool = {"name": name, "description": description, "inputSchema": schema, **fields}
    return Entry.parse(server, json.dumps(tool).encode())


def members(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


STRING, INTEGER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (
            entry(schema=members(["text", "channel"], channel=STRING, text=STRING)),
            "slack__send_message: Send a Slack message [channel:string*, text:string*]",
        ),
        (
            entry("channels_list", "List Slack channels", members(limit=INTEGER)),
            "slack__channels_list: List Slack channels [limit:integer]",
        ),
        (
            entry(
                "create_task",
                "Create a new task",
                members(["content"], content=STRING, project_id=STRING),
                server="todoist",
            ),
            "todoist__create_task: Create a new task [content:string*, project_id:string]",
        ),
        (entry("now", "The time.", members()), "slack__now: The time []"),
        (entry("now", "The time", None), "slack__now: The time []"),
        (entry("any", "Take anything", {"additionalProperties": True}), "slack__any: Take anything […]"),
        (entry("bare", None, members(q=STRING)), "slack__bare [q:string]"),
        (entry("titled", None, members(), title="A title"), "slack__titled: A title []"),
        (
            entry("two\nlines", "One\n  and\ttwo", members(**{"a b": STRING})),
            'slack__two lines: One and two ["a b":string]',
        ),
    ],
)
def test_a_tool_is_one_line_in_the_compact_form(made, line):
    assert signature(made) == line


ISSUE = {"$defs": {"Issue": members(["title"], title=STRING, state={"enum": ["open", "closed"]})}}


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string"),
        ({"type": ["string", "integer"]}, "string|integer"),
        ({"type": "null"}, "null"),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"type": ["string", "integer"]}}, "(string|integer)[]"),
        ({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}, "number[][]"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}, "(string|number)[]"),
        ({"type": "array", "items": [{"type": "string"}, {"type": "string"}]}, "string[]"),
        ({"type": "array"}, "any[]"),
        ({"type": "array", "items": True}, "any[]"),
        ({"items": {"type": "string"}}, "string[]"),
        ({"type": "object", "properties": {"a": {}}}, "object"),
        ({"properties": {"a": {}}}, "object"),
        ({"enum": ["open", "closed"]}, "open|closed"),
        ({"type": "string", "enum": ["open", "closed", None]}, "open|closed"),
        ({"enum": [1, 2.5, True, "1", "true"]}, '1|2.5|true|"1"|"true"'),
        ({"enum": ["a b", "c,d"]}, '"a b"|"c,d"'),
        ({"enum": ["", 'say "hi"']}, '""|"say \\"hi\\""'),
        ({"enum": [f"v{n}" for n in range(20)]}, "string"),
        ({"enum": ["x" * 30, "y" * 30]}, "string"),
        ({"enum": []}, "any"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "(a|b)[]"),
        ({"const": "fixed"}, "fixed"),
        ({"const": None}, "null"),
        ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, "a|b"),
        ({"oneOf": [{"const": f"value{n}"} for n in range(9)]}, "string"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string"),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "string|string[]"),
        ({"anyOf": [{"type": "string"}, {}]}, "any"),
        ({"allOf": [{"description": "no type here"}, {"type": "integer"}]}, "integer"),
        ({"$ref": "#/$defs/Issue"}, "object"),
        ({"$ref": "#/definitions/Old"}, "integer"),
        ({"$ref": "#/$defs/a~1b%20c"}, "boolean"),
        ({"$ref": "#/$defs/Union/anyOf/1"}, "number"),
        ({"$ref": "#anchored"}, "number[]"),
        ({"$ref": "#/$defs/Loop"}, "any"),
        ({"$ref": "#/$defs/Missing"}, "any"),
        ({"$ref": "https://example.com/schema.json"}, "any"),
        ({"$ref": 7}, "any"),
        ({"type": {"not": "a type"}}, "any"),
        ({}, "any"),
        (True, "any"),
        (False, "any"),
        ([], "any"),
        (None, "any"),
        ("string", "any"),
    ],
)
def test_a_type_is_read_through_every_way_to_write_it(schema, shown):
    root = {
        "type": "object",
        "properties": {"p": schema},
        "definitions": {"Old": {"type": "integer"}},
        "$defs": {
            **ISSUE["$defs"],
            "a/b c": {"type": "boolean"},
            "Union": {"anyOf": [{"type": "string"}, {"type": "number"}]},
            "Named": {"$anchor": "anchored", "type": "array", "items": {"type": "number"}},
            "Loop": {"$ref": "#/$defs/Loop"},
        },
    }
    assert parameters(root) == f"[p:{shown}]"


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"$ref": "#/$defs/Issue", **ISSUE}, "[title:string*, state:open|closed]"),
        ({"allOf": [members(["a"], a=STRING), members(b=INTEGER)]}, "[a:string*, b:integer]"),
        (
            {"oneOf": [members(["a"], a=STRING), members(["a", "b"], a=STRING, b=INTEGER)]},
            "[a:string*, b:integer]",
        ),
        ({"required": ["unlisted"]}, "[unlisted:any*]"),
        ({"properties": {"a": {"type": "string", "required": True}}}, "[a:string*]"),
        ({"properties": {"a": True}, "required": "a"}, "[a:any]"),
        ({"properties": ["a"]}, "[]"),
        ({"$ref": "#"}, "[]"),
        (True, "[]"),
        (None, "[]"),
        ([], "[]"),
    ],
)
def test_the_parameters_are_read_through_combinations_of_schemas(schema, shown):
    assert parameters(schema) == shown


def test_optional_parameters_give_way_to_the_budget_and_required_ones_do_not():
    many = {f"option_{n:02}": STRING for n in range(30)}
    line = signature(entry(schema=members(["channel"], channel=STRING, **many)))
    assert len(line) <= BUDGET
    assert line.startswith("slack__send_message: Send a Slack message [channel:string*, option_00:string, ")
    assert line.endswith(" more]")
    shown = line.count("option_")
    assert f", … +{30 - shown} more]" in line
    needed = {f"needed_{n:02}": STRING for n in range(30)}
    assert signature(entry(schema=members(needed, **needed))).count(":string*") == 30


def test_the_last_optional_parameter_is_shown_when_it_fits_without_a_note():
    whole = parameters(members(a=STRING, b=STRING))
    assert parameters(members(a=STRING, b=STRING), len(whole)) == whole
    assert parameters(members(a=STRING, b=STRING), len(whole) - 1) == "[… +2 more]"


@pytest.mark.parametrize(
    ("text", "budget", "kept"),
    [
        ("Get the time.", 40, "Get the time"),
        ("Get the time. Fast. Then a sentence that is much too long.", 40, "Get the time. Fast"),
        ("Find issues, e.g. Open ones. More text that follows.", 30, "Find issues, e.g. Open ones"),
        ("Version 2.0 of it. More text follows here.", 20, "Version 2.0 of it"),
        ("Get it\n\nReturns ISO", 40, "Get it. Returns ISO"),
        ("Get it\n\nArgs:\n    zone: where", 40, "Get it"),
        ("Get it\n\n**Parameters:**\n- zone", 40, "Get it"),
        ("Args: are welcome", 40, "Args: are welcome"),
        ("Really? Yes! No (maybe.) Something longer than that", 25, "Really? Yes! No (maybe.)"),
        ("one two three four five", 14, "one two three…"),
        ("one two three, four five", 16, "one two three…"),
        ("x" * 50, 10, "x" * 9 + "…"),
        ("メッセージを送信します。チャンネルを指定してください。", 16, "メッセージを送信します"),
        ("发送消息！需要频道。还有很多别的内容写在这里。", 12, "发送消息！ 需要频道"),
        ("संदेश भेजें। चैनल बताएं और बहुत कुछ", 20, "संदेश भेजें।"),
        ("Wait... And go on for long", 9, "Wait..."),
        ("List a, b, etc.", 40, "List a, b, etc."),
        ("\x1b[31mred\x1b[0m \u202eevil\u200b text\x00", 40, "[31mred [0m evil text"),
        ("  \n ", 40, ""),
        ("", 40, ""),
    ],
)
def test_a_description_is_cut_at_a_sentence_or_a_word(text, budget, kept):
    assert summary(text, budget) == kept
    assert len(kept) <= budget


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "required",
                    "items",
                    "prefixItems",
                    "anyOf",
                    "oneOf",
                    "allOf",
                    "enum",
                    "const",
                    "$ref",
                    "$defs",
                    "definitions",
                    "additionalProperties",
                    "description",
                    "a",
                    "b",
                ]
            )
            | st.text(max_size=4),
            inner
            | st.sampled_from(
                ["string", "array", "object", "null", "#", "#/$defs/a", "#/properties/a", "#/anyOf/0"]
            ),
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(
    schema=JSON,
    name=st.text(min_size=1, max_size=12),
    description=st.text(max_size=200),
    budget=st.integers(0, 300),
)
def test_every_schema_and_text_makes_one_printable_line(schema, name, description, budget):
    line = signature(entry(name, description, schema), budget)
    assert len(line.splitlines()) == 1
    assert line.startswith("slack__")
    assert line.endswith("]")
    line.encode()
    assert isinstance(parameters(schema, budget), str)


@given(schema=JSON, budget=st.integers(0, 200))
def test_every_required_parameter_is_shown_at_any_budget(schema, budget):
    starred = [part for part in parameters(schema).split(", ") if part.rstrip("]").endswith("*")]
    cut = parameters(schema, budget)
    for part in starred:
        assert part.strip("[]") in cut


def test_a_schema_that_doubles_with_every_reference_ends_soon():
    levels = {f"L{n}": {"anyOf": [{"$ref": f"#/$defs/L{n + 1}"}] * 2} for n in range(200)}
    schema = {"$ref": "#/$defs/L0", "properties": {"p": {"$ref": "#/$defs/L0"}}, "$defs": levels}
    assert parameters(schema) == "[p:any]"


def test_a_schema_that_is_very_deep_ends_as_any():
    deep: object = STRING
    for _ in range(500):
        deep = {"type": "array", "items": deep}
    shown = parameters(members(p=deep))
    assert shown.startswith("[p:any[]")
