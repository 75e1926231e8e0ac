"""Whether a person has started this process: what only a person may do is done for nobody else.

An agent that runs `mcpzip ui` reads its address, and could send any form. It runs commands without a
terminal; so what only a person may do needs one, as with `mcpzip review`.
"""

import sys

from mcpzip.system.terminal import is_interactive


def is_present() -> bool:
    """Whether a person runs this process at a terminal, in its foreground."""
    try:
        return is_interactive(sys.stdin.fileno())
    except (AttributeError, OSError, ValueError):  # it has no stdin
        return False
