"""Recorded sessions of MCP servers, as files: cassettes."""
