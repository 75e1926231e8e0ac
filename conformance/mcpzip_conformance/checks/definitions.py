"""Checks of tool definitions as a client or a model gets them."""

from collections.abc import Mapping

import msgspec

from mcpzip.wire import join_object, split_object
from mcpzip_conformance.check import CONTRACT, MAY, MUST, SHOULD, SPEC_2025, check
from mcpzip_conformance.compare_conversation import common_members, controlled
from mcpzip_conformance.compare_json import Likeness, diff, lines
from mcpzip_conformance.errors import Finding
from mcpzip_conformance.scene import SHOP, server, tool
from mcpzip_conformance.stage import Stage

TOOL = SPEC_2025 + "/server/tools#tool"
SCHEMAS = SPEC_2025 + "/basic#json-schema-usage"
DESCRIBE = ("describe",)

Fields = Mapping[str, object]


async def _shown(stage: Stage, fields: Fields) -> tuple[bytes, bytes]:
    """These fields of a tool's definition, directly and as the subject shows them; other fields are left out.
    Raises Finding if the subject shows no definition."""
    shop = server(tools=[tool("pay", fields, text="paid")])
    with controlled():
        straight = await (await stage.straight(shop)).definition(SHOP, "pay")
    through = await (await stage.through(shop)).definition(SHOP, "pay")
    if through is None:
        raise Finding("No definition of the tool is shown.")
    assert straight is not None
    return _only(fields, straight), _only(fields, through)


def _only(fields: Fields, definition: bytes) -> bytes:
    return join_object({key: value for key, value in split_object(definition).items() if key in fields})


async def _same(stage: Stage, fields: Fields, likeness: Likeness = Likeness.VALUE) -> None:
    """These fields of a tool's definition are shown as the server wrote them. Other fields are ignored."""
    straight, through = await _shown(stage, fields)
    if likeness is Likeness.VALUE:
        through = common_members(straight, through)
    _alike(stage, lines(straight, likeness), lines(through, likeness))


def _alike(stage: Stage, straight: list[str], through: list[str]) -> None:
    difference = diff(straight, through, stage.subject.title)
    if difference:
        raise Finding("The definition of the tool is shown differently.", difference)


def _takes(properties: Fields, **more: object) -> Fields:
    """A definition's field with an input schema."""
    return {"inputSchema": {"type": "object", "properties": properties, **more}}


_KEYWORDS: Fields = {
    "state": {"enum": ["open", 1, 1.5, None, True, ["a"], {"b": 1}], "default": None},
    "kind": {"const": {"a": [None]}},
    "id": {"type": "string", "pattern": "^[A-Z]{2}\\d+$", "minLength": 3, "maxLength": 12},
    "on": {"type": "string", "format": "date-time", "examples": ["2025-11-25T00:00:00Z"]},
    "size": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9007199254740991, "multipleOf": 2},
    "share": {"type": ["number", "null"], "minimum": 1e-7},
    "any": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "one": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"required": ["c"]}},
    "all": {"allOf": [{"minimum": 1}, {"maximum": 9}]},
    "pair": {"type": "array", "prefixItems": [{"type": "number"}, {}], "items": False, "minItems": 1},
    "tags": {"type": "array", "contains": {"const": "x"}, "minContains": 0, "uniqueItems": True},
    "map": {
        "type": "object",
        "patternProperties": {"^x-": {"type": "string"}},
        "propertyNames": {"maxLength": 9},
        "additionalProperties": {"type": "integer"},
        "maxProperties": 3,
    },
    "file": {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"},
    "old": {"deprecated": True, "readOnly": False, "title": "Old", "$comment": "goes soon"},
    "anything": True,
    "none": {},
}


@check("fidelity.schema-keywords", MUST, SCHEMAS, needs=DESCRIBE)
async def schema_keywords(stage: Stage) -> None:
    """An input schema is shown with every keyword of JSON Schema 2020-12 as its server wrote it: enum with
    values of any type, const, pattern, format, anyOf, oneOf, not, if, prefixItems, bounds, defaults."""
    conditions = {
        "dependentRequired": {"on": ["id"]},
        "dependentSchemas": {"id": {"required": ["on"]}},
        "if": {"properties": {"kind": {"const": 1}}},
        "then": {"required": ["id"]},
        "else": False,
        "unevaluatedProperties": False,
        "minProperties": 1,
    }
    await _same(stage, _takes(_KEYWORDS, **conditions))


@check("fidelity.schema-unknown-keywords", SHOULD, SCHEMAS, needs=DESCRIBE)
async def schema_unknown_keywords(stage: Stage) -> None:
    """Keywords that JSON Schema doesn't know are shown with a schema too."""
    await _same(
        stage, _takes({"city": {"type": "string", "x-options": {"from": "list", "n": None}}}, xOrder=[1])
    )


@check("fidelity.schema-refs", MUST, SCHEMAS, needs=DESCRIBE)
async def schema_refs(stage: Stage) -> None:
    """A schema with ``$ref`` and ``$defs`` keeps its meaning: it is shown unchanged, or with references
    replaced by their targets. A recursive reference stays."""
    definitions = {
        "money": {
            "type": "object",
            "properties": {"cents": {"$ref": "#/$defs/count"}},
            "required": ["cents"],
        },
        "count": {"type": "integer", "minimum": 0},
        "tree": {
            "type": "object",
            "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
        },
    }
    properties = {
        "amount": {"$ref": "#/$defs/money"},
        "limits": {"type": "array", "items": {"$ref": "#/$defs/money"}},
        "tips": {"anyOf": [{"$ref": "#/$defs/count"}, {"type": "null"}]},
        "parts": {"$ref": "#/$defs/tree"},
    }
    straight, through = await _shown(stage, _takes(properties, **{"$defs": definitions}))
    wanted = _resolved(straight)
    shown = common_members(wanted, _resolved(through))
    _alike(stage, lines(wanted, Likeness.VALUE), lines(shown, Likeness.VALUE))


def _resolved(definition: bytes) -> bytes:
    """A definition with the references of its input schema replaced by their targets."""
    value = msgspec.json.decode(definition)
    schema = value.get("inputSchema")
    kept = schema.pop("$defs", {}) if isinstance(schema, dict) else {}
    known = kept if isinstance(kept, dict) else {}
    value["inputSchema"] = _in_place(schema, known, ())
    return msgspec.json.encode(value)


def _in_place(schema: object, known: Fields, within: tuple[str, ...]) -> object:
    """``schema`` without references. within: the references that are being replaced; these are recursive and
    stay."""
    if isinstance(schema, list):
        return [_in_place(item, known, within) for item in schema]
    if not isinstance(schema, dict):
        return schema
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name not in known:
        return {key: _in_place(item, known, within) for key, item in schema.items()}
    if name in within:
        return f"{name} again"
    return _in_place(known[name], known, (*within, name))


@check("fidelity.output-schema", SHOULD, SPEC_2025 + "/server/tools#output-schema", needs=DESCRIBE)
async def output_schema(stage: Stage) -> None:
    """A tool's output schema is shown as its server wrote it."""
    entry = {"type": "object", "properties": {"id": {"type": "string"}, "at": {"type": ["string", "null"]}}}
    schema = {
        "type": "object",
        "title": "Receipt",
        "properties": {
            "entries": {"type": "array", "items": entry, "minItems": 1},
            "state": {"enum": ["paid", None, 0], "description": "What became of it – naïvely."},
            "sum": {"anyOf": [{"type": "integer"}, {"const": "none"}], "default": None},
        },
        "required": ["entries"],
        "additionalProperties": False,
    }
    await _same(stage, {"outputSchema": schema})


@check("fidelity.annotations", SHOULD, TOOL + "-annotations", needs=DESCRIBE)
async def annotations(stage: Stage) -> None:
    """A tool's annotations are shown as its server wrote them: a true hint, and a false one."""
    await _same(
        stage,
        {
            "annotations": {
                "title": "Pay",
                "readOnlyHint": False,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            }
        },
    )


@check("fidelity.long-description", SHOULD, CONTRACT, needs=DESCRIBE)
async def long_description(stage: Stage) -> None:
    """A description of 10,000 characters is shown whole, line ends and all, and so is one of 2,000 in a
    schema."""
    text = "".join(f"{number}. Pay only what is due – naïvely.\n\n" for number in range(500))
    inner = {"amount": {"type": "integer", "description": text[:2000]}}
    await _same(stage, {"description": text[:10_000], **_takes(inner)})


@check("fidelity.definition-order", MAY, "https://www.rfc-editor.org/rfc/rfc8259#section-4", needs=DESCRIBE)
async def definition_order(stage: Stage) -> None:
    """The members of a definition and of its schemas keep their order, which a model sees."""
    properties = {
        name: {"type": "string", "description": name.upper()} for name in ("to", "cc", "about", "body")
    }
    await _same(
        stage,
        {"title": "Send", "description": "Sends.", **_takes(properties, required=["to", "body"])},
        Likeness.TEXT,
    )
