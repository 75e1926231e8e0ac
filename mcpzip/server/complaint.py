"""What is said on stderr, which somebody reads at a terminal or in a client's log.

The rules: a complaint is one line, without secrets, and nothing in it is obeyed, whoever it quotes. The
same holds for what the libraries below log, and for the tracebacks of threads.
"""

import sys
import threading
from contextlib import suppress

from mcpzip.model import sanitize
from mcpzip.model.redaction import redact


def complain(sentence: str) -> None:
    """Writes ``sentence`` on a line of its own. A reader that has gone is no error."""
    if sys.stderr is not None:
        with suppress(BrokenPipeError):
            print(f"mcpzip: {sanitize.one_line(redact(sentence))}", file=sys.stderr, flush=True)


def crashed(kind: "type[BaseException]", error: BaseException | None, trace: "TracebackType | None") -> None:
    """Writes a traceback, as Python does, but no secret that it may quote, and nothing that is obeyed."""
    from traceback import format_exception

    if sys.stderr is not None:
        told = "".join(format_exception(kind, error, trace))
        sys.stderr.write(sanitize.lines(redact(told)).rstrip("\n") + "\n")


def guard_logs() -> None:
    """From now on what libraries log for want of anybody who listens, and what ends a thread, is told so."""
    import logging

    class Harmless(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return sanitize.lines(redact(super().format(record)))

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Harmless())
    if threading.excepthook is threading.__excepthook__:  # nobody else wants to hear of it
        threading.excepthook = lambda thread: crashed(thread.exc_type, thread.exc_value, thread.exc_traceback)
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = lambda caught: crashed(caught.exc_type, caught.exc_value, caught.exc_traceback)


TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
