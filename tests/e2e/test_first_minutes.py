"""A newcomer's first minutes: ten servers in Claude Code, `mcpzip migrate`, the first search, the first call.

The installed command and real servers; the client starts mcpzip exactly as its own file says. The time is
printed (`pytest -s`).
"""

import asyncio
import json
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from helpers.real_servers import RealWorld
from mcp import Client, StdioServerParameters

PATIENCE = 110.0
"""Seconds that the newcomer waits at most."""
REAL = ("time", "git", "everything", "filesystem", "memory")
ODD = {
    "gone": {"command": "no-such-command-anywhere", "args": ["--stdio"]},
    "crashing": {"command": "sh", "args": ["-c", "echo 'Error: DATABASE_URL is required' >&2; exit 1"]},
    "silent": {"command": "sleep", "args": ["600"]},
    "my notes": {"command": "sh", "args": ["-c", "exit 0"]},
    "elsewhere": {"type": "http", "url": "http://127.0.0.1:9/mcp"},
}


@pytest.fixture
def claude(tmp_path: Path, npm_packages: None) -> tuple[RealWorld, Path]:
    """A home with a ``~/.claude.json`` as Claude Code leaves it: ten servers among its other settings."""
    world = RealWorld(tmp_path)
    world.add_python_servers()
    world.add_node_servers()
    servers = {name: {"type": "stdio", **world.entries[name]} for name in REAL} | ODD
    file = world.home / ".claude.json"
    settings = {
        "numStartups": 41,
        "tipsHistory": {"shift-enter": 12},
        "mcpServers": servers,
        "projects": {str(tmp_path): {"allowedTools": [], "history": []}},
    }
    file.write_text(json.dumps(settings, indent=2), "utf-8")
    return world, file


async def test_from_ten_servers_in_claude_code_to_the_first_call(
    mcpzip: str, claude: tuple[RealWorld, Path]
) -> None:
    world, file = claude
    before = file.read_bytes()
    environment = {**world.environment, "PATH": f"{Path(mcpzip).parent}:{world.environment['PATH']}"}
    begin = time.monotonic()

    run_in(world, environment, mcpzip, "migrate", "--yes")
    settings = json.loads(file.read_bytes())
    assert list(settings["mcpServers"]) == ["mcpzip"]
    assert settings["numStartups"] == 41

    entry = settings["mcpServers"]["mcpzip"]
    start = StdioServerParameters(command=entry["command"], args=entry["args"], env=environment)
    async with asyncio.timeout(PATIENCE), daemon_ended(world, environment, mcpzip), Client(start) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "search_tools", "describe_tool", "execute_tool"
        }  # fmt: skip
        await finds(client, "what time is it in Tokyo", "time__get_current_time")
        searched = time.monotonic() - begin
        said = await say(
            client, "execute_tool", name="time__get_current_time", arguments={"timezone": "Asia/Tokyo"}
        )
        assert "Asia/Tokyo" in said
        called = time.monotonic() - begin
        for query, tool in (
            ("read a text file", "filesystem__read_text_file"),
            ("commit history of the repository", "git__git_log"),
            ("remember an entity in the graph", "memory__create_entities"),
            ("echo a message back", "everything__echo"),
        ):
            await finds(client, query, tool)
        for name in ("crashing", "gone", "my-notes"):
            await is_failing(client, name)
        assert "Error: DATABASE_URL is required" in await say(client, "execute_tool", name="proxy_status")
    print(f"migrate to first search {searched:.1f} s, to first call {called:.1f} s")

    run_in(world, environment, mcpzip, "migrate", "--undo")
    assert file.read_bytes() == before


@asynccontextmanager
async def daemon_ended(world: RealWorld, environment: dict[str, str], mcpzip: str) -> AsyncIterator[None]:
    """The daemon that was started in the block is ended after it."""
    try:
        yield
    finally:
        run_in(world, environment, mcpzip, "daemon", "stop")


async def finds(client: Client, query: str, tool: str) -> None:
    """Searches until ``tool`` is found: on a busy machine some servers are still starting at first."""
    while tool not in (found := await say(client, "search_tools", query=query)):
        assert "still starting" in found, found


async def is_failing(client: Client, name: str) -> None:
    """Asks until the server ``name`` is known to fail: on a busy machine its process is still starting."""
    while f"{name}: failing" not in (status := await say(client, "execute_tool", name="proxy_status")):
        assert f"{name}: connecting" in status, status
        await asyncio.sleep(0.05)


def run_in(world: RealWorld, environment: dict[str, str], *command: str) -> None:
    done = subprocess.run(
        command, env=environment, cwd=world.files, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


async def say(client: Client, tool: str, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    text: str = result.content[0].text  # type: ignore[union-attr]
    return text
