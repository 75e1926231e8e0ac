"""Maps the client's names to the servers' names.

The rule: pure text in both directions, exactly reversible: ``server__tool``, ``server__prompt``,
``relay://server/uri``.
"""

from collections.abc import Collection

import msgspec

from mcpzip.wire import INVALID_PARAMS, NotAnObject, RpcError, quote, split_object, unquote, with_members
from mcpzip_conformance.mutants.relay.end import RefusedError

SEPARATOR = "__"
SCHEME = "relay://"
_ECHOED = 100
"""Characters of an unknown name that an error repeats."""

ADDRESSED = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "completion/complete": "ref",
}
"""Which member of a request's params says for which server it is."""


def shown(server: str, own: str) -> str:
    """The client's name of a tool or prompt."""
    return server + SEPARATOR + own


def shown_uri(server: str, own: str) -> str:
    """The client's URI, or URI template, of a resource."""
    return f"{SCHEME}{server}/{own}"


def own_name(shown: str, servers: Collection[str]) -> tuple[str, str]:
    """The server of a client's name, and the name there. Raises RefusedError."""
    for server in servers:
        if shown.startswith(server + SEPARATOR):
            return server, shown.removeprefix(server + SEPARATOR)
    known = ", ".join(servers)
    raise RefusedError(RpcError(INVALID_PARAMS, f"No server has {echoed(shown)}; the servers are {known}."))


def own_uri(shown: str, servers: Collection[str]) -> tuple[str, str]:
    """The server of a client's URI, and the URI there. Raises RefusedError."""
    server, slash, own = shown.removeprefix(SCHEME).partition("/")
    if shown.startswith(SCHEME) and slash and server in servers:
        return server, own
    data = b'{"uri":%b}' % quote(shown)
    raise RefusedError(RpcError(INVALID_PARAMS, f"No server has the resource {echoed(shown)}.", data))


def echoed(name: str) -> str:
    """A name for an error message, shortened."""
    return repr(name) if len(name) <= _ECHOED else f"{name[:_ECHOED]!r}…"


def addressed(method: str, params: bytes | None, servers: Collection[str]) -> tuple[str, bytes]:
    """The server of a request, and the params with the server's own name. Raises RefusedError."""
    fields = members(params)
    key = ADDRESSED[method]
    if key == "ref":
        ref = members(fields.get("ref"))
        kind = "uri" if "uri" in ref else "name"
        server, own = own_of(kind, text(ref.get(kind)), servers)
        changed = with_members(fields.get("ref", b"{}"), {kind: quote(own)})
        return server, with_members(params or b"{}", {"ref": changed})
    if key not in fields:
        raise RefusedError(RpcError(INVALID_PARAMS, f"{method} needs a {key}."))
    server, own = own_of(key, text(fields[key]), servers)
    return server, with_members(params or b"{}", {key: quote(own)})


def own_of(key: str, shown: str, servers: Collection[str]) -> tuple[str, str]:
    """`own_uri` or `own_name`."""
    return own_uri(shown, servers) if key == "uri" else own_name(shown, servers)


def with_shown_uri(raw: bytes, server: str) -> bytes:
    """``raw`` (JSON text of an object) with the client's form of its ``uri``."""
    uri = text(members(raw).get("uri"))
    return with_members(raw, {"uri": quote(shown_uri(server, uri))}) if uri else raw


def with_shown_contents(result: bytes, server: str) -> bytes:
    """A result of ``resources/read`` with the client's form of its URIs."""
    contents = members(result).get("contents")
    if contents is None:
        return result
    parts = [with_shown_uri(bytes(part), server) for part in items(contents)]
    return with_members(result, {"contents": b"[%b]" % b",".join(parts)})


def members(raw: bytes | None) -> dict[str, bytes]:
    """The members of an object, each as JSON text; none if it is not an object."""
    try:
        return split_object(raw or b"{}")
    except NotAnObject:
        return {}


def items(raw: bytes) -> list[msgspec.Raw]:
    """The items of an array; none if it is not an array."""
    try:
        return msgspec.json.decode(raw, type=list[msgspec.Raw])
    except msgspec.DecodeError:
        return []


def text(raw: bytes | None) -> str:
    """The text of a JSON string; "" if it is not a string."""
    return unquote(raw) if raw is not None and raw.startswith(b'"') else ""
