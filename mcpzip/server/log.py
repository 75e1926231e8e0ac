"""The log of `mcpzip serve`: its folder, and when it is kept.

The rule: every line is redacted. `mcpzip logs` shows it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import format_exception

from mcpzip import __version__
from mcpzip.config.paths import logs_folder, mcpzip_command
from mcpzip.config.reading import log_level
from mcpzip.config.schema import LogLevel
from mcpzip.model.redaction import redact
from mcpzip.server.stderr import print_warning
from mcpzip.system.event_log import install, note
from mcpzip.system.log_writer import LogWriter

CLOSING = 0.1
"""Seconds that the last lines have to be written."""


@contextmanager
def log_kept(config_path: str, level: LogLevel) -> Iterator[None]:
    """Keeps a log beside the config while the context runs, unless ``level`` is "off"."""
    if level == "off":
        yield
        return
    # Not `warn`, which would also write into the log.
    writer = LogWriter(logs_folder(config_path), os.path.basename(config_path), level, redact, print_warning)
    install(writer, lambda server: mcpzip_command(config_path, "logs", server))
    note("info", "", "serve", f"version {__version__} serves {config_path}")
    try:
        yield
    except Exception as error:
        note("error", "", "crash", "".join(format_exception(error)))
        raise
    finally:
        note("info", "", "end", "ends")
        install(None)
        writer.close(CLOSING)


def log_config_error(config_path: str, sentence: str) -> None:
    """Logs why the config can't be used, as far as there is a folder for it."""
    if os.path.isdir(os.path.dirname(config_path)):
        with log_kept(config_path, log_level(os.environ) or "info"):
            note("error", "", "config", sentence)
