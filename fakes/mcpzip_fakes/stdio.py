"""A server on stdio that starts fast: ``python -m mcpzip_fakes.stdio SCENARIO [--era ERA] [--record FILE]``.

The rule: it starts and ends fast, because tests start thousands. Garbage collection is off during imports,
and asyncio and msgspec are imported without TLS and typing_extensions, which they work without: that saves a
sixth of the start. At the end the process exits without freeing every object first: that saves an eighth.
"""

import gc
import os
import sys

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from types import ModuleType


def imported() -> "ModuleType":
    """The module `stdio_server`."""
    gc.disable()
    for unneeded in ("ssl", "typing_extensions"):
        sys.modules.setdefault(unneeded, None)  # type: ignore[arg-type] # makes the import fail
    from mcpzip_fakes import stdio_server

    gc.enable()
    return stdio_server


def leave(code: int) -> None:
    """Ends this process."""
    sys.stderr.flush()  # `os._exit` flushes nothing; stdout is written to without a buffer
    os._exit(code)


if __name__ == "__main__":
    leave(imported().main())
