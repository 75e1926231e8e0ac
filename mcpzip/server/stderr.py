"""Writes to stderr, which a person reads at a terminal or in a client's log.

A warning is one line. Secrets are removed from it, and control characters are escaped, because it may quote a
server. The same holds for log records of libraries and for tracebacks of threads.
"""

import sys
import threading
from contextlib import suppress

from mcpzip.model import sanitize
from mcpzip.model.redaction import redact
from mcpzip.system.event_log import note


def warn(sentence: str) -> None:
    """Writes ``sentence`` as one line, also into the log."""
    note("warning", "", "warning", sentence)
    print_warning(sentence)


def print_warning(sentence: str) -> None:
    """Writes ``sentence`` as one line. It is no error if nobody reads stderr any more."""
    if sys.stderr is not None:
        with suppress(BrokenPipeError):
            print(f"mcpzip: {sanitize.one_line(redact(sentence))}", file=sys.stderr, flush=True)


def print_traceback(
    kind: "type[BaseException]", error: BaseException | None, trace: "TracebackType | None"
) -> None:
    """Writes a traceback, as Python does, but no secret that it may quote, and nothing that is obeyed."""
    from traceback import format_exception

    text = "".join(format_exception(kind, error, trace))
    note("error", "", "crash", text)
    if sys.stderr is not None:
        sys.stderr.write(sanitize.lines(redact(text)).rstrip("\n") + "\n")


def sanitize_logs() -> None:
    """From now on log records without a handler, and exceptions that end a thread, are written like this."""
    import logging

    class Harmless(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            text = super().format(record)
            note("error" if record.levelno >= logging.ERROR else "warning", "", "warning", text)
            return sanitize.lines(redact(text))

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
