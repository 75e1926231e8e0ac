"""A home folder with the config files of clients, for the tests of `mcpzip migrate`."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcpzip.clients.known import known_clients
from mcpzip.clients.migration import Plan
from mcpzip.clients.plan import plan
from mcpzip.clients.record import migrate, undo

TIME = {"command": "uvx", "args": ["mcp-server-time"]}
GOOSE = """\
# mine
GOOSE_MODEL: x
extensions:
  developer:
    enabled: true
    type: builtin
  fetch: # pages
    enabled: true
    type: stdio
    name: fetch
    cmd: uvx
    args:
    - mcp-server-fetch
    envs: {}
    env_keys: []
    timeout: 300
    bundled: null

  # kept in the keyring
  tracker:
    type: stdio
    cmd: tracker
    env_keys: [TRACKER_TOKEN]
GOOSE_MODE: auto
"""
FILES: dict[str, tuple[str, bytes]] = {
    "claude-code": (
        ".claude.json",
        b'{\n  "numStartups": 4,\n  "mcpServers": {\n    "time": {"type": "stdio", "command": "uvx", '
        b'"args": ["mcp-server-time"], "env": {}},\n    "docs": '
        b'{"type": "http", "url": "https://docs.example/mcp",\n'
        b'      "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}}\n '
        b' },\n  "projects": {"/home/x": {"mcpServers": '
        b'{"local": {"command": "./serve"}}, "history": [{"display": "hi"}]}}\n}\n',
    ),
    "claude-desktop": (
        ".config/Claude/claude_desktop_config.json",
        b'\xef\xbb\xbf{\r\n\t"mcpServers": {\r\n\t\t"files": '
        b'{"command": "npx", "args": ["-y", "fs", "/tmp"]}\r\n\t},\r\n'
        b'\t"globalShortcut": ""\r\n}',
    ),
    "cursor": (".cursor/mcp.json", b'{"mcpServers":{"time":{"command":"uvx","args":["mcp-server-time"]}}}'),
    "vscode": (
        ".config/Code/User/mcp.json",
        b'{\n    // servers of mine\n    "servers": {\n        "git": {"type": "stdio", "command": "uvx", '
        b'"args": ["mcp-server-git"]}, // git\n        "keyed": '
        b'{"command": "x", "env": {"K": "${input:key}"}},\n'
        b'    },\n    "inputs": [{"id": "key", "type": "promptString"},],\n}\n',
    ),
    "windsurf": (
        ".codeium/windsurf/mcp_config.json",
        b'{"mcpServers": {"wind": {"serverUrl": "https://wind.example/mcp", "disabledTools": ["rm"]}}}',
    ),
    "codex": (
        ".codex/config.toml",
        b'model = "o3" # best\n\n[mcp_servers.time]\ncommand = "uvx"\nargs = ["mcp-server-time", "--utc"]\n\n'
        b'[mcp_servers.time.env]\nTZ = "UTC"\n\n[tools]\nweb = true\n',
    ),
    "gemini": (
        ".gemini/settings.json",
        b'{"theme": "x", "mcpServers": {"gem": {"httpUrl": "https://gem.example/mcp", "trust": true}}}\n',
    ),
    "opencode": (
        ".config/opencode/opencode.json",
        b'{\n "$schema": "https://opencode.ai/config.json",\n "mcp": {\n  "oc": {"type": "local", '
        b'"command": ["bunx", "srv"], "enabled": false}\n }\n}\n',
    ),
    "zed": (
        ".config/zed/settings.json",
        b'// Zed\n{\n  "vim_mode": true,\n  "context_servers": '
        b'{\n    "zs": {"source": "custom", "command": "zs", '
        b'"args": []},\n  },\n}\n',
    ),
    "goose": (
        ".config/goose/config.yaml",
        GOOSE.encode(),
    ),
    "cline": (
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        b'{"mcpServers": {"cl": {"command": "cl", "autoApprove": ["a"], "disabled": true}}}',
    ),
}
"""By client: its file, below the home folder of Linux, and what is in it."""


class Home:
    """A home folder with the files of some clients. was: their bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {"HOME": str(folder), "DOCS_TOKEN": "t-9341aab7"}
        self.config = folder / "mcpzip" / "config.json"
        self.was: dict[Path, bytes] = {}

    def file(self, client: str, data: bytes | None = None) -> Path:
        name, usual = FILES[client]
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(usual if data is None else data)
        self.was[path] = path.read_bytes()
        return path

    def plan(self, *clients: str, projects: Sequence[Path] = ()) -> Plan:
        known = [each for each in known_clients(self.env, "linux") if not clients or each.name in clients]
        return plan(
            known,
            str(self.config),
            self.env,
            command="/opt/mcpzip",
            arguments=["serve"],
            projects=[str(project) for project in projects],
        )

    def migrate(self, *clients: str, projects: Sequence[Path] = ()) -> Plan:
        found = self.plan(*clients, projects=projects)
        migrate(found.changes, str(self.config))
        return found

    def servers(self) -> dict[str, Any]:
        servers: dict[str, Any] = json.loads(self.config.read_bytes())["mcpServers"]
        return servers

    def undo(self) -> dict[str, str]:
        return {Path(each.path).name: each.outcome for each in undo(str(self.config))}

    def is_as_it_was(self) -> bool:
        return all(path.read_bytes() == data for path, data in self.was.items()) and not self.config.exists()


def run_migrate(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        **home.env,
        "MCPZIP_CONFIG": str(home.config),
        "XDG_CONFIG_HOME": "",
        "NO_COLOR": "1",
    }
    command = [sys.executable, "-m", "mcpzip", "migrate", *words]
    return subprocess.run(
        command, env=env, cwd=home.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
