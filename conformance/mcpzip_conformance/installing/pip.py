"""Packages of PyPI, in a virtual environment.

    PLACE/pip.log    the output of pip
    PLACE/venv/

The rule: an environment can't be moved, so it is created in place.
"""

import json
import os
import platform
import re
import sys
from pathlib import Path

from mcpzip_conformance.declaration import Install
from mcpzip_conformance.installing import command

LOG = "pip.log"
CONTENT = ("venv",)
"""What is removed after a failure: everything but the log."""
_NOT_FOR_PIP = re.compile(r"PYTHON(PATH|HOME)|VIRTUAL_ENV|__PYVENV_LAUNCHER__|PIP_(USER|TARGET|PREFIX|ROOT)")
"""Variables that would have pip look at, or write to, somewhere else than the environment it stands in."""


def key(packages: Install) -> str:
    """What another environment is needed for: other pins, or another Python."""
    return json.dumps([list(packages.pip), platform.python_implementation(), platform.python_version()])


def check_tools(name: str) -> None:
    """Nothing is needed but this Python."""


def make(name: str, place: Path, packages: Install) -> None:
    """Create the environment in ``place`` and install the pins. Raises InstallError."""
    env = {key: value for key, value in os.environ.items() if not _NOT_FOR_PIP.fullmatch(key)}
    pip = [str(_python(place)), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    with (place / LOG).open("wb", buffering=0) as log:
        if command.run([sys.executable, "-m", "venv", str(place / "venv")], env, log) != 0:
            raise command.failure(name, "no virtual environment could be made", place / LOG)
        if command.run([*pip, *packages.pip], env, log) != 0:
            raise command.failure(name, "pip could not install it", place / LOG)


def is_usable(place: Path) -> bool:
    """Whether the Python of the environment is still there."""
    return _python(place).exists()


def programs(place: Path) -> Path:
    """The folder of the programs."""
    return place / "venv" / ("Scripts" if sys.platform == "win32" else "bin")


def libraries(place: Path) -> Path | None:
    """No subject starts a file of a Python package."""


def _python(place: Path) -> Path:
    return programs(place) / ("python.exe" if sys.platform == "win32" else "python")
