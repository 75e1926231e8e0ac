"""The definitions of the meta-tools and of mcpzip's own tools, and the server instructions.

The rule: everything here follows from the config alone and is the same bytes in every run (spec: `tools/list`
must not vary by connection or as a side effect of other requests), and it is short, because it is in the
model's context with every message.
"""

from collections.abc import Iterable

SEARCH, DESCRIBE, EXECUTE = "search_tools", "describe_tool", "execute_tool"
EXECUTE_READ = "execute_read_tool"
RUN_CODE = "run_code"
READ_ONLY = "read-only"
"""What the reply of a search says of a tool that `execute_read_tool` runs, if that is offered."""
ANSWERED_HERE = (SEARCH, DESCRIBE)
"""Those of them whose replies are mcpzip's own; the others' come from servers."""
STATUS, REFRESH = "proxy_status", "proxy_refresh"

MAX_LIMIT = 50
"""Tools that one search returns at most."""
INSTRUCTIONS_BYTES = 2_048

OWN_TOOL_NAMES = (STATUS, REFRESH)

_READ_ONLY = {"readOnlyHint": True, "openWorldHint": False}
_READS_ANYWHERE = {"readOnlyHint": True, "openWorldHint": True}
_ALWAYS_LOADED = {"anthropic/alwaysLoad": True}
"""Claude Code hides the tools of MCP servers behind a tool search of its own, so that a model would have to
find `search_tools` first; not those with this member of ``_meta`` (seen in the requests of 2.1.330).
"""


def names(*, split: bool = False, code: bool = False) -> tuple[str, ...]:
    """The names of the meta-tools. split: whether `execute_read_tool` is one of them. code: whether
    `run_code` is.
    """
    more = ((EXECUTE_READ, split), (RUN_CODE, code))
    return (SEARCH, DESCRIBE, EXECUTE, *(name for name, is_offered in more if is_offered))


def definitions(default_limit: int, *, split: bool = False, code: bool = False) -> list[dict[str, object]]:
    """The meta-tools for `tools/list`, as JSON values, in the order in which a model uses them. split, code:
    see `names`.
    """
    tools: list[dict[str, object]] = [
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
            "annotations": _READ_ONLY,
            "_meta": _ALWAYS_LOADED,
        },
        {
            "name": DESCRIBE,
            "description": "Full schema of one tool. Needed only when its search line is not enough.",
            "inputSchema": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
            "annotations": _READ_ONLY,
            "_meta": _ALWAYS_LOADED,
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
            "_meta": _ALWAYS_LOADED,
        },
    ]  # fmt: skip
    if code:  # with what a paused program asks for
        schema = tools[-1]["inputSchema"]
        assert isinstance(schema, dict)
        schema["properties"]["run"] = {"type": "string"}
    if split:
        description = f"The same as {EXECUTE}, for tools that {SEARCH} shows as {READ_ONLY}."
        tools.append(
            {**tools[-1], "name": EXECUTE_READ, "description": description, "annotations": _READS_ANYWHERE}
        )
    if code:
        tools.append(
            {
                "name": RUN_CODE,
                "description": "Python for many calls or big results: tools are functions "
                "server__tool(key=value), kept results variables. Shows only what you return.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"code": {"type": "string"}, "timeout": {"type": "number"}},
                    "required": ["code"],
                },
                "_meta": _ALWAYS_LOADED,
            }
        )
    return tools


def instructions(servers: Iterable[str], *, split: bool = False) -> str:
    """The ``instructions`` of `initialize`: when to search, and the names of ``servers``, as many as fit into
    INSTRUCTIONS_BYTES. split: see `names`.
    """
    names = sorted(servers)
    execute = f"{EXECUTE} ({EXECUTE_READ} if it is {READ_ONLY})" if split else EXECUTE
    opening = (
        "mcpzip gives you the tools of other MCP servers without listing them all. Whenever a task might "
        f"need a tool you do not see, call search_tools with the task in plain words, then {execute} with "
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
