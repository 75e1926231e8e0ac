"""Replays public traces of agents: what keeping large results saves, and what it costs (docs/context.md)."""
