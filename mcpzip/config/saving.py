"""Saves the text of the config.

The rules:

1. A text replaces the one that it was made from, and no other, so that what somebody else wrote meanwhile is
   not lost.
2. Two that save at once come one after the other.
3. The version before is kept (`config.history`). If that fails, the text is saved all the same, because the
   person who saves has seen what changes.
4. A link leads to the file that is replaced, and the file keeps its mode.
"""

import os
import time
from contextlib import ExitStack

from mcpzip.config import history
from mcpzip.config.paths import history_folder
from mcpzip.model import limits
from mcpzip.model.errors import McpzipError
from mcpzip.system.files import make_folders, read_bytes_limited, write_atomic
from mcpzip.system.locks import locked_blocking
from mcpzip.system.state_files import write_gitignore

_PATIENCE = 5.0
"""Seconds to wait for another process that saves."""


class ConfigSaveError(McpzipError):
    """The config was not saved."""


class ConfigChangedError(ConfigSaveError):
    """The config is not the one that the new text was made from."""


def save(path: str, before: bytes | None, after: bytes, *, mode: int | None = None) -> list[str]:
    """Writes ``after`` to the config at ``path``. Returns sentences about what could not be done besides.

    before: the content that ``after`` was made from, None for no file. mode: permission bits; None for those
    of the file, or of a private one if it is new. It blocks. Raises ConfigSaveError; then nothing is written.
    """
    problems: list[str] = []
    with ExitStack() as held:
        try:
            folder = history_folder(path)
            make_folders(folder)
            write_gitignore(folder)
            held.enter_context(
                locked_blocking(os.path.join(folder, f"{os.path.basename(path)}.lock"), _PATIENCE)
            )
        except TimeoutError as error:
            raise ConfigSaveError(f"{path} was not saved: another mcpzip is saving it. Try again.") from error
        except OSError:
            pass  # a folder that can't be written: the file is compared all the same
        if present(path) != before:
            raise ConfigChangedError(
                f"{path} was changed meanwhile. Quit the program that uses it and try again."
            )
        if before is not None:
            try:
                history.keep(path, before, time.time())
            except OSError as error:
                problems.append(f"The version before was not kept: {error.strerror or error}.")
        try:
            write_atomic(path, after, _mode(path) if mode is None else mode)
        except OSError as error:
            raise ConfigSaveError(f"{path} can't be written: {error.strerror}.") from error
    return problems


def present(path: str) -> bytes | None:
    """The content of the config now; None if there is none. Raises ConfigSaveError."""
    try:
        return read_bytes_limited(path, limits.CONFIG)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigSaveError(f"{path} can't be read: {error.strerror}.") from error


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode & 0o777
    except OSError:
        return 0o600
