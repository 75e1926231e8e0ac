"""Which clients use one process, or one session, of a server together.

The rules:

1. A legacy connection is a session: what a server asks on it unasked names no request. So a server is shared
   by clients with equal capabilities as long as it asks none of them anything. The first question makes it a
   server that clients with that capability have to themselves from then on, remembered across starts.
2. Roots are different: they are the same whoever's call it is. Whether a client has some makes no difference
   for a server that never asked for roots, and is told of some as long as one of its clients has. A server
   that did ask is shared by clients with equal roots.
3. A server that is known to keep what a client did (`stateful_servers`) is not shared.
4. A server that is started with relative paths is shared by clients in the same working folder. A word that
   may be one is one for those in a folder that has a file or folder of this name when the first of them uses
   the server; that is looked up once.
5. ``share`` in a server's config decides otherwise: ``always``, ``never``, ``per-cwd``.
"""

import os
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from mcpzip.config import ServerConfig
from mcpzip.config.paths import cache_folder
from mcpzip.model import limits
from mcpzip.proxy.client_capabilities import ROOTS, declared, required_capability
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client
from mcpzip.proxy.stateful_servers import has_relative_path, is_stateful, possible_names
from mcpzip.system.delayed_save import DelayedSave
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.state_files import read_state, write_state
from mcpzip.system.threads import in_thread

FORMAT = Format("mcpzip-sharing", 1, "a file of what servers asked")


class Use(NamedTuple):
    """How a client uses a server.

    kind: "own": with connections of its own. "usual": as it would without sharing: on its own if it can be
    asked anything or set a log level, else with all others. Else with other clients of the same kind,
    ``capabilities`` (what the server is told, JSON text) and ``folder``; "equal roots": only with those that
    have equal roots. folder: the working folder of all of them; None where it doesn't matter. otherwise: how
    it uses the server while no other client uses it in this way.
    """

    kind: Literal["own", "usual", "shared", "any roots", "equal roots"]
    capabilities: bytes = b"{}"
    folder: str | None = None
    otherwise: "Use | None" = None


OWN, USUAL = Use("own"), Use("usual")

FOLDERS = 1_000
"""Working folders of which is remembered what they have."""
_ENDING = ".sharing.json"


class _Asked(msgspec.Struct):
    """fingerprint: of the server's config at that time. capabilities: those that its questions needed."""

    fingerprint: str
    capabilities: list[str]


class _File(Head):
    servers: dict[str, _Asked]


class _Traits(msgspec.Struct, frozen=True):
    """What the words of ``config`` say, which every call needs and which takes long to find out.

    possible_names: of files and folders in the working folder. in_folder: whether there are any, by folder.
    """

    config: ServerConfig
    keeps_state: bool
    depends_on_folder: bool
    possible_names: tuple[str, ...]
    in_folder: dict[str, bool]

    def depends_on(self, folder: str) -> bool:
        """Whether the server is another one in ``folder``."""
        found = self.in_folder.get(folder)
        if found is None:
            found = any(os.path.lexists(os.path.join(folder, name)) for name in self.possible_names)
            if len(self.in_folder) < FOLDERS:
                self.in_folder[folder] = found
        return found


@lru_cache(maxsize=64)
def _by_roots(capabilities: bytes, folder: str | None) -> tuple[Use, Use]:
    """How a client with these ``capabilities`` uses a server that never asked for roots, and one that did."""
    has, without = declared(capabilities), USUAL
    if has.can_be_asked or folder is not None:
        without = Use("shared", has.without_roots, folder)
    any_roots = Use("any roots", has.with_any_roots, folder, None if has.has_roots else without)
    return any_roots, Use("equal roots", has.with_roots, folder) if has.has_roots else without


class Sharing:
    """What servers asked so far, in a file of the cache. Everything runs on one event loop."""

    def __init__(self, current: CurrentConfig) -> None:
        self.current = current
        state = current.config.state_path
        self._path = os.path.join(cache_folder(state), f"{os.path.basename(state)}{_ENDING}")
        self._asked: dict[str, _Asked] | None = None
        self._traits: dict[str, _Traits] = {}
        self._saving = DelayedSave(self._save, "sharing")

    def use(self, client: Client, server: str) -> Use:
        """How ``client`` uses ``server``, which may not be configured any more."""
        config = self.current.config.servers.get(server)
        if config is None or client.is_only_client or not client.has_session or client.era is None:
            return USUAL
        traits = self._traits.get(server)
        if traits is None or traits.config is not config:
            traits = self._traits[server] = _traits_of(config)
        if config.share == "never" or (config.share == "auto" and traits.keeps_state):
            return OWN
        has = declared(client.capabilities)
        if config.share == "always":
            return Use("shared", client.capabilities) if has.can_be_asked else USUAL
        folder, by_folder = client.folder, config.share == "per-cwd" or traits.depends_on_folder
        if folder is not None and not (by_folder or (traits.possible_names and traits.depends_on(folder))):
            folder = None
        asked = self._asked_by(server, config)
        if client.log_level is not None or not has.others.isdisjoint(asked):
            return USUAL if folder is None else OWN
        any_roots, equal_roots = _by_roots(client.capabilities, folder)
        return equal_roots if ROOTS in asked else any_roots

    def asked(self, server: str, method: str, params: bytes | None) -> bool:
        """``server`` sent a request that could be for any of several clients. Returns whether it is the first
        that needs its capability.
        """
        config, needed = self.current.servers.get(server), required_capability(method, params)
        if config is None or needed is None:
            return False
        known = self._known.get(server)
        if known is None or known.fingerprint != config.fingerprint:
            known = self._known[server] = _Asked(config.fingerprint, [])
        if needed[0] in known.capabilities:
            return False
        known.capabilities.append(needed[0])
        self._saving.want(0.0)
        return True

    async def close(self) -> None:
        """Saves what isn't saved yet."""
        await self._saving.flush()

    def _asked_by(self, server: str, config: ServerConfig) -> Collection[str]:
        """The capabilities that questions of ``server`` needed."""
        known = (self._known if self._asked is None else self._asked).get(server)
        return known.capabilities if known and known.fingerprint == config.fingerprint else ()

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
        servers: Mapping[str, ServerConfig] = self.current.servers
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


def _traits_of(config: ServerConfig) -> _Traits:
    if config.transport != "stdio":
        return _Traits(config, False, False, (), {})
    keeps_state = is_stateful(config.command, config.args)
    if config.cwd is not None:
        return _Traits(config, keeps_state, False, (), {})
    depends_on_folder = has_relative_path(config.command, config.args, config.env.values())
    names = possible_names(config.command, config.args)
    return _Traits(config, keeps_state, depends_on_folder, names, {})
