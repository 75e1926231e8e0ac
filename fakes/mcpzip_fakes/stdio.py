"""A server on stdio that starts fast: ``python -m mcpzip_fakes.stdio SCENARIO [--era ERA] [--record FILE]``.

The rule: it starts fast, because tests start thousands. Garbage collection is off during imports, and asyncio
is imported without TLS, which pipes don't need: that saves an eighth of the start.
"""

import gc
import sys


def main() -> int:
    """The command. Returns 2 for an error in its arguments or in the scenario."""
    gc.disable()
    sys.modules.setdefault("ssl", None)  # type: ignore[arg-type] # makes the import fail
    from mcpzip_fakes import stdio_server

    gc.enable()
    return stdio_server.main()


if __name__ == "__main__":
    sys.exit(main())
