"""server-everything asks its client for a model, for the user and for roots, has resources, prompts and
completions, and tells of changes and progress: the SDK's `Client` gets the same through mcpzip as directly.

What mcpzip changes on purpose is changed back before the comparison: the server's name before tools, prompts
and URIs. The time of day and random ids, which are new in each answer, are masked.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as t
import pytest
from helpers.client_answers import PATIENCE, Person
from helpers.json_client import Json
from helpers.real_servers import node_entry
from helpers.serve_http import listening
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp_types.version import LATEST_MODERN_VERSION

pytestmark = pytest.mark.npm

SERVER = "everything"
RESOURCE = "demo://resource/dynamic/text/1"
_NEW_EACH_TIME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+:\d\d:\d\d( [AP]M)?")
_ASKING = {
    "trigger-sampling-request": {"prompt": "How is it?", "maxTokens": 50},
    "trigger-elicitation-request": {},
    "trigger-url-elicitation": {"url": "https://example.com/sign-in"},
    "get-roots-list": {},
}
"""Tools that the server has only for clients that can be asked."""
_PROMPTS: dict[str, dict[str, str] | None] = {
    "simple-prompt": None,
    "args-prompt": {"city": "Graz", "state": "Styria"},
    "resource-prompt": {"resourceType": "Text", "resourceId": "1"},
}


class Visitor:
    """A client and its person. through_mcpzip: whether the server's name stands before its names and URIs."""

    def __init__(self, client: Client, person: Person, *, through_mcpzip: bool) -> None:
        self.client, self.person, self.through_mcpzip = client, person, through_mcpzip

    def name(self, own: str) -> str:
        """What a tool or a prompt of the server is called here."""
        return f"{SERVER}__{own}" if self.through_mcpzip else own

    def uri(self, own: str) -> str:
        """What a resource of the server is called here."""
        return f"mcpzip://{SERVER}/{own}" if self.through_mcpzip else own

    async def call(self, tool: str, arguments: Json, **options: Any) -> t.CallToolResult:
        """A tool of the server."""
        if not self.through_mcpzip:
            return await self.client.call_tool(tool, arguments, **options)
        told = {"name": self.name(tool), "arguments": arguments}
        return await self.client.call_tool("execute_tool", told, **options)

    def seen(self, value: object) -> object:
        """As JSON, under the server's own names, without what is new each time."""
        text = json.dumps(value, default=plain)
        if self.through_mcpzip:
            text = text.replace(f"mcpzip://{SERVER}/", "").replace(f"{SERVER}__", "")
        return json.loads(_NEW_EACH_TIME.sub("NEW", text))


def plain(model: Any) -> Json:
    """A result as JSON, without what a client's era demands of every result from whoever sends it."""
    dumped = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    meta = {key: value for key, value in dumped.pop("_meta", {}).items() if not key.endswith("/serverInfo")}
    left = {key: value for key, value in dumped.items() if key not in ("resultType", "ttlMs", "cacheScope")}
    return {**left, "_meta": meta} if meta else left


@asynccontextmanager
async def visiting(target: Any, mode: str, *, through_mcpzip: bool = True) -> AsyncIterator[Visitor]:
    """The SDK's client in ``mode``."""
    person = Person()
    options = {"cache": None, "log_level": None if mode == "legacy" else "debug"}
    async with (
        asyncio.timeout(2 * PATIENCE),
        Client(target, mode=mode, **options, **person.callbacks) as client,  # type: ignore[arg-type]
    ):
        yield Visitor(client, person, through_mcpzip=through_mcpzip)


@pytest.fixture(scope="module")
def entry(npm_packages: None) -> Json:
    """server-everything, for `mcpServers`."""
    return node_entry("everything", "stdio")


@pytest.fixture(scope="module")
def config(entry: Json, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("everything") / "config.json"
    file.write_text(json.dumps({"mcpServers": {SERVER: entry}}), "utf-8")
    return file


@pytest.fixture(scope="module")
def direct(entry: Json) -> Json:
    """What a client has of the server itself."""

    async def look() -> Json:
        target = StdioServerParameters(command=entry["command"], args=entry["args"])
        async with visiting(target, "legacy", through_mcpzip=False) as visitor:
            return await everything_it_has(visitor)

    return asyncio.run(look())


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_over_stdio_it_is_the_same(direct: Json, config: Path, mcpzip: str, mode: str) -> None:
    target = StdioServerParameters(command=mcpzip, args=["serve", "--no-daemon", "--config", str(config)])
    async with visiting(target, mode) as visitor:
        assert_equal(await everything_it_has(visitor), direct)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_over_http_it_is_the_same(direct: Json, config: Path, mcpzip: str, mode: str) -> None:
    http = httpx2.AsyncClient(timeout=httpx2.Timeout(PATIENCE), trust_env=False)
    with listening(mcpzip, config) as url:
        async with http, visiting(streamable_http_client(url, http_client=http), mode) as visitor:
            assert_equal(await everything_it_has(visitor), direct)


def assert_equal(through: Json, direct: Json) -> None:
    """Part by part, for a failure that says which."""
    for part, found in through.items():
        assert found == direct[part], part
    assert direct.keys() == through.keys()


async def everything_it_has(visitor: Visitor) -> Json:
    """All that is compared, by what it is."""
    client, person = visitor.client, visitor.person
    found: Json = {tool: await visitor.call(tool, arguments) for tool, arguments in _ASKING.items()}
    # It asks for roots by itself, too, on each connection; what it was answered is in get-roots-list.
    found["what it asked"] = [question for question in person.asked if question != "roots"]
    found["a tool"] = await visitor.call("get-resource-reference", {"resourceType": "Text", "resourceId": 1})
    listed = (await client.list_resources()).resources
    found["resources"] = by_uri(listed)
    found["templates"] = sorted(
        map(plain, (await client.list_resource_templates()).resource_templates), key=str
    )
    found["a file"] = await client.read_resource(next(one.uri for one in listed if "features" in one.uri))
    found["from a template"] = await client.read_resource(visitor.uri(RESOURCE))
    found["prompts"] = sorted(map(plain, (await client.list_prompts()).prompts), key=lambda one: one["name"])
    for prompt, arguments in _PROMPTS.items():
        found[prompt] = await client.get_prompt(visitor.name(prompt), arguments)
    found["completions"] = [await one for one in completions(visitor)]
    found["progress"] = await progress_of(visitor)
    found["news"] = await news_of(visitor)
    return {part: visitor.seen(value) for part, value in found.items()}


def by_uri(resources: list[t.Resource]) -> Json:
    return {one["uri"].partition("demo:")[2]: one for one in sorted(map(plain, resources), key=str)}


def completions(visitor: Visitor) -> Iterator[Awaitable[t.CompleteResult]]:
    prompt = t.PromptReference(type="ref/prompt", name=visitor.name("completable-prompt"))
    template = visitor.uri("demo://resource/dynamic/text/{resourceId}")
    complete = visitor.client.complete
    yield complete(prompt, {"name": "department", "value": "S"})
    yield complete(prompt, {"name": "name", "value": ""}, {"department": "Engineering"})
    yield complete(
        t.ResourceTemplateReference(type="ref/resource", uri=template), {"name": "resourceId", "value": "1"}
    )


async def progress_of(visitor: Visitor) -> object:
    """A call that tells of its progress: its result, and the steps."""
    person, told = visitor.person, {"duration": 0.2, "steps": 4}
    done = await visitor.call("trigger-long-running-operation", told, progress_callback=person.on_progress)
    await person.until(lambda: len(person.progress) == 4)
    return [done, sorted(person.progress, key=str)]


async def news_of(visitor: Visitor) -> object:
    """Updates of a resource, switched on, heard of, and off again."""
    async with subscribed(visitor) as an_update:
        on = await visitor.call("toggle-subscriber-updates", {})
        heard = await an_update()
        off = await visitor.call("toggle-subscriber-updates", {})
    return [on, heard, off]


@asynccontextmanager
async def subscribed(visitor: Visitor) -> AsyncIterator[Callable[[], Awaitable[str]]]:
    """As the client's era has it. Gives what waits for the URI of a resource that was updated."""
    client, person, uri = visitor.client, visitor.person, visitor.uri(RESOURCE)
    if client.protocol_version != LATEST_MODERN_VERSION:
        await client.subscribe_resource(uri)

        async def told() -> str:
            await person.until(lambda: bool(person.updated))
            return person.updated[0]

        yield told
        await client.unsubscribe_resource(uri)
        return
    async with client.listen(resource_subscriptions=[uri]) as events:

        async def listened() -> str:
            event = await anext(events)
            assert isinstance(event, ResourceUpdated)
            return str(event.uri)

        yield listened
