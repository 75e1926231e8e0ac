"""The client's handshake, and the handshake with its servers."""

from dataclasses import dataclass

from mcpzip.wire import CLIENT_CAPABILITIES_KEY
from mcpzip_conformance.mutants.relay.end import Party
from mcpzip_conformance.mutants.relay.naming import members

INFO = b'{"name":"relay","version":"1"}'


@dataclass(slots=True)
class Opening:
    """How a client opened. modern: its era; params: of its `initialize` or first modern request; owner: the
    client, None if several share the servers; level: the params of its last ``logging/setLevel``."""

    modern: bool
    params: bytes
    owner: Party | None
    level: bytes | None = None

    @property
    def capabilities(self) -> bytes:
        """The client's capabilities."""
        fields = members(self.params)
        if self.modern:
            return members(fields.get("_meta")).get(CLIENT_CAPABILITIES_KEY, b"{}")
        return fields.get("capabilities", b"{}")
