"""What is held back of one server, and which requests would reach it (pure).

The rule: a request that names something that is held is refused, also in another spelling that a server may
read as the same: other case, separators or percent-encoding, another path to the same place, a fragment, or a
URI that a held template can make.
"""

from collections.abc import Collection, Mapping
from functools import cached_property
from posixpath import normpath
from typing import get_args

from mcpzip.model.limits import TEMPLATE_WORK
from mcpzip.model.names import folded
from mcpzip.model.surface import Kind
from mcpzip.model.templates import matches
from mcpzip.pins.record import Hold, counted, kind_and_name

_ENCODED = 3
"""How many times a URI may be percent-encoded."""


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
        """Whether ``uri`` is that of a held resource or template, or begins as those of a held template do
        (who knows how a server reads the rest), and can be made from none of the templates ``offered``.
        """
        if self.is_uri(uri):
            return True
        if not any(spelling.startswith(self._prefixes) for spelling in _spellings(uri)):
            return False
        return not _is_made(uri, offered)

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
    def _prefixes(self) -> tuple[str, ...]:
        """With which the URIs of the held templates begin."""
        found: set[str] = set()
        for kind, name in map(kind_and_name, self.holds):
            if kind == "template":
                begin = name.partition("{")[0]
                end = "/" if begin.endswith("/") else ""
                found |= {begin.casefold(), f"{_uri_key(begin).rstrip('/')}{end}"}
        return tuple(found)


class _Unknown(Held):
    """What is held isn't known, so everything is that isn't offered."""

    kinds = frozenset(get_args(Kind))

    def has_name(self, kind: Kind, name: str) -> bool:
        return True

    def has_uri(self, uri: str, offered: "Collection[str]" = ()) -> bool:
        return not _is_made(uri, offered)

    def is_uri(self, uri: str) -> bool:
        return True


NOTHING, UNKNOWN = Held({}), _Unknown({})


def _is_made(uri: str, offered: "Collection[str]") -> bool:
    """Whether ``uri`` can be made from one of the templates ``offered``."""
    if len(uri) * sum(template.count("{") for template in offered) > TEMPLATE_WORK:
        return False
    return any(matches(template, spelling) for spelling in (uri, _unquoted(uri)) for template in offered)


def _spellings(uri: str) -> set[str]:
    return {uri.casefold(), _unquoted(uri).casefold(), _uri_key(uri)}


def _unquoted(uri: str) -> str:
    from urllib.parse import unquote  # slow to import, and needed only where something is held

    return unquote(uri)


def _key(name: str) -> str:
    return folded(name) or name


def _uri_key(uri: str) -> str:
    """``uri`` in a form that all its spellings have. It is not a URI that a server would understand."""
    text = uri
    for _ in range(_ENCODED):
        text = _unquoted(text)
    scheme, _, rest = text.casefold().strip().partition("\0")[0].partition("#")[0].partition(":")
    path = rest.replace("\\", "/").lstrip("/")
    if scheme == "file":
        path = path.removeprefix("localhost/")
    return f"{scheme}:{normpath(f'/{path}')}"
