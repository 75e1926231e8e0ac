"""The capabilities that a client declared, and what may be asked of it.

The rules (spec 2026-07-28: basic/index, client/sampling, client/elicitation): a question needs a capability,
and some questions a part of one; elicitation that names no mode is by form.
"""

from functools import lru_cache

import msgspec

from mcpzip.proxy.exchange import INTERACTIVE, members
from mcpzip.wire import MISSING_REQUIRED_CLIENT_CAPABILITY, RpcError, join_object

CapabilityPath = tuple[str, ...]
"""Where a capability stands in a client's `capabilities`: ``("elicitation", "url")``."""

ALL_CAPABILITIES = (
    b'{"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}'
)
"""Of a client that can be asked anything."""

ROOTS = "roots"
_SILENT, _ANNOUNCED = b"{}", b'{"listChanged":true}'
"""What a client declares as ``roots`` that doesn't say, or says, when they change."""

FORM_ELICITATION: CapabilityPath = ("elicitation", "form")
URL_ELICITATION: CapabilityPath = ("elicitation", "url")

_REQUIRED: dict[str, CapabilityPath] = {
    "sampling/createMessage": ("sampling",),
    "elicitation/create": FORM_ELICITATION,
    "roots/list": ("roots",),
}
"""By the method of the question."""


class Declared(msgspec.Struct, frozen=True):
    """What a client declared, with its roots apart from all else.

    others: the names of its other capabilities. can_be_asked: whether it can be asked anything. has_roots,
    announces_roots: whether it has roots, and says when they change. The rest are capabilities, JSON text,
    for the connections that clients share: without_roots: the others, in the order of their names;
    with_roots: those, and roots as this client has them; with_any_roots: those, and roots.
    """

    others: frozenset[str]
    can_be_asked: bool
    has_roots: bool
    announces_roots: bool
    without_roots: bytes
    with_roots: bytes
    with_any_roots: bytes


@lru_cache(maxsize=64)
def declared(capabilities: bytes) -> Declared:
    """Reads a client's ``capabilities`` (JSON text)."""
    said = members(capabilities)
    roots = said.pop(ROOTS, None)
    said.pop("tasks", None)  # which servers don't hear of
    others = {name: said[name] for name in sorted(said)}
    announces = members(roots).get("listChanged") == b"true"
    with_roots = {**others, ROOTS: _ANNOUNCED if announces else _SILENT}
    return Declared(
        frozenset(others),
        roots is not None or not others.keys().isdisjoint(INTERACTIVE),
        roots is not None,
        announces,
        join_object(others),
        join_object(with_roots),
        join_object({**others, ROOTS: _ANNOUNCED}),
    )


def required_capability(method: str, params: bytes | None) -> CapabilityPath | None:
    """The capability that a client needs to be asked this; None for what no client can be asked."""
    asked = members(params)
    if method == "elicitation/create" and asked.get("mode") == b'"url"':
        return URL_ELICITATION
    if method == "sampling/createMessage" and "tools" in asked:
        return ("sampling", "tools")
    return _REQUIRED.get(method)


def has_capability(capabilities: bytes, path: CapabilityPath) -> bool:
    """Whether a client with these ``capabilities`` (JSON text) has the one at ``path``."""
    first, *rest = path
    declared = members(capabilities)
    if first not in declared:
        return False
    parts = members(declared[first])
    return all(part in parts or (part == "form" and not parts) for part in rest)


def covers(capabilities: bytes, wanted: bytes) -> bool:
    """Whether a server that lists only the tools that a client can use lists for one with ``capabilities``
    all that it lists for one with ``wanted``.
    """
    return members(wanted).keys() <= members(capabilities).keys()


def missing_capability(path: CapabilityPath) -> RpcError:
    """The error for a modern client whose call needs more than it declared (spec 2026-07-28: basic/index)."""
    required = b"{}"
    for part in reversed(path):
        required = join_object({part: required})
    return RpcError(
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"The call needs a client that offers {'.'.join(path)}.",
        join_object({"requiredCapabilities": required}),
    )
