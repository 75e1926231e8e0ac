"""The three tools a client sees, and what it is told about them.

The rule: everything here is a pure function of the config, byte-stable across runs (spec: `tools/list` must
not vary by connection or as a side effect of other requests), and short: it is in the model's context on
every message.
"""

from collections.abc import Iterable

SEARCH, DESCRIBE, EXECUTE = "search_tools", "describe_tool", "execute_tool"
STATUS, REFRESH = "proxy_status", "proxy_refresh"

MAX_LIMIT = 50
INSTRUCTIONS_BYTES = 2_048

_READS = {"readOnlyHint": True, "openWorldHint": False}


def definitions(default_limit: int) -> list[dict[str, object]]:
    """The tools of `tools/list`, in the order they are used."""
    return [
        {
            "name": SEARCH,
            "description": "Find tools of all connected servers by what you want to do, even several things "
            "at once. Returns one line a tool: name: what it does [parameter:type, * = required].",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": 'The task in plain words; server:name, -word, "a phrase" narrow it',
                    },
                    "limit": {
                        "type": "integer", "minimum": 1, "maximum": MAX_LIMIT,
                        "default": min(default_limit, MAX_LIMIT),
                    },
                    "server": {"type": "string", "description": "Only this server"},
                    "read_only": {"type": "boolean", "description": "Only tools that change nothing"},
                },
                "required": ["query"],
            },
            "annotations": _READS,
        },
        {
            "name": DESCRIBE,
            "description": "Full schema of one tool. Needed only when its search line is not enough.",
            "inputSchema": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
            "annotations": _READS,
        },
        {
            "name": EXECUTE,
            "description": "Run a tool found by search_tools; returns its result unchanged.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "server__tool, as search_tools shows it"},
                    "arguments": {"type": "object"},
                    "timeout": {"type": "number", "description": "Seconds"},
                },
                "required": ["name"],
            },
        },
    ]  # fmt: skip


def instructions(servers: Iterable[str]) -> str:
    """What `initialize` tells the model: which servers there are and when to search; 2 KiB at most."""
    names = sorted(servers)
    opening = (
        "mcpzip gives you the tools of other MCP servers without listing them all. Whenever a task might "
        "need a tool you do not see, call search_tools with the task in plain words, then execute_tool with "
        "the name it shows (describe_tool only if its parameters are unclear). Search before saying that "
        "something can't be done."
    )
    if not names:
        return f"{opening} No servers are configured yet."
    shown = list(names)
    while True:
        more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
        text = f"{opening} Servers: {', '.join(shown)}{more}."
        if len(text.encode()) <= INSTRUCTIONS_BYTES:
            return text
        shown.pop()
