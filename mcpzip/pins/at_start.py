"""Whether the pins matter to the first searches of a start, by what is on disk.

The rule: it is answered without loading the checks, which take longer than a search. No search waits for a
store: what is new in it is taken up as soon as it is read.
"""

from mcpzip.catalog import Catalog
from mcpzip.config import Config
from mcpzip.pins.record import ServerPins
from mcpzip.pins.store import PinFile, PinsUnusableError, server_key


def pins_matter(config: Config, catalog: Catalog) -> bool:
    """Whether something is held back, or was approved after ``catalog`` was written and isn't in it, or the
    file of pins can't be used. Reads the file.
    """
    if config.store is not None:
        return False
    try:
        servers = PinFile(config.path).load().servers
    except PinsUnusableError:
        return True
    if any(server.held for server in servers.values()):
        return True
    for name in config.servers:
        known = servers.get(server_key(name, config.project if name in config.project_servers else ""))
        if known is not None and _has_more(known, name, catalog):
            return True
    return False


def _has_more(known: ServerPins, name: str, catalog: Catalog) -> bool:
    """Whether a tool of the server called ``name`` was approved since it was listed."""
    record = catalog.servers.get(name)
    if record is None or record.fetched_at is None:
        return False
    since = record.fetched_at
    later = [key for key, pin in known.pins.items() if pin.at > since and pin.gone is None]
    tools = [key for key in later if key.startswith("tool ")]
    return bool(tools) and not {f"tool {entry.tool}" for entry in record.entries}.issuperset(tools)
