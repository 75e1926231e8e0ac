"""The part of the catalog a client may see.

The rule: what the config hides is in no reply: not listed, not found, not described, not called. The catalog
and its snapshot keep everything, so that a change of the config needs no server to answer.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import translate

from mcpzip.catalog.catalog import Catalog, ServerRecord
from mcpzip.catalog.parts import Parts
from mcpzip.config.schema import ServerConfig


class View:
    """What a client may see of each catalog it is given. Of a server that is as it was the last time
    nothing is looked at again.
    """

    def __init__(self, servers: Mapping[str, ServerConfig]) -> None:
        self._may = {
            name: _may(server.tools_allow, server.tools_deny)
            if server.tools_allow is not None or server.tools_deny
            else None
            for name, server in servers.items()
            if not server.disabled
        }
        self._seen: dict[str, tuple[ServerRecord, ServerRecord]] = {}

    def of(self, catalog: Catalog) -> Catalog:
        """``catalog`` without disabled servers, servers not configured, tools not allowed and tools denied.

        What a server offers besides tools is seen when the server is.

        The globs (``*``, ``?``, ``[…]``; case counts) are matched with the upstream's own tool names; deny
        wins.
        """
        visible = {}
        for name, record in catalog.servers.items():
            if name not in self._may:
                continue
            if (may := self._may[name]) is not None:
                record = self._filtered(record, may)
            visible[name] = record
        return Catalog(visible)

    def _filtered(self, record: ServerRecord, may: Callable[[str], bool]) -> ServerRecord:
        seen = self._seen.get(record.name)
        if seen is not None and seen[0] is record:
            return seen[1]
        if seen is not None and seen[0].entries is record.entries:
            entries = seen[1].entries
        else:
            entries = Parts(entry for entry in record.entries if may(entry.tool))
        filtered = replace(record, entries=entries)
        self._seen[record.name] = (record, filtered)
        return filtered


def allowed(catalog: Catalog, servers: Mapping[str, ServerConfig]) -> Catalog:
    """What a client may see of one ``catalog``."""
    return View(servers).of(catalog)


def _may(allow: Sequence[str] | None, deny: Sequence[str]) -> Callable[[str], bool]:
    allows, denies = matcher(["*"] if allow is None else allow), matcher(deny)
    return lambda tool: allows(tool) and not denies(tool)


def matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Whether a tool's own name matches one of ``globs`` (``*``, ``?``, ``[…]``; case counts)."""
    patterns = [re.compile(translate(glob)) for glob in globs]
    return lambda tool: any(pattern.match(tool) for pattern in patterns)
