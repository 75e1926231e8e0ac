"""Checks of resources, prompts and completions."""

import base64
from collections.abc import Mapping

import msgspec

from mcpzip.wire import (
    INVALID_PARAMS,
    LATEST_LEGACY_VERSION,
    MODERN_VERSION,
    RESOURCE_NOT_FOUND,
    join_object,
    quote,
)
from mcpzip_conformance.check import CONTRACT, MUST, SHOULD, SPEC_2025, SPEC_2026, check, expect
from mcpzip_conformance.compare_conversation import controlled
from mcpzip_conformance.compare_offers import (
    PROMPT,
    RESOURCE,
    TEMPLATE,
    Kind,
    listed,
    same_answers,
    same_entries,
)
from mcpzip_conformance.player import Player
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, Server, server, tool
from mcpzip_conformance.stage import Stage

RESOURCES = SPEC_2025 + "/server/resources"
LINKS = SPEC_2025 + "/server/tools#resource-links"
PROMPTS = SPEC_2025 + "/server/prompts"
COMPLETION = SPEC_2025 + "/server/utilities/completion"
PAGING = SPEC_2025 + "/server/utilities/pagination"

ECHO = [tool("echo")]
TODAY = "note://library/today"
DAYS = "note://library/days/{day}"
_BYTES = base64.b64encode(bytes(range(256))).decode()
_ICONS = [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]}]
_META = {"example.com/owner": "library", "example.com/left": None}
_NOTES = {"audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"}
_ABOUT = {"title": "Today’s note", "description": "What is due – naïvely.\n\nAll of it.", "icons": _ICONS}
_UNKNOWN = {"x-shelf": [1, None], "annotations": {"priority": 1, "x-weight": 2}}


def _resource(uri: str, raw: Mapping[str, object] | None = None, **held: object) -> dict[str, object]:
    """A resource: more members of its entry, and the result of reading it."""
    entry = {"uri": uri, "name": uri.rpartition("/")[2], **(raw or {})}
    return {"raw": msgspec.json.encode(entry).decode(), **(held or {"text": f"This is {uri}."})}


@check("fidelity.resource-listing", MUST, RESOURCES + "#resource", needs=("resources",))
async def resource_listing(stage: Stage) -> None:
    """A resource is listed with URI, name, description and type as its server wrote them."""
    await _same_resources(stage, ("uri", "name", "description", "mimeType"))


@check("fidelity.resource-listing-whole", SHOULD, RESOURCES + "#resource", needs=("resources",))
async def resource_listing_whole(stage: Stage) -> None:
    """A resource is listed with title, size, annotations, icons and ``_meta`` too as its server wrote
    them."""
    await _same_resources(stage, None)


async def _same_resources(stage: Stage, members: tuple[str, ...] | None) -> None:
    whole = {**_ABOUT, "mimeType": "text/plain", "size": 4096, "annotations": _NOTES, "_meta": _META}
    uris = [TODAY, "note://library/bare"]
    shop = server(tools=ECHO, resources=[_resource(uris[0], whole), _resource(uris[1])])
    await same_entries(stage, RESOURCE, shop, uris, members)


@check("fidelity.resource-template-listing", MUST, RESOURCES + "#resource-templates", needs=("resources",))
async def resource_template_listing(stage: Stage) -> None:
    """A resource template is listed with URI template, name, description and type as its server wrote
    them."""
    await _same_template(stage, ("uriTemplate", "name", "description", "mimeType"))


@check(
    "fidelity.resource-template-listing-whole",
    SHOULD,
    RESOURCES + "#resource-templates",
    needs=("resources",),
)
async def resource_template_listing_whole(stage: Stage) -> None:
    """A resource template is listed with title, annotations, icons and ``_meta`` too as its server wrote
    them."""
    await _same_template(stage, None)


async def _same_template(stage: Stage, members: tuple[str, ...] | None) -> None:
    whole = {**_ABOUT, "mimeType": "text/plain", "annotations": _NOTES, "_meta": _META}
    template = {"uriTemplate": DAYS, "name": "day", **whole}
    await same_entries(stage, TEMPLATE, server(tools=ECHO, resource_templates=[template]), [DAYS], members)


@check("fidelity.prompt-listing", MUST, PROMPTS + "#prompt", needs=("prompts",))
async def prompt_listing(stage: Stage) -> None:
    """A prompt is listed with name, description and arguments, theirs too, as its server wrote them."""
    await _same_prompts(stage, ("name", "description", "arguments", "required"))


@check("fidelity.prompt-listing-whole", SHOULD, PROMPTS + "#prompt", needs=("prompts",))
async def prompt_listing_whole(stage: Stage) -> None:
    """A prompt is listed with title, icons and ``_meta``, and its arguments with their titles, too as its
    server wrote them."""
    await _same_prompts(stage, None)


async def _same_prompts(stage: Stage, members: tuple[str, ...] | None) -> None:
    arguments = [
        {"name": "who", "title": "Who", "description": "Whom to greet.", "required": True},
        {"name": "how", "description": "Kindly – or not.", "required": False},
        {"name": "when"},
    ]
    prompts = [{"name": "greet", **_ABOUT, "arguments": arguments, "_meta": _META}, {"name": "bare"}]
    await same_entries(stage, PROMPT, server(tools=ECHO, prompts=prompts), ["greet", "bare"], members)


@check("fidelity.resource-listing-unknown-fields", SHOULD, CONTRACT, needs=("resources",))
async def resource_listing_unknown_fields(stage: Stage) -> None:
    """Fields the specification doesn't know are listed with a resource too."""
    await same_entries(stage, RESOURCE, server(tools=ECHO, resources=[_resource(TODAY, _UNKNOWN)]), [TODAY])


@check("fidelity.prompt-listing-unknown-fields", SHOULD, CONTRACT, needs=("prompts",))
async def prompt_listing_unknown_fields(stage: Stage) -> None:
    """Fields the specification doesn't know are listed with a prompt and its arguments too."""
    greet = {"name": "greet", "x-shelf": [1, None], "arguments": [{"name": "who", "x-kind": "person"}]}
    await same_entries(stage, PROMPT, server(tools=ECHO, prompts=[greet]), ["greet"])


@check("fidelity.resources-paging", MUST, PAGING, needs=("resources",))
async def resources_paging(stage: Stage) -> None:
    """Every page of a server's resources is followed: all are listed, and the last can be read."""
    uris = [f"note://library/{number}" for number in range(5)]
    player = await stage.through(server(tools=ECHO, page_size=2, resources=[_resource(uri) for uri in uris]))
    await listed(player, RESOURCE, uris)
    reply = await _read(player, player.route.uri(SHOP, uris[-1]))
    expect(f"This is {uris[-1]}." in str(reply.fields), f"The last is answered with {reply.brief}.")


@check("fidelity.prompts-paging", MUST, PAGING, needs=("prompts",))
async def prompts_paging(stage: Stage) -> None:
    """Every page of a server's prompts is followed: all are listed, and the last can be got."""
    names = [f"prompt_{number}" for number in range(5)]
    prompts = [{"name": name, "messages": [_says(f"This is {name}.")]} for name in names]
    player = await stage.through(server(tools=ECHO, page_size=2, prompts=prompts))
    await listed(player, PROMPT, names)
    reply = await _get(player, player.route.prompt(SHOP, names[-1]))
    expect(f"This is {names[-1]}." in str(reply.fields), f"The last is answered with {reply.brief}.")


# Resources


async def _read(player: Player, uri: str) -> Reply:
    return await player.request("resources/read", join_object({"uri": quote(uri)}))


async def _same_contents(stage: Stage, *resources: dict[str, object]) -> None:
    """Reading these resources gives the same, directly and through the subject."""
    shop = server(tools=ECHO, resources=resources)
    uris = [str(msgspec.json.decode(str(resource["raw"]))["uri"]) for resource in resources]
    with controlled():
        alone = await stage.straight(shop)
        straight = [await _read(alone, uri) for uri in uris]
    player = await stage.through(shop)
    await listed(player, RESOURCE, uris)
    own = {player.route.uri(SHOP, uri): uri for uri in uris}
    through = [await _read(player, uri) for uri in own]
    same_answers(stage, "Reading it gives something else.", straight, player, through, own)


@check("fidelity.resource-text", MUST, RESOURCES + "#resource-contents", needs=("resources",))
async def resource_text(stage: Stage) -> None:
    """The text of a resource arrives character by character, with its type; also 1 MB of it, and an empty
    one."""
    odd = 'é é שלום 日本 😀👩‍👩‍👧 \u2028\u2029 \x01\x7f\t\r\n\\ " { uri } \ufeff'
    await _same_contents(
        stage,
        _resource(TODAY, {"mimeType": "text/markdown; charset=utf-8"}, text=odd),
        _resource("note://library/long", {"mimeType": "text/x-log"}, size=1_000_000),
        _resource("note://library/empty", text=""),
    )


@check("fidelity.resource-blob", MUST, RESOURCES + "#resource-contents", needs=("resources",))
async def resource_blob(stage: Stage) -> None:
    """The bytes of a resource arrive unchanged, with their type."""
    await _same_contents(stage, _resource("note://library/cover", {"mimeType": "image/png"}, blob=_BYTES))


@check("fidelity.resource-meta", SHOULD, RESOURCES + "#resource-contents", needs=("resources",))
async def resource_meta(stage: Stage) -> None:
    """Contents of a resource arrive all, in their order, with ``_meta``; so do fields the specification
    doesn't know."""
    first = {"uri": TODAY, "mimeType": "text/plain", "text": "one", "_meta": _META, "x-shelf": [1, None]}
    second = {"uri": TODAY, "mimeType": "image/png", "blob": _BYTES, "_meta": {"example.com/part": 2}}
    whole = {"contents": [first, second], "_meta": {"example.com/n": None}, "x-vendor": {"a": 1}}
    await _same_contents(stage, _resource(TODAY, whole=whole))


@check("fidelity.resource-by-template", MUST, RESOURCES + "#resource-templates", needs=("resources",))
async def resource_by_template(stage: Stage) -> None:
    """A URI made from a shown template is read from the template's server."""
    day = {"uriTemplate": DAYS, "name": "day", "mimeType": "text/plain", "text": "It is {day}."}
    player = await stage.through(server(tools=ECHO, resource_templates=[day]))
    entry = msgspec.json.decode((await listed(player, TEMPLATE, [DAYS]))[DAYS])
    reply = await _read(player, str(entry["uriTemplate"]).replace("{day}", "monday"))
    expect("It is monday." in str(reply.fields), f"It is answered with {reply.brief}.")


@check("fidelity.resource-unknown", SHOULD, RESOURCES + "#error-handling", needs=("resources",))
async def resource_unknown(stage: Stage) -> None:
    """Reading a resource that its server doesn't have is answered with error -32002."""
    await _not_found(stage, LATEST_LEGACY_VERSION, RESOURCE_NOT_FOUND)


@check(
    "fidelity.resource-unknown-modern",
    SHOULD,
    SPEC_2026 + "/server/resources#error-handling",
    needs=("resources", "modern"),
)
async def resource_unknown_modern(stage: Stage) -> None:
    """In 2026-07-28 reading a resource that its server doesn't have is answered with error -32602."""
    await _not_found(stage, MODERN_VERSION, INVALID_PARAMS)


async def _not_found(stage: Stage, version: str, code: int) -> None:
    player = await stage.through(server(tools=ECHO, resources=[_resource(TODAY)]), version=version)
    await listed(player, RESOURCE, [TODAY])
    reply = await _read(player, player.route.uri(SHOP, "note://library/nothing"))
    expect(reply.code == code, f"It is answered with {reply.brief}.")


@check("fidelity.resource-in-result", SHOULD, LINKS, needs=("resources",))
async def resource_in_result(stage: Stage) -> None:
    """A link in a tool's result works: the resource can be read by the received URI."""
    link = {"type": "resource_link", "uri": TODAY, "name": "today"}
    shop = server(tools=[tool("find", None, content=[link])], resources=[_resource(TODAY)])
    player = await stage.through(shop)
    await listed(player, RESOURCE, [TODAY])
    found = (await player.call(SHOP, "find")).fields.get("content")
    first = found[0] if isinstance(found, list) and found else None
    uri = first.get("uri") if isinstance(first, dict) else None
    expect(isinstance(uri, str), f"The tool is answered with {found!r}.")
    reply = await _read(player, str(uri))
    expect(f"This is {TODAY}." in str(reply.fields), f"Reading {uri!r} is answered with {reply.brief}.")


# Prompts


def _says(content: object, role: str = "user") -> dict[str, object]:
    return {
        "role": role,
        "content": {"type": "text", "text": content} if isinstance(content, str) else content,
    }


async def _get(player: Player, name: str, arguments: Mapping[str, str] | None = None) -> Reply:
    given = {} if arguments is None else {"arguments": msgspec.json.encode(arguments)}
    return await player.request("prompts/get", join_object({"name": quote(name), **given}))


@check("fidelity.prompt", MUST, PROMPTS + "#promptmessage", needs=("prompts",))
async def prompt(stage: Stage) -> None:
    """A prompt's messages arrive all, in their order, with their roles and any content: text, an image,
    audio, a link, embedded text and bytes."""
    messages = [
        _says({"type": "text", "text": "héllo 😀\n"}),
        _says({"type": "image", "data": _BYTES, "mimeType": "image/png"}, "assistant"),
        _says({"type": "audio", "data": _BYTES, "mimeType": "audio/wav"}),
        _says({"type": "resource_link", "uri": TODAY, "name": "today"}),
        _says({"type": "resource", "resource": {"uri": TODAY, "mimeType": "text/plain", "text": "é"}}),
        _says({"type": "resource", "resource": {"uri": TODAY, "mimeType": "image/png", "blob": _BYTES}}),
    ]
    await _same_prompt(stage, {"name": "greet", "messages": messages})


async def _same_prompt(stage: Stage, greet: Mapping[str, object]) -> None:
    """Getting this prompt gives the same, directly and through the subject."""
    shop = server(tools=ECHO, prompts=[greet])
    with controlled():
        straight = await _get(await stage.straight(shop), "greet")
    player = await stage.through(shop)
    await listed(player, PROMPT, ["greet"])
    own = {player.route.uri(SHOP, TODAY): TODAY} if stage.subject.resources is not None else {}
    through = await _get(player, player.route.prompt(SHOP, "greet"))
    same_answers(stage, "The prompt is another.", [straight], player, [through], own)


@check("fidelity.prompt-meta", SHOULD, PROMPTS + "#getting-a-prompt", needs=("prompts",))
async def prompt_meta(stage: Stage) -> None:
    """A prompt arrives with its description and ``_meta``, its messages with annotations and titles; so do
    fields the specification doesn't know."""
    text = {"type": "text", "text": "hi", "annotations": _NOTES, "_meta": _META, "x-shelf": 1}
    link = {"type": "resource_link", "uri": TODAY, "name": "today", "title": "Today"}
    messages = [_says(text), _says(link)]
    whole = {"description": "Greets – naïvely.", "messages": messages, "_meta": _META, "x-vendor": [1]}
    await _same_prompt(stage, {"name": "greet", "whole": whole})


@check("fidelity.prompt-arguments", MUST, PROMPTS + "#getting-a-prompt", needs=("prompts",))
async def prompt_arguments(stage: Stage) -> None:
    """A prompt's arguments reach the server unchanged: empty, Unicode, JSON in a string, placeholders."""
    sent = {
        "who": "wyślij 😀",
        "how": "",
        "when": '{"a": 1}',
        "id": "007",
        "name": "{who}",
        "where": " $HOME\n",
    }
    arguments = [{"name": name} for name in sent]
    greet = {"name": "greet", "arguments": arguments, "messages": [_says("{who}")]}
    player = await stage.through(server(tools=ECHO, prompts=[greet]))
    await listed(player, PROMPT, ["greet"])
    reply = await _get(player, player.route.prompt(SHOP, "greet"), sent)
    asked = stage.record(SHOP).received("prompts/get")
    expect(asked, f"It did not reach the server; it is answered with {reply.brief}.")
    got = asked[-1].params.get("arguments")
    expect(got == sent, f"The server got {got!r}.")


@check("fidelity.prompt-unknown", SHOULD, PROMPTS + "#error-handling", needs=("prompts",))
async def prompt_unknown(stage: Stage) -> None:
    """Getting a prompt that its server doesn't have is answered with error -32602."""
    player = await stage.through(server(tools=ECHO, prompts=[{"name": "greet", "messages": [_says("hi")]}]))
    await listed(player, PROMPT, ["greet"])
    reply = await _get(player, player.route.prompt(SHOP, "nothing"))
    expect(reply.code == INVALID_PARAMS, f"It is answered with {reply.brief}.")


# Completions

_CITIES = {"city": ("Graz", "Grünau", "Groß Enzersdorf", "Wien")}


@check("fidelity.completion-prompt", SHOULD, COMPLETION, needs=("prompts", "completion"))
async def completion_prompt(stage: Stage) -> None:
    """Completions of a prompt's argument arrive with values, total and ``hasMore``; earlier choices reach the
    server."""
    arguments = [{"name": "city"}, {"name": "country"}]
    visit = {"name": "visit", "arguments": arguments, "messages": [_says("{city}")], "complete": _CITIES}
    await _same_completion(stage, PROMPT, server(tools=ECHO, prompts=[visit]), "visit", "ref/prompt", "name")


@check("fidelity.completion-template", SHOULD, COMPLETION, needs=("resources", "completion"))
async def completion_template(stage: Stage) -> None:
    """Completions of a template's variable arrive with values, total and ``hasMore``; earlier choices reach
    the server."""
    uri = "note://library/{country}/{city}"
    map_of = {"uriTemplate": uri, "name": "map", "text": "{city}", "complete": _CITIES}
    await _same_completion(
        stage, TEMPLATE, server(tools=ECHO, resource_templates=[map_of]), uri, "ref/resource", "uri"
    )


async def _same_completion(stage: Stage, kind: Kind, shop: Server, own: str, ref: str, key: str) -> None:
    argument, context = {"name": "city", "value": "Gr"}, {"arguments": {"country": "Österreich"}}

    async def completed(player: Player, name: str) -> Reply:
        params = {"ref": {"type": ref, key: name}, "argument": argument, "context": context}
        return await player.request("completion/complete", msgspec.json.encode(params))

    with controlled():
        straight = await completed(await stage.straight(shop), own)
    player = await stage.through(shop)
    await listed(player, kind, [own])
    through = await completed(player, kind.shown(player.route, own))
    same_answers(stage, "The completions differ.", [straight], player, [through], {})
    params = stage.record(SHOP).received("completion/complete")[-1].params
    heard = {name: params.get(name) for name in ("argument", "context")}
    expect(heard == {"argument": argument, "context": context}, f"The server was asked {heard!r}.")
