"""Runs `mcpzip`, and counts the function calls of its main thread.

    python -m bench.counted FILE serve --config CONFIG

FILE is written at its end: as `cProfile` has it.
"""

import cProfile
import os
import sys
from typing import NoReturn


def main() -> None:
    file, sys.argv = sys.argv[1], ["mcpzip", *sys.argv[2:]]
    profile, leave = cProfile.Profile(), os._exit

    def counted(code: int) -> NoReturn:
        profile.disable()
        profile.dump_stats(file)
        leave(code)

    os._exit = counted  # it ends in this way
    from mcpzip.cli.main import main as mcpzip

    profile.enable()
    mcpzip()


if __name__ == "__main__":
    main()
