"""Globs over names of tools, as in the config (pure)."""

import re

_WILDCARDS = re.compile(r"\[!?\]?[^\]]*\]|[*?]")


def specificity(glob: str) -> int:
    """The number of characters of ``glob`` that are no wildcards."""
    return len(_WILDCARDS.sub("", glob))
