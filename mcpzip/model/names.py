"""The names a client sees.

The rule: a tool's name is ``{server}__{tool}``; the *first* ``__`` splits it. That is reversible because a
server name is ``[A-Za-z0-9_.-]+``, holds no ``__`` and neither begins nor ends with ``_`` (``a_`` + ``__t``
would split elsewhere). A tool's own name may be anything: ``__``, dots, spaces, any Unicode. Routing asks the
catalog, never the string; `split` is for people and for messages.

    split(join(server, tool)) == (server, tool)      for every legal server name and every tool name
"""

import re

SEPARATOR = "__"

_SERVER = re.compile(r"[A-Za-z0-9.-]([A-Za-z0-9_.-]*[A-Za-z0-9.-])?")


def join(server: str, tool: str) -> str:
    """The name a client calls ``tool`` of ``server`` by."""
    return f"{server}{SEPARATOR}{tool}"


def split(name: str) -> tuple[str, str] | None:
    """``(server, tool)`` of a joined name, or None when it holds no separator."""
    server, found, tool = name.partition(SEPARATOR)
    return (server, tool) if found else None


def server_name_problem(name: str) -> str | None:
    """Why ``name`` can't be a server's name, as the end of a sentence; None when it can."""
    if not name:
        return "is empty"
    if SEPARATOR in name:
        return f"contains {SEPARATOR!r}, which separates the server from the tool"
    if name.startswith("_") or name.endswith("_"):
        return "begins or ends with '_', so that the separator after it would be ambiguous"
    if not _SERVER.fullmatch(name):
        return "has a character other than letters, digits, '_', '.' and '-'"
    return None
