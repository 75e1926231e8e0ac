"""The modes of the SDK's own `Client`, and what tests in each of them have in common."""

from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent

PINNED = "2026-07-28"
SPOKEN = {"legacy": "2025-11-25", "auto": "2026-07-28", PINNED: PINNED}
"""The client's modes, and the version each comes to speak."""
TIMED_OUT = -32001

every_mode = pytest.mark.parametrize("mode", SPOKEN)


def text_of(result: CallToolResult) -> str:
    assert len(result.content) == 1
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


async def execute(client: Client, name: str, arguments: dict[str, Any], **options: Any) -> CallToolResult:
    return await client.call_tool("execute_tool", {"name": name, "arguments": arguments}, **options)
