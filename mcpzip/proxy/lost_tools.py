"""The tools that servers have lost while this process runs.

The rule: a name without a server, which two servers had, doesn't come to mean the tool of the one that still
has it. So a lost tool stays a candidate for a name, and is never called.
"""

from msgspec.structs import replace

from mcpzip.catalog import Catalog
from mcpzip.catalog.parts import Parts
from mcpzip.model.entry import Entry
from mcpzip.model.limits import LOST_TOOLS


class LostTools:
    """Remembers `limits.LOST_TOOLS` of them; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._lost: dict[tuple[str, str], Entry] = {}  # by server and tool, oldest first
        self._made: tuple[Catalog, Catalog] | None = None

    def note(self, before: Catalog, now: Catalog) -> None:
        """Remembers what ``before`` has and ``now`` has not, and forgets what is back, and servers that are
        not configured any more.
        """
        self._made = None
        for key in [key for key in self._lost if key[0] not in now.servers]:
            del self._lost[key]
        for name, record in now.servers.items():
            earlier = before.servers.get(name)
            if earlier is None or earlier.entries is record.entries:
                continue
            tools = {entry.tool for entry in record.entries}
            for key in [key for key in self._lost if key[0] == name and key[1] in tools]:
                del self._lost[key]
            self._lost.update({(name, each.tool): each for each in earlier.entries if each.tool not in tools})
        while len(self._lost) > LOST_TOOLS:
            del self._lost[next(iter(self._lost))]

    def added_to(self, catalog: Catalog) -> Catalog:
        """``catalog`` with the lost tools of its servers; the same object if there are none."""
        if not self._lost:
            return catalog
        if self._made is None or self._made[0] is not catalog:
            servers = dict(catalog.servers)
            for name in {server for server, _ in self._lost}:
                lost = [entry for (server, _), entry in self._lost.items() if server == name]
                record = servers[name]
                entries = sorted((*record.entries, *lost), key=lambda entry: entry.tool)
                servers[name] = replace(record, entries=Parts(entries))
            self._made = catalog, Catalog(servers)
        return self._made[1]
