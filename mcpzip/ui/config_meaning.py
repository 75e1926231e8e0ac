"""What a change of the config does to a mcpzip that runs, in words (pure)."""

from collections.abc import Sequence

from mcpzip.config import Config
from mcpzip.config.diff import compare

Sentence = tuple[str, Sequence[str]]
"""What happens, and to which servers or settings."""


def meaning(before: Config | None, after: Config) -> list[Sentence]:
    """What is different once ``after`` is used. before: None if the present text can't be used."""
    if before is None:
        return [("Servers that it has", sorted(after.servers))]
    diff = compare(before, after)
    switched = [
        name
        for name in (*diff.reconnected, *diff.adjusted)
        if before.servers[name].disabled != after.servers[name].disabled
    ]
    off = [name for name in switched if after.servers[name].disabled]
    found = (
        ("Servers added", diff.added),
        ("Servers removed: their processes end", diff.removed),
        ("Servers switched on", [name for name in switched if name not in off]),
        ("Servers switched off: their processes end", off),
        (
            "Servers with another connection: they are restarted",
            [name for name in diff.reconnected if name not in switched],
        ),
        ("Servers with other settings", [name for name in diff.adjusted if name not in switched]),
        ("Settings that are used at once", diff.settings),
        ("Settings that are used when mcpzip is started again", diff.at_start),
    )
    return [(what, list(names)) for what, names in found if names]
