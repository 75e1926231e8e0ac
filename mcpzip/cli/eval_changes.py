"""What would make search find a tool that it doesn't find: each change is tried, and its result searched.

The rule: nothing is claimed that was not computed. A change is reported only if the tool is then among the
first k lines.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mcpzip.cli.eval_settings import Setting
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidToolError
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.search import Filters, Searcher
from mcpzip.search.evaluation.lookalikes import (
    NEARLY_THE_SAME,
    missing_words,
    resemblance,
    with_description,
)
from mcpzip.search.evaluation.metrics import Outcome
from mcpzip.search.evaluation.requests import Request, terms

_MEANT, _TIER, _SAYS, _BEGINS, _WITHOUT, _SERVER = (
    "spelling",
    "tier",
    "description",
    "first words",
    "without",
    "server",
)
_PHRASE = 12  # words of a request that a description is tried with


@dataclass(frozen=True, slots=True)
class Change:
    """A change, and the line of the right tool after it. what: one of "spelling", "tier", "description",
    "first words", "without", "server". text: the words, the tier, or the names that it is about.
    """

    what: str
    text: str
    rank: int


@dataclass(frozen=True, slots=True)
class Miss:
    """A request whose right tool is not among the first k lines. tool: the right one; of several that are
    equally right, the first by name. changes: those that were tried and help.
    """

    outcome: Outcome
    tool: Entry
    changes: tuple[Change, ...]


class Changes:
    """Tries changes. Everything is computed with ``setting``, of which `whatif` is a copy that is changed."""

    def __init__(self, setting: Setting, whatif: Searcher | None, k: int) -> None:
        """whatif: an index of its own for changes of the tools; None where they can't be tried."""
        self._setting, self._k = setting, k
        self._changed = (
            None if whatif is None else Setting(setting.name, whatif, setting.finder, setting.catalog)
        )
        self._by_name = {entry.name: entry for entry in setting.catalog.entries}
        self._number = 0

    async def miss(self, found: Outcome, others: Mapping[str, Outcome]) -> Miss | None:
        """The miss that ``found`` is, with what would help; None if no need is missed. others: the outcomes
        of the same request with other settings, by their names.
        """
        needs = zip(found.request.needs, found.ranks, strict=True)
        missed = [need for need, rank in needs if rank is None or rank > self._k]
        if not missed:
            return None
        need = missed[0]
        tool = self._by_name[min(need)]
        request = Request(found.request.query, (need,), found.request.kind, found.request.meant)
        changes: list[Change] = []

        def add(what: str, text: str, then: Outcome) -> bool:
            rank = then.ranks[found.request.needs.index(need)] if len(then.ranks) > 1 else then.rank
            helps = rank is not None and rank <= self._k
            if helps and rank is not None:
                changes.append(Change(what, text, rank))
            return helps

        if request.meant:
            right = Request(request.meant, request.needs, request.kind)
            add(_MEANT, request.meant, await self._setting.outcome(right))
        for name, other in others.items():
            add(_TIER, name, other)
        await self._try_descriptions(request, tool, add)
        await self._try_without(request, tool, found, add)
        add(_SERVER, tool.server, await self._setting.outcome(request, Filters(tool.server)))
        return Miss(found, tool, tuple(changes))

    async def _try_descriptions(self, request: Request, tool: Entry, add: "Add") -> None:
        missing = missing_words(request, tool)
        if missing:
            said = " ".join(missing[:_PHRASE])
            if add(_SAYS, said, await self._with(request, tool, f"{said}. {tool.description}")):
                return
        said = " ".join((request.meant or request.query).split()[:_PHRASE])
        add(_BEGINS, said, await self._with(request, tool, f"{said}. {tool.description}"))

    async def _try_without(self, request: Request, tool: Entry, found: Outcome, add: "Add") -> None:
        ahead = (self._by_name[name] for name in found.before if name in self._by_name)
        alike = [other for other in ahead if _are_alike(tool, other)]
        if alike:
            names = {other.name for other in alike}
            kept = [entry for entry in self._by_name.values() if entry.name not in names]
            add(_WITHOUT, ", ".join(sorted(names)), await self._among(request, kept))

    async def _with(self, request: Request, tool: Entry, description: str) -> Outcome:
        """The outcome where ``tool`` has this description."""
        try:
            changed = with_description(tool, description)
        except InvalidToolError:  # it has as many members as a tool may have, and no description
            return _unknown(request)
        entries = [changed if entry is tool else entry for entry in self._by_name.values()]
        return await self._among(request, entries)

    async def _among(self, request: Request, entries: list[Entry]) -> Outcome:
        """The outcome in a catalog of ``entries``."""
        if self._changed is None:
            return _unknown(request)
        self._number += 1
        self._changed.searcher.index((*entries, *ADMIN_TOOLS), f"change {self._number}")
        return await self._changed.outcome(request)


def _unknown(request: Request) -> Outcome:
    return Outcome(request, (None,) * len(request.needs))


def _are_alike(one: Entry, other: Entry) -> bool:
    return resemblance(one, other) >= NEARLY_THE_SAME or terms(one.tool) == terms(other.tool)


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Add = Callable[[str, str, Outcome], bool]
