"""Says of servers that lack a variable of the environment that they could be used where it was set.

The rule: clients start mcpzip with different environments and share the catalog, so that a server whose tools
one client has listed may be unusable in another. The reason then names the variables.
"""

from msgspec.structs import replace

from mcpzip.catalog import Catalog
from mcpzip.config import Config, ServerConfig


def with_reasons(config: Config, catalog: Catalog) -> Config:
    """``config`` with this reason as the `problem` of each server that was listed with the same settings.

    catalog: from the snapshot.
    """
    servers = {
        name: replace(server, problem=_reason(server.unset)) if _was_listed(server, catalog) else server
        for name, server in config.servers.items()
    }
    return replace(config, servers=servers)


def _was_listed(server: ServerConfig, catalog: Catalog) -> bool:
    record = catalog.servers.get(server.name)
    if not server.unset or record is None or record.fetched_at is None:
        return False
    return record.fingerprint == server.fingerprint


def _reason(names: tuple[str, ...]) -> str:
    *others, last = (f"${{{name}}}" for name in names)
    if others:
        found = f"{', '.join(others)} and {last} are not set here; they were when its tools were listed"
        return f"{found}. Set them where mcpzip is started"
    return f"{last} is not set here; it was when its tools were listed. Set it where mcpzip is started"
