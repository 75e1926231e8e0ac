"""*Review*: what is held back of servers, field by field, and the buttons that approve or reject it.

The rules are those of `mcpzip review`: only a person approves, so `mcpzip ui` has to run at a terminal; and
what is approved is exactly what was shown. The form names the digests of both definitions that the page has
compared. If one of them is another by now, nothing is decided.
"""

import hashlib
import os
import time
from collections.abc import Sequence
from typing import Literal

import msgspec

from mcpzip.config import Config
from mcpzip.config.paths import mcpzip_command
from mcpzip.config.project import approvals, digest, read_project
from mcpzip.model.errors import McpzipError
from mcpzip.model.redaction import redact
from mcpzip.pins.difference import visible
from mcpzip.pins.record import Event, kind_and_name
from mcpzip.pins.review import HeldItem, Review, why
from mcpzip.pins.store import PinsUnusableError
from mcpzip.policy.allowances import Allowance
from mcpzip.policy.allowing import allow_once
from mcpzip.policy.opening import open_allowances
from mcpzip.policy.refused import RefusedCall, refused_calls
from mcpzip.system.threads import in_thread
from mcpzip.ui import person
from mcpzip.ui.held import ShownItem, id_of, shown_item
from mcpzip.ui.limits import DECISIONS, ROWS
from mcpzip.ui.listing import Part, part_of
from mcpzip.ui.page import Answer, Visit
from mcpzip.ui.pages.servers import LONGEST_FILTER
from mcpzip.ui.rendering import path_part

Outcome = Literal["approved", "rejected", "changed", "gone", "unseen"]
_DONE = {
    "approved": "It was approved. Agents see it within a second.",
    "rejected": "It was rejected: it stays away.",
    "allowed": "It is allowed once, within an hour: the agent has to make the call again.",
    "gone": "It is not held any more, so nothing was decided.",
}
"""What a button did, by the word in the URL."""
_CHANGED = "The server has changed it since it was shown, so nothing was decided. This is what is held now."
_UNSEEN = "It was not shown whole, so it can't be approved here."
_NAME, _NOTE = 200, 500
"""Characters of a name, and of a note, of what happened."""
_ARGUMENTS = 1_000
"""Characters of the arguments of a refused call."""
_ALLOWED_FOR = 3_600.0
"""Seconds within which a call that was allowed once may run, as `mcpzip allow` has it."""


class Pinned(msgspec.Struct, frozen=True):
    """What is pinned of a server. since: when it was seen first, Unix seconds. gone: of ``pins``, how many
    the server doesn't list now.
    """

    server: str
    since: float
    pins: int
    gone: int
    held: int


class Happened(msgspec.Struct, frozen=True):
    """Something that happened to an item. fingerprint: of its definition from then on, or ""."""

    at: float
    server: str
    what: str
    item: str
    fingerprint: str
    note: str


class Call(msgspec.Struct, frozen=True):
    """A call that was refused because nobody could be asked. id: its own. digest: of all that would be
    allowed. whole: whether the arguments are shown as they are. command: allows it once.
    """

    id: str
    digest: str
    name: str
    at: float
    arguments: str
    whole: bool
    command: str


class Permitted(msgspec.Struct, frozen=True):
    """What else a person has decided, and what waits. projects: folders, and whether each is trusted.
    problems: why something of it can't be read.
    """

    calls: list[Call]
    allowed: list[Allowance]
    projects: list[tuple[str, str]]
    problems: list[str]


class _Pins(msgspec.Struct, frozen=True):
    """What the pins say."""

    part: Part[ShownItem]
    known: int
    pinned: list[Pinned]
    events: list[Happened]
    projects: list[str]
    problem: str


async def show(visit: Visit) -> Answer:
    """The list of what is held, what is pinned, and what happened."""
    wanted = visit.fields.get("find", "")[:LONGEST_FILTER]
    config = await _config(visit)
    page = visit.number("page")
    problem, repairable, pins = "", True, _Pins(part_of([], 1), 0, [], [], [], "")
    try:
        pins = await in_thread(lambda: _pins(config, wanted, page), "review")
    except PinsUnusableError as error:
        problem = f"{error}. Until then nothing new or changed of a server is offered."
        repairable = error.repairable
    permitted = await in_thread(lambda: _permitted(config), "allowed")
    return visit.page(
        "review.html",
        pins=pins,
        problem=problem,
        repairable=repairable,
        find=wanted,
        permitted=permitted,
        may_approve=person.is_present(),
        done=_DONE.get(visit.fields.get("done", ""), ""),
        repair_command=mcpzip_command(config.path, "review", "--repair"),
        review_command=mcpzip_command(config.path, "review"),
    )


async def show_item(visit: Visit) -> Answer:
    """One held item, field by field."""
    return await _item_page(visit, await _config(visit), visit.fields.get("item", ""))


async def approve(visit: Visit) -> Answer:
    """Offers the item from now on, if it is still the one that was shown."""
    if not person.is_present():
        command = mcpzip_command(visit.sources.config, "review", visit.name)
        text = (
            f"Only a person at a terminal can approve, and mcpzip ui was not started at one. Run: {command}"
        )
        return visit.refuse(403, "It can't be approved here", text)
    return await _decide(visit, approve=True)


async def reject(visit: Visit) -> Answer:
    """Keeps the item held, and doesn't ask again, if it is still the one that was shown."""
    return await _decide(visit, approve=False)


async def allow(visit: Visit) -> Answer:
    """Allows a refused call once, with exactly the arguments that were shown, if its tool is the same."""
    config = await _config(visit)
    command = mcpzip_command(config.path, "allow", "--call", visit.name)
    if not person.is_present():
        where = "at a terminal can allow a call, and mcpzip ui was not started at one"
        text = f"Only a person {where}. Run: {command}"
        return visit.refuse(403, "It can't be allowed here", text)
    refused = next(
        (
            one
            for one in await in_thread(lambda: refused_calls(config.path, time.time()), "refused")
            if one.id == visit.name and _digest(one) == visit.fields.get("call", "")
        ),
        None,
    )
    if refused is None:
        return visit.refuse(
            409, "Nothing was allowed", "This call isn't among those of the last hour any more."
        )
    call = refused
    if not _call(config.path, call).whole:
        return visit.refuse(409, "Nothing was allowed", f"It was not shown whole. Run: {command}")
    async with visit.sources.proxy() as proxy:
        entry = proxy.catalog.get(call.name)
    try:
        if entry is None:
            raise McpzipError(f"{call.name} is not offered any more.")
        tool = entry
        await in_thread(lambda: allow_once(config, tool, call, time.time(), _ALLOWED_FOR), "allow")
    except (McpzipError, OSError) as error:
        return visit.refuse(409, "Nothing was allowed", redact(str(error)))
    return visit.redirect("/review?done=allowed")


async def _decide(visit: Visit, *, approve: bool) -> Answer:
    config, wanted = await _config(visit), visit.fields.get("item", "")
    shown = visit.fields.get("held", ""), visit.fields.get("approved", "")

    def decided() -> Outcome:
        with Review(config) as review:
            item = _found(review, config, visit.name, wanted)
            if item is None:
                return "gone"
            now = shown_item(item)
            if (now.held, now.approved) != shown:
                return "changed"
            if approve and not now.whole:
                return "unseen"
            if review.approve([item]) if approve else review.reject([item]):
                return "changed"
            return "approved" if approve else "rejected"

    try:
        outcome = await in_thread(decided, "decision")
    except OSError as error:
        said = f"{Review(config).place} can't be written: {why(error)}."
        return visit.refuse(503, "Nothing was decided", said)
    if outcome in ("changed", "unseen"):
        problem = _CHANGED if outcome == "changed" else _UNSEEN
        return await _item_page(visit, config, wanted, problem=problem, status=409)
    return visit.redirect(f"/review?done={outcome}")


async def _item_page(
    visit: Visit, config: Config, wanted: str, *, problem: str = "", status: int = 200
) -> Answer:
    def found() -> ShownItem | None:
        with Review(config) as review:
            item = _found(review, config, visit.name, wanted)
        return None if item is None else shown_item(item)

    item = await in_thread(found, "review")
    if item is None:
        return visit.refuse(404, "It is not held", "It is not held any more, or the address is wrong.")
    return visit.page(
        "review_item.html",
        status=status,
        item=item,
        problem=problem,
        path=f"{visit.root}/review/{path_part(item.server)}",
        may_approve=person.is_present(),
        review_command=mcpzip_command(config.path, "review", item.server),
        refresh_command=mcpzip_command(config.path, "refresh", item.server),
    )


async def _config(visit: Visit) -> Config:
    async with visit.sources.proxy() as proxy:
        return proxy.config


def _found(review: Review, config: Config, server: str, wanted: str) -> HeldItem | None:
    held = review.held([server]) if server in config.servers else []
    return next((item for item in held if id_of(item) == wanted), None)


def _pins(config: Config, wanted: str, page: int) -> _Pins:
    with Review(config) as review:
        return _pins_in(review, config, wanted, page)


def _pins_in(review: Review, config: Config, wanted: str, page: int) -> _Pins:
    held = review.held(config.servers)
    matching = [item for item in held if _matches(item, wanted)]
    matching.sort(key=lambda item: item.hold.rejected)
    part = part_of(matching, page)
    rows = [shown_item(item, compared=False) for item in part.rows]
    return _Pins(
        Part(rows, part.first, part.total, part.page, part.pages),
        len(held),
        _pinned(review, sorted(config.servers)),
        [_happened(server, event) for server, event in review.events(config.servers)[-ROWS:][::-1]],
        review.projects()[:DECISIONS],
        review.write_problem(),
    )


def _matches(item: HeldItem, wanted: str) -> bool:
    return any(wanted.casefold() in text.casefold() for text in (item.server, item.name))


def _pinned(review: Review, servers: Sequence[str]) -> list[Pinned]:
    found: list[Pinned] = []
    for server in servers:
        if (known := review.pins_of(server)) is not None:
            gone = sum(pin.gone is not None for pin in known.pins.values())
            found.append(Pinned(server, known.first_seen, len(known.pins) - gone, gone, len(known.held)))
    return found


def _happened(server: str, event: Event) -> Happened:
    kind, name = kind_and_name(event.item) if event.item else ("", "")
    item = " ".join(filter(None, (kind, visible(name).replace("\n", " ")[:_NAME])))
    fingerprint = event.after.hex()[:8] if event.after else ""
    return Happened(event.at, server, event.what, item, fingerprint, visible(event.note)[:_NOTE])


def _permitted(config: Config) -> Permitted:
    """What is read elsewhere: calls that wait, what is allowed, and the projects."""
    now, problems, config_path = time.time(), list[str](), config.path
    allowed: list[Allowance] = []
    projects: list[tuple[str, str]] = []
    try:
        with open_allowances(config) as allowances:
            allowed = allowances.all(now)[:DECISIONS]
    except McpzipError as error:
        problems.append(redact(str(error)))
    try:
        for file, approval in sorted(approvals(config_path).items())[:DECISIONS]:
            projects.append((os.path.dirname(file), _project_state(file, approval.sha256)))
    except McpzipError as error:
        problems.append(redact(str(error)))
    refused = refused_calls(config_path, now)[-DECISIONS:][::-1]
    return Permitted([_call(config_path, one) for one in refused], allowed, projects, problems)


def _call(config_path: str, refused: RefusedCall) -> Call:
    shown = redact(refused.arguments)
    return Call(
        refused.id,
        _digest(refused),
        refused.name,
        refused.at,
        visible(shown)[:_ARGUMENTS],
        shown == refused.arguments and len(visible(shown)) <= _ARGUMENTS,
        mcpzip_command(config_path, "allow", "--call", refused.id),
    )


def _digest(refused: RefusedCall) -> str:
    """Of the tool, its definition and the arguments: what is allowed is what was shown."""
    return hashlib.sha256(
        msgspec.json.encode((refused.name, refused.definition, refused.arguments))
    ).hexdigest()


def _project_state(file: str, sha256: str) -> str:
    try:
        return "trusted" if digest(read_project(file)) == sha256 else "changed, so not used"
    except OSError:
        return "gone"
