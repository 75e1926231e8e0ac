"""The names a client sees.

The rules:

1. A tool's name is ``{server}__{tool}``; the *first* ``__`` splits it. That is reversible because a server
   name is ``[A-Za-z0-9_.-]+``, holds no ``__`` and neither begins nor ends with ``_`` (``a_`` + ``__t`` would
   split elsewhere). A tool's own name may be anything: ``__``, dots, spaces, any Unicode. Routing asks the
   catalog, never the string; `split` is for people and for messages.

       split(join(server, tool)) == (server, tool)      for every legal server name and every tool name

2. A prompt's name is made like a tool's. A resource's URI, and a resource template, is
   ``mcpzip://{server}/`` and the upstream's own, verbatim:

       split_uri(join_uri(server, uri)) == (server, uri)      for every legal server name and every text

3. A tool that is shown directly is called by its joined name where hosts can take that, and by a likeness of
   it where they can't.
"""

import hashlib
import re
from collections.abc import Iterable

SEPARATOR = "__"
SCHEME = "mcpzip://"

_SERVER = re.compile(r"[A-Za-z0-9.-]([A-Za-z0-9_.-]*[A-Za-z0-9.-])?")


def join(server: str, tool: str) -> str:
    """The name a client calls ``tool`` of ``server`` by."""
    return f"{server}{SEPARATOR}{tool}"


def split(name: str) -> tuple[str, str] | None:
    """``(server, tool)`` of a joined name, or None when it holds no separator."""
    server, found, tool = name.partition(SEPARATOR)
    return (server, tool) if found else None


def folded(name: str) -> str:
    """``name`` without case and separators: what two spellings of one name have in common."""
    return _SEPARATORS.sub("", name.casefold())


_SEPARATORS = re.compile(r"[\W_]+")


def join_uri(server: str, uri: str) -> str:
    """The URI, or the template, that a client asks for ``uri`` of ``server`` by."""
    return f"{SCHEME}{server}/{uri}"


def split_uri(uri: str) -> tuple[str, str] | None:
    """``(server, uri)`` of a joined URI, or None when it is none. Nothing is decoded or normalised.

    The scheme may be in any case (RFC 3986, 3.1). Whether there is such a server is for the caller to say.
    """
    if uri[: len(SCHEME)].lower() != SCHEME:
        return None
    server, found, original = uri[len(SCHEME) :].partition("/")
    return (server, original) if found else None


LONGEST_SHOWN = 64
"""Characters. Hosts hand a tool's name to APIs that take ``^[a-zA-Z0-9_-]{1,64}$`` and nothing else."""

_SHOWN = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST_SHOWN}}}")
_NOT_SHOWN = re.compile(r"[^a-zA-Z0-9_-]")


def shown_names(names: Iterable[str]) -> dict[str, str]:
    """Each of the joined ``names`` by the name that a host sees when its tool is shown directly.

    That is the joined name where hosts can take it; else a likeness: other characters become ``_``, what is
    too long is cut, and eight hex digits of a hash tell it from others. No two are the same. The same set
    gives the same result in every run, whatever its order.
    """
    # A likeness comes first. That another tool is called so, hash and all, is no accident.
    shown: dict[str, str] = {}
    for name in sorted(set(names), key=lambda name: (_SHOWN.fullmatch(name) is not None, name)):
        attempt = 0
        while (likeness := _shown(name, attempt)) in shown:
            attempt += 1
        shown[likeness] = name
    return shown


def _shown(name: str, attempt: int) -> str:
    if not attempt and _SHOWN.fullmatch(name):
        return name
    hashed = f"{attempt or ''}{name}".encode("utf-8", "surrogatepass")
    ending = f"_{hashlib.blake2b(hashed, digest_size=4).hexdigest()}"
    return _NOT_SHOWN.sub("_", name[: LONGEST_SHOWN - len(ending)]) + ending


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
