"""Third-party servers, recorded while third-party clients use them, and played to the same clients: over
stdio these get the same bytes, over HTTP the same results. The servers are gone by then.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers import inspector, tee
from helpers.inspector import Inspector, Json
from helpers.real_servers import RealWorld
from helpers.sdk_client import Talk, client_at, client_of
from mcp import StdioServerParameters
from mcpzip_fakes.launch import importable

pytestmark = pytest.mark.npm

FAKE = [sys.executable, "-m", "mcpzip_fakes"]
TOOLS: dict[str, list[tuple[str, Json]]] = {
    "time": [
        ("get_current_time", {"timezone": "Asia/Tokyo"}),
        ("get_current_time", {"timezone": "Asia/Tokyo"}),
        ("get_current_time", {"timezone": "Nowhere/Land"}),
    ],
    "git": [("git_log", {"repo_path": "{repo}"}), ("git_status", {"repo_path": "{repo}"})],
    "everything": [
        ("echo", {"message": "grüezi “wohl” \u2028 😀"}),
        ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
        ("get-tiny-image", {}),
        ("trigger-sampling-request", {"prompt": "Well?", "maxTokens": 7}),
        ("get-env", {}),
    ],
    "filesystem": [
        ("read_text_file", {"path": "{files}/README.md"}),
        ("directory_tree", {"path": "{files}"}),
        ("read_media_file", {"path": "{files}/dot.png"}),
    ],
    "memory": [
        ("create_entities", {"entities": [{"name": "Bob", "entityType": "p", "observations": ["x"]}]}),
        ("read_graph", {}),
    ],
}
"""By server, the calls of a session."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, npm_packages: None) -> RealWorld:
    world = RealWorld(tmp_path_factory.mktemp("world"))
    world.add_python_servers()
    world.add_node_servers()
    return world


def calls_of(world: RealWorld, server: str) -> list[tuple[str, Json]]:
    places = {"{repo}": str(world.repo), "{files}": str(world.files)}
    text = json.dumps(TOOLS[server])
    for place, path in places.items():
        text = text.replace(place, json.dumps(path)[1:-1])
    return [(name, arguments) for name, arguments in json.loads(text)]


def recorder(cassette: Path, entry: Json) -> list[str]:
    return [*FAKE, "record", str(cassette), "--", entry["command"], *entry["args"]]


def player(cassette: Path) -> list[str]:
    return [*FAKE, str(cassette)]


def through_tee(said: Path, command: list[str]) -> list[str]:
    return [sys.executable, tee.__file__, str(said), *command]


async def converse(talk: Talk, calls: list[tuple[str, Json]], declared: set[str]) -> list[object]:
    """All that a client can ask; what it was answered, without what differs between transports."""
    client = talk.client
    found: list[object] = [await client.list_tools()]
    if "resources" in declared:
        resources = await client.list_resources()
        found.append(resources)
        found += [await client.read_resource(str(each.uri)) for each in resources.resources[:1]]
    if "prompts" in declared:
        found.append(await client.list_prompts())
    steps: list[object] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total, message))

    for name, arguments in calls:
        found.append(await client.call_tool(name, arguments, progress_callback=progress))
    return [*found, steps, list(talk.asked)]


async def sdk_session(world: RealWorld, server: str, command: list[str]) -> list[object]:
    env = {**world.environment, **importable(), **world.entries[server].get("env", {})}
    target = StdioServerParameters(command=command[0], args=command[1:], env=env)
    async with client_of(target, "legacy", None) as talk:
        declared = set(talk.client.server_capabilities.model_dump(exclude_none=True))
        return await converse(talk, calls_of(world, server), declared)


@pytest.mark.parametrize("server", TOOLS)
async def test_the_sdks_client_gets_the_same_bytes(server: str, world: RealWorld, tmp_path: Path) -> None:
    cassette, before, after = tmp_path / f"{server}.toml", tmp_path / "before", tmp_path / "after"
    world.restore()
    recorded = await sdk_session(
        world, server, through_tee(before, recorder(cassette, world.entries[server]))
    )
    played = await sdk_session(world, server, through_tee(after, player(cassette)))
    assert played == recorded
    assert after.read_bytes() == before.read_bytes()
    assert before.read_bytes().count(b"\n") > len(TOOLS[server])


@pytest.mark.parametrize("server", TOOLS)
def test_the_inspector_gets_the_same_bytes(server: str, world: RealWorld, tmp_path: Path) -> None:
    if why := inspector.missing():
        pytest.skip(why)
    cassette, before, after = tmp_path / f"{server}.toml", tmp_path / "before", tmp_path / "after"
    world.restore()
    entry = world.entries[server]
    commands = {
        "recorded": through_tee(before, recorder(cassette, entry)),
        "played": through_tee(after, player(cassette)),
    }
    servers = tmp_path / "servers.json"
    env = {**importable(), **entry.get("env", {})}
    entries = {name: {"command": each[0], "args": each[1:], "env": env} for name, each in commands.items()}
    servers.write_text(json.dumps({"mcpServers": entries}))
    asks = Inspector(servers, world.home)
    name, arguments = calls_of(world, server)[0]
    answers = {
        each: asks.ask(
            each, "legacy", "tools/call", "--tool-name", name, "--tool-args-json", json.dumps(arguments)
        )
        for each in commands
    }
    assert answers["recorded"].code == 0
    assert answers["played"] == answers["recorded"]
    assert after.read_bytes() == before.read_bytes()


@contextmanager
def listening(*words: str) -> Iterator[str]:
    """The URL at which a command of ``mcpzip-fake`` listens until the block ends."""
    process = subprocess.Popen([*FAKE, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout
        yield process.stdout.readline().split()[1]
    finally:
        process.terminate()
        process.wait(30)
        assert process.stdout
        process.stdout.close()


async def test_over_http_the_sdks_client_gets_the_same_results(world: RealWorld, tmp_path: Path) -> None:
    cassette = tmp_path / "everything.toml"
    calls = [call for call in calls_of(world, "everything") if call[0] != "get-env"]

    async def session(url: str) -> list[object]:
        async with client_at(url, "legacy") as talk:
            *found, asked = await converse(talk, calls, {"resources", "prompts"})
            assert isinstance(asked, list)
            return [*found, sorted(asked, key=str)]  # on several streams, which have no order among them

    with world.npm_servers(tmp_path):
        real = world.entries["everything-http"]["url"]
        with listening("record", str(cassette), "--url", real) as url:
            recorded = await session(url)
    with listening(str(cassette), "--transport", "http") as url:
        assert await session(url) == recorded


def test_over_http_the_inspector_gets_the_same_results(world: RealWorld, tmp_path: Path) -> None:
    if why := inspector.missing():
        pytest.skip(why)
    cassette, servers = tmp_path / "everything.toml", tmp_path / "servers.json"
    arguments = json.dumps({"duration": 0.2, "steps": 2})
    words = ("--tool-name", "trigger-long-running-operation", "--tool-args-json", arguments)

    def session(url: str) -> list[inspector.Answer]:
        servers.write_text(json.dumps({"mcpServers": {"it": {"type": "streamable-http", "url": url}}}))
        asks = Inspector(servers, world.home)
        lists = [asks.ask("it", "legacy", method) for method in ("tools/list", "resources/list")]
        return [*lists, asks.ask("it", "legacy", "tools/call", *words)]

    with world.npm_servers(tmp_path):
        real = world.entries["everything-http"]["url"]
        with listening("record", str(cassette), "--url", real) as url:
            recorded = session(url)
    assert [each.code for each in recorded] == [0, 0, 0]
    assert recorded[0].result["tools"]
    with listening(str(cassette), "--transport", "http") as url:
        assert session(url) == recorded
