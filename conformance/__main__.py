"""``python -m conformance``: the same as ``mcpzip-conformance``."""

from conformance.cli import main

if __name__ == "__main__":
    main()
