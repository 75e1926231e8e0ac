"""What is held back of one server, and which requests would reach it (pure).

The rule: a request that names something that is held is refused, also in another spelling that a server may
read as the same: other case, separators or percent-encoding, or a URI that a held template can make.
"""

from collections.abc import Collection, Mapping
from functools import cached_property
from urllib.parse import unquote

from mcpzip.model.limits import TEMPLATE_WORK
from mcpzip.model.names import folded
from mcpzip.model.surface import Kind
from mcpzip.model.templates import matches
from mcpzip.pins.record import Hold, counted, kind_and_name


class Held:
    """holds: by the items' keys."""

    def __init__(self, holds: Mapping[str, Hold]) -> None:
        self.holds = holds

    @cached_property
    def summary(self) -> str:
        """How many items nobody has decided about: ``2 tools and 1 prompt``; "" for none."""
        return counted([key for key, hold in self.holds.items() if not hold.rejected])

    @cached_property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of which something is held."""
        return frozenset(kind_and_name(key)[0] for key in self.holds)

    def has_name(self, kind: Kind, name: str) -> bool:
        """Whether the tool or prompt called ``name`` is held."""
        return bool(self.holds) and (f"{kind} {name}" in self.holds or (kind, _key(name)) in self._names)

    def has_uri(self, uri: str, offered: "Collection[str]" = ()) -> bool:
        """Whether ``uri`` is that of a held resource or template, or can be made from a held template and
        from none of ``offered``.
        """
        if self.is_uri(uri):
            return True
        work = len(uri) * sum(template.count("{") for template in (*self._templates, *offered))
        if not self._templates:
            return False
        if work > TEMPLATE_WORK:
            return True
        return _makes(self._templates, uri) and not _makes(offered, uri)

    def is_uri(self, uri: str) -> bool:
        """Whether ``uri`` is that of a held resource or template."""
        return bool(self.holds) and _uri_key(uri) in self._uris

    @cached_property
    def _names(self) -> frozenset[tuple[Kind, str]]:
        found = map(kind_and_name, self.holds)
        return frozenset((kind, _key(name)) for kind, name in found if kind in ("tool", "prompt"))

    @cached_property
    def _uris(self) -> frozenset[str]:
        found = map(kind_and_name, self.holds)
        return frozenset(_uri_key(name) for kind, name in found if kind in ("resource", "template"))

    @cached_property
    def _templates(self) -> tuple[str, ...]:
        return tuple(name for kind, name in map(kind_and_name, self.holds) if kind == "template")


NOTHING = Held({})


def _makes(templates: Collection[str], uri: str) -> bool:
    for spelling in {uri, unquote(uri)}:
        if any(spelling.startswith(each.partition("{")[0]) and matches(each, spelling) for each in templates):
            return True
    return False


def _key(name: str) -> str:
    return folded(name) or name


def _uri_key(uri: str) -> str:
    return unquote(uri).casefold()
