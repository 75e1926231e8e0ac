"""``python -m mcpzip``: the same as ``mcpzip``."""

from mcpzip.cli.main import main

main()
