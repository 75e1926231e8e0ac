"""API keys: for people and machines without an issuer of tokens. A file has what is known of each key.

The rules:

1. A key is 256 random bits, printed once. The file has its SHA-256: nobody can guess what is behind it, so a
   slow password hash would only cost every request its time.
2. Everybody with a key of the same name is the same person, so that a key can be replaced by another one.
3. The file is read again when it has changed, within a second. If it can't be used, no key is valid.

    {"format":"mcpzip-api-keys","version":1,"keys":[{"id":"k7f3a09c2","name":"ann","sha256":"9f86d0…",
     "groups":["developers"],"scopes":[],"at":1764039600.0,"until":1795575600.0}]}
"""

import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec

from mcpzip.identity.errors import TokenError
from mcpzip.model import limits
from mcpzip.model.errors import McpzipError
from mcpzip.model.principal import API_KEYS, Principal
from mcpzip.system.files import make_folders, write_atomic
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.locks import locked_blocking
from mcpzip.system.private_files import read_private

FORMAT = Format("mcpzip-api-keys", 1, "a list of API keys")
PREFIX = "mcpzip_"
"""How every key begins, so that people and scanners of repositories know one when they see it."""
LOOK_EVERY = 1.0
"""Seconds after which it is looked whether the file has changed."""

_KEY = re.compile(r"mcpzip_(k[0-9a-f]{8})_[A-Za-z0-9_-]{43}")
_LOCK_TIMEOUT = 10.0
"""Seconds to wait for another command that changes the file."""


Words = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=limits.GROUP)], ...], msgspec.Meta(max_length=limits.GROUPS)
]


class ApiKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """id: the public part of the key. name: whose it is. sha256: of the whole key, hexadecimal. at, until:
    when it was made and when it ends, Unix seconds; until None: it doesn't.
    """

    id: Annotated[str, msgspec.Meta(pattern=r"^k[0-9a-f]{8}$")]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=limits.PERSON_NAME)]
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
    groups: Words = ()
    scopes: Words = ()
    at: float = 0.0
    until: float | None = None

    def is_over(self, now: float) -> bool:
        """Whether it has ended at the time ``now``."""
        return self.until is not None and self.until <= now


class KeysError(McpzipError):
    """The file of API keys can't be used or changed."""


class _File(Head):
    keys: list[ApiKey]


def read_keys(path: str) -> list[ApiKey]:
    """The keys in the file at ``path``, which is closed to others; none if there is no file. Raises
    KeysError.
    """
    try:
        return FORMAT.decode(read_private(path, limits.API_KEYS).data, _File).keys
    except (FileNotFoundError, NotADirectoryError):
        return []
    except UnusableError as error:
        raise KeysError(f"{path} {error}. Until it is corrected or deleted, no API key is valid.") from None
    except OSError as error:
        reason = error.strerror or error
        raise KeysError(f"{path} can't be used: {reason}. Until then no API key is valid.") from error


def new_key(
    path: str, name: str, groups: Iterable[str], scopes: Iterable[str], now: float, until: float | None
) -> str:
    """Adds a key to the file at ``path``. Returns the key, which is nowhere else. Raises KeysError."""
    id = f"k{secrets.token_hex(4)}"
    key = f"{PREFIX}{id}_{secrets.token_urlsafe(32)}"
    added = ApiKey(id, name, _hash(key), tuple(groups), tuple(scopes), now, until)

    def change(found: list[ApiKey]) -> list[ApiKey]:
        if len(found) >= limits.API_KEYS_NUMBER:
            raise KeysError(f"{path} has {len(found):,} keys already. Remove some: mcpzip keys remove.")
        return [*found, added]

    _change(path, change)
    return key


def remove_keys(path: str, which: str) -> list[ApiKey]:
    """Removes the key with the id ``which``, or all of the person of this name. Returns them. Raises
    KeysError.
    """
    removed: list[ApiKey] = []

    def change(found: list[ApiKey]) -> list[ApiKey]:
        removed[:] = [each for each in found if which in (each.id, each.name)]
        return [each for each in found if each not in removed]

    _change(path, change)
    return removed


def _change(path: str, change: Callable[[list[ApiKey]], list[ApiKey]]) -> None:
    try:
        make_folders(os.path.dirname(path))
        with locked_blocking(f"{path}.lock", _LOCK_TIMEOUT):
            found = read_keys(path)
            changed = change(found)
            if changed != found:
                data = msgspec.json.encode(_File(FORMAT.name, FORMAT.version, changed))
                if len(data) > limits.API_KEYS:
                    raise KeysError(f"{path} would be larger than {limits.API_KEYS:,} bytes.")
                write_atomic(path, data, 0o600)
    except OSError as error:
        raise KeysError(f"{path} can't be written: {error.strerror or error}.") from error


class ApiKeys:
    """The keys of a file, for whoever serves. Everything runs on one event loop."""

    def __init__(
        self, path: str, warn: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """warn: is told, once for each reason, that the file can't be used. clock: seconds."""
        self._path, self._warn, self._clock = path, warn, clock
        self._by_id: dict[str, ApiKey] = {}
        self._state: object = None
        self._looked_at: float | None = None
        self._warned = ""

    def verify(self, token: str) -> Principal:
        """Who has the key ``token``. Raises TokenError."""
        return principal_of(self.find(token))

    def find(self, token: str) -> ApiKey:
        """What is known of the key ``token``. Raises TokenError."""
        self._look()
        written = _KEY.fullmatch(token)
        key = self._by_id.get(written[1]) if written else None
        # Compared in the same time whether the id is known or not.
        same = hmac.compare_digest(_hash(token), key.sha256 if key is not None else "0" * 64)
        if key is None or not same:
            raise TokenError("it is no API key that is known here")
        if key.is_over(time.time()):
            raise TokenError("it has expired")
        return key

    def renewed(self, key: ApiKey) -> ApiKey:
        """What is known by now of ``key``, which was found before. Raises TokenError if it isn't
        valid any more.
        """
        self._look()
        now = self._by_id.get(key.id)
        if now is None or now.sha256 != key.sha256:
            raise TokenError("it is no API key that is known here")
        if now.is_over(time.time()):
            raise TokenError("it has expired")
        return now

    def _look(self) -> None:
        now = self._clock()
        if self._looked_at is not None and now < self._looked_at + LOOK_EVERY:
            return
        self._looked_at = now
        try:
            found = os.stat(self._path)
            state: object = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            state = None
        if state == self._state and not self._warned:
            return
        try:
            self._by_id = {each.id: each for each in read_keys(self._path)}
            self._state, self._warned = state, ""
        except KeysError as error:
            self._by_id = {}
            if str(error) != self._warned:
                self._warned = str(error)
                self._warn(str(error))


def principal_of(key: ApiKey) -> Principal:
    """Who has ``key``."""
    return Principal(API_KEYS, key.name, key.name, frozenset(key.groups), frozenset(key.scopes))


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
