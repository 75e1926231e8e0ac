"""What an edit of the config file changes.

The rules:

1. The result depends on the two configs alone: on the one in use and on the one in the file.
2. A server whose connection settings are the same keeps its connections.
3. A setting that is read at the start only keeps its value until mcpzip is started again.
"""

from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from mcpzip.config.schema import NO_POLICY, Config, ServerConfig

LIVE: Mapping[str, Callable[[Config], object]] = {
    "idle_timeout_minutes": lambda config: config.idle_timeout,
    "call_timeout_seconds": lambda config: config.call_timeout,
    "expose": lambda config: config.expose,
    "expose.split": lambda config: config.split,
    "shared": lambda config: config.shared,
    "policy": lambda config: config.policy,
    "audit": lambda config: config.audit,
    "results": lambda config: config.results,
    "code": lambda config: config.code,
    "access": lambda config: config.access,
    "rate_limits": lambda config: config.rate_limits,
    "daemon.idle_minutes": lambda config: config.daemon_idle,
    "search.default_limit": lambda config: config.search.default_limit,
    "search.max_tokens": lambda config: config.search.max_tokens,
    "search.details": lambda config: config.search.details,
}
"""By key: settings that can change while mcpzip runs."""

AT_START: Mapping[str, Callable[[Config], object]] = {
    "gemini_api_key": lambda config: config.gemini_api_key,
    "log.level": lambda config: config.log_level,
    "auth.store": lambda config: config.auth_store,
    "daemon.http": lambda config: config.daemon_http,
    "http": lambda config: config.http,
    "replicas": lambda config: config.replicas,
    "store": lambda config: config.store,
    "telemetry": lambda config: config.telemetry,
    "search.learn": lambda config: config.search.learn,
    "search.model": lambda config: config.search.model,
    "search.llm_deadline_seconds": lambda config: config.search.llm_deadline,
    "search.semantic": lambda config: config.search.semantic,
    "search.threshold": lambda config: config.search.threshold,
}
"""By key: settings that are read at the start only."""


class ConfigDiff(msgspec.Struct, frozen=True):
    """The changes, as sorted names of servers and keys of settings.

    reconnected: servers with other connection settings. adjusted: servers of which only other settings
    changed (tools, pins, timeout …). settings: the other keys that changed and are applied. at_start: the
    keys that take effect at the next start. deferred: whether nothing at all is applied until then, because
    "transparent" begins or ends, and clients can't be told of that.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    reconnected: tuple[str, ...] = ()
    adjusted: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    at_start: tuple[str, ...] = ()
    deferred: bool = False

    @property
    def disconnected(self) -> frozenset[str]:
        """The servers whose connections end."""
        return frozenset((*self.removed, *self.reconnected))

    @property
    def summary(self) -> str:
        """What is applied, as "added a, b; removed c"; "" for nothing."""
        parts = {
            "added": self.added,
            "removed": self.removed,
            "changed": (*self.reconnected, *self.adjusted, *self.settings),
        }
        return "; ".join(f"{what} {', '.join(names)}" for what, names in parts.items() if names)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what takes effect at the next start."""
        if self.deferred:
            return (
                'expose changed to or from "transparent": the config takes effect when mcpzip is started '
                "again.",
            )
        return tuple(f"{key} changed: takes effect when mcpzip is started again." for key in self.at_start)


def same_connection(one: ServerConfig, other: ServerConfig) -> bool:
    """Whether two configs of a server make the same connection.

    Variables that are withheld because another server refers to them don't count: they are withheld from the
    next start on.
    """
    return _connection(one) == _connection(other)


def compare(running: Config, edited: Config) -> ConfigDiff:
    """The changes from the config in use to the one in the file."""
    if _is_deferred(running, edited):
        return ConfigDiff(at_start=("expose",), deferred=True)
    before, now = running.servers, edited.servers
    changed = sorted(name for name in now if name in before and now[name] != before[name])
    reconnected = tuple(name for name in changed if not same_connection(before[name], now[name]))
    return ConfigDiff(
        added=tuple(sorted(now.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - now.keys())),
        reconnected=reconnected,
        adjusted=tuple(name for name in changed if name not in reconnected),
        settings=_different(LIVE, running, edited),
        at_start=_different(AT_START, running, edited),
    )


def applicable(running: Config, edited: Config) -> Config:
    """``edited`` with the settings of ``running`` that can't change while mcpzip runs."""
    if _is_deferred(running, edited):
        return running
    kept = running.search
    search = replace(
        edited.search,
        learn=kept.learn,
        model=kept.model,
        llm_deadline=kept.llm_deadline,
        semantic=kept.semantic,
        threshold=kept.threshold,
    )
    return replace(
        edited,
        search=search,
        gemini_api_key=running.gemini_api_key,
        auth_store=running.auth_store,
        daemon_http=running.daemon_http,
        http=running.http,
        replicas=running.replicas,
        store=running.store,
        telemetry=running.telemetry,
        log_level=running.log_level,
    )


def _is_deferred(running: Config, edited: Config) -> bool:
    return running.expose != edited.expose and "transparent" in (running.expose, edited.expose)


def _different(
    settings: Mapping[str, Callable[[Config], object]], running: Config, edited: Config
) -> tuple[str, ...]:
    return tuple(sorted(key for key, read in settings.items() if read(running) != read(edited)))


def _connection(server: ServerConfig) -> ServerConfig:
    """``server`` without the settings that a connection doesn't depend on."""
    return replace(
        server,
        timeout=None,
        tools_allow=None,
        tools_deny=(),
        pin=(),
        boost=1.0,
        share="auto",
        trust="pin",
        policy=NO_POLICY,
        risk=(),
        withheld_env=frozenset(),
        unset=(),
    )
