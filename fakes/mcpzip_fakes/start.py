"""``mcpzip-fake`` from its first line: a scenario on stdio without the imports of the command line.

The rule: whoever configures ``mcpzip-fake slack`` as a server waits for its start, so such a command line is
played as by ``python -m mcpzip_fakes.stdio``. Any other one, and whatever can't be played, is for `cli`.
"""

import os
import sys

from mcpzip_fakes import stdio

_OPTIONS = {"--era", "--record"}


def main() -> None:
    """The command."""
    words = sys.argv[1:]
    code = _played(words) if _is_plain(words) else None
    if code is None:
        from mcpzip_fakes.cli import main as command_line

        command_line()
    else:
        stdio.leave(code)


def _is_plain(words: list[str]) -> bool:
    """Whether this is a scenario that exists, with no options but those of `stdio`."""
    if len(words) % 2 == 0 or not _OPTIONS.issuperset(words[1::2]):
        return False
    name = words[0]
    if name.endswith((".json", ".toml")):
        return os.path.isfile(name)
    return os.path.isfile(os.path.join(os.path.dirname(__file__), "scenarios", f"{name}.toml"))


def _played(words: list[str]) -> int | None:
    """The exit code; None for what can't be played."""
    server = stdio.imported()
    from mcpzip.model.errors import McpzipError

    try:
        code: int = server.play(words)
    except McpzipError:
        return None
    except KeyboardInterrupt:
        print("\nAborted!", file=sys.stderr)  # as the command line says
        return 1
    return code
