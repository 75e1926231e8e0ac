"""What the package managers do for `mcpzip_conformance.installation`, one module each.

The rule: a module here fills a folder of the cache, and knows where programs are in it. What the folder is
called, and whether it counts, is the cache's affair.
"""

from pathlib import Path
from typing import Protocol

from mcpzip_conformance.declaration import Install


class PackageManager(Protocol):
    """A module of this folder."""

    @property
    def CONTENT(self) -> tuple[str, ...]:
        """What is removed from a folder after a failure: everything but the log."""

    def key(self, packages: Install, /) -> str:
        """A text that differs for what needs a folder of its own. Raises InstallError."""

    def check_tools(self, name: str, /) -> None:
        """Raises InstallError if a program is missing that installing needs."""

    def make(self, name: str, place: Path, packages: Install, /) -> None:
        """Install ``packages`` in the folder ``place``. name: for errors. Raises InstallError."""

    def is_usable(self, place: Path, /) -> bool:
        """Whether what was installed in ``place`` can still be run."""

    def programs(self, place: Path, /) -> Path:
        """The folder of the programs."""

    def libraries(self, place: Path, /) -> Path | None:
        """The folder of the packages; None if no subject needs it."""
