"""The versions of MCP that mcpzip speaks (pure).

It imports nothing, because `server.config_results` needs it before the rest of mcpzip is loaded.
"""

LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions that `initialize` negotiates, oldest first."""
MODERN_VERSION = "2026-07-28"
"""The version without `initialize`."""
