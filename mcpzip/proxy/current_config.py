"""The config that is in use, for all parts of the proxy.

The rule: an edit of the config file replaces the config here, and nowhere else; whoever needs a setting reads
it here when it is needed.
"""

from collections.abc import Mapping

from mcpzip.config import Config, ServerConfig


class CurrentConfig:
    """config: the one in use. enabled: its servers that aren't disabled, by name. has_policy: whether it
    decides anything about calls, or has them written down. per_user: the enabled servers to which each person
    signs in. for_all: the enabled servers without those, if nobody but people asks (`only_people`); else all,
    because whoever uses this machine is signed in to some of those, too.
    """

    only_people = False
    """Whether every request is one of a person."""

    def __init__(self, config: Config) -> None:
        self.replace(config)

    def replace(self, config: Config) -> None:
        """Uses ``config`` from now on."""
        self.config = config
        self.has_policy = config.has_policy or config.audit is not None
        self.enabled: Mapping[str, ServerConfig] = {
            name: server for name, server in config.servers.items() if not server.disabled
        }
        self.per_user = frozenset(name for name, server in self.enabled.items() if server.per_user)

    @property
    def servers(self) -> Mapping[str, ServerConfig]:
        """All servers, by name."""
        return self.config.servers

    @property
    def for_all(self) -> Mapping[str, ServerConfig]:
        """The servers that are listed for all."""
        if not (self.only_people and self.per_user):
            return self.enabled
        return {name: server for name, server in self.enabled.items() if name not in self.per_user}
