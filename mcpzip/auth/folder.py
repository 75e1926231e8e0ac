"""The folder where sign-ins are kept: a file for each server, and a lock beside it.

The rules: the folder is 0700 and its files 0600; what is open to others is closed, with a warning. What
belongs to another user is refused. A symbolic link in it is read if it leads to a file of ours, and then
becomes a file of its own, with a warning: what is saved never goes where a link leads. Nothing in the folder
makes reading raise.
"""

import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from mcpzip.auth.codec import StoredGrant, decode
from mcpzip.model import limits
from mcpzip.system import locks
from mcpzip.system.files import remove_drafts, remove_file, write_atomic
from mcpzip.system.formats import UnusableError
from mcpzip.system.private_files import PrivateFile, Rights, private_folder, read_private
from mcpzip.system.state_files import write_gitignore

_NAME = re.compile(r"([0-9a-f]{32})\.json")


class Folder:
    """Files by name (32 hex digits). warn: is told a sentence once."""

    def __init__(self, path: str, warn: Callable[[str], None]) -> None:
        self._path, self._warn = path, warn
        self._told: set[str] = set()

    def __repr__(self) -> str:
        return f"Folder({self._path!r})"

    def place(self, name: str) -> str:
        """The path of the file called ``name``."""
        return os.path.join(self._path, f"{name}.json")

    def tell(self, sentence: str) -> None:
        """Warn of something, once."""
        if sentence not in self._told:
            self._told.add(sentence)
            self._warn(sentence)

    def exists(self) -> bool:
        """Whether there is one at all."""
        return os.path.isdir(self._path)

    def make(self) -> None:
        """Make it, if it is missing, and see that it is nobody else's, nor any commit's. Raises OSError."""
        self._look(private_folder(self._path, make=True), self._path)
        write_gitignore(self._path)

    def names(self) -> list[str]:
        """Of the files in it."""
        try:
            files = os.listdir(self._path)
        except FileNotFoundError:
            return []
        except OSError as error:
            self.tell(f"{self._path} can't be read ({_why(error)}); make it a folder of your own.")
            return []
        return sorted(match[1] for match in map(_NAME.fullmatch, files) if match)

    def read(self, name: str) -> StoredGrant | None:
        """What the file called ``name`` holds; None where there is none, or, with a warning, none of use."""
        found = self._read(name)
        if found is None:
            return None
        path = self.place(name)
        try:
            stored = decode(found.data, name)
        except UnusableError as error:
            self.tell(f"{path} {error}; its server needs a login: mcpzip auth login NAME.")
            return None
        if found.target is not None:
            self.tell(
                f"{path} is a link to {found.target}: it is made a file of its own. Delete the other one, in "
                "which the tokens still stand."
            )
            self._unlink(name, found)
        return stored

    def write(self, name: str, data: bytes) -> None:
        """Put ``data`` in the file called ``name``, in one step. Raises OSError."""
        self.make()
        remove_drafts(self._path)  # which may hold tokens
        write_atomic(self.place(name), data, follow=False)

    def remove(self, name: str) -> bool:
        """Remove the file called ``name``; whether there was one. Raises OSError."""
        remove_drafts(self._path)  # which may hold tokens
        return remove_file(self.place(name))

    def signature(self, name: str) -> bytes | None:
        """Differs when the file called ``name`` changed; None where there is none, or none to be read.

        It is of the content: two saves within a tick of the clock may have the same times and size.
        """
        path = self.place(name)
        try:
            found = read_private(path, limits.SIGN_IN)
        except OSError:
            return None
        self._look(found.rights, path)  # what is closed is only seen to have been open once
        return hashlib.blake2b(found.data, digest_size=16).digest()

    @asynccontextmanager
    async def locked(self, name: str, timeout: float) -> AsyncIterator[None]:
        """Holds the lock of the file called ``name``. Raises TimeoutError and OSError."""
        self.make()
        async with locks.locked(self.lock(name), timeout):
            yield

    def lock(self, name: str) -> str:
        """The path of the lock of the file called ``name``."""
        return os.path.join(self._path, f"{name}.lock")

    def _read(self, name: str) -> PrivateFile | None:
        path = self.place(name)
        try:
            self._look(private_folder(self._path, make=False), self._path)
            found = read_private(path, limits.SIGN_IN)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.tell(
                f"{path} can't be used ({_why(error)}); set that right, or its server needs a login: "
                "mcpzip auth login NAME."
            )
            return None
        self._look(found.rights, path)
        return found

    def _look(self, rights: Rights, path: str) -> None:
        if rights == "closed":
            self.tell(f"{path} was open to other users; now it is only yours.")
        elif rights == "open":
            self.tell(f"{path} is open to other users, and its file system has no rights to close it with.")

    def _unlink(self, name: str, found: PrivateFile) -> None:
        try:
            with locks.locked_if_free(self.lock(name)) as held:
                # Whoever holds the lock saves, and that is a file of its own as well.
                if held and read_private(self.place(name), limits.SIGN_IN) == found:
                    self.write(name, found.data)
        except OSError:
            pass  # it was removed meanwhile; or it can't be written, which the next to save will say


def _why(error: OSError) -> str:
    return error.strerror or str(error)
