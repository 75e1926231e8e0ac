"""What one person sees: the proxy of this process through their view, their calls, and calls in their name.

The rule: what others do can't be told from it. So calls are numbered for each person by themselves, and rules
of the policy, which may name what they may not see, are left out.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec.structs import replace

from mcpzip.model.entry import Entry
from mcpzip.model.principal import Principal, PrincipalId
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.metatools import EXECUTE
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.daemon.call_report import CallReport
from mcpzip.ui.daemon_session import INFO
from mcpzip.ui.seen import Calls, Seen
from mcpzip.ui.team.limits import NUMBERED_PEOPLE
from mcpzip.wire import Era, join_object, quote

_OURS = "mcpzip"


class CallNumbers:
    """Numbers the calls of each person from 1, in the order in which they were made."""

    def __init__(self, most: int = NUMBERED_PEOPLE) -> None:
        """most: people."""
        self._most = most
        self._numbers: OrderedDict[PrincipalId, tuple[dict[int, int], int]] = OrderedDict()

    def of(self, person: PrincipalId, numbers: Sequence[int]) -> dict[int, int]:
        """For each of ``numbers``, those of all calls of ``person`` that are remembered, in their order, the
        number that they see.
        """
        known, last = self._numbers.get(person, ({}, 0))
        found = {}
        for number in numbers:
            if number in known:
                found[number] = known[number]
            else:
                last = found[number] = last + 1
        self._numbers[person] = found, last
        self._numbers.move_to_end(person)
        if len(self._numbers) > self._most:
            self._numbers.popitem(last=False)
        return found


class Person:
    """A `Window` for ``principal``."""

    def __init__(self, proxy: Proxy, principal: Principal, numbers: CallNumbers) -> None:
        """numbers: of the calls of all people."""
        self._proxy, self._principal, self._numbers = proxy, principal, numbers

    @asynccontextmanager
    async def seen(self) -> AsyncIterator[Seen]:
        """See `Window.seen`."""
        own = self._proxy.views.own_upstreams(self._principal)
        if own is not None:
            await own.catch_up()
        yield Seen(self._proxy, self._principal)

    async def calls(self) -> Calls:
        """Those of this person, of tools that they may still use."""
        person, seen = self._principal.id, Seen(self._proxy, self._principal)
        records = [one for one in self._proxy.tool_caller.calls if one.caller.person == person][::-1]
        numbers = self._numbers.of(person, [one.number for one in records])
        catalog = seen.catalog
        reports = [CallReport.of(one) for one in records]
        return Calls(
            [
                _shown(one, numbers)
                for one in reports
                if one.server == _OURS or catalog.get(one.name) is not None
            ],
            by_daemon=True,
        )

    async def call(self, seen: Seen, entry: Entry, arguments: bytes) -> bytes:
        """See `Window.call`."""
        return await self._execute(entry.name, arguments)

    async def kept(self, handle: str, part: bytes) -> bytes:
        """See `Window.kept`."""
        return await self._execute(handle, part)

    async def _execute(self, name: str, arguments: bytes) -> bytes:
        # It has no session, as a client of the modern era has none: so what is kept belongs to the person.
        client = Client(Era.MODERN, info=INFO, has_session=False, principal=self._principal)
        asked = join_object({"name": quote(name), "arguments": arguments})
        return await self._proxy.handlers[EXECUTE](asked, Exchange(client))


def _shown(call: CallReport, numbers: dict[int, int]) -> CallReport:
    return replace(
        call,
        number=numbers[call.number],
        parent=numbers.get(call.parent, 0),
        continues=numbers.get(call.continues, 0),
        pid=0,
        rule="",
        approved_by="",
    )
