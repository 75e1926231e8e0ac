"""Checks of the pins: what is held back of servers, and whether their file can be used."""

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby

from mcpzip.config import Config
from mcpzip.doctor.finding import Finding
from mcpzip.doctor.setup import Setup
from mcpzip.pins.difference import visible
from mcpzip.pins.record import counted
from mcpzip.pins.review import HeldItem, Review
from mcpzip.pins.store import PinsUnusableError

_REMEDY = 'Start the store, or correct "store" in the config.'
_EVIDENCE, _IN_BRIEF = 5, 3  # held items that are named
_REASONS, _WHY, _EXCERPT = 3, 200, 80  # reasons that are told of one; characters of each, and of its excerpt


def check_pins(setup: Setup) -> Iterator[Finding]:
    """The pins, and what is held by them. Rejected items are not told again."""
    if setup.config is None:
        return
    with Review(setup.config) as review:
        try:
            held = review.held(setup.config.servers)
        except PinsUnusableError as error:
            yield Finding(
                "error",
                "files.pins",
                review.place,
                f"{error}. Until then nothing new or changed of a server is offered.",
                remedy="Pin what is offered now." if error.repairable else _REMEDY,
                command=setup.mcpzip("review", "--repair") if error.repairable else "",
            )
            return
    waiting = [item for item in held if not item.hold.rejected]
    for server, items in groupby(waiting, key=lambda item: item.server):
        found = list(items)
        yield Finding(
            "warning",
            "tools.held",
            server,
            f"{counted([item.key for item in found])} held back, and absent for agents.",
            (*map(described, found[:_EVIDENCE]), *_more(found)),
            whole=tuple(map(_whole, found)),
            remedy="Look at it, and approve or reject it.",
            command=setup.mcpzip("review", server),
        )


def _more(found: list[HeldItem]) -> Iterator[str]:
    if len(found) > _EVIDENCE:
        yield f"and {len(found) - _EVIDENCE} more"


def held_in_brief(config: Config, servers: Collection[str]) -> Mapping[str, str]:
    """What is held back of each server, and why, by its name; rejected items are not told."""
    told: dict[str, list[str]] = {}
    try:
        with Review(config) as review:
            held = review.held(servers)
        for item in held:
            if not item.hold.rejected:
                told.setdefault(item.server, []).append(described(item))
    except PinsUnusableError:
        return {}  # the proxy has warned of it
    return {
        server: f"held back: {'; '.join(items[:_IN_BRIEF])}"
        f"{f' and {len(items) - _IN_BRIEF} more' if len(items) > _IN_BRIEF else ''}"
        for server, items in told.items()
    }


def described(item: HeldItem) -> str:
    """What is held, and why, on one line."""
    name = visible(item.name).replace("\n", " ")[:100]
    what = name if item.kind == name else f"{item.kind} {name}"
    return f"{what}: {'; '.join(_reasons(item))}"


def _whole(item: HeldItem) -> str:
    """The same with everything, for programs."""
    return f"{item.key}: {'; '.join(item.hold.reasons)}"


def _reasons(item: HeldItem) -> Iterator[str]:
    """Why it is held, in brief: one excerpt of each of its texts."""
    told = set()
    for reason in item.hold.reasons[:_REASONS]:
        why, mark, excerpt = visible(reason).replace("\n", " ").partition(": “")
        short = excerpt if len(excerpt) <= _EXCERPT else f"{excerpt[: _EXCERPT - 2]}…”"
        text, _, meaning = why.partition(" ") if why.startswith("/") else (excerpt, "", why)
        yield meaning[:_WHY] if text in told else f"{why[:_WHY]}{mark}{short}"
        told.add(text)
    if (more := len(item.hold.reasons) - _REASONS) > 0:
        yield f"and {more} more"
