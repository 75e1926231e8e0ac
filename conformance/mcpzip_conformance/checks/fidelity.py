"""Checks that no data of results and arguments is lost or changed.

Details that JSON doesn't define (the order of keys, 1.0 for 1, integers beyond 2^53) are required at a lower
level than the value.
"""

import json
from collections.abc import Mapping, Sequence

from mcpzip.wire import LATEST_LEGACY_VERSION, MODERN_VERSION, quote, with_members
from mcpzip_conformance.check import CONTRACT, MAY, MUST, SHOULD, SPEC_2025, SPEC_2026, check, expect, saw
from mcpzip_conformance.compare_json import Likeness, diff, lines
from mcpzip_conformance.errors import Finding, NotPlayableError
from mcpzip_conformance.scene import SHOP, Call, Scene, server, tool
from mcpzip_conformance.stage import Stage

TOOLS = SPEC_2025 + "/server/tools"
RESULT = TOOLS + "#tool-result"
NUMBERS = "https://www.rfc-editor.org/rfc/rfc8259#section-6"
OBJECTS = "https://www.rfc-editor.org/rfc/rfc8259#section-4"

VALUE = Likeness.VALUE
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_WAVE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="


async def _kept(
    stage: Stage, likeness: Likeness = Likeness.VALUE, version: str = LATEST_LEGACY_VERSION, **answer: object
) -> None:
    """A tool's result is the same directly and through the subject."""
    await stage.same(Scene([server(tools=[tool("tell", None, **answer)])], [Call("tell")], version), likeness)


async def _each_kept(stage: Stage, blocks: Sequence[object]) -> None:
    """Each block, alone in a result, is the same directly and through the subject."""
    tools = [tool(f"tell_{number}", None, content=[block]) for number, block in enumerate(blocks)]
    await stage.same(Scene([server(tools=tools)], [Call(f"tell_{number}") for number in range(len(blocks))]))


def _raw(result: object) -> str:
    return json.dumps(result, ensure_ascii=False)


@check("fidelity.text", MUST, RESULT)
async def text(stage: Stage) -> None:
    """Text arrives character by character: composed and decomposed, right to left, beyond the BMP, controls,
    line ends, the null character."""
    await _kept(
        stage, text='é é שלום 日本 😀👩‍👩‍👧 \u2028\u2029 \x00\x01\x7f\t\r\n\\ " </script> \ufeff\ufffd'
    )


@check("fidelity.image", MUST, RESULT)
async def image(stage: Stage) -> None:
    """An image arrives with its data, type and annotations."""
    block = {"type": "image", "data": _PIXEL, "mimeType": "image/png", "annotations": {"audience": ["user"]}}
    await _kept(stage, content=[block])


@check("fidelity.audio", MUST, RESULT)
async def audio(stage: Stage) -> None:
    """Audio arrives with its data and type."""
    await _kept(stage, content=[{"type": "audio", "data": _WAVE, "mimeType": "audio/wav"}])


@check("fidelity.resource-link", MUST, RESULT)
async def resource_link(stage: Stage) -> None:
    """A link to a resource arrives with every field."""
    link = {"type": "resource_link", "uri": "file:///a%20b.rs", "name": "a b.rs", "title": "A", "size": 7}
    await _kept(stage, content=[{**link, "mimeType": "text/x-rust", "annotations": {"priority": 0.5}}])


@check("fidelity.embedded-resource", MUST, RESULT)
async def embedded_resource(stage: Stage) -> None:
    """Embedded resources, text and blob, arrive whole."""
    written = {"uri": "note://1", "mimeType": "text/plain", "text": "héllo", "_meta": {"a/b": 1}}
    held = {"uri": "note://2", "mimeType": "image/png", "blob": _PIXEL}
    await _each_kept(stage, [{"type": "resource", "resource": resource} for resource in (written, held)])


@check("fidelity.several-blocks", MUST, RESULT)
async def several_blocks(stage: Stage) -> None:
    """Blocks of several kinds arrive all, in their order."""
    blocks = [{"type": "text", "text": f"part {n}"} for n in range(5)]
    picture = {"type": "image", "data": _PIXEL, "mimeType": "image/png"}
    await _kept(stage, content=[*blocks[:2], picture, *blocks[2:]])


@check("fidelity.no-content", MUST, RESULT)
async def no_content(stage: Stage) -> None:
    """A result with an empty content list keeps it."""
    await _kept(stage, content=[])


@check("fidelity.is-error", MUST, TOOLS + "#error-handling")
async def is_error(stage: Stage) -> None:
    """A result with ``isError`` arrives with it and with its content unchanged."""
    await _kept(stage, text="the printer is on fire", isError=True)


@check("fidelity.is-error-false", MAY, TOOLS + "#error-handling")
async def is_error_false(stage: Stage) -> None:
    """``isError: false`` is neither removed nor added."""
    raw = '{"content":[{"type":"text","text":"fine"}],"isError":false}'
    shop = server(tools=[tool("says", None, raw=raw), tool("doesnt", None, text="fine")])
    player = await stage.through(shop)
    says, doesnt = await player.call(SHOP, "says"), await player.call(SHOP, "doesnt")
    expect(says.fields.get("isError") is False, "isError: false has gone.")
    expect("isError" not in doesnt.fields, "isError has been added.")


@check("fidelity.structured-content", MUST, TOOLS + "#structured-content")
async def structured_content(stage: Stage) -> None:
    """``structuredContent`` arrives unchanged, with nulls, empty containers and nesting."""
    value: object = {
        "a": None,
        "b": [],
        "c": {},
        "d": [[{"e": [1, 2.5, "x", True]}]],
        "ключ": "значение",
        "": 0,
    }
    await _kept(stage, structuredContent=value)


@check(
    "fidelity.structured-content-list",
    SHOULD,
    SPEC_2026 + "/server/tools#structured-content",
    needs=("modern",),
)
async def structured_content_list(stage: Stage) -> None:
    """In 2026-07-28 ``structuredContent`` may be any JSON value: a list arrives as a list."""
    await _kept(stage, version=MODERN_VERSION, raw='{"content":[],"structuredContent":[1,{"a":null}]}')


@check("fidelity.meta", MUST, SPEC_2025 + "/basic#_meta")
async def meta(stage: Stage) -> None:
    """``_meta`` of a result and of a block arrives."""
    block = {"type": "text", "text": "x", "_meta": {"example.com/b": {"deep": [1]}}}
    await _kept(stage, raw=_raw({"content": [block], "_meta": {"example.com/a": 1}}))


@check("fidelity.meta-modern", MUST, SPEC_2026 + "/basic#_meta", needs=("modern",))
async def meta_modern(stage: Stage) -> None:
    """In 2026-07-28 too ``_meta`` of a result arrives, beside the members that the protocol adds."""
    await _kept(
        stage,
        version=MODERN_VERSION,
        raw=_raw({"content": [{"type": "text", "text": "x"}], "_meta": {"example.com/a": [1]}}),
    )


@check("fidelity.unknown-fields", MUST, CONTRACT)
async def unknown_fields(stage: Stage) -> None:
    """Fields the specification doesn't know arrive: in the result, in a block, in annotations."""
    block = {"type": "text", "text": "x", "x-color": "red", "annotations": {"priority": 1, "x-weight": 2}}
    await _kept(stage, raw=_raw({"content": [block], "x-vendor": {"trace": [1]}}))


@check("fidelity.nulls", SHOULD, CONTRACT)
async def nulls(stage: Stage) -> None:
    """A member that is null arrives as null: in ``_meta``, in fields the specification doesn't know."""
    block = {"type": "text", "text": "x", "_meta": {"example.com/b": [None]}, "x-color": None}
    told = {"content": [block], "_meta": {"example.com/n": None}, "x-vendor": {"trace": None}, "x-null": None}
    await _kept(stage, raw=_raw(told))


@check("fidelity.unknown-content", SHOULD, CONTRACT)
async def unknown_content(stage: Stage) -> None:
    """A content block of an unknown kind arrives unchanged."""
    await _kept(stage, raw=_raw({"content": [{"type": "hologram", "depth": [1, None]}]}))


@check("fidelity.numbers", MUST, NUMBERS)
async def numbers(stage: Stage) -> None:
    """Numbers keep their value: fractions, exponents, integers up to 2^53."""
    values = [0, 1, -1, 0.1, 2**31, -(2**31), 0.30000000000000004, 2**53 - 1, -(2**53) + 1, 1.5e-7, 1e300]
    await _kept(stage, text="numbers", structuredContent={"values": values})


@check("fidelity.big-integers", SHOULD, NUMBERS)
async def big_integers(stage: Stage) -> None:
    """Integers beyond 2^53, which identifiers often are, keep every digit."""
    await _kept(
        stage, raw='{"content":[],"structuredContent":{"id":12345678901234567890,"neg":-9223372036854775808}}'
    )


@check("fidelity.number-spelling", MAY, NUMBERS)
async def number_spelling(stage: Stage) -> None:
    """A number keeps its spelling: 1.0 does not become 1, nor 1e3 1000."""
    values = '{"float":1.0,"exp":1e3,"big":1E+2,"long":0.10000000000000000555,"zero":-0}'
    await _kept(stage, Likeness.TEXT, raw=f'{{"content":[],"structuredContent":{values}}}')


@check("fidelity.key-order", MAY, OBJECTS)
async def key_order(stage: Stage) -> None:
    """The members of an object keep their order, which a reader of JSON text sees."""
    await _kept(
        stage, Likeness.TEXT, raw='{"structuredContent":{"z":1,"a":2,"m":{"y":1,"b":2}},"content":[]}'
    )


@check("fidelity.large-result", MUST, CONTRACT)
async def large_result(stage: Stage) -> None:
    """A result of 5 MB arrives whole."""
    await _kept(stage, size=5_000_000)


@check("fidelity.large-arguments", MUST, CONTRACT)
async def large_arguments(stage: Stage) -> None:
    """Arguments of 1 MB arrive whole."""
    await _received(stage, json.dumps({"text": "y" * 1_000_000}).encode())


@check("fidelity.error", MUST, TOOLS + "#error-handling")
async def error(stage: Stage) -> None:
    """A server's JSON-RPC error arrives with its code, message and data."""
    refusal = {"code": -32050, "message": "out of paper: tray 2", "data": {"tray": 2, "left": None}}
    await _kept(stage, error=refusal)


@check("fidelity.error-without-data", SHOULD, TOOLS + "#error-handling")
async def error_without_data(stage: Stage) -> None:
    """An error without data arrives without data, and a code of the reserved range stays unchanged."""
    await _kept(stage, error={"code": -32602, "message": "unknown size: XXL"})


@check("fidelity.arguments", MUST, CONTRACT)
async def arguments(stage: Stage) -> None:
    """Arguments arrive unchanged: nesting, empty containers, Unicode keys, big integers."""
    sent = '{"b":[],"c":{},"d":[[1,{"e":2.5}]],"ключ":"é","":true,"id":9007199254740991}'
    await _received(stage, sent.encode(), b"{}")


async def _received(stage: Stage, *sent: bytes) -> None:
    """The server gets these arguments, one call each, as equal JSON values."""
    player = await stage.through(server(tools=[tool("take", text="taken")]))
    for arguments in sent:
        reply = await player.call(SHOP, "take", arguments)
        expect(reply.text == "taken", f"The call is answered with {reply.text[:300]!r}.")
    got = _once([call.get("arguments") for call in stage.record(SHOP).calls("take")])
    expect(len(got) == len(sent), f"The server got {len(got)} calls of {len(sent)}.")
    for one, other in zip(sent, got, strict=True):
        differs = diff(lines(one, VALUE), lines(json.dumps(other).encode(), VALUE), stage.subject.title)
        if differs:
            raise Finding("The server got other arguments.", differs)


@check("fidelity.arguments-spelling", MAY, NUMBERS)
async def arguments_spelling(stage: Stage) -> None:
    """Arguments arrive with the spelling of their numbers."""
    if stage.subject.upstream != "stdio":
        raise NotPlayableError(
            "Its servers are on HTTP, and a fake there doesn't see how numbers were spelt."
        )
    sent = b'{"z":1.0,"a":1e3,"big":12345678901234567890}'
    player = await stage.through(server(tools=[tool("echo")]))
    got = (await player.call(SHOP, "echo", sent)).text
    differs = diff(lines(sent, Likeness.TEXT), lines(got.encode(), Likeness.TEXT), stage.subject.title)
    if differs:
        raise Finding("The server got them in another spelling.", differs)


@check("fidelity.request-meta", SHOULD, SPEC_2025 + "/basic#_meta")
async def request_meta(stage: Stage) -> None:
    """``_meta`` of a call reaches the server."""
    player = await stage.through(server(tools=[tool("echo")]))
    await player.call(SHOP, "echo", b"{}", b'{"example.com/trace":"4bf92f"}')
    calls = stage.record(SHOP).calls("echo")
    expect(calls, "The call did not reach the server.")
    got = calls[0].get("_meta")
    expect(
        isinstance(got, dict) and got.get("example.com/trace") == "4bf92f", f"The server got _meta {got!r}."
    )


@check("fidelity.tool-names", MUST, CONTRACT)
async def tool_names(stage: Stage) -> None:
    """A tool can be called by any valid name: with dots, dashes, underscores in a row, digits only, 100
    characters."""
    names = ["a.b-c", "a__b", "__init__", "42", "n" * 100, "getUser", "GetUser"]
    player = await stage.through(server(tools=[tool(name, text=f"this is {name}") for name in names]))
    for name in names:
        reply = await player.call(SHOP, name)
        expect(reply.text == f"this is {name}", f"A call of {name!r} is answered with {reply.text!r}.")


@check("fidelity.odd-tool-names", MAY, CONTRACT)
async def odd_tool_names(stage: Stage) -> None:
    """A tool can be called even if its name goes against the specification's recommendation: spaces, slashes,
    Unicode."""
    names = ["send mail", "a/b", "wyślij", "送信", "tool:x", "{name}"]
    player = await stage.through(server(tools=[tool(name, text=f"this is {name}") for name in names]))
    for name in names:
        reply = await player.call(SHOP, name)
        expect(reply.text == f"this is {name}", f"A call of {name!r} is answered with {reply.text!r}.")


_SCHEMA: Mapping[str, object] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"money": {"type": "object", "properties": {"cents": {"type": "integer", "minimum": 0}}}},
    "properties": {
        "amount": {"$ref": "#/$defs/money"},
        "note": {"type": ["string", "null"], "default": None},
    },
    "required": ["amount"],
    "additionalProperties": False,
    "x-order": ["amount", "note"],
}
_DEFINITION: Mapping[str, object] = {
    "title": "Pay an invoice",
    "description": "Pays.\n\nOnly what is due – naïvely.",
    "inputSchema": _SCHEMA,
    "outputSchema": {"type": "object", "properties": {"ok": {"const": True}}, "required": ["ok"]},
    "annotations": {"readOnlyHint": False, "destructiveHint": True},
    "icons": [{"src": "https://example.com/i.png", "sizes": ["48x48"]}],
    "_meta": {"example.com/owner": "billing"},
    "x-unknown": [1, None],
}


@check("fidelity.definition", MUST, TOOLS + "#tool", needs=("describe",))
async def definition(stage: Stage) -> None:
    """A tool's description and input schema are shown as the server wrote them."""
    # Without members that have equivalents: $schema, which is 2020-12 if it is missing (2025-11-25, basic,
    # "JSON Schema Usage"), and $ref, which may be replaced by its target.
    money = {"type": "object", "properties": {"cents": {"type": "integer", "minimum": 0}}}
    schema = {key: value for key, value in _SCHEMA.items() if not key.startswith("$")}
    schema["properties"] = {"amount": money, "note": {"type": ["string", "null"], "default": None}}
    await _same_definition(stage, {"description": _DEFINITION["description"], "inputSchema": schema})


@check("fidelity.definition-whole", SHOULD, TOOLS + "#tool", needs=("describe",))
async def definition_whole(stage: Stage) -> None:
    """A tool's title, output schema and annotations are shown as the server wrote them, too."""
    keys = ("title", "description", "inputSchema", "outputSchema", "annotations")
    await _same_definition(stage, {key: _DEFINITION[key] for key in keys})


@check("fidelity.definition-unknown-fields", SHOULD, CONTRACT, needs=("describe",))
async def definition_unknown_fields(stage: Stage) -> None:
    """Icons, ``_meta`` and fields the specification doesn't know are shown with the definition too."""
    await _same_definition(stage, {**_DEFINITION, "annotations": {"readOnlyHint": True, "x-risk": "high"}})


async def _same_definition(stage: Stage, fields: Mapping[str, object]) -> None:
    shop = server(tools=[tool("pay", fields, text="paid")])
    straight = await (await stage.straight(shop)).definition(SHOP, "pay")
    through = await (await stage.through(shop)).definition(SHOP, "pay")
    expect(through is not None, "No definition of the tool is shown.")
    assert straight is not None
    shown = with_members(through or b"{}", {"name": quote("pay")})
    difference = diff(lines(straight, Likeness.VALUE), lines(shown, Likeness.VALUE), stage.subject.title)
    if difference:
        raise Finding("The definition of the tool is shown differently.", difference)


@check("fidelity.call-order", MAY, CONTRACT, needs=("stdio",))
async def call_order(stage: Stage) -> None:
    """Calls that are sent one after another, without waiting for answers, reach the server in their order."""
    player = await stage.through(server(tools=[tool("echo")]))
    begun = [player.begin(SHOP, "echo", b'{"n":%d}' % number) for number in range(20)]
    for number in begun:
        await player.reply(number)
    record = stage.record(SHOP)
    await saw(record, lambda seen: len(seen.calls("echo")) >= 20, "Not every call reached the server.")
    order = _once([call.get("arguments") for call in record.calls("echo")])
    expect(order == [{"n": number} for number in range(20)], f"The server got them as {order}.")


def _once(values: list[object]) -> list[object]:
    """``values`` without repetitions: that a call runs only once is tested by another check."""
    return [value for index, value in enumerate(values) if index == 0 or values[index - 1] != value]
