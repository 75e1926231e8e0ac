"""The part of the catalog a client may see.

The rule: what the config hides is in no reply: not listed, not found, not described, not called. The catalog
and its snapshot keep everything, so that a change of the config needs no server to answer.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import translate

from mcpzip.catalog.catalog import Catalog
from mcpzip.config.schema import ServerConfig


def allowed(catalog: Catalog, servers: Mapping[str, ServerConfig]) -> Catalog:
    """``catalog`` without disabled servers, servers not configured, tools not allowed and tools denied.

    What a server offers besides tools is seen when the server is.

    The globs (``*``, ``?``, ``[…]``; case counts) are matched with the upstream's own tool names; deny wins.
    """
    visible = {}
    for name, record in catalog.servers.items():
        server = servers.get(name)
        if server is None or server.disabled:
            continue
        if server.tools_allow is not None or server.tools_deny:
            may = _may(server.tools_allow, server.tools_deny)
            record = replace(record, entries=tuple(entry for entry in record.entries if may(entry.tool)))
        visible[name] = record
    return Catalog(visible)


def _may(allow: Sequence[str] | None, deny: Sequence[str]) -> Callable[[str], bool]:
    allows, denies = matcher(["*"] if allow is None else allow), matcher(deny)
    return lambda tool: allows(tool) and not denies(tool)


def matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Whether a tool's own name matches one of ``globs`` (``*``, ``?``, ``[…]``; case counts)."""
    patterns = [re.compile(translate(glob)) for glob in globs]
    return lambda tool: any(pattern.match(tool) for pattern in patterns)
