"""The part of the catalog that clients may see.

The rule: a tool that the config hides can't be listed, found, described or called. The catalog and its
snapshot contain it all the same, so that it is there as soon as the config shows it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import translate

from msgspec.structs import replace

from mcpzip.catalog.catalog import Catalog, ServerRecord
from mcpzip.catalog.parts import Parts
from mcpzip.config.schema import ServerConfig


class View:
    """Filters catalogs by the config. The result for a server is cached until its record changes."""

    def __init__(self, servers: Mapping[str, ServerConfig], before: "View | None" = None) -> None:
        """before: the view of the config before an edit; results for servers with the same globs are kept."""
        self._globs = {name: (server.tools_allow, server.tools_deny) for name, server in servers.items()}
        self._allowed = {
            name: _tool_filter(server.tools_allow, server.tools_deny)
            if server.tools_allow is not None or server.tools_deny
            else None
            for name, server in servers.items()
            if not server.disabled
        }
        """By name of each enabled server: whether a tool is shown; None if all are."""
        self._cache: dict[str, tuple[ServerRecord, ServerRecord]] = {}
        """By name: the record that was filtered last, and the result."""
        if before is not None:
            same = {name for name, globs in self._globs.items() if before._globs.get(name) == globs}
            self._cache = {name: found for name, found in before._cache.items() if name in same}

    def of(self, catalog: Catalog) -> Catalog:
        """``catalog`` without disabled and unconfigured servers, and without tools that their server's globs
        deny or don't allow. Deny wins. Prompts and resources aren't filtered.
        """
        visible = {}
        for name, record in catalog.servers.items():
            if name not in self._allowed:
                continue
            if (is_allowed := self._allowed[name]) is not None:
                record = self._filtered(record, is_allowed)
            visible[name] = record
        return Catalog(visible)

    def _filtered(self, record: ServerRecord, is_allowed: Callable[[str], bool]) -> ServerRecord:
        cached = self._cache.get(record.name)
        if cached is not None and cached[0] is record:
            return cached[1]
        if cached is not None and cached[0].entries is record.entries:
            entries = cached[1].entries
        else:
            entries = Parts(entry for entry in record.entries if is_allowed(entry.tool))
        filtered = replace(record, entries=entries)
        self._cache[record.name] = (record, filtered)
        return filtered


def allowed(catalog: Catalog, servers: Mapping[str, ServerConfig]) -> Catalog:
    """The part of ``catalog`` that clients may see."""
    return View(servers).of(catalog)


def _tool_filter(allow: Sequence[str] | None, deny: Sequence[str]) -> Callable[[str], bool]:
    allows, denies = matcher(["*"] if allow is None else allow), matcher(deny)
    return lambda tool: allows(tool) and not denies(tool)


def matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """A function that tells whether a tool's own name, without its server, matches one of ``globs``
    (``*``, ``?``, ``[…]``; case counts).
    """
    patterns = [re.compile(translate(glob)) for glob in globs]
    return lambda tool: any(pattern.match(tool) for pattern in patterns)
