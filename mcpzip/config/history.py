"""The versions of a config that mcpzip replaced: a file for each, in a folder beside the config.

The rules:

1. They may contain secrets, as the config does: only their owner can read them, and they never leave this
   folder but for the page of its owner.
2. There are at most `limits.CONFIG_VERSIONS` of them, of at most `limits.CONFIG_VERSIONS_BYTES` together; the
   oldest go.
3. A version is used only if its content is the one that its name says.
"""

import errno
import hashlib
import os
import re

import msgspec

from mcpzip.config.paths import history_folder
from mcpzip.model import limits
from mcpzip.system.files import remove_drafts, remove_file
from mcpzip.system.state_files import read_state, write_state

_ID = re.compile(r"[0-9]{13}-[0-9a-f]{16}")
_LATEST = 10**13 - 1  # ms, of 13 digits


class Version(msgspec.Struct, frozen=True):
    """id: names it among those of its config. at: when it was replaced, Unix s. size: in bytes."""

    id: str
    at: float
    size: int


def versions(config_path: str) -> list[Version]:
    """The versions that are kept, newest first; none if the folder can't be read."""
    folder, begin = history_folder(config_path), _begin(config_path)
    found: list[Version] = []
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    for name in names:
        named = name.removeprefix(begin).removesuffix(".json")
        if name == f"{begin}{named}.json" and _ID.fullmatch(named):
            try:
                size = os.stat(os.path.join(folder, name)).st_size
            except OSError:  # it was removed just now
                continue
            found.append(Version(named, int(named[:13]) / 1000, size))
    return sorted(found, key=lambda one: one.id, reverse=True)


def keep(config_path: str, data: bytes, now: float) -> None:
    """Keeps ``data``, which is about to be replaced, unless it is the newest version already. now: Unix s.
    Raises OSError.
    """
    known = versions(config_path)
    digest = _digest(data)
    if known and known[0].id.endswith(digest) and known[0].size == len(data):
        return
    latest = int(known[0].id[:13]) if known else 0  # the clock may have been put back
    at = min(max(int(now * 1000), latest + 1, 0), _LATEST)
    remove_drafts(history_folder(config_path))  # which may contain secrets
    write_state(_path(config_path, f"{at:013d}-{digest}"), data, limits.CONFIG)
    _remove_oldest(config_path)


def read(config_path: str, version: str) -> bytes:
    """The content of the version with this id. Raises OSError; EINVAL if it is not what was kept."""
    if not _ID.fullmatch(version):
        raise FileNotFoundError(errno.ENOENT, "there is no such version", version)
    path = _path(config_path, version)
    data = read_state(path, limits.CONFIG)
    if not version.endswith(_digest(data)):
        raise OSError(errno.EINVAL, "it was changed since it was kept", path)
    return data


def forget(config_path: str) -> int:
    """Removes all versions; how many there were. Raises OSError."""
    return sum(remove_file(_path(config_path, one.id)) for one in versions(config_path))


def _remove_oldest(config_path: str) -> None:
    size = 0
    for number, one in enumerate(versions(config_path)):
        size += one.size
        if number and (number >= limits.CONFIG_VERSIONS or size > limits.CONFIG_VERSIONS_BYTES):
            remove_file(_path(config_path, one.id))


def _begin(config_path: str) -> str:
    return f"{os.path.basename(config_path)}."


def _path(config_path: str, version: str) -> str:
    return os.path.join(history_folder(config_path), f"{_begin(config_path)}{version}.json")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
