"""Kept results: large results of tools that stay here, and are read in parts (docs/results.md)."""
