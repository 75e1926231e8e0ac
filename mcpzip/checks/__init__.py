"""Checks of what a server says: text that hides, gives orders to a model, or passes for another's.

They read only what they are given: no network, no files, no model. Nothing here decides what happens to an
item.

Names are imported on first use: what most servers list is only looked at by `prefilter`, which needs few of
the checks.
"""

TYPE_CHECKING = False  # what `typing` calls it, without importing `typing`
if TYPE_CHECKING:
    from mcpzip.checks.finding import Finding, Severity
    from mcpzip.checks.items import check_items, compare
    from mcpzip.checks.others import Others

__all__ = ["Finding", "Others", "Severity", "check_items", "compare"]

_HOMES = {"Finding": "finding", "Severity": "finding", "Others": "others"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"mcpzip.checks.{_HOMES.get(name, 'items')}"), name)
    globals()[name] = value
    return value
