"""The other servers, as far as the checks compare with them (pure)."""

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mcpzip.checks.confusables import skeleton
from mcpzip.checks.texts import TooMuchError, decoded, member, string
from mcpzip.model.surface import Item

_COMMON = re.compile(r"[-_.]?\b(?:mcp|server)\b[-_.]?")
_WORDS = re.compile(r"\w+")
_COMPARED = 2_000
"""Characters of a description that are compared."""
_SHINGLE = 3
"""Words in a row that are one feature of a description."""
_SKETCH = 4
"""Features that stand for a description: those with the smallest hashes (Broder 1997)."""
_CANDIDATES = 20
FEWEST_WORDS = 8
"""Words of a description that is long enough to be called a copy."""


@dataclass(frozen=True, slots=True)
class Described:
    """A tool by its description. words: those of it, once each. parameters: names at its top level."""

    server: str
    tool: str
    words: frozenset[str]
    parameters: frozenset[str]
    sketch: tuple[int, ...]


def described(server: str, item: Item, value: object) -> Described:
    """What of the tool ``item`` is compared. value: its decoded body."""
    listed = _WORDS.findall(string(member(value, "description"))[:_COMPARED].lower())
    shingles = {
        zlib.crc32(" ".join(listed[at : at + _SHINGLE]).encode("utf-8", "surrogatepass"))
        for at in range(max(0, len(listed) - _SHINGLE + 1))
    }
    properties = member(value, "inputSchema", "properties")
    names = frozenset(key for key, _ in properties) if isinstance(properties, list) else frozenset()
    sketch = tuple(sorted(shingles)[:_SKETCH]) if len(listed) >= FEWEST_WORDS else ()
    return Described(server, item.name, frozenset(listed), names, sketch)


def bare(server: str) -> str:
    """The name of a server in lower case, without the words that many names have."""
    return _COMMON.sub("", skeleton(server).lower())


@dataclass(slots=True)
class Others:
    """An index of the names and descriptions of all servers. The checks of one of them leave its own out.

    servers: the names in the config, and each in lower case without the words that many have. tools: by
    name, the servers with such a tool.
    """

    servers: Mapping[str, str] = field(default_factory=dict)
    tools: dict[str, frozenset[str]] = field(default_factory=dict)
    _sketches: dict[int, list[Described]] = field(default_factory=dict)
    _by_name: dict[str, list[Described]] = field(default_factory=dict)

    @classmethod
    def of(cls, servers: Mapping[str, Iterable[Item]]) -> "Others":
        """The index of these servers' items, by the server's name in the config."""
        tools: dict[str, set[str]] = defaultdict(set)
        sketches: dict[int, list[Described]] = defaultdict(list)
        by_name: dict[str, list[Described]] = defaultdict(list)
        for server, items in servers.items():
            for item in items:
                if item.kind != "tool":
                    continue
                tools[item.name].add(server)
                try:
                    one = described(server, item, decoded(item.body))
                except TooMuchError:
                    continue
                by_name[item.name].append(one)
                for feature in one.sketch:
                    sketches[feature].append(one)
        return cls(
            {server: bare(server) for server in servers},
            {name: frozenset(owners) for name, owners in tools.items()},
            dict(sketches),
            dict(by_name),
        )

    def owner(self, tool: str, server: str) -> str:
        """Another server than ``server`` that has this tool, "" if none has, or ``server`` has it too."""
        owners = self.tools.get(tool, frozenset())
        return "" if server in owners else min(owners, default="")

    def similar(self, one: Described) -> Iterator[Described]:
        """Tools of other servers that may have nearly the same description."""
        seen: set[tuple[str, str]] = set()
        lists: list[Sequence[Described]] = [self._sketches.get(feature, ()) for feature in one.sketch]
        lists.append(self._by_name.get(one.tool, ()))
        for candidates in lists:
            for other in candidates[:_CANDIDATES]:
                key = other.server, other.tool
                if other.server != one.server and key not in seen:
                    seen.add(key)
                    yield other


NOBODY = Others()
