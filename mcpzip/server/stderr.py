"""Writes to stderr, which a person reads at a terminal or in a client's log.

A warning is one line. Secrets are removed from it, and control characters are escaped, because it may quote a
server. The same holds for log records of libraries and for tracebacks of threads.
"""

import sys
import threading
from contextlib import suppress

from mcpzip.model import sanitize
from mcpzip.model.redaction import redact


def warn(sentence: str) -> None:
    """Writes ``sentence`` as one line. It is no error if nobody reads stderr any more."""
    if sys.stderr is not None:
        with suppress(BrokenPipeError):
            print(f"mcpzip: {sanitize.one_line(redact(sentence))}", file=sys.stderr, flush=True)


def print_traceback(
    kind: "type[BaseException]", error: BaseException | None, trace: "TracebackType | None"
) -> None:
    """Writes a traceback, as Python does, but no secret that it may quote, and nothing that is obeyed."""
    from traceback import format_exception

    if sys.stderr is not None:
        text = "".join(format_exception(kind, error, trace))
        sys.stderr.write(sanitize.lines(redact(text)).rstrip("\n") + "\n")


def sanitize_logs() -> None:
    """From now on log records without a handler, and exceptions that end a thread, are written like this."""
    import logging

    class Harmless(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return sanitize.lines(redact(super().format(record)))

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Harmless())
    if threading.excepthook is threading.__excepthook__:  # nobody else has set one
        threading.excepthook = lambda thread: print_traceback(
            thread.exc_type, thread.exc_value, thread.exc_traceback
        )
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = lambda caught: print_traceback(
            caught.exc_type, caught.exc_value, caught.exc_traceback
        )


TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
