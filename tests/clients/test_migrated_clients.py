"""Real clients connect to mcpzip after `mcpzip migrate`, and to their own servers after `--undo`.

Each client runs without an account and without a network: `nox -s clients`. Their packages take 1.2 GB,
so the default tests don't install them, and skip this test.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.real_servers import NODE_MODULES, RealWorld

HERE = Path(__file__).parent
PACKAGES = HERE / "node_modules"
PATIENCE = 120.0
"""Seconds a client may take for a list: each of them waits 30 s or less for a server."""

_META_TOOLS = {"search_tools", "describe_tool", "execute_tool"}
_SILENT = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "GEMINI_TELEMETRY_ENABLED": "false",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",  # or it starts no server in a folder that nobody has trusted
    # Where there is no network namespace: a proxy that isn't there.
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    "NO_PROXY": "127.0.0.1,localhost",
}
_CODEX_TELEMETRY = "[analytics]\nenabled = false\n\n"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

installed = pytest.mark.skipif(
    sys.platform == "win32" or not (PACKAGES / "@openai").is_dir() or not NODE_MODULES.is_dir(),
    reason="the clients are not installed: nox -s clients",
)


def as_json(key: str, rest: Mapping[str, object], entry: Callable[[Any], Any]) -> Callable[[Any], str]:
    return lambda servers: json.dumps(
        {**rest, key: {name: entry(each) for name, each in servers.items()}}, indent=2
    )


def as_toml(servers: Mapping[str, Any]) -> str:
    lines = [_CODEX_TELEMETRY + "# my servers"]
    for name, entry in servers.items():
        lines += [f"[mcp_servers.{name}]", f"command = {json.dumps(entry['command'])}"]
        lines += [f"args = {json.dumps(entry['args'])}"]
        if env := entry.get("env"):
            lines += [f"[mcp_servers.{name}.env]", *(f"{key} = {json.dumps(env[key])}" for key in env)]
    return "\n".join(lines) + "\n"


def opencode_entry(entry: Any) -> object:
    local = {"type": "local", "command": [entry["command"], *entry["args"]], "enabled": True}
    return {**local, "environment": entry["env"]} if "env" in entry else local


@dataclass(frozen=True)
class RealClient:
    """One client. package: on npm; program: its executable file, a glob below ``node_modules``; file: its
    config below the home folder, and ``written`` the text of one; key: its key of the servers in it;
    connected: the line of `mcp list` about a server, ``NAME`` for its name.
    """

    name: str
    package: str
    program: str
    file: str
    key: str
    written: Callable[[Any], str]
    connected: str

    def entries(self, home: Path) -> object:
        text = (home / self.file).read_text("utf-8")
        return (tomllib.loads if self.file.endswith(".toml") else json.loads)(text)[self.key]


CLIENTS = (
    RealClient(
        "claude-code",
        "@anthropic-ai/claude-code",
        "@anthropic-ai/claude-code-*/claude",
        ".claude.json",
        "mcpServers",
        as_json("mcpServers", {"numStartups": 41}, lambda entry: {"type": "stdio", **entry}),
        r"^NAME: .* - ✔ Connected$",
    ),
    RealClient(
        "codex",
        "@openai/codex",
        ".bin/codex",
        ".codex/config.toml",
        "mcp_servers",
        as_toml,
        r"^NAME .* enabled ",
    ),
    RealClient(
        "gemini",
        "@google/gemini-cli",
        ".bin/gemini",
        ".gemini/settings.json",
        "mcpServers",
        as_json("mcpServers", {"privacy": {"usageStatisticsEnabled": False}}, dict),
        r"^✓ NAME: .* - Connected$",
    ),
    RealClient(
        "opencode",
        "opencode-ai",
        "opencode-*/bin/opencode",
        ".config/opencode/opencode.json",
        "mcp",
        as_json("mcp", {"autoupdate": False}, opencode_entry),
        r"✓ NAME +connected",
    ),
)


class Machine:
    """A fresh home in which ``client`` has five real servers."""

    def __init__(self, client: RealClient, root: Path) -> None:
        world = RealWorld(root)
        world.add_python_servers()
        world.add_node_servers()
        self.client, self.servers, self.home = client, world.entries, world.home
        self.mcpzip = shutil.which("mcpzip", path=str(Path(sys.executable).parent)) or "mcpzip"
        self.environment = {**world.environment, **_SILENT, "TERM": "dumb"}
        self._folder = root / "work"
        self._folder.mkdir()
        self.file = self.home / client.file
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(client.written(self.servers), "utf-8")
        [*_, program] = sorted(PACKAGES.glob(client.program))
        self._program = [*without_network(), str(program)]

    def run(self, *words: str) -> str:
        return self._output([self.mcpzip, *words])

    def mcp_list(self) -> str:
        """What `mcp list` of the client prints."""
        return _COLOUR.sub("", self._output([*self._program, "mcp", "list"]))

    def listed(self) -> set[str]:
        """The servers that `mcp list` of the client names, each of them as connected."""
        said = self.mcp_list()
        names = {*self.servers, "mcpzip"}
        found = {name for name in names if re.search(rf"(?m)^[^\w\n]*{name}\b", said)}
        pattern = self.client.connected
        connected = {name for name in names if re.search(f"(?m){pattern.replace('NAME', name)}", said)}
        assert found == connected, said
        return connected

    def codex_tools(self) -> dict[str, set[str]]:
        """The tools of each server as Codex itself lists them when it has connected."""
        asked = (
            {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
            {"method": "initialized"},
            {"id": 2, "method": "mcpServerStatus/list", "params": {}},
        )
        command = [*self._program, "app-server"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, env=self.environment, cwd=self._folder, **pipes) as codex:  # type: ignore[call-overload]
            for message in asked:
                codex.stdin.write(json.dumps(message).encode() + b"\n")
            codex.stdin.flush()
            answers = (json.loads(line) for line in codex.stdout)
            answer = next(each for each in answers if each.get("id") == 2)
            codex.stdin.close()
            codex.terminate()
        return {server["name"]: set(server["tools"]) for server in answer["result"]["data"]}

    def _output(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # Gemini CLI lists there
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout.decode()
        return done.stdout.decode()


def without_network() -> list[str]:
    """Starts a program in a network namespace that has the loopback interface only, where the system can."""
    if os.name == "nt" or not (shutil.which("unshare") and shutil.which("ip")):
        return []
    command = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    return [] if tried.returncode else command


@installed
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_the_client_connects_to_mcpzip_after_migrate_and_to_its_servers_after_undo(
    client: RealClient, tmp_path: Path
) -> None:
    machine = Machine(client, tmp_path)
    assert machine.listed() == set(machine.servers)
    before = client.entries(machine.home)

    machine.run("migrate", "--yes", "--from", client.name)
    assert machine.listed() == {"mcpzip"}
    if client.name == "codex":  # its `mcp list` starts no server
        assert machine.codex_tools() == {"mcpzip": _META_TOOLS}

    machine.run("migrate", "--yes", "--undo")
    assert machine.listed() == set(machine.servers)
    assert client.entries(machine.home) == before
    if client.name == "codex":
        assert set(machine.codex_tools()) == set(machine.servers)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_the_documentation_names_the_version_that_is_checked(client: RealClient) -> None:
    version = json.loads((HERE / "package.json").read_text("utf-8"))["dependencies"][client.package]
    page = (HERE.parents[1] / "docs" / "clients.md").read_text("utf-8")
    assert re.search(rf"\| `{re.escape(client.package)}` \| {re.escape(version)} \|", page)
