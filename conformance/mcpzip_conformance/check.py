"""A check: one requirement, and the code that tests it.

    @check("fidelity.is-error", MUST, SPEC_2025 + "/server/tools#error-handling")
    async def is_error(stage: Stage) -> None:
        \"""A result with ``isError`` arrives with it, its content unchanged.\"""
        await stage.same(Scene([server(tools=[tool("fail", text="on fire", isError=True)])], [Call("fail")]))

The rule: a check returns if the requirement is met and raises `Finding` if it isn't. It declares the features
that it needs of a subject (`mcpzip_conformance.subject.FEATURES`); it is skipped for a subject that lacks
one.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from mcpzip_fakes.record import Record

from mcpzip_conformance.client import PATIENCE
from mcpzip_conformance.errors import Finding
from mcpzip_conformance.stage import Stage
from mcpzip_conformance.subject import FEATURES

MUST, SHOULD, MAY = "must", "should", "may"
LEVELS = (MUST, SHOULD, MAY)

GROUPS: Mapping[str, str] = {
    "protocol": "JSON-RPC and MCP as the client sees them",
    "fidelity": "the client gets what the server sent, and the server what the client sent",
    "results": "all of a large result can be read, and a cut is said",
    "programs": "programs that call tools: what they get, and what they do",
    "conversation": "messages during a call, and notifications of changes between calls",
    "resilience": "a broken server does not affect others, and a call runs at most once",
    "search": "the right tool is found, and an empty result is explained",
    "arguments": "a call runs as it was meant, or is refused with an explanation",
    "security": "secrets, calls and resources reach only the servers that they are for",
    "poisoning": "which poisoned servers a model is shown, and whether honest ones are",
    "shared": "several clients at the same time: none sees or disturbs another",
    "replicas": "several processes: each request may go to any, and any may end",
    "resource-server": "whom a subject lets in that requires tokens of an issuer",
    "cost": "measurements: any figure passes",
}

SPEC_2024 = "https://modelcontextprotocol.io/specification/2024-11-05"
SPEC_2025 = "https://modelcontextprotocol.io/specification/2025-11-25"
SPEC_2026 = "https://modelcontextprotocol.io/specification/2026-07-28"
JSON_RPC = "https://www.jsonrpc.org/specification"
CONTRACT = "docs/conformance.md#what-a-proxy-owes"

Play = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Check:
    """id: ``group.name``; level: must, should or may; source: of the requirement; needs: features; posix: it
    runs on POSIX systems only; timed: it takes times, which need an idle machine."""

    id: str
    level: str
    source: str
    needs: tuple[str, ...]
    posix: bool
    timed: bool
    play: Play

    @property
    def group(self) -> str:
        """The part of its id before the dot."""
        return self.id.partition(".")[0]

    @property
    def measures(self) -> bool:
        """Whether it measures, and passes with any figure."""
        return self.group == "cost"

    @property
    def requirement(self) -> str:
        """Its docstring."""
        return inspect.cleandoc(self.play.__doc__ or "")

    @property
    def summary(self) -> str:
        """The first paragraph of the requirement, on one line."""
        return " ".join(self.requirement.partition("\n\n")[0].split())


_CHECKS: dict[str, Check] = {}


def check(
    id: str,
    level: str,
    source: str,
    *,
    needs: tuple[str, ...] = (),
    posix: bool = False,
    timed: bool = False,
) -> Callable[[Play], Play]:
    """Register the decorated function. Raises ValueError for an invalid id, group, level or feature."""

    def register(play: Play) -> Play:
        made = Check(id, level, source, needs, posix, timed, play)
        if (
            id in _CHECKS
            or made.group not in GROUPS
            or level not in LEVELS
            or not set(needs) <= FEATURES.keys()
        ):
            raise ValueError(f"the check {id!r} exists already, or its group, level or a need is unknown")
        if not made.requirement:
            raise ValueError(f"the check {id!r} has no docstring; state its requirement")
        _CHECKS[id] = made
        return play

    return register


def registered() -> tuple[Check, ...]:
    """Every check, by group in the order of `GROUPS`, then in the order of definition."""
    groups = list(GROUPS)
    return tuple(sorted(_CHECKS.values(), key=lambda one: groups.index(one.group)))


async def saw(
    record: Record, what: Callable[[Record], object], otherwise: str, timeout: float = PATIENCE
) -> None:
    """Raises Finding with the sentence ``otherwise`` unless ``what`` becomes true of ``record`` in time."""
    try:
        await record.until(what, timeout)
    except TimeoutError:
        raise Finding(otherwise) from None


def expect(condition: object, otherwise: str) -> None:
    """Raises Finding with the sentence ``otherwise`` unless ``condition`` is true."""
    if not condition:
        raise Finding(otherwise)
