"""The names under which clients see tools, prompts and resources.

1. A tool's or prompt's name is ``{server}__{tool}``, split at the *first* ``__``. That is unambiguous because
   a server name contains no ``__`` and neither begins nor ends with ``_``. The tool's own name may be any
   text. Requests are routed by the catalog, not by splitting; `split` is for messages and hints.

       split(join(server, tool)) == (server, tool)      for every valid server name and every tool name

2. A resource's URI, or a URI template, is ``mcpzip://{server}/`` followed by the server's own, unchanged:

       split_uri(join_uri(server, uri)) == (server, uri)      for every valid server name and every text

3. A tool that is shown directly has its joined name if hosts accept it, else a similar name (`shown_names`).
"""

import re
from collections.abc import Iterable
from functools import lru_cache

SEPARATOR = "__"
SCHEME = "mcpzip://"

_SERVER = re.compile(r"[A-Za-z0-9.-]([A-Za-z0-9_.-]*[A-Za-z0-9.-])?")


def join(server: str, tool: str) -> str:
    """The name by which a client calls ``tool`` of ``server``."""
    return f"{server}{SEPARATOR}{tool}"


def split(name: str) -> tuple[str, str] | None:
    """``(server, tool)`` of a joined name; None if it has no separator."""
    server, found, tool = name.partition(SEPARATOR)
    return (server, tool) if found else None


@lru_cache(1024)
def folded(name: str) -> str:
    """``name`` without case and separators, for comparing spellings."""
    return _SEPARATORS.sub("", name.casefold())


_SEPARATORS = re.compile(r"[\W_]+")


def join_uri(server: str, uri: str) -> str:
    """The URI or template by which a client requests ``uri`` of ``server``."""
    return f"{SCHEME}{server}/{uri}"


def split_uri(uri: str) -> tuple[str, str] | None:
    """``(server, uri)`` of a joined URI; None for any other text. Nothing is decoded or normalised, and the
    server may not exist. The scheme may be in any case (RFC 3986, 3.1).
    """
    if uri[: len(SCHEME)].lower() != SCHEME:
        return None
    server, found, original = uri[len(SCHEME) :].partition("/")
    return (server, original) if found else None


LONGEST_SHOWN = 64
"""Characters. Hosts pass tool names to model APIs that accept only ``^[a-zA-Z0-9_-]{1,64}$``."""

_ACCEPTED = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST_SHOWN}}}")
_NOT_ACCEPTED = re.compile(r"[^a-zA-Z0-9_-]")


def shown_names(names: Iterable[str]) -> dict[str, str]:
    """The joined ``names`` by the names that hosts see when the tools are shown directly.

    The shown name is the joined name if hosts accept it. Otherwise other characters become ``_``, the name is
    cut, and eight hex digits of a hash make it unique. The result is the same in every run and for every
    order of ``names``.
    """
    # Derived names go first, so that no server can take one by giving its tool that name, hash included.
    shown: dict[str, str] = {}
    for name in sorted(set(names), key=lambda name: (_ACCEPTED.fullmatch(name) is not None, name)):
        attempt = 0
        while (candidate := _shown(name, attempt)) in shown:
            attempt += 1
        shown[candidate] = name
    return shown


def _shown(name: str, attempt: int) -> str:
    if not attempt and _ACCEPTED.fullmatch(name):
        return name
    import hashlib  # needed for few names only, and a start waits for it

    hashed = f"{attempt or ''}{name}".encode("utf-8", "surrogatepass")
    suffix = f"_{hashlib.blake2b(hashed, digest_size=4).hexdigest()}"
    return _NOT_ACCEPTED.sub("_", name[: LONGEST_SHOWN - len(suffix)]) + suffix


def server_name_problem(name: str) -> str | None:
    """Why ``name`` is no valid server name, as the end of a sentence; None if it is valid."""
    if not name:
        return "is empty"
    if SEPARATOR in name:
        return f"contains {SEPARATOR!r}, which separates the server from the tool"
    if name.startswith("_") or name.endswith("_"):
        return "begins or ends with '_', so that the separator after it would be ambiguous"
    if not _SERVER.fullmatch(name):
        return "has a character other than letters, digits, '_', '.' and '-'"
    return None
