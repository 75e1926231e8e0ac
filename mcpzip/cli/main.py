"""The entry point.

The rule: a client waits for `serve` to start, and `serve` for the daemon, so these import only
`server.start`, `server.http.serve` and `server.daemon.main`; the other commands may import anything.
"""

import atexit
import os
import sys


def main() -> None:
    """Runs the command line and exits: 0 done, 1 failed, 2 the request or the config is wrong."""
    code: int | None = None

    def end() -> None:
        """Ends the process without the end of the interpreter. That frees every object, which takes 10 to
        30 ms, and in it the threads of the sandbox for programs abort the process now and then, above all if
        a program was running (pydantic-monty 1.4).
        """
        if code is None:  # an exception has ended it
            return
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (OSError, ValueError):
            if "pydantic_monty" not in sys.modules:
                return  # the interpreter will try again, and report it
        os._exit(code)

    # httpx imports its own command line if it can, and with it click, rich and pygments: half of its import.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    atexit.register(end)  # before all others, so that it runs after them, and after all threads
    sys.excepthook = _crashed
    try:
        code = _run(sys.argv[1:])
    except KeyboardInterrupt:  # nothing has been started yet that would have to be ended
        code = 1
    sys.exit(code)


def _run(argv: list[str]) -> int:
    words, config, alone, address = _plain(argv)
    if words == ["serve"] and address is not None:
        return _serve_http(config, address)
    if words == ["serve"]:
        from mcpzip.server.start import main as serve

        return serve(config, alone=alone)
    if words == ["daemon", "run"]:
        from mcpzip.server.daemon.main import main as run_daemon

        return run_daemon(config)
    import gc

    gc.disable()  # importing modules makes no garbage; `commands` enables it again before a command runs
    from mcpzip.cli.commands import run

    return run(argv)


def _serve_http(config: "str | None", address: str) -> int:
    import gc

    from mcpzip.system.lean_imports import import_asyncio, import_msgspec

    gc.disable()  # importing modules makes no garbage; `serve` enables it again
    import_msgspec()
    import_asyncio()
    from mcpzip.cli.team_page import open_page
    from mcpzip.model.errors import ConfigError
    from mcpzip.server.http.serve import HttpOptions
    from mcpzip.server.http.serve import main as serve

    try:
        return serve(config, HttpOptions(address), open_page)
    except ConfigError as error:
        from mcpzip.cli.commands import config_error

        return config_error(error)


def _plain(argv: list[str]) -> "tuple[list[str], str | None, bool, str | None]":
    """The words of the command line without its options, the FILE of ``--config FILE``, whether it says
    ``--no-daemon``, and the ADDRESS of ``--http ADDRESS``; no words for a command line with any other option.
    """
    words: list[str] = []
    config, alone, address = None, False, None
    rest = iter(argv)
    for word in rest:
        if word in ("--config", "-c") and config is None:
            config = next(rest, None)
            if config is None:
                return [], None, False, None
        elif word.startswith("--config=") and config is None:
            config = word.removeprefix("--config=")
        elif word == "--no-daemon" and words == ["serve"]:
            alone = True
        elif word == "--http" and words == ["serve"] and address is None:
            address = next(rest, None)
            if address is None:
                return [], None, False, None
        elif word.startswith("-"):
            return [], None, False, None
        else:
            words.append(word)
    return words, config, alone, address


def _crashed(kind: "type[BaseException]", error: BaseException, trace: "TracebackType | None") -> None:
    """Prints the traceback redacted and sanitized; imports what that takes only now."""
    from mcpzip.server.stderr import print_traceback

    print_traceback(kind, error, trace)


TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


if __name__ == "__main__":
    main()
