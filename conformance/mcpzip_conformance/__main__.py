"""``python -m mcpzip_conformance``: the same as ``mcpzip-conformance``."""

from mcpzip_conformance.cli import main

if __name__ == "__main__":
    main()
