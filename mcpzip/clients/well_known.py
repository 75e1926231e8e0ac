"""MCP servers that many people use, for `mcpzip init`.

Sources: the registries of npm and PyPI, and each service's own documentation, November 2026.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class WellKnown:
    """One server. name: in the config. what: what it is good for. entry: for the config; in an argument,
    ``{folder}`` stands for a folder that the person names. variables: those of its environment or headers
    that have to be set, and what they are. signs_in: whether a person has to sign in with a browser.
    """

    name: str
    what: str
    entry: dict[str, Any]
    variables: dict[str, str] = field(default_factory=dict)
    signs_in: bool = False

    @property
    def needs_folder(self) -> bool:
        """Whether `entry` has a ``{folder}``."""
        return any("{folder}" in word for word in self.entry.get("args", ()))


def _npx(package: str, *args: str) -> dict[str, Any]:
    return {"command": "npx", "args": ["-y", package, *args]}


def _uvx(package: str, *args: str) -> dict[str, Any]:
    return {"command": "uvx", "args": [package, *args]}


WELL_KNOWN = (
    WellKnown(
        "filesystem",
        "read and write the files in a folder",
        _npx("@modelcontextprotocol/server-filesystem", "{folder}"),
    ),
    WellKnown("git", "read and change a Git repository", _uvx("mcp-server-git", "--repository", "{folder}")),
    WellKnown("fetch", "read web pages", _uvx("mcp-server-fetch")),
    WellKnown("time", "the time, in any time zone", _uvx("mcp-server-time")),
    WellKnown("memory", "remember facts in a graph", _npx("@modelcontextprotocol/server-memory")),
    WellKnown(
        "thinking", "think in numbered steps", _npx("@modelcontextprotocol/server-sequential-thinking")
    ),
    WellKnown("playwright", "drive a browser", _npx("@playwright/mcp")),
    WellKnown("context7", "documentation of libraries", _npx("@upstash/context7-mcp")),
    WellKnown(
        "github",
        "issues, pull requests and code on GitHub",
        {"url": "https://api.githubcopilot.com/mcp/", "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"}},
        {"GITHUB_TOKEN": "a personal access token of GitHub"},
    ),
    WellKnown(
        "linear", "issues and projects in Linear", {"url": "https://mcp.linear.app/mcp"}, signs_in=True
    ),
    WellKnown(
        "notion", "pages and databases in Notion", {"url": "https://mcp.notion.com/mcp"}, signs_in=True
    ),
    WellKnown("sentry", "errors and traces in Sentry", {"url": "https://mcp.sentry.dev/mcp"}, signs_in=True),
)
