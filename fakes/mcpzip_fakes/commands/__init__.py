"""The commands of ``mcpzip-fake``: one file each."""
