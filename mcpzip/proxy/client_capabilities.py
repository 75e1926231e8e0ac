"""What a client declared that it can be asked.

The rules (spec 2026-07-28: basic/index, client/sampling, client/elicitation): a question needs a capability,
and some questions a part of it; elicitation that names no mode means forms.
"""

from collections.abc import Mapping
from types import MappingProxyType

from mcpzip.proxy.exchange import members
from mcpzip.wire import MISSING_REQUIRED_CLIENT_CAPABILITY, RpcError, join_object

ClientCapabilities = tuple[str, ...]
"""The path of a capability."""

ALL = (
    b'{"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}'
)
"""What a client declares that can be asked anything."""

URLS: ClientCapabilities = ("elicitation", "url")

_NEEDED: Mapping[str, ClientCapabilities] = MappingProxyType(
    {
        "sampling/createMessage": ("sampling",),
        "elicitation/create": ("elicitation", "form"),
        "roots/list": ("roots",),
    }
)
"""By the method of the question."""


def needed(method: str, params: bytes | None) -> ClientCapabilities | None:
    """What a client has to have declared that is to be asked this; None for what no client can be asked."""
    ability = _NEEDED.get(method)
    said = members(params)
    if method == "elicitation/create" and said.get("mode") == b'"url"':
        return URLS
    if method == "sampling/createMessage" and "tools" in said:
        return ("sampling", "tools")
    return ability


def has(capabilities: bytes, ability: ClientCapabilities) -> bool:
    """Whether a client that declared these ``capabilities`` (JSON text) has this one."""
    first, *rest = ability
    within = members(capabilities)
    if first not in within:
        return False
    parts = members(within[first])
    return all(part in parts or (part == "form" and not parts) for part in rest)


def shows_all(capabilities: bytes, wanted: bytes) -> bool:
    """Whether a server that lists what a client can use lists for one with ``capabilities`` all that it lists
    for one with ``wanted``.
    """
    return members(wanted).keys() <= members(capabilities).keys()


def lacking(ability: ClientCapabilities) -> RpcError:
    """What a modern client is told whose call needs more than it declared (spec 2026-07-28: basic/index)."""
    wanted = b"{}"
    for part in reversed(ability):
        wanted = join_object({part: wanted})
    return RpcError(
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"The call needs a client that offers {'.'.join(ability)}.",
        join_object({"requiredCapabilities": wanted}),
    )
