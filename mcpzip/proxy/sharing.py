"""Which clients use one process, or one session, of a server together.

The rules:

1. A legacy connection is a session: what a server asks on it unasked names no request. So a server is shared
   by clients with equal capabilities as long as it asks none of them anything. The first question makes it a
   server that clients with that capability have to themselves from then on, remembered across starts.
2. A server that is known to keep what a client did (`stateful_servers`) is not shared.
3. A server that is started with relative paths is shared by clients in the same working folder.
4. ``share`` in a server's config decides otherwise: ``always``, ``never``, ``per-cwd``.
"""

import os
from collections.abc import Mapping
from typing import Literal

import msgspec

from mcpzip.config import ServerConfig
from mcpzip.config.paths import cache_folder
from mcpzip.model import limits
from mcpzip.proxy.client_capabilities import required_capability
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client, members
from mcpzip.proxy.stateful_servers import has_relative_path, is_stateful
from mcpzip.system.delayed_save import DelayedSave
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.state_files import read_state, write_state
from mcpzip.system.threads import in_thread

FORMAT = Format("mcpzip-sharing", 1, "a file of what servers asked")

Use = Literal["own", "with equals", "with equals in folder", "usual"]
"""How a client uses a server: with connections of its own; together with clients of the same capabilities, or
with those of them in the same working folder; or as it would without sharing: on its own if it can be asked
anything or set a log level, else with all others.
"""

_ENDING = ".sharing.json"


class _Asked(msgspec.Struct):
    """fingerprint: of the server's config at that time. capabilities: those that its questions needed."""

    fingerprint: str
    capabilities: list[str]


class _File(Head):
    servers: dict[str, _Asked]


class _Traits(msgspec.Struct, frozen=True):
    """What the words of ``config`` say, which every call needs and which takes long to find out."""

    config: ServerConfig
    keeps_state: bool
    depends_on_folder: bool


class Sharing:
    """What servers asked so far, in a file of the cache. Everything runs on one event loop."""

    def __init__(self, current: CurrentConfig) -> None:
        self._current = current
        state = current.config.state_path
        self._path = os.path.join(cache_folder(state), f"{os.path.basename(state)}{_ENDING}")
        self._asked: dict[str, _Asked] | None = None
        self._traits: dict[str, _Traits] = {}
        self._saving = DelayedSave(self._save, "sharing")

    def use(self, client: Client, server: str) -> Use:
        """How ``client`` uses ``server``, which may not be configured any more."""
        config = self._current.servers.get(server)
        if config is None or client.is_only_client or not client.has_session:
            return "usual"
        traits = self._traits_of(server, config)
        if config.share == "never" or (config.share == "auto" and traits.keeps_state):
            return "own"
        by_folder = client.folder is not None and (
            config.share == "per-cwd" or (config.share == "auto" and traits.depends_on_folder)
        )
        if not client.is_interactive and not by_folder:
            return "usual"
        if config.share == "always":
            return "with equals"
        needed = self._known.get(server)
        asked = needed.capabilities if needed and needed.fingerprint == config.fingerprint else ()
        is_asked = bool(asked) and not members(client.capabilities).keys().isdisjoint(asked)
        if client.log_level is not None or is_asked:
            return "own" if by_folder else "usual"
        return "with equals in folder" if by_folder else "with equals"

    def asked(self, server: str, method: str, params: bytes | None) -> None:
        """``server`` sent a request that could be for any of several clients."""
        config, needed = self._current.servers.get(server), required_capability(method, params)
        if config is None or needed is None:
            return
        known = self._known.get(server)
        if known is None or known.fingerprint != config.fingerprint:
            known = self._known[server] = _Asked(config.fingerprint, [])
        if needed[0] not in known.capabilities:
            known.capabilities.append(needed[0])
            self._saving.want(0.0)

    async def close(self) -> None:
        """Saves what isn't saved yet."""
        await self._saving.flush()

    def _traits_of(self, server: str, config: ServerConfig) -> "_Traits":
        found = self._traits.get(server)
        if found is None or found.config is not config:
            found = self._traits[server] = _Traits(config, _keeps_state(config), _depends_on_folder(config))
        return found

    @property
    def _known(self) -> dict[str, _Asked]:
        if self._asked is None:
            self._asked = self._read()
        return self._asked

    def _read(self) -> dict[str, _Asked]:
        try:
            return FORMAT.decode(read_state(self._path, limits.SHARING), _File).servers
        except (OSError, UnusableError):
            return {}

    async def _save(self) -> None:
        servers: Mapping[str, ServerConfig] = self._current.servers
        known = {name: one for name, one in self._known.items() if name in servers}
        await in_thread(lambda: self._write(known), "sharing")

    def _write(self, known: dict[str, _Asked]) -> None:
        known = {**self._read(), **known}  # another process may have learnt of others
        try:
            write_state(
                self._path, msgspec.json.encode(_File(FORMAT.name, FORMAT.version, known)), limits.SHARING
            )
        except OSError:
            pass  # the next process learns it again


def _depends_on_folder(config: ServerConfig) -> bool:
    return (
        config.transport == "stdio" and config.cwd is None and has_relative_path(config.command, config.args)
    )


def _keeps_state(config: ServerConfig) -> bool:
    return config.transport == "stdio" and is_stateful(config.command, config.args)
