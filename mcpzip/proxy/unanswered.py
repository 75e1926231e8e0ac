"""The servers that had never answered when a search stopped waiting for them, kept across starts.

The rule: a search waits for a server's first answer once, and at later starts no more, until the server's
settings change, it answers, or a person starts it again. It is still tried in the background.

    {"format":"mcpzip-unanswered","version":1,"servers":{"slack":"1f0c2a9b"}}     name: fingerprint
"""

import os
from collections.abc import Iterable, Mapping

import msgspec

from mcpzip.config import Config, ServerConfig
from mcpzip.config.paths import cache_folder
from mcpzip.model import limits
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.state_files import read_state, write_state

FORMAT = Format("mcpzip-unanswered", 1, "a list of servers that did not answer")

_ENDING = ".unanswered.json"


class _File(Head):
    servers: dict[str, str]


class UnansweredServers:
    """The servers that have not answered, in a file of the cache. A file that can't be used is as if it was
    empty: then a search waits once more.
    """

    def __init__(self, config: Config) -> None:
        state = config.state_path
        self._path = os.path.join(cache_folder(state), f"{os.path.basename(state)}{_ENDING}")
        self._known: dict[str, str] | None = None

    def __contains__(self, server: ServerConfig) -> bool:
        """Whether ``server`` had not answered with these settings."""
        known = self._servers.get(server.name)
        return known is not None and known == server.fingerprint

    def add(self, servers: Iterable[ServerConfig]) -> bool:
        """None of ``servers`` has answered so far. Returns whether that is new."""
        new = {server.name: server.fingerprint for server in servers if server not in self}
        self._servers.update(new)
        return bool(new)

    def forget(self, name: str) -> bool:
        """A search shall wait for the server called ``name``. Returns whether none did before."""
        return self._servers.pop(name, None) is not None

    def save(self, configured: Mapping[str, ServerConfig]) -> None:
        """Writes those of them that are ``configured``. Takes a moment; an error costs a search its wait."""
        known = {name: digest for name, digest in self._servers.items() if name in configured}
        try:
            write_state(
                self._path, msgspec.json.encode(_File(FORMAT.name, FORMAT.version, known)), limits.UNANSWERED
            )
        except OSError:
            pass

    @property
    def _servers(self) -> dict[str, str]:
        if self._known is None:
            try:
                self._known = FORMAT.decode(read_state(self._path, limits.UNANSWERED), _File).servers
            except (OSError, UnusableError):
                self._known = {}
        return self._known


def forget_saved(config: Config, names: Iterable[str]) -> None:
    """The same as `UnansweredServers.forget` for a process that isn't running yet."""
    unanswered = UnansweredServers(config)
    forgotten = [name for name in names if unanswered.forget(name)]
    if forgotten:
        unanswered.save(config.servers)
