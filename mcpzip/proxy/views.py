"""What each person may see of the catalog, in which everything that is done for them looks.

The rule: what a person may not use is not in their view at all – neither in its catalog, nor in the lists and
names made of that, nor in its search index – so that nothing that is computed from it can tell of it. People
to whom the same rules apply have the same view, unless each signs in to some server: then each has their own,
in which these servers are as they are listed for them.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcpzip.catalog import Catalog, ServerRecord
from mcpzip.catalog.parts import Parts
from mcpzip.config import Config, ServerConfig
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InsufficientScopeError, UnknownToolError
from mcpzip.model.principal import Principal, PrincipalId
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client
from mcpzip.proxy.exposure import Exposure
from mcpzip.proxy.workers import run_in_worker

if TYPE_CHECKING:
    from mcpzip.policy.access import AccessRules, Applying
    from mcpzip.proxy.person_upstreams import PersonUpstreams, UpstreamsByPerson
    from mcpzip.search import Searcher


_NOTHING = Catalog()


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
        self._views: OrderedDict[tuple[Applying, PrincipalId | None], _Part] = OrderedDict()
        self._rules_now: AccessRules | None = None
        self._rules_of: Config | None = None
        self.open_upstreams: Callable[[], UpstreamsByPerson] | None = None
        """Makes what people have for themselves, when it is first needed."""
        self.sign_ins_page = ""
        """The URL where people sign in to servers; "" as long as only the config says it."""
        self._upstreams: UpstreamsByPerson | None = None

    def of(self, principal: Principal | None) -> View:
        """The view of ``principal``, now; None for whoever uses this machine."""
        if principal is None or self._is_same_for_all:
            whole = self._whole
            return self.whole if whole is None or whole.exposure is not self._state.exposure else whole
        rules, own = self._rules, self.own_upstreams(principal)
        applying = frozenset() if rules is None else rules.applying(principal)
        key = applying, None if own is None else principal.id
        part = self._views.get(key)
        if part is None:
            part = self._views[key] = _Part(rules, applying, self._current.per_user)
            while len(self._views) > limits.VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(key)
        return part.view(self._state, self._current.config, _NOTHING if own is None else own.catalog)

    @property
    def _is_same_for_all(self) -> bool:
        """Whether everybody may use everything, with the same sign-ins."""
        return self._current.config.access is None and not self._current.per_user

    # --- what people have for themselves

    def reconfigure(self, disconnected: Collection[str]) -> None:
        """disconnected: servers that have another connection since an edit of the config, or none."""
        for each in self.kept_upstreams():
            each.reconfigure(disconnected)

    async def close(self) -> None:
        """Ends the connections that people have for themselves."""
        if self._upstreams is not None:
            await self._upstreams.close()

    def serve_only_people(self) -> None:
        """Nobody but people will ask anything: what each signs in to needn't be listed for anybody else."""
        self._current.only_people = True

    def kept_upstreams(self) -> "list[PersonUpstreams]":
        """What people have for themselves who have asked something lately."""
        return [] if self._upstreams is None else self._upstreams.all()

    def apart(self, principal: Principal | None) -> frozenset[str]:
        """The servers of which ``principal`` has something for themselves."""
        return frozenset() if self.own_upstreams(principal) is None else self._current.per_user

    def own_upstreams(self, principal: Principal | None) -> "PersonUpstreams | None":
        """What ``principal`` has for themselves; None if no server is signed in to by each person, or for
        whoever uses this machine.
        """
        if principal is None or not self._current.per_user or self.open_upstreams is None:
            return None
        if self._upstreams is None:
            self._upstreams = self.open_upstreams()
        return self._upstreams.of(principal.id)

    def own(self, principal: Principal | None, server: str) -> "PersonUpstreams | None":
        """What ``principal`` has of ``server`` for themselves; None if that is the same for all."""
        return self.own_upstreams(principal) if server in self._current.per_user else None

    def offered(self, principal: Principal | None, name: str) -> Entry | None:
        """The tool called ``name`` as it is offered now to those who may use it. Of a server to which each
        person signs in it is that of ``principal``.
        """
        own = self.own_upstreams(principal)
        if own is not None and (entry := own.catalog.get(name)) is not None:
            return entry
        entry = self._state.visible.get(name)
        return (
            None
            if own is not None and entry is not None and entry.server in self._current.per_user
            else entry
        )

    @property
    def whole(self) -> View:
        """That of whoever uses this machine."""
        state = self._state
        if self._whole is None or self._whole.exposure is not state.exposure:
            self._whole = View(self._current.config, state.visible, state.exposure, is_whole=True)
        return self._whole

    def may_call(self, principal: Principal | None, entry: Entry) -> bool:
        """Whether ``principal`` may call ``entry``."""
        own = self.own(principal, entry.server)
        if own is not None and own.catalog.get(entry.name) is None:
            return False
        rules = self._rules
        return principal is None or rules is None or rules.permit(rules.applying(principal), entry)

    def may_have_result(self, client: Client, tool: str) -> bool:
        """Whether ``client`` may have the results of the tool called ``tool``, which may be one of ours."""
        entry = None if client.principal is None else self.offered(client.principal, tool)
        return entry is None or self.may_call(client.principal, entry)

    def may_hear(self, principal: Principal | None, server: str) -> bool:
        """Whether ``principal`` may hear of the resources of ``server``."""
        rules = self._rules
        return principal is None or rules is None or rules.open_server(rules.applying(principal), server)

    def check_call(self, principal: Principal | None, entry: Entry) -> None:
        """Raises InsufficientScopeError or UnknownToolError if ``principal`` may not call ``entry``."""
        if principal is not None and not self.may_call(principal, entry):
            self.check_scopes(principal, entry)
            raise UnknownToolError(entry.name)

    def check_scopes(self, principal: Principal | None, entry: Entry | None) -> None:
        """Raises InsufficientScopeError if ``principal`` could call ``entry`` with more scopes."""
        rules = self._rules
        if entry is None or principal is None or rules is None:
            return
        if not self.may_call(principal, entry) and (scopes := rules.missing_scopes(principal, entry)):
            raise InsufficientScopeError(scopes)

    def known(self, principal: Principal | None) -> Callable[[], Catalog]:
        """What makes the catalog of ``principal`` with what servers have lost while this process runs. It
        may take long, and may be called in a thread.
        """
        everything = self._state.with_lost_tools
        if principal is None or self._is_same_for_all:
            return lambda: everything
        rules, per_user, own = self._rules, self._current.per_user, self.own_upstreams(principal)
        applying = frozenset() if rules is None else rules.applying(principal)
        listed = _NOTHING if own is None else own.catalog

        def restricted() -> Catalog:
            records = {name: each for name, each in everything.servers.items() if name not in per_user}
            return Catalog(
                {
                    name: _restricted(record, rules, applying)
                    for name, record in (records | dict(listed.servers)).items()
                    if rules is None or rules.may_have(applying, name)
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
            own = (
                self._current.per_user
            )  # of which the whole has nothing, or what is listed for somebody else

            def restrict() -> "Searcher":
                return whole.restricted((*catalog, *ADMIN_TOOLS), catalog.version, own)

            made = await run_in_worker(restrict, "restrict")
            view.searcher, view.searched = made, state
            return made
        return view.searcher

    @property
    def _rules(self) -> "AccessRules | None":
        """Those of the config in use; None if it has none."""
        config = self._current.config
        if self._rules_of is not config:
            self._rules_now, self._rules_of = None, config
            self._views.clear()
            if config.access is not None:
                from mcpzip.policy.access import AccessRules  # most configs have none

                self._rules_now = AccessRules(config)
        return self._rules_now


class _Part:
    """The view of those to whom the rules ``applying`` apply, or one of them, made anew when the catalog
    changes. rules: None if everybody may use everything.
    """

    def __init__(self, rules: "AccessRules | None", applying: "Applying", per_user: frozenset[str]) -> None:
        """per_user: the servers that are as they are listed for the person."""
        self._rules, self._applying, self._per_user = rules, applying, per_user
        self._made_of: tuple[Exposure, Catalog] | None = None
        self._view: View | None = None
        self._records: dict[str, tuple[ServerRecord, ServerRecord]] = {}

    def view(self, state: CatalogState, config: Config, own: Catalog) -> View:
        """The view of what is visible now. own: what is listed for the person."""
        made = self._made_of
        if self._view is None or made is None or made[0] is not state.exposure or made[1] is not own:
            self._made_of, self._view = (state.exposure, own), self._made(state.visible, config, own)
        return self._view

    def _made(self, catalog: Catalog, config: Config, own: Catalog) -> View:
        rules, applying, per_user = self._rules, self._applying, self._per_user
        records, servers, closed = {}, {}, set()
        for name, server in config.servers.items():
            if rules is not None and not rules.may_have(applying, name):
                continue
            is_open = rules is None or rules.open_server(applying, name)
            record = (own if name in per_user else catalog).servers.get(name)
            if record is not None:
                record = self._restricted(record)
                if record.fetched_at is not None and not (is_open or record.entries):
                    continue  # nothing of it is for them
                records[name] = record
            servers[name] = server
            if not is_open:
                closed.add(name)
        shown = replace(config, servers=servers)
        part = Catalog(records)
        return View(shown, part, Exposure(shown, part, closed), frozenset(closed))

    def _restricted(self, record: ServerRecord) -> ServerRecord:
        cached = self._records.get(record.name)
        if cached is None or cached[0] is not record:
            cached = self._records[record.name] = record, _restricted(record, self._rules, self._applying)
        return cached[1]


def _restricted(record: ServerRecord, rules: "AccessRules | None", applying: "Applying") -> ServerRecord:
    """``record`` with what may be used."""
    if rules is None:
        return record
    entries = Parts(entry for entry in record.entries if rules.permit(applying, entry))
    if rules.open_server(applying, record.name):
        return replace(record, entries=entries)
    return replace(record, entries=entries, prompts=Parts(), resources=Parts(), templates=Parts())
