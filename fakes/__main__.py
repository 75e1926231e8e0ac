"""``python -m fakes``: the same as ``mcpzip-fake``."""

from fakes.cli import main

if __name__ == "__main__":
    main()
