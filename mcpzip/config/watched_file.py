"""The config file of a running mcpzip, and its edits.

The rules:

1. A file that can't be used changes nothing: the config before it stays in use.
2. A file that can't be used may be half written, so it is refused only if it is the same at the next look.
3. A pipe is read once only.
"""

import os
import stat
import time
from collections.abc import Mapping

from mcpzip.config.paths import DEFAULT, OTHER_DEFAULT, expand_home, trust_path
from mcpzip.config.reading import load, read_file
from mcpzip.config.schema import Config
from mcpzip.model.errors import ConfigError

COARSE = 2.0
"""Seconds within which two edits may leave the same time of modification (FAT)."""

_Version = tuple[int, ...]
"""What changes with a file's content: its mode, times, size and identity; the error number for no file."""
_Contents = tuple[bytes | str, ...]
"""The bytes of each file, or the text of the error why it can't be read; the config first."""


class WatchedFile:
    """The config file at ``path``, and the files of a project. Its methods may be called in a thread, one at
    a time.

    problem: why mcpzip was started without a config, if it was.
    """

    def __init__(self, path: str, env: Mapping[str, str], project: str = "") -> None:
        """env: values for ``${VARIABLES}``. project: the path of the project's file, "" for none; its trust
        is watched too.
        """
        self.path, self._env, self._project = path, env, project
        self.problem: ConfigError | None = None
        self._paths = (path, project, trust_path(path)) if project else (path,)
        self._handled: tuple[tuple[_Version, ...], _Contents] = ((), ())
        self._suspect: tuple[tuple[_Version, ...], _Contents] | None = None
        self._is_pipe = self._had_file = self._told = False

    @property
    def data(self) -> bytes:
        """The content of the config that was last used or refused; b"" if it could not be read."""
        content = self._handled[1][0]
        return content if isinstance(content, bytes) else b""

    def load(self, *, required: bool = True) -> Config:
        """The config at the start. required: whether a missing or empty file is an error; else the config has
        no servers, and `problem` says why. Raises ConfigError.
        """
        versions = self._versions()
        self._is_pipe = len(versions[0]) > 1 and not stat.S_ISREG(versions[0][0])
        contents = ("a pipe",) if self._is_pipe else self._contents(versions)
        self._handled = versions, contents
        self._had_file = not isinstance(contents[0], str)
        try:
            return load(self.path, self._env, self._project)
        except ConfigError as error:
            is_missing = isinstance(error.__cause__, FileNotFoundError)
            if required or not (is_missing or (isinstance(contents[0], bytes) and not contents[0].strip())):
                raise
            self.problem, self._had_file = error, False
            return Config(self.path, {})

    def changed(self) -> Config | None:
        """The config if its files have other content than those last used or refused; None if not.

        Raises ConfigError, once, for files that can't be used.
        """
        if self.problem is not None and not self._told:
            self._check_other_default()
        versions = self._versions()
        if self._is_pipe or (versions == self._handled[0] and not any(map(_is_recent, versions))):
            return None
        seen = versions, self._contents(versions)
        if seen[1] == self._handled[1]:
            self._handled, self._suspect = seen, None
            return None
        try:
            if self._had_file and isinstance(seen[1][0], str):
                _read_regular(self.path, versions[0])  # raises
            config = load(self.path, self._env, self._project)
        except ConfigError:
            if self._suspect != seen:
                self._suspect = seen
                return None
            self._handled, self._suspect = seen, None
            raise
        self._handled, self._suspect = seen, None
        self._had_file = not isinstance(seen[1][0], str)
        return config

    def _check_other_default(self) -> None:
        """Raises ConfigError if mcpzip was started without a config, and now there is one at
        `OTHER_DEFAULT`, whose folder is another than that of the files in use.
        """
        default, other = (os.path.abspath(expand_home(each, self._env)) for each in (DEFAULT, OTHER_DEFAULT))
        if self.path == default and not os.path.lexists(default) and os.path.lexists(other):
            self._told = True
            raise ConfigError(
                other, "", "it was written after mcpzip had started without a config", "restart your client"
            )

    def _versions(self) -> tuple[_Version, ...]:
        return tuple(map(_version, self._paths))

    def _contents(self, versions: tuple[_Version, ...]) -> _Contents:
        return tuple(map(_content, self._paths, versions))


def _content(path: str, version: _Version) -> bytes | str:
    try:
        return _read_regular(path, version)
    except ConfigError as error:
        return str(error)


def _read_regular(path: str, version: _Version) -> bytes:
    """The content of a file, but not of a pipe, which would block. Raises ConfigError."""
    if len(version) > 1 and not stat.S_ISREG(version[0]) and not stat.S_ISDIR(version[0]):
        raise ConfigError(path, "", "this is not a file", "write the config to a regular file")
    return read_file(path)


def _version(path: str) -> _Version:
    try:
        found = os.stat(path)
    except OSError as error:
        return (error.errno or 0,)
    return (
        found.st_mode,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_size,
        found.st_ino,
        found.st_dev,
    )


def _is_recent(version: _Version) -> bool:
    """Whether the file was modified so recently that it may have been again at the same time."""
    return len(version) > 1 and 0 <= time.time() - version[1] / 1e9 < COARSE
