"""``mcpzip-conformance`` from its first line: imports `cli` without what no command uses."""

import gc
import sys


def main() -> None:
    """The command."""
    # httpx imports its own command line if it can, and with it rich and pygments: half of its import.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    gc.disable()  # importing modules makes no garbage
    from mcpzip_conformance.cli import main as command_line

    gc.freeze()
    gc.enable()
    command_line()
