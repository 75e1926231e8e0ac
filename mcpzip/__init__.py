"""mcpzip: three tools in front of every MCP server an agent talks to."""

__version__ = "0.1.0"
