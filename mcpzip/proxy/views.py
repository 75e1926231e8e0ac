"""What each person may see of the catalog, in which everything that is done for them looks.

The rule: what a person may not use is not in their view at all – neither in its catalog, nor in the lists and
names made of that, nor in its search index – so that nothing that is computed from it can tell of it. People
to whom the same rules apply have the same view.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcpzip.catalog import Catalog, ServerRecord
from mcpzip.catalog.parts import Parts
from mcpzip.config import Config, ServerConfig
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InsufficientScopeError, UnknownToolError
from mcpzip.model.principal import Principal
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client
from mcpzip.proxy.exposure import Exposure
from mcpzip.proxy.workers import run_in_worker

if TYPE_CHECKING:
    from mcpzip.policy.access import AccessRules, Applying
    from mcpzip.search import Searcher


class View:
    """What some people see. config: with the servers of which they may use anything. catalog: with what they
    may use. exposure: its lists and names. It never changes; a new catalog has a new one.
    """

    def __init__(
        self,
        config: Config,
        catalog: Catalog,
        exposure: Exposure,
        closed: frozenset[str] = frozenset(),
        *,
        is_whole: bool = False,
    ) -> None:
        """closed: the servers of which they may use tools only. is_whole: whether it has everything."""
        self.config, self.catalog, self.exposure, self.is_whole = config, catalog, exposure, is_whole
        self._closed = closed
        self.searcher: Searcher | None = None
        self.searched: object = None
        """The state of the whole index of which ``searcher`` is a part."""
        self.greeting: object = None
        """What the server floor says of mcpzip to those people, once it has."""

    @cached_property
    def enabled(self) -> Mapping[str, ServerConfig]:
        """Its servers that are enabled, by name, in the order of the config."""
        return {name: server for name, server in self.config.servers.items() if not server.disabled}

    @property
    def open(self) -> frozenset[str]:
        """Those of them of which they may use prompts and resources, too."""
        return frozenset(self.enabled) - self._closed


class Views:
    """The views of all people. Everything runs on one event loop."""

    def __init__(self, current: CurrentConfig, catalog_state: CatalogState) -> None:
        self._current, self._state = current, catalog_state
        self._whole: View | None = None
        self._views: OrderedDict[Applying, _Part] = OrderedDict()
        self._rules_now: AccessRules | None = None
        self._rules_of: Config | None = None

    def of(self, principal: Principal | None) -> View:
        """The view of ``principal``, now; None for whoever uses this machine."""
        if principal is None or self._current.config.access is None:
            return self.whole
        rules = self._rules
        applying = rules.applying(principal)
        part = self._views.get(applying)
        if part is None:
            part = self._views[applying] = _Part(rules, applying)
            while len(self._views) > limits.VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(applying)
        return part.view(self._state, self._current.config)

    @property
    def whole(self) -> View:
        """That of whoever uses this machine."""
        state = self._state
        if self._whole is None or self._whole.exposure is not state.exposure:
            self._whole = View(self._current.config, state.visible, state.exposure, is_whole=True)
        return self._whole

    def may_call(self, principal: Principal | None, entry: Entry) -> bool:
        """Whether ``principal`` may call ``entry``."""
        if principal is None or self._current.config.access is None:
            return True
        return self._rules.permit(self._rules.applying(principal), entry)

    def may_have_result(self, client: Client, tool: str) -> bool:
        """Whether ``client`` may have the results of the tool called ``tool``, which may be one of ours."""
        entry = None if client.principal is None else self._state.visible.get(tool)
        return entry is None or self.may_call(client.principal, entry)

    def may_hear(self, principal: Principal | None, server: str) -> bool:
        """Whether ``principal`` may hear of the resources of ``server``."""
        if principal is None or self._current.config.access is None:
            return True
        return self._rules.open_server(self._rules.applying(principal), server)

    def check_call(self, principal: Principal | None, entry: Entry) -> None:
        """Raises InsufficientScopeError or UnknownToolError if ``principal`` may not call ``entry``."""
        if not self.may_call(principal, entry):
            self.check_scopes(principal, entry)
            raise UnknownToolError(entry.name)

    def check_scopes(self, principal: Principal | None, entry: Entry | None) -> None:
        """Raises InsufficientScopeError if ``principal`` could call ``entry`` with more scopes."""
        if entry is None or principal is None or self._current.config.access is None:
            return
        if not self.may_call(principal, entry) and (scopes := self._rules.missing_scopes(principal, entry)):
            raise InsufficientScopeError(scopes)

    def known(self, principal: Principal | None) -> Callable[[], Catalog]:
        """What makes the catalog of ``principal`` with what servers have lost while this process runs. It
        may take long, and may be called in a thread.
        """
        everything = self._state.with_lost_tools
        if principal is None or self._current.config.access is None:
            return lambda: everything
        rules = self._rules
        applying = rules.applying(principal)

        def restricted() -> Catalog:
            records = everything.servers.items()
            return Catalog(
                {
                    name: _restricted(record, rules, applying)
                    for name, record in records
                    if rules.may_have(applying, name)
                }
            )

        return restricted

    async def searcher(self, principal: Principal | None) -> "Searcher":
        """The search over what is in the view of ``principal``, and indexed."""
        whole = await self._state.searcher()
        view = self.of(principal)
        if view.is_whole:
            return whole
        state, catalog = whole.state, view.catalog
        if view.searcher is None or view.searched is not state:

            def restrict() -> "Searcher":
                return whole.restricted((*catalog, *ADMIN_TOOLS), catalog.version)

            made = await run_in_worker(restrict, "restrict")
            view.searcher, view.searched = made, state
            return made
        return view.searcher

    @property
    def _rules(self) -> "AccessRules":
        """Those of the config in use."""
        config = self._current.config
        if self._rules_now is None or self._rules_of is not config:
            from mcpzip.policy.access import AccessRules  # most configs have none

            self._rules_now, self._rules_of = AccessRules(config), config
            self._views.clear()
        return self._rules_now


class _Part:
    """The view of those to whom the rules ``applying`` apply, made anew when the catalog changes."""

    def __init__(self, rules: "AccessRules", applying: "Applying") -> None:
        self._rules, self._applying = rules, applying
        self._made_of: Exposure | None = None
        self._view: View | None = None
        self._records: dict[str, tuple[ServerRecord, ServerRecord]] = {}

    def view(self, state: CatalogState, config: Config) -> View:
        """The view of what is visible now."""
        if self._view is None or self._made_of is not state.exposure:
            self._made_of, self._view = state.exposure, self._made(state.visible, config)
        return self._view

    def _made(self, catalog: Catalog, config: Config) -> View:
        rules, applying = self._rules, self._applying
        records, servers, closed = {}, {}, set()
        for name, server in config.servers.items():
            if not rules.may_have(applying, name):
                continue
            is_open = rules.open_server(applying, name)
            record = catalog.servers.get(name)
            if record is not None:
                record = self._restricted(record)
                if record.fetched_at is not None and not (is_open or record.entries):
                    continue  # nothing of it is for them
                records[name] = record
            servers[name] = server
            if not is_open:
                closed.add(name)
        own = replace(config, servers=servers)
        part = Catalog(records)
        return View(own, part, Exposure(own, part, closed), frozenset(closed))

    def _restricted(self, record: ServerRecord) -> ServerRecord:
        cached = self._records.get(record.name)
        if cached is None or cached[0] is not record:
            cached = self._records[record.name] = record, _restricted(record, self._rules, self._applying)
        return cached[1]


def _restricted(record: ServerRecord, rules: "AccessRules", applying: "Applying") -> ServerRecord:
    """``record`` with what may be used."""
    entries = Parts(entry for entry in record.entries if rules.permit(applying, entry))
    if rules.open_server(applying, record.name):
        return replace(record, entries=entries)
    return replace(record, entries=entries, prompts=Parts(), resources=Parts(), templates=Parts())
