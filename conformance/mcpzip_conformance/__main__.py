"""``python -m mcpzip_conformance``: the same as ``mcpzip-conformance``."""

from mcpzip_conformance.start import main

if __name__ == "__main__":
    main()
