"""The image of the Dockerfile, as docs/packaging.md runs it. `nox -s image` builds it, where Docker works."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from helpers.driver import INITIALIZE
from mcp import Client, StdioServerParameters

IMAGE = os.environ.get("MCPZIP_IMAGE", "")
PATIENCE = 60.0  # s

pytestmark = pytest.mark.skipif(not IMAGE, reason="nox -s image builds the image, where Docker works")


def docker(*words: str) -> str:
    """What the command prints."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def options(tmp_path: Path) -> Iterator[list[str]]:
    """The options of `docker run`: a config to read, a volume for everything else, nothing else to write."""
    config = tmp_path / "config.json"
    echo = {"command": "mcpzip-fake", "args": ["echo"]}
    config.write_text(json.dumps({"mcpServers": {"echo": echo}}), "utf-8")
    config.chmod(0o644)
    volume = f"mcpzip-test-{uuid4().hex}"
    try:
        yield ["--rm", "--read-only", "--tmpfs", "/tmp", "-v", f"{volume}:/data",
               "-v", f"{config}:/data/config.json:ro"]  # fmt: skip
    finally:
        subprocess.run(["docker", "volume", "rm", "--force", volume], capture_output=True, check=False)


async def test_a_client_starts_a_container(options: list[str]) -> None:
    start = StdioServerParameters(command="docker", args=["run", "-i", *options, IMAGE], env=dict(os.environ))
    async with Client(start) as client:
        called = await client.call_tool("execute_tool", {"name": "echo__greet", "arguments": {"name": "Ada"}})
        assert "Hello, Ada!" in called.content[0].text


def test_nothing_in_it_is_root(options: list[str]) -> None:
    assert docker("run", *options, "--entrypoint", "id", IMAGE, "-u").strip() == "10001"


def test_it_serves_over_http_until_it_is_stopped(options: list[str]) -> None:
    """It is healthy, and SIGTERM ends it at once and well: `docker stop` would kill it after ten seconds."""
    check = "import urllib.request as r; r.urlopen('http://127.0.0.1:8931/health', timeout=3)"
    serve = ("serve", "--http", "0.0.0.0:8931", "--allow-host", "localhost")
    name = f"mcpzip-test-{uuid4().hex}"
    rest = [word for word in options if word != "--rm"]
    docker("run", "-d", "--name", name, *rest, "-e", "MCPZIP_TOKEN=0123456789abcdef", IMAGE, *serve)
    try:
        retry = f'until python -c "{check}" 2>/dev/null; do :; done'
        docker("exec", name, "sh", "-c", retry)
        asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
        call = (
            "import sys, urllib.request as r; print(r.urlopen(r.Request('http://127.0.0.1:8931/mcp', "
            "sys.argv[1].encode(), {'Authorization': 'Bearer 0123456789abcdef', "
            "'Content-Type': 'application/json', 'Accept': 'application/json, text/event-stream'})).read())"
        )
        assert "serverInfo" in docker("exec", name, "python", "-c", call, asked)
        docker("stop", "-t", "10", name)
        assert docker("inspect", "--format", "{{.State.ExitCode}}", name).strip() == "0"
    finally:
        docker("rm", "--force", name)
