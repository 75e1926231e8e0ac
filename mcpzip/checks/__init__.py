"""Checks of what a server says: text that hides, gives orders to a model, or passes for another's.

They read only what they are given: no network, no files, no model. Nothing here decides what happens to an
item.
"""

from mcpzip.checks.finding import Finding, Severity
from mcpzip.checks.items import check_items, compare
from mcpzip.checks.others import Others

__all__ = ["Finding", "Others", "Severity", "check_items", "compare"]
