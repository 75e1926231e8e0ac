"""The faults, by what they break.

results     the result of a call, as the client gets it
requests    the request of a call, as the server gets it
protocol    ids, versions, handshakes and invalid messages
questions   requests of servers to clients
talk        messages during a call, and notifications of changes
offers      lists, definitions, resources, prompts
servers     broken servers, shutdown, secrets
hostile     hostile servers
poisoned    a gate for poisoned servers
finding     the relay's own three tools
kept        large results
coding      programs
web         HTTP
shared      several clients
replicas    several processes
tokens      a resource server

The rule: importing this package imports no fault, because the process of a wrong proxy needs only its own.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpzip_conformance.mutants.faults.fault import Fault

    FAULTS: Mapping[str, Fault]

__all__ = ["FAULTS", "find"]

_PARTS = (
    "results",
    "requests",
    "protocol",
    "talk",
    "questions",
    "offers",
    "servers",
    "hostile",
    "poisoned",
    "finding",
    "kept",
    "coding",
    "web",
    "shared",
    "replicas",
    "replicas_changing",
    "tokens",
)
_HEAVY = ("servers", "hostile", "web", "shared", "replicas", "replicas_changing", "tokens")
"""Those that import an HTTP client."""
_OF_TOKENS = ("jwt", "cryptography")
"""What the faults of a gateway need, which is in the extra ``team``: without it there are none of them."""


def find(name: str) -> "Fault":
    """The row of this name. Raises KeyError if there is none."""
    for part in sorted(_PARTS, key=_HEAVY.__contains__):
        if found := _rows(part).get(name):
            return found
    raise KeyError(name)


def __getattr__(name: str) -> object:
    if name != "FAULTS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    every = {name: row for part in _PARTS for name, row in _rows(part).items()}
    globals()["FAULTS"] = every
    return every


def _rows(part: str) -> "Mapping[str, Fault]":
    try:
        rows: Mapping[str, Fault] = import_module(f"{__name__}.{part}").FAULTS
    except ModuleNotFoundError as error:
        if error.name not in _OF_TOKENS:
            raise
        return {}
    return rows
