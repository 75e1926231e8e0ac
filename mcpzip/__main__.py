"""``python -m mcpzip``: the same as ``mcpzip``. The daemon runs this file."""

from mcpzip.cli.main import main

main()
