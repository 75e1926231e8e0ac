"""*Calls*: the last calls of all agents as a waterfall, and one call with all that happened to it."""

import time
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlencode

from mcpzip.model.limits import RECORDED_EVENTS
from mcpzip.server.daemon.call_phases import told
from mcpzip.server.daemon.call_report import CallReport
from mcpzip.ui.limits import CALLS_OF_PROGRAM
from mcpzip.ui.listing import part_of
from mcpzip.ui.page import Answer, PersonVisit
from mcpzip.ui.pages.servers import LONGEST_FILTER
from mcpzip.ui.waterfall import lines, row

_FAILED, _UNDER_WAY = "failed", "under way"
"""Outcomes that can be chosen beside those of single calls."""
_CHOICES = 50
"""Servers, clients and outcomes that can be chosen, of each."""


async def show(visit: PersonVisit) -> Answer:
    """The page."""
    calls = await visit.sources.calls()
    found = calls.found[::-1]
    wanted = {
        name: visit.fields.get(name, "")[:LONGEST_FILTER] for name in ("server", "client", "outcome", "tool")
    }
    part = part_of([call for call in found if _matches(call, wanted)], visit.number("page"))
    return visit.page(
        "calls.html",
        by_daemon=calls.by_daemon,
        known=len(found),
        part=part,
        lines=lines(part.rows, time.time()),
        wanted=wanted,
        servers=_choices(call.server for call in found),
        clients=_choices(call.client for call in found),
        outcomes=[_FAILED, _UNDER_WAY, *_choices(call.outcome for call in found)],
        query=urlencode(wanted, errors="replace"),
    )


async def show_one(visit: PersonVisit) -> Answer:
    """The page of one call."""
    calls = await visit.sources.calls()
    call = next((one for one in calls.found if str(one.number) == visit.name), None)
    if call is None:
        text = f"No call {visit.name!r} is remembered. The last thousand are, while mcpzip runs."
        return visit.refuse(404, "This call is not remembered", text)
    async with visit.sources.seen() as seen:
        has_server, has_tool = call.server in seen.config.servers, seen.catalog.get(call.name) is not None
    inner = [one for one in calls.found if one.parent == call.number]
    return visit.page(
        "call.html",
        row=row(call, time.time()),
        events=_events(call),
        more_events=len(call.events) == RECORDED_EVENTS,
        inner=inner[:CALLS_OF_PROGRAM],
        more_inner=max(0, len(inner) - CALLS_OF_PROGRAM),
        has_server=has_server,
        has_tool=has_tool,
    )


def _matches(call: CallReport, wanted: Mapping[str, str]) -> bool:
    return (
        wanted["server"] in ("", call.server)
        and wanted["client"] in ("", call.client)
        and _is_so(call, wanted["outcome"])
        and wanted["tool"].casefold() in call.name.casefold()
    )


def _is_so(call: CallReport, outcome: str) -> bool:
    if outcome == _FAILED:
        return call.failed
    if outcome == _UNDER_WAY:
        return call.seconds is None
    return outcome in ("", call.outcome)


def _choices(found: Iterable[str]) -> list[str]:
    return sorted({one for one in found if one})[:_CHOICES]


def _events(call: CallReport) -> Sequence[tuple[float, str]]:
    """When and what, as sentences."""
    times: dict[str, int] = {}
    rows = []
    for event in call.events:
        times[event.what] = times.get(event.what, 0) + 1
        rows.append((event.after, told(event.what, times[event.what])))
    return rows
