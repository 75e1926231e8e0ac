"""The MCP clients that mcpzip knows: the paths of their config files, and the format of an entry.

Sources: each client's own documentation, November 2026.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Format = Literal["json", "toml", "yaml"]
Dialect = Literal["claude", "plain", "cursor", "vscode", "gemini", "opencode", "zed", "codex", "goose"]


@dataclass(frozen=True, slots=True)
class Client:
    """One client. name: for ``--from``; title: for people. files: paths of the user's config; any of them may
    exist. servers: the keys in these files that lead to the object of servers. dialect: the format of an
    entry. project: files of one project, relative to its folder.
    """

    name: str
    title: str
    files: tuple[str, ...]
    servers: tuple[str, ...]
    dialect: Dialect
    format: Format = "json"
    project: tuple[str, ...] = field(default=())


def known_clients(env: Mapping[str, str], system: str = sys.platform) -> tuple[Client, ...]:
    """All clients, with the paths of this user's files. env: environment variables that determine the home
    folder and the folders of applications. system: as `sys.platform`.
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
    goose = at(apps, "Block", "goose", "config") if windows else at(config, "goose")
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
        Client("goose", "Goose", (at(goose, "config.yaml"),), ("extensions",), "goose", format="yaml"),
        Client("cline", "Cline", (at(code, *cline),), ("mcpServers",), "cursor"),
    )
