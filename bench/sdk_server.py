"""An empty MCP server on the official SDK, for comparison."""

import asyncio

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import ListToolsResult


async def _no_tools(context: object, params: object) -> ListToolsResult:
    return ListToolsResult(tools=[])


async def _main() -> None:
    server = Server("empty", version="1", on_list_tools=_no_tools)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


asyncio.run(_main())
