"""Files that a command writes.

The rule: a file is replaced atomically, so that no reader sees half of it.
"""

import os
from pathlib import Path

from mcpzip.model.errors import McpzipError


def written(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` as UTF-8, with unchanged line ends. Raises McpzipError if that fails."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(text)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise McpzipError(f"{path} can't be written ({error.strerror}): give a path that can.") from error


def writable(path: Path) -> None:
    """Raises McpzipError if the folder of ``path`` doesn't exist, or ``path`` is a folder; called before the
    work is done."""
    if path.is_dir():
        raise McpzipError(f"{path} is a folder: give the path of a file.")
    if not path.absolute().parent.is_dir():
        raise McpzipError(f"{path} can't be written, there is no folder {path.parent}: make it first.")
