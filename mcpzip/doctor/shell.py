"""The shell commands that remedies consist of, for the shell of this system (pure)."""

import shlex
import subprocess
import sys
from collections.abc import Iterable

_WINDOWS = sys.platform == "win32"


def command_line(*words: str) -> str:
    """``words`` as one command line, quoted where needed."""
    return subprocess.list2cmdline(words) if _WINDOWS else shlex.join(words)


def set_variable(name: str) -> str:
    """Sets the environment variable ``name``; the reader replaces the value."""
    return f'set "{name}=value"' if _WINDOWS else f"export {name}=value"


def unset_variables(names: Iterable[str]) -> str:
    """Unsets the environment variables ``names``."""
    return " & ".join(f"set {name}=" for name in names) if _WINDOWS else f"unset {' '.join(names)}"


def delete(*paths: str) -> str:
    """Deletes the files at ``paths``."""
    return command_line("del" if _WINDOWS else "rm", *paths)


def make_folder(path: str) -> str:
    """Makes the folder at ``path`` and its parents."""
    return command_line("mkdir", path) if _WINDOWS else command_line("mkdir", "-p", path)


def end_processes(pids: Iterable[int]) -> str:
    """Ends the processes."""
    return command_line("kill", *map(str, pids))
