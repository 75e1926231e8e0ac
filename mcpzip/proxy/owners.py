"""Whose a name is, as far as the config says (pure).

The rules:

1. A name that begins with a configured server's name, case and separators aside, is that server's and nobody
   else's, whatever anybody lists: a server chooses the names of its tools, but not those of the servers.
2. Where several servers' names begin it, it is the longest's; it may have been meant for the others.
3. What a server that isn't fully known has, nobody can say: no name is known not to be its.
"""

from collections.abc import Collection, Iterable, Mapping

from mcpzip.catalog import Catalog
from mcpzip.config import ServerConfig
from mcpzip.model.names import folded, split
from mcpzip.search.vocabulary import EditDistance

SHORTEST_MISSPELT = 4
"""Characters of a server's name; in a shorter one a slip is as likely as another word."""


def may_mean(name: str, servers: Iterable[str]) -> tuple[str, ...]:
    """Those of ``servers`` that ``name`` may name: ``server__…``, else those it begins with as a word, else
    those it begins with at all. None for a bare name.
    """
    servers = tuple(servers)
    parts = split(name)
    if parts and parts[0] and (said := [each for each in servers if folded(each) == folded(parts[0])]):
        return tuple(said)
    key = folded(name)
    begun = [each for each in servers if folded(each) and key.startswith(folded(each))]
    return tuple([each for each in begun if _ends_a_word(name, folded(each))] or begun)


def owner_of(name: str, named: Collection[str]) -> str | None:
    """The one of ``named`` (`may_mean`) whose ``name`` is; None where two are alike and it spells neither."""
    longest = max((len(folded(each)) for each in named), default=0)
    found = [each for each in named if len(folded(each)) == longest]
    for spelt in (str, str.casefold):
        if len(found) > 1:
            found = [each for each in found if spelt(name).startswith(spelt(each))] or found
    return found[0] if len(found) == 1 else None


def may_misspell(name: str, servers: Iterable[str]) -> bool:
    """Whether ``name`` begins with a misspelling of the name of one of ``servers``: one letter is wrong,
    missing, added or swapped with the next.
    """
    key = folded(name)
    for server in map(folded, servers):
        if len(server) >= SHORTEST_MISSPELT:
            distance = EditDistance(server).distance
            lengths = range(len(server) - 1, len(server) + 2)
            if any(distance(key[:length]) <= 1 for length in lengths):
                return True
    return False


def not_fully_known(catalog: Catalog, servers: Mapping[str, ServerConfig]) -> frozenset[str]:
    """Those of ``servers``, all that are configured, that may have tools that ``catalog`` doesn't: never
    listed, not listed when last asked, or disabled.
    """
    return frozenset(
        name
        for name, server in servers.items()
        if server.disabled
        or (record := catalog.servers.get(name)) is None
        or record.fetched_at is None
        or record.stale
    )


def _ends_a_word(name: str, server: str) -> bool:
    """Whether a word ends in ``name`` where ``server`` (folded) does, which it begins with."""
    length = 0
    for letter in name:
        spelt = folded(letter)
        if length >= len(server):
            return not spelt or letter.isupper()
        length += len(spelt)
    return length == len(server)
