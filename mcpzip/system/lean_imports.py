"""Imports msgspec and asyncio without the modules that they import for what a start does not do.

The rule: both work without these modules, which they import only if they are installed; so for the moment of
the import they are not. It saves 9 ms of every start.

- msgspec takes ``get_type_hints`` from typing_extensions, or else the same from `typing`.
- asyncio takes TLS from `ssl`, which loads OpenSSL. Whatever makes TLS connections calls `allow_tls` first;
  `mcpzip.system.network` does.
"""

import sys

TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from types import ModuleType


def import_msgspec() -> None:
    """Imports msgspec, unless it is imported already."""
    _import_without("msgspec", "typing_extensions")


def import_asyncio() -> None:
    """Imports asyncio, unless it is imported already."""
    _import_without("asyncio", "ssl")


def allow_tls() -> None:
    """Lets asyncio make TLS connections from now on. Safe between threads, and while an event loop runs."""
    import asyncio.base_events
    import asyncio.selector_events
    import asyncio.sslproto
    import importlib
    import ssl

    if getattr(asyncio.sslproto, "ssl", None) is None:
        importlib.reload(asyncio.sslproto)  # nothing has used it, as it can do nothing without `ssl`
        for module in (asyncio.base_events, asyncio.selector_events):
            module.ssl = ssl  # type: ignore[attr-defined]


def _import_without(name: str, unneeded: str) -> None:
    if name in sys.modules or unneeded in sys.modules:
        return
    # None stands for a module that can't be imported (Python's reference, "The module cache").
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    modules[unneeded] = None
    try:
        __import__(name)
    finally:
        del modules[unneeded]
