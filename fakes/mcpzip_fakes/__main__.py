"""``python -m mcpzip_fakes``: the same as ``mcpzip-fake``."""

from mcpzip_fakes.start import main

if __name__ == "__main__":
    main()
