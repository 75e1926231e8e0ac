"""The capabilities that a client declared, and what may be asked of it.

The rules (spec 2026-07-28: basic/index, client/sampling, client/elicitation): a question needs a capability,
and some questions a part of one; elicitation that names no mode is by form.
"""

from mcpzip.proxy.exchange import members
from mcpzip.wire import MISSING_REQUIRED_CLIENT_CAPABILITY, RpcError, join_object

CapabilityPath = tuple[str, ...]
"""Where a capability stands in a client's `capabilities`: ``("elicitation", "url")``."""

ALL_CAPABILITIES = (
    b'{"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}'
)
"""Of a client that can be asked anything."""

URL_ELICITATION: CapabilityPath = ("elicitation", "url")

_REQUIRED: dict[str, CapabilityPath] = {
    "sampling/createMessage": ("sampling",),
    "elicitation/create": ("elicitation", "form"),
    "roots/list": ("roots",),
}
"""By the method of the question."""


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
