"""The entry point.

The rule: a client waits for `serve` to start, so `serve` imports only `server.early_handshake`; the other
commands may import anything.
"""

import sys


def main() -> None:
    """Runs the command line and exits: 0 done, 1 failed, 2 the request or the config is wrong."""
    sys.excepthook = _crashed
    try:
        sys.exit(_run(sys.argv[1:]))
    except KeyboardInterrupt:  # nothing has been started yet that would have to be ended
        sys.exit(1)


def _run(argv: list[str]) -> int:
    config = _plain_serve(argv)
    if config is not False:
        from mcpzip.server.early_handshake import main as serve

        return serve(config)
    from mcpzip.cli.commands import run

    return run(argv)


def _plain_serve(argv: list[str]) -> "str | Literal[False] | None":
    """The FILE of a plain `serve [--config FILE]`, None without one; False for any other command line."""
    match argv:
        case ["serve"]:
            return None
        case ["serve", ("--config" | "-c"), path] | [("--config" | "-c"), path, "serve"]:
            return path
        case ["serve", option] if option.startswith("--config="):
            return option.removeprefix("--config=")
        case _:
            return False


def _crashed(kind: "type[BaseException]", error: BaseException, trace: "TracebackType | None") -> None:
    """Prints the traceback redacted and sanitized; imports what that takes only now."""
    from mcpzip.server.stderr import print_traceback

    print_traceback(kind, error, trace)


TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Literal


if __name__ == "__main__":
    main()
