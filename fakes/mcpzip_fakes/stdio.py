"""The quick door to a server on stdio: ``python -m mcpzip_fakes.stdio SCENARIO [--era ERA] [--record FILE]``.

The rule: it starts fast, for tests start thousands. Nothing is garbage while all that is made is modules, and
asyncio does without TLS, which no pipe needs: together an eighth of the start.
"""

import gc
import sys


def main() -> int:
    """The command; 2 for a mistake in its arguments or in the scenario."""
    gc.disable()
    sys.modules.setdefault("ssl", None)  # type: ignore[arg-type] # how an import is told: not to be had
    from mcpzip_fakes import stdio_server

    gc.enable()
    return stdio_server.main()


if __name__ == "__main__":
    sys.exit(main())
