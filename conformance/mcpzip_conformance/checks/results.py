"""Checks of large results: whether all of them can be read, in whatever way a subject's file says, and what a
client is told of one that is cut.

The sizes are well above what any proxy or client known to us passes on at once.
"""

import json
from collections.abc import Mapping

import msgspec
from mcpzip_fakes.made import Made

from mcpzip_conformance.check import CONTRACT, MAY, MUST, SHOULD, SPEC_2025, check, expect
from mcpzip_conformance.errors import Finding, NotPlayableError
from mcpzip_conformance.excerpts import differs, is_part, silently_cut
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, server, tool
from mcpzip_conformance.stage import Stage

TOOLS = SPEC_2025 + "/server/tools"
SILENT = "https://github.com/github/copilot-cli/issues/1732"
TWO_FORMS = "https://github.com/anthropics/claude-agent-sdk-typescript/issues/389"
DECLARED = "https://code.claude.com/docs/en/mcp#raise-the-limit-for-a-specific-tool"
AT = 1_000_000
"""The byte that is looked at."""
SIZE, LARGE = 1_050_000, 150_000
"""Characters of a result with that byte, and of others."""

Object = Mapping[str, object]


def _made(**wishes: Made) -> dict[str, object]:
    """The key ``made`` of an answer."""
    return {name: {"kind": wish.kind, "size": wish.size, "seed": wish.seed} for name, wish in wishes.items()}


def _blocks(reply: Reply, kind: str) -> list[Object]:
    """The content blocks of one type."""
    content = reply.fields.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]


def _texts(reply: Reply) -> list[str]:
    return [str(block.get("text", "")) for block in _blocks(reply, "text")]


def _resource(reply: Reply, key: str) -> str | None:
    """``text`` or ``blob`` of the first embedded resource."""
    for block in _blocks(reply, "resource"):
        resource = block.get("resource")
        if isinstance(resource, dict) and isinstance(resource.get(key), str):
            return str(resource[key])
    return None


@check("results.byte-1000000", MUST, CONTRACT)
async def byte_1000000(stage: Stage) -> None:
    """The millionth byte of a large result can be read, and is the right one: of a text, of JSON in a text,
    of ``structuredContent``, of an embedded resource, of several blocks."""
    log, rows = Made(kind="log", size=SIZE), Made(kind="rows", size=SIZE)
    parts = {name: Made(kind="log", size=SIZE // 4, seed=seed) for seed, name in enumerate("abcd")}
    note = {"uri": "note://log", "mimeType": "text/plain", "text": "{log}"}
    shop = server(
        tools=[
            tool("text", None, made=_made(log=log), text="{log}"),
            tool("json", None, made=_made(rows=rows), json='"{rows}"'),
            tool(
                "structured", None, made=_made(rows=rows), structuredContent={"rows": "{rows}"}, text="rows"
            ),
            tool("embedded", None, made=_made(log=log), content=[{"type": "resource", "resource": note}]),
            tool(
                "blocks",
                None,
                made=_made(**parts),
                content=[{"type": "text", "text": f"{{{name}}}"} for name in parts],
            ),
        ]
    )
    player = await stage.through(shop)
    row, index = _row_at(rows)
    of_log = str(log.value)[AT : AT + 40]
    of_parts = "".join(str(part.value) for part in parts.values())[AT : AT + 40]
    wrong = []
    for name, expected in (
        ("text", of_log),
        ("json", row),
        ("structured", row),
        ("embedded", of_log),
        ("blocks", of_parts),
    ):
        reply = await player.call(SHOP, name)
        match name:
            case "json":
                got = _element(reply.json, index)
            case "structured":
                structured = reply.fields.get("structuredContent")
                got = _element(structured.get("rows") if isinstance(structured, dict) else None, index)
            case "embedded":
                got = (_resource(reply, "text") or "")[AT : AT + 40]
            case _:
                got = "".join(_texts(reply))[AT : AT + 40]
        if got != expected:
            wrong.append(f"{name}: {repr(got) if got else reply.brief}, instead of {expected!r}")
    if wrong:
        raise Finding(f"Byte {AT:,} can't be read, or is another one, of {len(wrong)} results.", tuple(wrong))


def _row_at(rows: Made) -> tuple[str, int]:
    """The row in which the byte is, as JSON with sorted keys, and its index."""
    value = rows.value
    assert isinstance(value, list)
    length = 1
    for index, row in enumerate(value):
        length += len(json.dumps(row, separators=(",", ":"))) + 1
        if length > AT:
            return json.dumps(row, sort_keys=True), index
    raise AssertionError("the rows are too few")


def _element(value: object, index: int) -> str:
    if not isinstance(value, list) or index >= len(value):
        return ""
    return json.dumps(value[index], sort_keys=True)


@check("results.not-json", MUST, CONTRACT)
async def not_json(stage: Stage) -> None:
    """A large result that isn't JSON can be read whole, character by character: a log, CSV, a text with all
    line ends, controls, escapes that JSON doesn't know and characters beyond the BMP."""
    made = {kind: Made(kind=kind, size=LARGE) for kind in ("log", "csv", "odd")}
    tools = [tool(kind, None, made=_made(data=wish), text="{data}") for kind, wish in made.items()]
    player = await stage.through(server(tools=tools))
    found = []
    for kind, wish in made.items():
        reply = await player.call(SHOP, kind)
        found.append(differs(kind, str(wish.value), "".join(_texts(reply))))
    _none("A text that is not JSON can't be read whole.", found)


@check("results.binary", MUST, TOOLS + "#tool-result")
async def binary(stage: Stage) -> None:
    """An image, audio and a blob arrive with all their bytes: small ones beside a large text, and large
    ones."""
    small, large = Made(kind="base64", size=8_000), Made(kind="base64", size=LARGE, seed=2)
    log = Made(kind="log", size=LARGE)
    picture = {"type": "image", "mimeType": "image/png"}
    sound = {"type": "audio", "mimeType": "audio/wav"}
    held = {"uri": "note://data", "mimeType": "application/zip"}
    shop = server(
        tools=[
            tool(
                "beside",
                None,
                made=_made(log=log, data=small),
                content=[
                    {"type": "text", "text": "{log}"},
                    {**picture, "data": "{data}"},
                    {**sound, "data": "{data}"},
                    {"type": "resource", "resource": {**held, "blob": "{data}"}},
                ],
            ),
            tool("picture", None, made=_made(data=large), content=[{**picture, "data": "{data}"}]),
            tool("sound", None, made=_made(data=large), content=[{**sound, "data": "{data}"}]),
            tool(
                "held",
                None,
                made=_made(data=large),
                content=[{"type": "resource", "resource": {**held, "blob": "{data}"}}],
            ),
        ]
    )
    player = await stage.through(shop)
    beside = await player.call(SHOP, "beside")
    found = [differs("the text", str(log.value), "".join(_texts(beside)))]
    for name, kind in (("a small image", "image"), ("small audio", "audio"), ("a small blob", "resource")):
        found.append(differs(name, str(small.value), _data(beside, kind)))
    for name, kind in (("picture", "image"), ("sound", "audio"), ("held", "resource")):
        reply = await player.call(SHOP, name)
        found.append(differs(f"a large {kind}", str(large.value), _data(reply, kind)))
    _none("Bytes of a result are lost.", found)


def _data(reply: Reply, kind: str) -> str | None:
    """The data of the first block of a type, in base64."""
    if kind == "resource":
        return _resource(reply, "blob")
    return next((str(block.get("data")) for block in _blocks(reply, kind)), None)


def _none(summary: str, found: list[str | None]) -> None:
    """Raises Finding if something was found."""
    lines = tuple(line for line in found if line is not None)
    if lines:
        raise Finding(summary, lines)


@check("results.is-error", MUST, TOOLS + "#error-handling")
async def is_error(stage: Stage) -> None:
    """A large result with ``isError`` has it in the first answer too, and a large one without hasn't."""
    made = _made(log=Made(kind="log", size=LARGE))
    shop = server(
        tools=[
            tool("fails", None, made=made, text="{log}", isError=True),
            tool("works", None, made=made, text="{log}"),
        ]
    )
    player = await stage.through(shop)
    for name, failed in (("fails", True), ("works", False)):
        for reply, which in zip(
            await player.parts(SHOP, name), ("first answer", "whole result"), strict=True
        ):
            got = reply.fields.get("isError", False)
            expect(got is failed, f"The tool {name!r}: isError of the {which} is {got!r}.")


@check("results.beside", SHOULD, SPEC_2025 + "/basic#_meta")
async def beside(stage: Stage) -> None:
    """What stands beside a large text is in the first answer too: an image, a link, ``_meta``."""
    picture = str(Made(kind="base64", size=8_000).value)
    link = {"type": "resource_link", "uri": "note://1", "name": "one"}
    told = {
        "content": [
            {"type": "text", "text": Made(kind="log", size=LARGE).value},
            {"type": "image", "data": picture, "mimeType": "image/png"},
            link,
        ],
        "_meta": {"example.com/trace": [1]},
    }
    player = await stage.through(server(tools=[tool("tell", None, raw=json.dumps(told))]))
    reply, _ = await player.parts(SHOP, "tell")
    meta = reply.fields.get("_meta")
    found = [
        differs("the image", picture, _data(reply, "image")),
        None if link in _blocks(reply, "resource_link") else "the link: none",
        None if isinstance(meta, dict) and meta.get("example.com/trace") == [1] else f"_meta: {meta!r}",
    ]
    _none("The first answer lacks what stood beside the text.", found)


async def _first(stage: Stage) -> tuple[Mapping[str, Reply], str, object]:
    """The first answers to calls of ``log`` and ``rows``, the log, and the value of ``rows``."""
    log, rows = Made(kind="log", size=LARGE), Made(kind="rows", size=LARGE)
    shop = server(
        tools=[
            tool("log", None, made=_made(log=log), text="{log}"),
            tool("rows", None, made=_made(rows=rows), structuredContent={"rows": "{rows}"}),
        ]
    )
    player = await stage.through(shop)
    first = {name: (await player.parts(SHOP, name))[0] for name in ("log", "rows")}
    return first, str(log.value), {"rows": rows.value}


@check("results.cut-is-said", MUST, SILENT)
async def cut_is_said(stage: Stage) -> None:
    """A client is told, in words, that a result was cut: in the text if that was cut, and in
    ``structuredContent`` if that was."""
    first, log, rows = await _first(stage)
    text = "".join(_texts(first["log"]))
    expect(
        not silently_cut(text, log),
        f"Of a log of {len(log):,} characters {len(text):,} come, and not a word that this is not all.",
    )
    text, whole = "".join(_texts(first["rows"])), msgspec.json.encode(rows).decode()
    expect(
        not silently_cut(text, whole),
        f"Of JSON of {len(whole):,} characters {len(text):,} come, and not a word that this is not all.",
    )
    structured = first["rows"].fields.get("structuredContent", rows)
    expect(
        structured == rows or not is_part(structured, rows),
        "structuredContent is cut, and has not a word that this is not all.",
    )


@check("results.cut-alike", SHOULD, TWO_FORMS)
async def cut_alike(stage: Stage) -> None:
    """A result that has its data twice, as text and as ``structuredContent``, is cut in both or in neither:
    clients show a model one or the other."""
    first, _, rows = await _first(stage)
    if "structuredContent" not in first["rows"].fields:
        raise NotPlayableError("It gives no structuredContent.")  # that is fidelity.structured-content's
    text_whole = first["rows"].json == rows
    structured_whole = first["rows"].fields["structuredContent"] == rows
    expect(text_whole or not structured_whole, "The text is cut, and structuredContent is whole.")
    expect(structured_whole or not text_whole, "structuredContent is cut, and the text is whole.")


@check("results.declared-size", MAY, DECLARED)
async def declared_size(stage: Stage) -> None:
    """A result within the size that its tool declares for Claude Code (``anthropic/maxResultSizeChars`` in
    its ``_meta``) is sent whole at once."""
    log = Made(kind="log", size=LARGE)
    definition = {"_meta": {"anthropic/maxResultSizeChars": 2 * LARGE}}
    player = await stage.through(server(tools=[tool("log", definition, made=_made(log=log), text="{log}")]))
    first, _ = await player.parts(SHOP, "log")
    differs_in = differs("the first answer", str(log.value), "".join(_texts(first)))
    expect(differs_in is None, f"It is not sent whole: {differs_in}.")


@check("results.once", MUST, CONTRACT, needs=("rest",))
async def once(stage: Stage) -> None:
    """Reading the rest of a result, also twice, doesn't run its tool again, and gives the same."""
    log = Made(kind="log", size=LARGE)
    shop = server(tools=[tool("log", None, made=_made(log=log), text="{#}: {log}")])
    player = await stage.through(shop)
    first = await player.request("tools/call", player.route.call(SHOP, "log", b"{}"))
    rest = player.route.rest(first)
    if rest is None:
        raise NotPlayableError("It gave a large result whole.")
    for _ in range(2):
        reply = await player.request("tools/call", rest)
        differs_in = differs("the rest", f"1: {log.value}", "".join(_texts(reply)))
        expect(differs_in is None, f"It gives another result: {differs_in}.")
    count = len(stage.record(SHOP).calls("log"))
    expect(count == 1, f"The tool ran {count} times for one call of which the rest was read twice.")
