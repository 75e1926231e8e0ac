"""Selects the checks to play: those that match every option."""

from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches

from mcpzip_conformance.check import GROUPS, LEVELS, Check
from mcpzip_conformance.errors import SelectionError


def select(
    checks: Sequence[Check],
    *,
    groups: Collection[str] = (),
    ids: Collection[str] = (),
    levels: Collection[str] = (),
) -> tuple[Check, ...]:
    """The checks of one of ``groups``, with one of ``ids`` and of one of ``levels``; an empty option selects
    all. Raises SelectionError for an unknown name, and if none is left."""
    _known("group", groups, tuple(GROUPS))
    _known("check", ids, tuple(check.id for check in checks))
    _known("level", levels, LEVELS)
    tests: list[Callable[[Check], bool]] = [
        lambda check: not groups or check.group in groups,
        lambda check: not ids or check.id in ids,
        lambda check: not levels or check.level in levels,
    ]
    chosen = tuple(check for check in checks if all(test(check) for test in tests))
    if not chosen:
        raise SelectionError("No check matches all these options: use fewer of them.")
    return chosen


def _known(kind: str, wanted: Collection[str], known: Sequence[str]) -> None:
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see mcpzip-conformance list."
            raise SelectionError(f"There is no {kind} {name!r}: {hint}")
