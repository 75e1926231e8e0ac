"""The MCP clients whose config files are known: where the files are and what an entry looks like in them.

Sources: each client's own documentation, November 2026.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Format = Literal["json", "toml"]
Dialect = Literal["claude", "plain", "cursor", "vscode", "gemini", "opencode", "zed", "codex"]


@dataclass(frozen=True, slots=True)
class Client:
    """One client. name: as ``--from`` takes it; title: as people know it. files: the paths of the user's
    config, of which any may exist. servers: the keys that lead to the object of servers in them. dialect: how
    an entry is spelled. project: files of one project, relative to its folder.
    """

    name: str
    title: str
    files: tuple[str, ...]
    servers: tuple[str, ...]
    dialect: Dialect
    format: Format = "json"
    project: tuple[str, ...] = field(default=())


def known_clients(env: Mapping[str, str], system: str = sys.platform) -> tuple[Client, ...]:
    """Every client, with its files as this user has them. env: the environment, for the home folder and the
    folders of applications. system: as `sys.platform` has it.
    """
    windows, mac = system == "win32", system == "darwin"
    home = (env.get("USERPROFILE") if windows else env.get("HOME")) or os.path.expanduser("~")
    config = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    if windows:
        apps = env.get("APPDATA") or os.path.join(home, "AppData", "Roaming")
    else:
        apps = os.path.join(home, "Library", "Application Support") if mac else config

    def at(*parts: str) -> str:
        return os.path.join(*parts)

    code = at(apps, "Code", "User")
    cline = ("globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json")
    zed = at(apps, "Zed") if windows else at(home, ".config", "zed")
    claude = env.get("CLAUDE_CONFIG_DIR")
    return (
        Client(
            "claude-code",
            "Claude Code",
            (at(claude, ".claude.json") if claude else at(home, ".claude.json"),),
            ("mcpServers",),
            "claude",
            project=(".mcp.json",),
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            (at(apps, "Claude", "claude_desktop_config.json"),),
            ("mcpServers",),
            "plain",
        ),
        Client(
            "cursor",
            "Cursor",
            (at(home, ".cursor", "mcp.json"),),
            ("mcpServers",),
            "cursor",
            project=(at(".cursor", "mcp.json"),),
        ),
        Client(
            "vscode",
            "VS Code",
            (at(code, "mcp.json"),),
            ("servers",),
            "vscode",
            project=(at(".vscode", "mcp.json"),),
        ),
        Client(
            "windsurf",
            "Windsurf",
            (at(home, ".codeium", "windsurf", "mcp_config.json"),),
            ("mcpServers",),
            "cursor",
        ),
        Client(
            "codex",
            "Codex",
            (at(env.get("CODEX_HOME") or at(home, ".codex"), "config.toml"),),
            ("mcp_servers",),
            "codex",
            format="toml",
        ),
        Client(
            "gemini",
            "Gemini CLI",
            (at(home, ".gemini", "settings.json"),),
            ("mcpServers",),
            "gemini",
            project=(at(".gemini", "settings.json"),),
        ),
        Client(
            "opencode",
            "opencode",
            (at(config, "opencode", "opencode.json"), at(config, "opencode", "opencode.jsonc")),
            ("mcp",),
            "opencode",
            project=("opencode.json", "opencode.jsonc"),
        ),
        Client("zed", "Zed", (at(zed, "settings.json"),), ("context_servers",), "zed"),
        Client("cline", "Cline", (at(code, *cline),), ("mcpServers",), "cursor"),
    )
