"""``mcpzip tokens`` on real servers, compared with a count of its own."""

import asyncio
import json
import re
import sys
from pathlib import Path

from helpers.driver import ROOT, command, environment
from helpers.tokenizer import tokens
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVERS = {"time": "mcp_server_time", "git": "mcp_server_git"}


async def listed(module: str) -> list[dict[str, object]]:
    """The tools of a server as the SDK's client reads them."""
    parameters = StdioServerParameters(command=sys.executable, args=["-m", module])
    async with Client(stdio_client(parameters)) as client:
        return [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
            for tool in (await client.list_tools()).tools
        ]


async def run(*words: str, config: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *command(*words),
        env=environment(MCPZIP_CONFIG=str(config), COLUMNS="200"),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


async def test_the_tokens_of_real_servers_are_counted_to_the_token(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    entries = {name: {"command": sys.executable, "args": ["-m", module]} for name, module in SERVERS.items()}
    config.write_text(json.dumps({"mcpServers": entries}), "utf-8")
    found = json.loads(await run("tokens", "--json", config=config))
    assert found["unit"] == "tokens (o200k_base)"
    for name, module in SERVERS.items():
        expected = {}
        for tool in await listed(module):
            read = tool | {"name": f"{name}__{tool['name']}"}
            expected[tool["name"]] = tokens(json.dumps(read, ensure_ascii=False, separators=(",", ":")))
        assert found["servers"][name]["tools"] == expected
        assert found["servers"][name]["tokens"] == sum(expected.values())
    assert found["all"] == sum(server["tokens"] for server in found["servers"].values())
    assert 100 < found["mcpzip"]["tools"] < found["all"]
    shown = await run("tokens", config=config)
    assert f"In every message: {found['all']:,} tokens (o200k_base) with all tools listed" in shown
    assert "git_log" in await run("tokens", "git", config=config)


async def test_readme_and_tutorial_have_the_figures_of_the_demo(tmp_path: Path) -> None:
    """The demo counted the annotations and output schemas too: README and tutorial had two figures for the
    same servers.
    """
    said = await run("demo", config=tmp_path / "none.json")
    (row,) = re.findall(r"every message +([\d,]+) +([\d,]+) +(\d+)%", said)
    everything, ours, saved = row
    (whole,) = re.findall(r"the whole conversation above.* (\d+)%", said)
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"53 tools, {everything} tokens in every message become {ours} ({saved} % less)" in readme
    assert f"costs {whole} % less" in readme
    assert f"the {everything} grow; the {ours} hardly do" in readme
    tutorial = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    assert f"{everything} tokens with all tools listed, {ours} with mcpzip" in tutorial
