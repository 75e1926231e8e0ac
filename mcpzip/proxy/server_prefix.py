"""Which server the beginning of a name names, by the config (pure).

The rules:

1. A name that begins with a configured server's name, ignoring case and separators, belongs to that server,
   whatever the servers list: a server chooses the names of its tools, but not the names of the servers.
2. If it begins with several servers' names, it belongs to the longest, and the others are candidates, too.
3. A server whose last listing failed, or that was never listed, may have any tool.
"""

from collections.abc import Collection, Iterable, Mapping

from mcpzip.catalog import Catalog
from mcpzip.config import ServerConfig
from mcpzip.model.names import folded, split
from mcpzip.search.vocabulary import EditDistance

MIN_MISSPELT_LENGTH = 4
"""Characters of a server's name; a name that differs from a shorter one by a letter is rather another
word."""


def candidate_servers(name: str, servers: Iterable[str]) -> tuple[str, ...]:
    """The ``servers`` that ``name`` may belong to: the server of ``server__tool``, else those whose name is
    its first word or words, else those whose name it begins with. Empty for a bare name.
    """
    servers = tuple(servers)
    parts = split(name)
    if parts and parts[0] and (exact := [each for each in servers if folded(each) == folded(parts[0])]):
        return tuple(exact)
    key = folded(name)
    prefixes = [each for each in servers if folded(each) and key.startswith(folded(each))]
    return tuple([each for each in prefixes if _ends_at_word(name, folded(each))] or prefixes)


def named_server(name: str, candidates: Collection[str]) -> str | None:
    """The server of ``candidates`` (from `candidate_servers`) that ``name`` belongs to; None if it fits two
    equally well.
    """
    longest = max((len(folded(each)) for each in candidates), default=0)
    found = [each for each in candidates if len(folded(each)) == longest]
    for spelt in (str, str.casefold):
        if len(found) > 1:
            found = [each for each in found if spelt(name).startswith(spelt(each))] or found
    return found[0] if len(found) == 1 else None


def begins_misspelt(name: str, servers: Iterable[str]) -> bool:
    """Whether ``name`` begins with the name of one of ``servers`` with one typo: a letter is wrong, missing,
    added or swapped with the next.
    """
    key = folded(name)
    for server in map(folded, servers):
        if len(server) >= MIN_MISSPELT_LENGTH:
            distance = EditDistance(server).distance
            lengths = range(len(server) - 1, len(server) + 2)
            if any(distance(key[:length]) <= 1 for length in lengths):
                return True
    return False


def incompletely_known(catalog: Catalog, servers: Mapping[str, ServerConfig]) -> frozenset[str]:
    """Those of ``servers`` (all that are configured) that may have tools that are not in ``catalog``: never
    listed, disabled, or with a failed last listing.
    """
    return frozenset(
        name
        for name, server in servers.items()
        if server.disabled
        or (record := catalog.servers.get(name)) is None
        or record.fetched_at is None
        or record.stale
    )


def _ends_at_word(name: str, server: str) -> bool:
    """Whether ``name`` has the end of a word after its prefix ``server`` (folded)."""
    length = 0
    for letter in name:
        letter_key = folded(letter)
        if length >= len(server):
            return not letter_key or letter.isupper()
        length += len(letter_key)
    return length == len(server)
