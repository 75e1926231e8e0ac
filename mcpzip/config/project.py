"""The servers of a project: ``.mcpzip.json`` in its folder, used only if a person has trusted its content.

The rules:

1. Nothing of a project's file is used before a person has trusted exactly these bytes at this path with
   `mcpzip trust`: whoever can write into a repository could otherwise start commands and read variables here.
2. What is trusted is stored beside the user's config, never in the project.
"""

import hashlib
import os
import time
from collections.abc import Mapping
from typing import Literal

import msgspec

from mcpzip.config.paths import trust_path
from mcpzip.model import limits
from mcpzip.model.errors import McpzipError
from mcpzip.system.bounded_read import open_regular, read_limited
from mcpzip.system.state_files import read_state, write_state

TRUSTED_AT_MOST = 1_000
"""Projects whose trust is stored; with more, the oldest is forgotten."""

Trust = Literal["trusted", "changed", "unknown"]
"""Whether a project's file is trusted; "changed": it was, with another content."""


class Approval(msgspec.Struct, frozen=True):
    """sha256: of the content that was trusted, hexadecimal. at: when, Unix time."""

    sha256: str
    at: float


class TrustError(McpzipError):
    """The stored trust can't be read or changed."""


def digest(data: bytes) -> str:
    """The SHA-256 of ``data``, hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def approvals(config_path: str) -> dict[str, Approval]:
    """What is trusted, by the path of the project's file. Raises TrustError if that can't be read."""
    path = trust_path(config_path)
    try:
        return msgspec.json.decode(read_state(path, limits.TRUST), type=dict[str, Approval])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise TrustError(
            f"{path} can't be used ({error}); delete it, and trust your projects anew."
        ) from error


def trust_of(project: str, data: bytes, config_path: str) -> Trust:
    """Whether ``data``, the content of the file ``project``, is trusted. Raises TrustError."""
    found = approvals(config_path).get(os.path.realpath(project))
    if found is None:
        return "unknown"
    return "trusted" if found.sha256 == digest(data) else "changed"


def approve(project: str, data: bytes, config_path: str) -> None:
    """Stores that ``data``, the content of the file ``project``, is trusted. Raises TrustError."""
    found = {**approvals(config_path), os.path.realpath(project): Approval(digest(data), time.time())}
    newest = sorted(found.items(), key=lambda item: item[1].at)[-TRUSTED_AT_MOST:]
    _write(dict(newest), config_path)


def revoke(project: str, config_path: str) -> bool:
    """Forgets that the file ``project`` is trusted. Returns False if it was not. Raises TrustError."""
    found = approvals(config_path)
    if found.pop(os.path.realpath(project), None) is None:
        return False
    _write(found, config_path)
    return True


def read_project(project: str) -> bytes:
    """The content of the file ``project``. Raises OSError: EFBIG if it is larger than a config may be."""
    handle, _ = open_regular(project)  # a pipe would block
    try:
        return read_limited(lambda size: os.read(handle, size), limits.CONFIG, project)
    finally:
        os.close(handle)


def _write(found: Mapping[str, Approval], config_path: str) -> None:
    path = trust_path(config_path)
    try:
        write_state(path, msgspec.json.encode(found), limits.TRUST)
    except OSError as error:
        raise TrustError(f"{path} can't be written: {error.strerror or error}.") from error
