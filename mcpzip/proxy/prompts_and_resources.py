"""Prompts, resources and resource templates of all servers: how a client sees them, and whose each is.

The rules:

1. What is shown is what the server said, byte for byte, but for the name or the URI, which says the server
   too. With one server that everything goes through, not even that.
2. A name or a URI that says its server goes to that server, listed or not: it knows best what it has.
3. A bare URI, as results have them, goes to the server whose result named it; one that no result named, to
   the only server that has resources. A bare prompt goes to the only one that has it, if all are known. It is
   never guessed: what a server lists is no evidence that it was meant, for it may list what it likes.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from mcpzip.catalog import Catalog, ServerRecord
from mcpzip.catalog.name_index import NameIndex
from mcpzip.model.errors import UnknownPromptError, UnknownResourceError
from mcpzip.model.limits import ASKED_NAME, ASKED_URI, LOOKED_UP, TEMPLATE_WORK
from mcpzip.model.names import join, join_uri, split, split_uri
from mcpzip.model.offers import PROMPT, RESOURCE, TEMPLATE, Kind, key_of
from mcpzip.model.templates import matches
from mcpzip.proxy.paged_list import PagedList
from mcpzip.proxy.server_prefix import candidate_servers
from mcpzip.wire import quote, with_members

Route = tuple[str, str]
"""A server, and its own name or URI for what is asked of it."""

_NEAREST = 3
_MEANT = 5
"""Servers that are named at most where more than one may be meant."""


class _Offer(NamedTuple):
    server: str
    key: str
    raw: bytes


class PromptsAndResources:
    """What the servers of a catalog offer besides tools."""

    def __init__(
        self,
        servers: Iterable[str],
        catalog: Catalog,
        through: str | None = None,
        configured: Iterable[str] | None = None,
    ) -> None:
        """servers: all that are enabled, listed or not. catalog: as a client may see it. through: the server
        that everything goes through untouched, if there is one. configured: all servers, enabled or not
        (default: ``servers``).
        """
        self._servers, self._catalog, self._transparent_server = tuple(servers), catalog, through
        self._configured = self._servers if configured is None else tuple(configured)

    @cached_property
    def is_large(self) -> bool:
        """Whether there are so many that to look one up may take longer than others can wait."""
        records = self._catalog.servers.values()
        return sum(len(it.prompts) + len(it.resources) + len(it.templates) for it in records) > LOOKED_UP

    def prompts_page(self, cursor: str | None = None) -> bytes:
        """The result of `prompts/list`. Raises InvalidCursorError."""
        return self._prompt_list.page(cursor)

    def resources_page(self, cursor: str | None = None) -> bytes:
        """The result of `resources/list`. Raises InvalidCursorError."""
        return self._resource_list.page(cursor)

    def templates_page(self, cursor: str | None = None) -> bytes:
        """The result of `resources/templates/list`. Raises InvalidCursorError."""
        return self._template_list.page(cursor)

    def route_prompt(self, name: str) -> Route:
        """Whose prompt ``name`` is. Raises UnknownPromptError."""
        if self._transparent_server is not None:
            return self._transparent_server, name
        if len(name) > ASKED_NAME:
            raise UnknownPromptError(name)
        if said := self._said(split(name)):
            return said
        having = [] if self._names_one(split(name)) else self._having(name)
        if len(having) == 1 and not any(map(self._may_have_prompts, {*self._servers} - {*having})):
            return having[0], name
        if having:
            raise UnknownPromptError(name, [join(server, name) for server in having], several=True)
        raise UnknownPromptError(name, self._prompt_names.nearest(name, _NEAREST))

    def route_uri(
        self, uri: str, named: Collection[str] = frozenset(), doubtful: Collection[str] = frozenset()
    ) -> Route:
        """Whose resource, or resource template, ``uri`` is. Raises UnknownResourceError.

        named: the servers whose results named it to who asks. doubtful: those that may have.
        """
        if self._transparent_server is not None:
            return self._transparent_server, uri
        if len(uri) > ASKED_URI:
            raise UnknownResourceError(uri)
        said = split_uri(uri)
        if route := self._said(said):
            return route
        if not self._names_one(said):
            owners = {*(named or filter(self._may_have_resources, self._servers)), *doubtful}
            owners.intersection_update(self._servers)
            if len(owners) == 1:
                return owners.pop(), uri
            having = {*(named or self._listing(uri) or self._expanding(uri))}
            if having:
                meant = [*sorted(having), *sorted(owners - having)][:_MEANT]
                raise UnknownResourceError(uri, [join_uri(server, uri) for server in meant], several=True)
        nearest = self._resource_names.nearest(join(*said) if said else uri, _NEAREST)
        servers = {name: it.server for it in self._resources if (name := join(it.server, it.key)) in nearest}
        near = [(servers[name], name.removeprefix(join(servers[name], ""))) for name in nearest]
        raise UnknownResourceError(uri, [join_uri(server, key) for server, key in near])

    def _said(self, said: Route | None) -> Route | None:
        """The route that a name says itself: URL libraries write hosts in lower case, so case is forgiven."""
        if said is None:
            return None
        server, key = said
        if server in self._servers:
            return said
        alike = [each for each in self._servers if each.lower() == server.lower()]
        return (alike[0], key) if len(alike) == 1 else None

    def _names_one(self, said: Route | None) -> bool:
        """Whether a name says a server that is configured: nobody else is asked in its place."""
        return said is not None and said[0].lower() in map(str.lower, self._configured)

    def _having(self, name: str) -> list[str]:
        """The servers that list a prompt ``name``, if they can be meant by it."""
        named = candidate_servers(name, self._configured)
        having = [offer.server for offer in self._prompts if offer.key == name]
        return [server for server in having if not named or server in named]

    def _may_have_prompts(self, server: str) -> bool:
        """Whether it may have prompts that it is not known to have."""
        record = self._catalog.servers.get(server)
        if record is None or record.fetched_at is None or record.stale:
            return True
        return record.declares("prompts") and not record.prompts  # they are listed after the tools

    def _may_have_resources(self, server: str) -> bool:
        record = self._catalog.servers.get(server)
        return record is None or record.fetched_at is None or record.stale or _has_resources(record)

    def _listing(self, uri: str) -> list[str]:
        offers = (*self._resources, *self._templates)
        return sorted({offer.server for offer in offers if offer.key == uri})

    def _expanding(self, uri: str) -> list[str]:
        """The servers that have a template ``uri`` can come from; none if that would take too long to say."""
        left = TEMPLATE_WORK
        found: set[str] = set()
        for server, template, _ in self._templates:
            if uri.startswith(template.partition("{")[0]):
                left -= len(uri) * template.count("{")
                if left < 0:
                    return []
                if matches(template, uri):
                    found.add(server)
        return sorted(found)

    @cached_property
    def _prompt_names(self) -> NameIndex:
        return NameIndex((offer.server, offer.key) for offer in self._prompts)

    @cached_property
    def _resource_names(self) -> NameIndex:
        return NameIndex((offer.server, offer.key) for offer in self._resources)

    @cached_property
    def _prompts(self) -> list[_Offer]:
        return _offers(PROMPT, self._catalog, lambda record: record.prompts)

    @cached_property
    def _resources(self) -> list[_Offer]:
        return _offers(RESOURCE, self._catalog, lambda record: record.resources)

    @cached_property
    def _templates(self) -> list[_Offer]:
        return _offers(TEMPLATE, self._catalog, lambda record: record.templates)

    @cached_property
    def _prompt_list(self) -> PagedList:
        return self._list("prompts", PROMPT, self._prompts, join)

    @cached_property
    def _resource_list(self) -> PagedList:
        return self._list("resources", RESOURCE, self._resources, join_uri)

    @cached_property
    def _template_list(self) -> PagedList:
        return self._list("resourceTemplates", TEMPLATE, self._templates, join_uri)

    def _list(
        self, member: str, kind: Kind, offers: Iterable[_Offer], joined: Callable[[str, str], str]
    ) -> PagedList:
        if self._transparent_server is not None:
            untouched = {offer.key: offer.raw for offer in offers}
            return PagedList(member, untouched, untouched.__getitem__)
        raws: Mapping[str, bytes] = {joined(offer.server, offer.key): offer.raw for offer in offers}
        return PagedList(member, raws, lambda shown: with_members(raws[shown], {kind.key: quote(shown)}))


def _offers(kind: Kind, catalog: Catalog, raws: Callable[[ServerRecord], tuple[bytes, ...]]) -> list[_Offer]:
    return [
        _Offer(name, key_of(kind, name, raw), raw)
        for name, record in catalog.servers.items()
        for raw in raws(record)
    ]


def _has_resources(record: ServerRecord) -> bool:
    return bool(record.resources or record.templates) or record.declares("resources")
