"""The bundle for desktop clients, unpacked and started as its manifest says, by a client with a new home.

`nox -s bundle` makes a real one and has uv run it, which installs what it needs. Without, the bundle has no
wheel, and this Python, in which mcpzip is installed, runs its entry point.
"""

import json
import os
import runpy
import sys
import zipfile
from pathlib import Path

import pytest
from helpers.driver import ROOT
from mcp import Client, StdioServerParameters

from mcpzip import __version__

REAL = os.environ.get("MCPZIP_BUNDLE")
"""The path of a bundle whose wheel can be installed."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that a client makes of the bundle."""
    folder = tmp_path_factory.mktemp("bundle")
    if REAL:
        bundle = Path(REAL)
    else:
        wheel = folder / f"mcpzip-{__version__}-py3-none-any.whl"
        wheel.write_bytes(b"")
        bundle = runpy.run_path(str(ROOT / "tools" / "bundle.py"))["build"](wheel, folder)
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def started(unpacked: Path, home: Path, config: str) -> StdioServerParameters:
    """What a client starts, with ``config`` as the value of the setting."""
    wanted = json.loads((unpacked / "manifest.json").read_text("utf-8"))["server"]["mcp_config"]
    values = {"${__dirname}": str(unpacked), "${user_config.config}": config}

    def filled(text: str) -> str:
        for name, value in values.items():
            text = text.replace(name, value)
        return text

    command, *args = (filled(word) for word in (wanted["command"], *wanted["args"]))
    if not REAL:
        assert args[:2] == ["run", "--project"]
        command, args = sys.executable, args[3:]
    environment = {**os.environ, "HOME": str(home), "MCPZIP_DAEMON": "off", "UV_PYTHON": sys.executable}
    environment |= {name: filled(value) for name, value in wanted["env"].items()}
    return StdioServerParameters(command=command, args=args, env=environment, cwd=str(home))


@pytest.mark.parametrize("named", [True, False], ids=["config", "no-config"])
async def test_a_desktop_client_starts_the_bundle(unpacked: Path, tmp_path: Path, named: bool) -> None:
    """The setting names a config, or is left as it stands in the manifest, and the usual one is used."""
    config = tmp_path / "my servers.json" if named else tmp_path / ".config" / "mcpzip" / "config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    echo = {"command": sys.executable, "args": ["-m", "mcpzip_fakes", "echo"]}
    config.write_text(json.dumps({"mcpServers": {"echo": echo}}), "utf-8")
    value = str(config) if named else "${user_config.config}"
    async with Client(started(unpacked, tmp_path, value)) as client:
        offered = {tool.name for tool in (await client.list_tools()).tools}
        manifest = json.loads((unpacked / "manifest.json").read_text("utf-8"))
        assert offered == {tool["name"] for tool in manifest["tools"]}
        called = await client.call_tool("execute_tool", {"name": "echo__greet", "arguments": {"name": "Ada"}})
        assert "Hello, Ada!" in called.content[0].text
