"""What a client is shown of the catalog, and what the names it is shown mean.

The rules:

1. ``meta`` shows the meta-tools, and the pinned tools beside them; ``direct`` every tool; ``transparent`` the
   tools of the one server, which can't be told from talking to it.
2. A tool that is shown is what its server said, byte for byte, but for its name and, where hosts would refuse
   it or the whole list with it, its ``inputSchema``. In ``transparent`` nothing is changed.
3. Everything here follows from the config and the catalog alone, and is made when it is asked for.
"""

import json
from collections.abc import Callable, Collection
from functools import cached_property
from typing import TypeVar

from msgspec.structs import replace

from mcpzip.catalog import Catalog
from mcpzip.catalog.visibility import matcher
from mcpzip.config import Config
from mcpzip.model.entry import Entry
from mcpzip.model.limits import LOOKED_UP
from mcpzip.model.names import shown_names
from mcpzip.proxy import metatools
from mcpzip.proxy.paged_list import PagedList
from mcpzip.proxy.prompts_and_resources import PromptsAndResources, Route
from mcpzip.proxy.workers import run_in_worker
from mcpzip.wire import NotAnObject, quote, split_object, with_members

T = TypeVar("T")


async def look_up(exposure: "Exposure", look: Callable[[], T]) -> T:
    """``look()``, which asks ``exposure`` something: in a thread if that may take long."""
    return await run_in_worker(look, "look") if exposure.is_large else look()


class Exposure:
    """One catalog, shown as one config says. It never changes; a new catalog has a new one."""

    def __init__(self, config: Config, catalog: Catalog, closed: Collection[str] = frozenset()) -> None:
        """catalog: what of it a client may see (`mcpzip.catalog.allowed`). closed: the servers of which it
        may use tools only.
        """
        self._closed = closed
        self._config, self._catalog = config, catalog
        self._enabled = [name for name, server in config.servers.items() if not server.disabled]

    @property
    def transparent_server(self) -> str | None:
        """The server that everything goes through untouched, in ``transparent``; None otherwise."""
        return self._enabled[0] if self._config.expose == "transparent" else None

    @cached_property
    def is_large(self) -> bool:
        """Whether there is so much that to look something up may take longer than others can wait."""
        return self._prompts_and_resources.is_large or len(self._direct) > LOOKED_UP

    @property
    def is_static(self) -> bool:
        """Whether `tools/list` follows from the config alone."""
        return self._config.expose == "meta" and not any(
            self._config.servers[name].pin for name in self._enabled
        )

    @property
    def tools_version(self) -> str:
        """Changes when, and only when, what `tools/list` says does."""
        if self._config.expose != "meta":
            return f"{self._config.expose} {self._direct.version}"
        split = " split" if self._config.split else ""
        return f"meta{split} {self._config.search.default_limit} {self._direct.version}"

    @property
    def prompts_version(self) -> str:
        """The same for `prompts/list`."""
        return self._catalog.prompts_version

    @property
    def resources_version(self) -> str:
        """The same for `resources/list` and `resources/templates/list`."""
        return self._catalog.resources_version

    def tools_page(self, cursor: str | None = None) -> bytes:
        """The result of `tools/list`, as JSON text. Raises InvalidCursorError."""
        return self._tools.page(cursor)

    def prompts_page(self, cursor: str | None = None) -> bytes:
        """The result of `prompts/list`, as JSON text. Raises InvalidCursorError."""
        return self._prompts_and_resources.prompts_page(cursor)

    def resources_page(self, cursor: str | None = None) -> bytes:
        """The result of `resources/list`, as JSON text. Raises InvalidCursorError."""
        return self._prompts_and_resources.resources_page(cursor)

    def templates_page(self, cursor: str | None = None) -> bytes:
        """The result of `resources/templates/list`, as JSON text. Raises InvalidCursorError."""
        return self._prompts_and_resources.templates_page(cursor)

    def has_own(self, name: str) -> bool:
        """Whether ``name`` is mcpzip's own, if it has a tool of this name."""
        config = self._config
        if config.expose != "meta" or (name == metatools.EXECUTE_READ and not config.split):
            return False
        return name != metatools.RUN_CODE or config.code.enabled

    def tool_named(self, name: str) -> Entry | None:
        """The tool that ``name`` calls directly: one that is shown, by its shown or its whole name."""
        if self.transparent_server is not None:
            return self._untouched.get(name)
        return self._shown.get(name) or self._direct.get(name)

    def route_prompt(self, name: str) -> Route:
        """Whose prompt ``name`` is, and its own name there. Raises UnknownPromptError."""
        return self._prompts_and_resources.route_prompt(name)

    def route_uri(
        self, uri: str, named: Collection[str] = frozenset(), doubtful: Collection[str] = frozenset()
    ) -> Route:
        """Whose resource or resource template ``uri`` is, and its own URI there. named: the servers whose
        results named it. doubtful: those that may have. Raises UnknownResourceError.
        """
        return self._prompts_and_resources.route_uri(uri, named, doubtful)

    @cached_property
    def _direct(self) -> Catalog:
        """The part of the catalog that is shown directly."""
        if self._config.expose != "meta":
            return self._catalog
        pinned = {}
        for name in self._enabled:
            record, pin = self._catalog.servers.get(name), self._config.servers[name].pin
            if record is not None and pin:
                is_pinned = matcher(pin)
                entries = tuple(entry for entry in record.entries if is_pinned(entry.tool))
                pinned[name] = replace(record, entries=entries)
        return Catalog(pinned)

    @cached_property
    def _shown(self) -> dict[str, Entry]:
        by_name = {entry.name: entry for entry in self._direct.entries}
        return {shown: by_name[name] for shown, name in shown_names(by_name).items()}

    @cached_property
    def _untouched(self) -> dict[str, Entry]:
        return {entry.tool: entry for entry in self._catalog.entries}

    @cached_property
    def _tools(self) -> PagedList:
        if self.transparent_server is not None:
            untouched = self._untouched
            return PagedList("tools", untouched, lambda name: untouched[name].raw)
        shown = self._shown
        return PagedList("tools", shown, lambda name: shown_tool(shown[name].raw, name), self._meta_tools())

    def _meta_tools(self) -> list[bytes]:
        if self._config.expose != "meta":
            return []
        config = self._config
        tools = metatools.definitions(
            config.search.default_limit, split=config.split, code=config.code.enabled
        )
        return [json.dumps(tool, separators=(",", ":"), ensure_ascii=False).encode() for tool in tools]

    @cached_property
    def _prompts_and_resources(self) -> PromptsAndResources:
        servers = [name for name in self._enabled if name not in self._closed]
        return PromptsAndResources(servers, self._catalog, self.transparent_server, self._config.servers)


def shown_tool(raw: bytes, name: str) -> bytes:
    """The tool ``raw`` under the name ``name``, all else byte for byte, but for an ``inputSchema`` that isn't
    an object of ``"type": "object"`` (spec: server/tools, "Tool"): hosts drop such a tool, and some the whole
    list. It gets that type; what else it says stays.
    """
    fields = {"name": quote(name)}
    schema = split_object(raw).get("inputSchema")
    typed = _typed(schema)
    if typed != schema:
        fields["inputSchema"] = typed
    return with_members(raw, fields)


_TYPE, _OBJECT = "type", b'"object"'


def _typed(schema: bytes | None) -> bytes:
    try:
        standing = split_object(schema or b"{}")
    except NotAnObject:
        return b'{"type":"object"}'
    if schema is not None and standing.get(_TYPE) == _OBJECT:
        return schema
    return with_members(schema or b"{}", {_TYPE: _OBJECT})
