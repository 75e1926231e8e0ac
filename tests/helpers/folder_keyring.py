"""A keyring for tests: a backend of the package `keyring` with a file for each password.

It is what the real ones are to us: shared by processes, each call on its own whole or not at all, and a
password takes no more than Windows gives it. The folder is ``$KEYRING_FOLDER``.
"""

import os
import uuid
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError, PasswordSetError

BYTES = 2_560


class FolderKeyring(KeyringBackend):
    priority = 5

    def _place(self, service: str, username: str) -> Path:
        folder = Path(os.environ["KEYRING_FOLDER"])
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{username}@{service.replace(':', '-')}"

    def get_password(self, service: str, username: str) -> str | None:
        try:
            return self._place(service, username).read_text("utf-16-le")
        except FileNotFoundError:
            return None

    def set_password(self, service: str, username: str, password: str) -> None:
        data = password.encode("utf-16-le")
        if len(data) > BYTES:
            raise PasswordSetError("too long")
        place = self._place(service, username)
        draft = place.with_name(f"draft.{uuid.uuid4().hex}")
        draft.write_bytes(data)
        os.replace(draft, place)

    def delete_password(self, service: str, username: str) -> None:
        try:
            self._place(service, username).unlink()
        except FileNotFoundError:
            raise PasswordDeleteError(service) from None
