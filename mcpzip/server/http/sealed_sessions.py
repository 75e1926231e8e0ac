"""Sessions of legacy clients where there are replicas: all that one needs to go on is sealed in its id.

A session is served by the replica at which it began, its home, as long as that can be reached: what belongs
to it is there, such as streams, calls under way and kept results. Else any replica begins it again from its
id. Whose it is, is in the id as well, and compared with each request.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcpzip.model import limits
from mcpzip.model.principal import Principal
from mcpzip.proxy.exchange import members
from mcpzip.server.http.request import HttpRequest
from mcpzip.server.http.response import HttpResponse

if TYPE_CHECKING:
    from mcpzip.server.replicas.forwarding import Forwarder
    from mcpzip.server.replicas.replica import SealedSession


class SealedSessions:
    """The ids of sessions of one replica."""

    def __init__(self, forwarder: "Forwarder") -> None:
        self._forwarder, self._replica = forwarder, forwarder.replica
        self._ended: OrderedDict[bytes, None] = OrderedDict()
        """Digests of the ids of sessions that their clients ended, the oldest first."""

    def begin(self, version: str, params: bytes | None, principal: Principal | None) -> str:
        """The id of a new session. params: of its `initialize`."""
        fields = members(params)
        info, capabilities = fields.get("clientInfo", b""), fields.get("capabilities", b"{}")
        capabilities = capabilities if capabilities.startswith(b"{") else b"{}"
        return self._replica.seal_session(version, info, capabilities, principal)

    def of(self, request: HttpRequest) -> "SealedSession | None":
        """The session that ``request`` names; None if there is none, or it is another person's, or ended."""
        if request.session_id is None:
            return None
        sealed = self._replica.open_session(request.session_id)
        if (
            sealed is None
            or not sealed.is_of(request.principal)
            or _digest(request.session_id) in self._ended
        ):
            return None
        return sealed

    def at_home(
        self,
        sealed: "SealedSession",
        request: HttpRequest,
        response: HttpResponse,
        here: Callable[[], object],
    ) -> None:
        """Has the home of a session answer ``request``. here: answers it in this process."""
        if request.forwarded is not None:
            here()
            return
        # A session whose home was gone for a while went on elsewhere, and has there what was made there.
        named = self._replica.owner_in(request.body, request.principal)
        owner = sealed.home if named is None or not self._forwarder.reaches(named) else named
        if self._forwarder.reaches(owner):
            self._forwarder.forward(request, response, owner, here)
        else:
            here()

    def id_suffix(self, request: HttpRequest) -> bytes:
        """The end of the ids of what is asked of the client of ``request`` here, so that its answers come
        here.
        """
        suffix = self._replica.handle_suffix(request.principal)
        return (suffix or secrets.token_hex(16)).encode("ascii")

    def end(self, id: str) -> None:
        """The client has ended the session with this id."""
        self._ended[_digest(id)] = None
        if len(self._ended) > limits.SESSIONS_ENDED:
            self._ended.popitem(last=False)


def _digest(id: str) -> bytes:
    return hashlib.sha256(id.encode("utf-8", "replace")).digest()[:16]
