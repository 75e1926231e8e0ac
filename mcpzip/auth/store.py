"""Where grants are kept between runs.

The rules: a grant is given back for its own server and no other. A store that can't be read is an empty one,
and a warning that says what to do; one that can't be written is an OSError. Whoever reads a
grant, refreshes and saves it holds the server's lock meanwhile: a refresh token is used once.
"""

import errno
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from mcpzip.auth import codec
from mcpzip.auth.folder import Folder
from mcpzip.auth.grant import Grant
from mcpzip.config.paths import auth_folder
from mcpzip.config.schema import Config, StoreConfig
from mcpzip.model.principal import PrincipalId


class Store(Protocol):
    """Grants by the URL of their server. Everything but `locked` may block: it is for threads.

    Which spellings of a URL are one server says `mcpzip.auth.codec.canonical`. person: whose they are, None
    for whoever uses this machine.
    """

    @property
    def person(self) -> PrincipalId | None: ...

    def load(self, url: str) -> Grant | None:
        """The grant for the server at ``url``; None where there is none, or, with a warning, none of use."""

    def save(self, grant: Grant) -> Grant:
        """Keep ``grant`` in place of what was kept for its server. Raises OSError, and that is as it was.

        Returns what is kept: another one where somebody else wrote that meanwhile, and it is newer.
        """

    def about_to_refresh(self, grant: Grant) -> None:
        """The refresh token of ``grant`` is shown next; the lock of its server is held. Raises OSError where
        what comes of that couldn't be kept: then it must not be shown.
        """

    def remove(self, url: str) -> bool:
        """Forget what is kept for the server at ``url``; whether there was something. Raises OSError."""

    def signature(self, url: str) -> object:
        """Differs, also between processes, when what is kept for ``url`` changed; None when nothing is."""

    def locked(self, url: str, timeout: float = 30.0) -> AbstractAsyncContextManager[None]:
        """Holds the lock of the server at ``url``, between processes and tasks. It is not reentrant.

        timeout: seconds to wait for it. Raises TimeoutError, and OSError where there can be no lock.
        """

    def close(self) -> None:
        """Ends what it has open. It may block for a few seconds."""


class WholeStore(Store, Protocol):
    """A store with the grants of all people, too. As one of whoever uses this machine, it has theirs."""

    def load(self, url: str, person: PrincipalId | None = None) -> Grant | None: ...

    def remove(self, url: str, person: PrincipalId | None = None) -> bool: ...

    def signature(self, url: str, person: PrincipalId | None = None) -> object: ...

    def locked(
        self, url: str, timeout: float = 30.0, person: PrincipalId | None = None
    ) -> AbstractAsyncContextManager[None]: ...

    def all(self) -> list[Grant]:
        """Every grant that can be used, of whomever, by URL."""


class PersonStore:
    """The grants of one person in ``store``, and no others."""

    def __init__(self, store: WholeStore, person: PrincipalId) -> None:
        self._store, self.person = store, person

    def load(self, url: str) -> Grant | None:
        grant = self._store.load(url, self.person)
        return grant if grant is not None and grant.person == self.person else None

    def save(self, grant: Grant) -> Grant:
        self._check(grant)
        return self._store.save(grant)

    def about_to_refresh(self, grant: Grant) -> None:
        self._check(grant)
        self._store.about_to_refresh(grant)

    def remove(self, url: str) -> bool:
        return self._store.remove(url, self.person)

    def signature(self, url: str) -> object:
        return self._store.signature(url, self.person)

    def locked(self, url: str, timeout: float = 30.0) -> AbstractAsyncContextManager[None]:
        return self._store.locked(url, timeout, self.person)

    def close(self) -> None:
        """The store stays open: others use it."""

    def _check(self, grant: Grant) -> None:
        if grant.person != self.person:
            raise ValueError("this sign-in is another person's")


class FileStore:
    """Grants in files that only their owner can read (`Folder`), in the clear."""

    person: PrincipalId | None = None

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def load(self, url: str, person: PrincipalId | None = None) -> Grant | None:
        grant = self._load(codec.key(url, person))
        return grant and msgspec.structs.replace(grant, url=url)

    def save(self, grant: Grant) -> Grant:
        try:
            data = codec.encode(grant)
        except ValueError as error:
            raise OSError(errno.EINVAL, f"this sign-in can't be written down ({error})") from None
        self._folder.write(codec.key(grant.url, grant.person), data)
        return grant

    def about_to_refresh(self, grant: Grant) -> None:
        pass

    def remove(self, url: str, person: PrincipalId | None = None) -> bool:
        return self._folder.remove(codec.key(url, person))

    def all(self) -> list[Grant]:
        found = map(self._load, self._folder.names())
        return sorted((grant for grant in found if grant), key=lambda grant: grant.url)

    def signature(self, url: str, person: PrincipalId | None = None) -> object:
        return self._folder.signature(codec.key(url, person))

    def locked(
        self, url: str, timeout: float = 30.0, person: PrincipalId | None = None
    ) -> AbstractAsyncContextManager[None]:
        return self._folder.locked(codec.key(url, person), timeout)

    def close(self) -> None:
        pass

    def _load(self, name: str) -> Grant | None:
        found = self._folder.read(name)
        if found is None:
            return None
        if found.keyring is not None:
            self._folder.tell(
                f"{self._folder.place(name)} has its tokens in the keyring, and the config has its sign-ins "
                'kept in files; set "auth.store" to "keyring", or sign in again: mcpzip auth login NAME.'
            )
            return None
        return found.grant


def open_store(config: Config, warn: Callable[[str], None]) -> WholeStore:
    """The store that ``config`` asks for. warn: is told sentences. Raises ConfigError."""
    if config.store is not None:
        return _shared(config.store, warn)
    folder = Folder(auth_folder(config.path), warn)
    if config.auth_store == "keyring":
        from mcpzip.auth.keyring_store import KeyringStore, find_keyring

        return KeyringStore(folder, find_keyring(config.path))
    return FileStore(folder)


def _shared(config: StoreConfig, warn: Callable[[str], None]) -> WholeStore:
    """The store that processes share. The package for it is imported when it is first used."""
    from mcpzip.auth.shared_store import SharedStore
    from mcpzip.store.opening import open_store as open_backend
    from mcpzip.store.thread import StoreThread
    from mcpzip.system.sealing import KeyRing, read_key

    return SharedStore(
        StoreThread(lambda: open_backend(config.url, config.namespace)),
        lambda: KeyRing([read_key(key.reveal()) for key in config.keys]),
        config.namespace,
        warn,
    )
