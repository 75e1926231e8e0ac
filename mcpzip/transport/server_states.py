"""The servers of a pool, by name.

The rule: a server whose connection settings change in the config gets a new state; requests that still use
the old one end on it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from mcpzip.config import ServerConfig
from mcpzip.model.errors import UpstreamUnavailableError
from mcpzip.transport.login_wait import LoginWait
from mcpzip.transport.server_state import ServerState


class ServerStates(Mapping[str, ServerState]):
    """The states that are in use, by name. by_name: as a dictionary, because every request looks there."""

    def __init__(self, login_wait: Callable[[ServerConfig], LoginWait]) -> None:
        """login_wait: makes that of a server."""
        self._login_wait = login_wait
        self.by_name: dict[str, ServerState] = {}

    def __getitem__(self, server: str) -> ServerState:
        return self.by_name[server]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def configured(self, server: str) -> ServerState:
        """The state of ``server``. Raises UpstreamUnavailableError if it is no longer in the config."""
        state = self.by_name.get(server)
        if state is None:
            raise UpstreamUnavailableError(server, "it is no longer in the config")
        return state

    def is_current(self, state: ServerState) -> bool:
        """Whether ``state`` is in use: neither was its server removed, nor its connection changed."""
        return self.by_name.get(state.server.name) is state

    def replace(
        self,
        servers: Iterable[ServerConfig],
        protocols: Mapping[str, str],
        disconnected: Collection[str] = (),
        watched: Callable[[str], Collection[str]] = lambda server: (),
    ) -> list[ServerState]:
        """Uses ``servers`` from now on. Returns the states that are no longer in use. Arguments: see
        `Pool.reconfigure`.
        """
        before, self.by_name = self.by_name, {}
        for server in servers:
            state = before.get(server.name)
            if state is None or server.name in disconnected:
                state = ServerState(server, protocols.get(server.name), self._login_wait(server))
                state.subscriptions = frozenset(watched(server.name))
            state.server = server
            self.by_name[server.name] = state
        return [state for state in before.values() if not self.is_current(state)]
