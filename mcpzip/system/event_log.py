"""Where the other packages note what happens to servers, for the log.

The rule: noting never delays or fails what is being done. Until `install` is called, it does nothing: only
`mcpzip serve` keeps a log (`system.log_writer`).
"""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, get_args

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""Least important first."""
Stream = Literal["stderr", "stdout"]


class Log(Protocol):
    """Takes entries, from any thread, without blocking."""

    def note(self, level: Level, server: str, event: str, text: str) -> None:
        """As the function `note`."""

    def output(self, server: str, stream: Stream, lines: Sequence[bytes]) -> None:
        """As the function `note_output`."""


_log: Log | None = None
_shown_by: Callable[[str], str] = str


def install(log: Log | None, shown_by: Callable[[str], str] = str) -> None:
    """From now on entries go to ``log``; None: nowhere. shown_by: the command that shows a server's, "" if
    there is none.
    """
    global _log, _shown_by
    _log, _shown_by = log, shown_by


def more_about(server: str) -> str:
    """Where a person finds more about ``server``, as the end of an error message; "" if nowhere."""
    command = "" if _log is None else _shown_by(server)
    return command and f"More: {command}"


def note(level: Level, server: str, event: str, text: str) -> None:
    """Notes something that happened to ``server``; "" for mcpzip itself. event: a word or two for programs,
    which says what happened. text: the same for people; secrets in it are redacted.
    """
    if _log is not None:
        _log.note(level, server, event, text)


def note_output(server: str, stream: Stream, lines: Sequence[bytes]) -> None:
    """Notes ``lines`` that ``server`` wrote outside the protocol, without line breaks."""
    if _log is not None:
        _log.output(server, stream, lines)
