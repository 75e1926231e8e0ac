"""Whether an item may be taken over without asking a person, by what the checks find in it (pure).

The rule: what is new in an item counts, not what it had before. A reason is a phrase for a person, with the
field and an excerpt in which invisible characters are visible.
"""

from collections.abc import Sequence

from mcpzip.checks import Finding, Others, check_items, compare
from mcpzip.model.surface import Item

_REASONS = 8
"""Reasons that are given at most."""


def flaws(item: Item, others: Others, server: str) -> Sequence[str]:
    """Why ``item`` of ``server`` is not taken over even at the first sight of its server: no honest server is
    known to need what the checks find in it.
    """
    return _reasons([one for one in compare(None, item, others, server) if one.severity == "hard"])


def risky_changes(old: Item | None, new: Item, others: Others, server: str) -> Sequence[str]:
    """Why it is risky to offer ``new`` of ``server`` instead of ``old`` (None if it is new) without asking a
    person; empty if it isn't.
    """
    found = compare(old, new, others, server)
    if old is None and new.kind == "server":  # its name in the config may be nearly another's
        alone = check_items([new], others, server)
        found += [one for one in alone if one.name == new.name and one.kind == new.kind and one not in found]
    return _reasons([one for one in found if one.severity != "note"])


def _reasons(found: Sequence[Finding]) -> Sequence[str]:
    return list(dict.fromkeys(map(_reason, found)))[:_REASONS]


def _reason(one: Finding) -> str:
    where = f"{one.path} " if one.path else ""
    return f"{where}{one.meaning}: “{one.excerpt}”"
