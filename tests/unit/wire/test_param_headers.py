"""The headers that repeat arguments: what the official SDK makes of a schema and arguments, we make too."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mcp.shared.inbound import (
    decode_header_value,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    validate_mcp_param_headers,
    x_mcp_header_map,
)

from mcpzip.wire.param_headers import (
    ANNOTATION,
    PREFIX,
    header_text,
    header_value,
    invalid_annotation,
    param_headers,
    param_mismatch,
)

Json = dict[str, object]

NAMES = st.sampled_from(["a", "b", "c.d", "é"])
HEADERS = st.sampled_from(["Region", "REGION", "Id", "x-1", "~", "", "a b", "é", "a\n", 7, None, ["Id"]])
TYPES = st.sampled_from(["string", "integer", "boolean", "number", "object", "null", ["string"], None, 1])
SINGLE = st.sampled_from(
    ["items", "contains", "additionalProperties", "propertyNames", "not", "if", "contentSchema", "default"]
)
LISTS = st.sampled_from(["allOf", "anyOf", "oneOf", "prefixItems", "enum", "examples", "items"])
MAPS = st.sampled_from(["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"])
FITTING = st.sampled_from(["string", "integer", "boolean"])


def annotated(schema: Json, header: object, kind: object) -> Json:
    return {**schema, ANNOTATION: header, "type": kind}


@st.composite
def nested(draw: st.DrawFn, inner: st.SearchStrategy[object]) -> Json:
    """A schema that holds others, in right places and in wrong ones."""
    made: Json = {}
    for _ in range(draw(st.integers(1, 3))):
        match draw(st.integers(0, 4)):
            case 0:
                made[draw(SINGLE)] = draw(inner)
            case 1:
                made[draw(LISTS)] = draw(st.lists(inner, max_size=2) | inner)
            case 2:
                made[draw(MAPS)] = draw(st.dictionaries(NAMES, inner, max_size=2) | inner)
            case _:
                made["properties"] = draw(st.dictionaries(NAMES, inner, max_size=3))
    return made


LEAVES: st.SearchStrategy[object] = st.one_of(
    st.sampled_from([None, True, 7, "text", [], {}, {"type": "string"}]),
    st.builds(annotated, st.just({}), HEADERS, TYPES),
    st.builds(annotated, st.just({}), st.sampled_from(["Region", "REGION", "Id", "x-1"]), FITTING),
)
SCHEMAS = st.recursive(LEAVES, nested, max_leaves=8)


@st.composite
def valid_schemas(draw: st.DrawFn) -> Json:
    """A schema with headers that can be, some of them on properties of properties."""
    headers = iter(draw(st.permutations(["Region", "Id", "x-1", "Tenant", "~", "Zone"])))

    def properties(depth: int) -> Json:
        made: Json = {}
        for name in draw(st.lists(NAMES, unique=True, min_size=1, max_size=3)):
            header = next(headers, None)
            if depth < 2 and draw(st.booleans()):
                made[name] = {"type": "object", "properties": properties(depth + 1)}
            elif header is not None:
                made[name] = annotated({}, header, draw(FITTING))
        return made

    unheeded: Json = {"enum": [{ANNOTATION: "Region"}], "default": {ANNOTATION: 7}, "$ref": "#/$defs/x"}
    schema: Json = {"type": "object", "properties": properties(0)}
    return schema | unheeded if draw(st.booleans()) else schema


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 42, -7, 42.0, -7.5, 1e30, 2**53 + 1, 10**399, float("inf"), float("nan")]),
    st.text(max_size=8),
    st.sampled_from(["42", " a", "a ", "", "=?base64?YQ==?=", "a\tb", "a\r\nb", "é", "=?base64?a"]),
)
ARGUMENTS = st.dictionaries(
    NAMES,
    st.recursive(
        SCALARS, lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner), max_leaves=8
    ),
    max_size=4,
)
SAID = st.one_of(
    st.sampled_from(["42", "42.0", "42.000", "42.5", "-7", "-7.0", "042", "+42", "4e1", "", "true", "false"]),
    st.sampled_from(
        ["=?base64?NDI=?=", "=?base64?YQ==?=", "=?base64?YR==?=", "=?base64?YQ?=", "=?base64?!?="]
    ),
    st.sampled_from(["=?base64??=", "=?base64?/w==?=", "=?base64?YQ== ?=", "=?BASE64?YQ==?=", "inf", "nan"]),
    st.text("aé =?", max_size=4),
)


def theirs(schema: object, arguments: Json) -> dict[str, str]:
    return mcp_param_headers(x_mcp_header_map(schema), arguments)


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@given(SCHEMAS)
def test_a_schema_is_valid_for_us_where_it_is_valid_for_the_sdk(schema: object) -> None:
    assert (invalid_annotation(schema) is None) == (find_invalid_x_mcp_header(schema) is None)


@given(valid_schemas(), ARGUMENTS)
def test_the_same_headers_are_made_of_the_same_arguments(schema: Json, arguments: Json) -> None:
    assert invalid_annotation(schema) is None
    assert param_headers(schema, arguments) == theirs(schema, arguments)


@given(SCHEMAS, ARGUMENTS)
def test_any_schema_that_is_valid_gives_the_same_headers(schema: object, arguments: Json) -> None:
    assume(find_invalid_x_mcp_header(schema) is None)
    assert param_headers(schema, arguments) == theirs(schema, arguments)


@given(valid_schemas(), ARGUMENTS)
def test_the_headers_that_we_make_are_no_mismatch(schema: Json, arguments: Json) -> None:
    made = param_headers(schema, arguments)
    assert param_mismatch(schema, arguments, lowered(made)) is None
    assert validate_mcp_param_headers(schema, arguments, made) is None


@given(valid_schemas() | SCHEMAS, ARGUMENTS, st.data())
def test_a_mismatch_is_one_for_both(schema: object, arguments: Json, data: st.DataObject) -> None:
    """The SDK has no limit on the digits of a number that is compared as one; none drawn here comes near."""
    said = lowered(theirs(schema, arguments)) if find_invalid_x_mcp_header(schema) is None else {}
    names = [*said, *(PREFIX.lower() + header for header in ("region", "id", "x-1", "~"))]
    for name in data.draw(st.lists(st.sampled_from(names), max_size=3)):
        value = data.draw(st.none() | SAID)
        if value is None:
            said.pop(name, None)
        else:
            said[name] = value
    ours = param_mismatch(schema, arguments, said)
    assert (ours is None) == (validate_mcp_param_headers(schema, arguments, said) is None)


@given(st.text())
def test_a_text_comes_back_from_its_header_and_is_the_same_for_the_sdk(text: str) -> None:
    value = header_value(text)
    assert value == encode_header_value(text)
    assert value.isascii()
    assert value == value.strip()
    assert header_text(value) == decode_header_value(value) == text


@given(st.text(st.characters(categories=["Cs", "L"])))
def test_a_lone_surrogate_comes_back_too(text: str) -> None:
    """The SDK raises UnicodeEncodeError; JSON has such strings, and a call with one is passed on."""
    assert header_text(header_value(text)) == text


@given(SAID | st.text("=?base64YQ /w", max_size=6).map("=?base64?{}?=".format) | st.text(max_size=9))
def test_a_header_stands_for_the_same_text_for_both(value: str) -> None:
    assume("\n" not in value)  # no header has one
    assert header_text(value) == decode_header_value(value)


def test_a_mark_without_an_end_of_its_own_is_plain_text() -> None:
    """`=?base64?=` begins as what is encoded does, and ends so, with one and the same question mark."""
    assert decode_header_value("=?base64?=") == "=?base64?="
    assert header_text("=?base64?=") == "=?base64?="
    assert header_text(header_value("=?base64?=")) == "=?base64?="


def test_a_header_that_is_not_there_stands_for_nothing() -> None:
    assert header_text(None) is None


MISPLACED = "x-mcp-header is on a schema without a fixed path of properties"
REGION: Json = {"type": "object", "properties": {"region": annotated({}, "Region", "string")}}
COUNT: Json = {
    "properties": {
        "shop": {"properties": {"count": annotated({}, "Count", "integer")}},
        "on": {"type": "boolean"},
    }
}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (annotated({}, "Region", "string"), "x-mcp-header is on a schema without a fixed path of properties"),
        (
            {"items": annotated({}, "Region", "string")},
            MISPLACED,
        ),
        (
            {"properties": {"a": {"items": annotated({}, "Region", "string")}}},
            MISPLACED,
        ),
        ({"properties": {"a": annotated({}, "a b", "string")}}, "x-mcp-header is not a header name"),
        ({"properties": {"a": annotated({}, 7, "string")}}, "x-mcp-header is not a header name"),
        (
            {"properties": {"a": annotated({}, "Region", "number")}},
            "x-mcp-header 'Region' is not on a string, an integer or a boolean",
        ),
        (
            {"properties": {"a": annotated({}, "Id", "string"), "b": annotated({}, "ID", "string")}},
            "x-mcp-header 'Id' is used twice",
        ),
    ],
)
def test_what_is_wrong_with_an_annotation_is_said(schema: Json, reason: str) -> None:
    told = invalid_annotation(schema)
    assert told is not None
    assert told.lower() == reason.lower()
    assert param_mismatch(schema, {}, {"mcp-param-region": "x"}) is None


@pytest.mark.parametrize(
    ("schema", "arguments", "headers", "sentence"),
    [
        (REGION, {"region": "eu"}, {"mcp-param-region": "eu"}, None),
        (REGION, {}, {}, None),
        (REGION, {"region": None}, {}, None),
        (REGION, {"region": "eu"}, {}, "Mcp-Param-Region is missing, but the argument 'region' is given."),
        (
            REGION,
            {"region": ["eu"]},
            {"mcp-param-region": "eu"},
            "Mcp-Param-Region is given, but the argument 'region' is missing.",
        ),
        (
            REGION,
            {"region": "eu"},
            {"mcp-param-region": "us"},
            "Mcp-Param-Region differs from the argument 'region'.",
        ),
        (COUNT, {"shop": {"count": 42}}, {"mcp-param-count": "42.0"}, None),
        (COUNT, {"shop": {"count": 42.0}}, {"mcp-param-count": "42"}, None),
        (
            COUNT,
            {"shop": {"count": 42}},
            {"mcp-param-count": "42.5"},
            "Mcp-Param-Count differs from the argument 'shop.count'.",
        ),
        (
            COUNT,
            {"shop": {"count": True}},
            {"mcp-param-count": "1"},
            "Mcp-Param-Count differs from the argument 'shop.count'.",
        ),
    ],
)
def test_what_does_not_match_is_said(
    schema: Json, arguments: Json, headers: dict[str, str], sentence: str | None
) -> None:
    assert param_mismatch(schema, arguments, headers) == sentence


@pytest.mark.parametrize(
    ("argument", "header"),
    [
        ('"eu"', "eu"),
        ('" eu"', "=?base64?IGV1?="),
        ('"Zürich"', "=?base64?WsO8cmljaA==?="),
        ('"=?base64?eu?="', "=?base64?PT9iYXNlNjQ/ZXU/PQ==?="),
        ("true", "true"),
        ("7", "7"),
        ("7.50", "7.5"),
        ("1e999", "inf"),
        ("null", None),
        ("{}", None),
    ],
)
def test_an_argument_is_spelt_in_its_header_like_this(argument: str, header: str | None) -> None:
    """A number beyond all floats is no number of JSON's any more; it is told as the SDK tells it."""
    arguments = json.loads(f'{{"region":{argument}}}')
    expected = {} if header is None else {"Mcp-Param-Region": header}
    assert param_headers(REGION, arguments) == expected == theirs(REGION, arguments)


def test_an_integer_of_thousands_of_digits_has_no_header() -> None:
    assert param_headers(COUNT, {"shop": {"count": 10**5000}}) == {}
