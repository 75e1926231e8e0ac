"""The config files of MCP clients (Claude Code, Cursor, Codex …): read, changed and restored."""
