"""Grants whose secrets are in the desktop's keyring: Keychain, Credential Manager, Secret Service, KWallet.

The rules: no secret is in a file. A file for each server (`Folder`) says what else is known, and where in
the keyring its secrets are; so servers can be listed, which keyrings can't, and a change can be noticed. New
secrets go beside the old ones, the file is switched over in one step, and then the old ones go: whenever we
end, the file leads to a whole set. Without a keyring there is an error, never a file instead.
"""

import base64
import errno
import hashlib
import os
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol, TypeVar

import msgspec

from mcpzip.auth.codec import KeyringEntry, Slot, StoredGrant, encode, key
from mcpzip.auth.folder import Folder
from mcpzip.auth.grant import Grant
from mcpzip.model.errors import ConfigError
from mcpzip.model.principal import PrincipalId
from mcpzip.system import locks

PART = 1_200
"""Characters of one password. Windows takes 2,560 bytes, at two a character."""

_USER = "mcpzip"
_TURN = 30.0
"""Seconds a writer waits for another; each takes a few milliseconds, or as long as a keyring is unlocked."""
_LOOKS, _PAUSE = 8, 0.02
"""How often, and with which seconds between, a reader looks again that came while a writer was at it."""

T = TypeVar("T")


class Keyring(Protocol):
    """What is used of a backend of the package ``keyring``."""

    def get_password(self, service: str, username: str) -> str | None: ...

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def delete_password(self, service: str, username: str) -> None: ...


class _Secrets(msgspec.Struct, omit_defaults=True):
    """What of a grant is secret; of a registration more than the client secret may be (RFC 7592)."""

    access_token: str = ""
    refresh_token: str = ""
    client: dict[str, object] = {}


def find_keyring(config_path: str) -> Keyring:
    """The keyring of this desktop. Raises ConfigError where there is none that keeps secrets."""

    def refused(found: str, remedy: str) -> ConfigError:
        return ConfigError(config_path, "auth.store", found, f'{remedy}, or set it to "file"')

    try:
        import keyring
        from keyring.core import load_config
    except ImportError:
        raise refused(
            'it is "keyring", and the package keyring is not installed',
            'install it with: pip install "mcpzip[keyring]"',
        ) from None
    try:
        backend = keyring.get_keyring()
        priority = float(backend.priority)
        chosen = bool(os.environ.get("PYTHON_KEYRING_BACKEND")) or load_config() is not None
    except Exception as error:  # a backend's module may raise anything
        raise refused(
            f"the keyring can't be opened ({type(error).__name__})",
            "correct PYTHON_KEYRING_BACKEND and keyringrc.cfg",
        ) from None
    # 1 is what keyring recommends. Below are its stand-ins for none, and files in the clear: these are
    # only used by who chose them.
    if priority <= 0 or (priority < 1 and not chosen):
        raise refused("no keyring was found here", "start the desktop's keyring")
    return backend


class KeyringStore:
    """Grants with their secrets in ``keyring``, and what is known beside in ``folder``."""

    person: PrincipalId | None = None

    def __init__(self, folder: Folder, keyring: Keyring) -> None:
        self._folder, self._keyring = folder, keyring

    def load(self, url: str, person: PrincipalId | None = None) -> Grant | None:
        grant = self._load(key(url, person))
        return grant and msgspec.structs.replace(grant, url=url)

    def save(self, grant: Grant) -> Grant:
        name = key(grant.url, grant.person)
        try:
            secrets = _Secrets(grant.access_token, grant.refresh_token, grant.client)
            text = base64.b64encode(msgspec.json.encode(secrets)).decode()
            where = KeyringEntry("a", -(-len(text) // PART), _check(text))
            public = msgspec.structs.replace(grant, access_token="", refresh_token="", client={})
            encode(public, where)
        except ValueError as error:
            raise OSError(errno.EINVAL, f"this sign-in can't be written down ({error})") from None
        with self._turn(name):
            before = self._folder.read(name)
            old: Slot = before.keyring.slot if before and before.keyring else "b"
            new: Slot = "b" if old == "a" else "a"
            self._clear(name, new)
            try:
                for number in range(where.parts):
                    part = text[number * PART : (number + 1) * PART]
                    self._ask(self._keyring.set_password, _service(name, new, number), _USER, part)
                self._folder.write(name, encode(public, msgspec.structs.replace(where, slot=new)))
            except BaseException:
                self._clear_quietly(name, new)
                raise
            self._clear_quietly(name, old)
        return grant

    def about_to_refresh(self, grant: Grant) -> None:
        pass

    def remove(self, url: str, person: PrincipalId | None = None) -> bool:
        name = key(url, person)
        if not self._folder.exists():
            return False
        with self._turn(name):
            self._clear(name, "a")
            self._clear(name, "b")
            return self._folder.remove(name)

    def all(self) -> list[Grant]:
        found = map(self._load, self._folder.names())
        return sorted((grant for grant in found if grant), key=lambda grant: grant.url)

    def signature(self, url: str, person: PrincipalId | None = None) -> object:
        return self._folder.signature(key(url, person))

    def locked(
        self, url: str, timeout: float = 30.0, person: PrincipalId | None = None
    ) -> AbstractAsyncContextManager[None]:
        return self._folder.locked(key(url, person), timeout)

    def close(self) -> None:
        pass

    def _load(self, name: str) -> Grant | None:
        for look in range(_LOOKS):
            found = self._folder.read(name)
            if found is None:
                return None
            if found.keyring is None:
                self._take_over(name, found)
                return found.grant
            try:
                secrets = self._secrets(name, found.keyring)
            except OSError as error:
                self._folder.tell(f"A sign-in can't be read: {error.strerror}; unlock the keyring.")
                return None
            if secrets is not None:
                return msgspec.structs.replace(
                    found.grant,
                    access_token=secrets.access_token,
                    refresh_token=secrets.refresh_token,
                    client=secrets.client,
                )
            time.sleep(_PAUSE * look)
        self._folder.tell(
            f"The keyring lacks the tokens for {self._folder.place(name)}; its server needs a login: "
            "mcpzip auth login NAME."
        )
        return None

    def _take_over(self, name: str, found: StoredGrant) -> None:
        """Move the secrets of a file of the other store to the keyring, unless somebody is at it."""
        try:
            with locks.locked_if_free(self._folder.lock(name)) as held:
                if held and self._folder.read(name) == found:
                    self.save(found.grant)
        except OSError as error:
            self._folder.tell(
                f"{self._folder.place(name)} still has its tokens in the clear: {error.strerror}; they are "
                "moved to the keyring when they are next saved."
            )

    def _secrets(self, name: str, where: KeyringEntry) -> _Secrets | None:
        """What is in the keyring for a file; None when it isn't the whole of what was put there."""
        texts: list[str] = []
        for number in range(where.parts):
            text = self._ask(self._keyring.get_password, _service(name, where.slot, number), _USER)
            if text is None:
                return None
            texts.append(text)
        whole = "".join(texts)
        if _check(whole) != where.check:
            return None
        return msgspec.json.decode(base64.b64decode(whole), type=_Secrets)

    def _clear(self, name: str, slot: Slot) -> None:
        """Remove what is in ``slot``, the last first: what is left if we end meanwhile has no gap."""
        number = 0
        while self._ask(self._keyring.get_password, _service(name, slot, number), _USER) is not None:
            number += 1
        for each in reversed(range(number)):
            self._ask(self._keyring.delete_password, _service(name, slot, each), _USER)

    def _clear_quietly(self, name: str, slot: Slot) -> None:
        try:
            self._clear(name, slot)
        except OSError:
            pass  # the next save clears it; what to tell is how this one went

    def _turn(self, name: str) -> AbstractContextManager[None]:
        """Writers, which needn't hold the server's lock, take turns."""
        self._folder.make()
        return locks.locked_blocking(self._folder.lock(f"{name}.keyring"), _TURN)

    def _ask(self, question: Callable[..., T], *about: str) -> T:
        """Raises OSError for whatever a backend raises; what that says may be of the password."""
        try:
            return question(*about)
        except Exception as error:
            raise OSError(errno.EIO, f"the keyring answers with {type(error).__name__}") from None


def _service(name: str, slot: Slot, number: int) -> str:
    """A service for each part: of one service Windows moves the password when another user's is set."""
    return f"mcpzip:{name}:{slot}{number}"


def _check(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
