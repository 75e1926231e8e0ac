"""Tells the user of a player, on standard error, what isn't in the cassette."""

import sys

from mcpzip.model.sanitize import lines


def report(text: str) -> None:
    """Write ``text``, which has text of clients and cassettes in it."""
    sys.stderr.write(f"mcpzip-fake: {lines(text)}\n")
    sys.stderr.flush()
