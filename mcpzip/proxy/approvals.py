"""Questions to modern clients whether a call may run, which wait for the clients to come back with answers.

The rules: an approval is for one call, once: of the same client, of the same tool with the same definition,
with the same arguments. If the server asks something during that call, the person isn't asked again about
it. So many wait and no more, and none for ever.
"""

import asyncio
import hashlib
import secrets

import msgspec

from mcpzip.model import limits
from mcpzip.proxy.exchange import Client
from mcpzip.proxy.parking import HANDLE_PREFIX, PARKING_TIME
from mcpzip.wire import unquote

APPROVAL_PREFIX = f"{HANDLE_PREFIX}may-"
"""How the `requestState` of a question whether a call may run begins: nothing of that call has run."""


class _Waiting(msgspec.Struct):
    client: Client
    call: bytes
    until: float


class Approvals:
    """What waits for the answers of all clients, the oldest first."""

    def __init__(self) -> None:
        # An mcpzip behind this one has such handles, too.
        self._prefix = f"{APPROVAL_PREFIX}{secrets.token_urlsafe(6)}-"
        self._waiting: dict[str, _Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, client: Client, call: bytes) -> str:
        """The `requestState` with which ``client`` is asked about a call. call: its hash."""
        handle = self._prefix + secrets.token_urlsafe(24)
        self._put(handle, client, call)
        return handle

    def is_handle(self, state: bytes) -> bool:
        """Whether this `requestState` (JSON text) is one of ours."""
        return state.startswith(b'"' + self._prefix.encode())

    def answered(self, client: Client, call: bytes, state: bytes) -> bool:
        """Whether ``state`` (one of ours) is that of the question to ``client`` about this call, which is
        over with that.
        """
        return self._take(unquote(state), client, call)

    def goes_on(self, client: Client, call: bytes, state: bytes | None) -> None:
        """The server asks something during a call that was approved, with its ``state``."""
        self._put(_continuation(call, state), client, call)

    def continues(self, client: Client, call: bytes, state: bytes | None) -> bool:
        """Whether this is a call that was approved, made again with answers to what its server asked."""
        return self._take(_continuation(call, state), client, call)

    def remove_client(self, client: Client) -> None:
        """``client`` is gone."""
        for key in [key for key, each in self._waiting.items() if each.client is client]:
            del self._waiting[key]

    def _put(self, key: str, client: Client, call: bytes) -> None:
        now = asyncio.get_running_loop().time()
        while self._waiting:
            oldest = next(iter(self._waiting))
            if self._waiting[oldest].until > now and len(self._waiting) < limits.PARKED:
                break
            del self._waiting[oldest]
        owner = client.owner
        own = [each for each, one in self._waiting.items() if one.client.owner == owner]
        if owner is not None and len(own) >= limits.PARKED_CLIENT:
            del self._waiting[own[0]]
        self._waiting.pop(key, None)
        self._waiting[key] = _Waiting(client, call, now + PARKING_TIME)

    def _take(self, key: str, client: Client, call: bytes) -> bool:
        found = self._waiting.get(key)
        if found is None or found.call != call or found.until <= asyncio.get_running_loop().time():
            return False
        if found.client.owner != client.owner:
            return False
        del self._waiting[key]
        return True


def _continuation(call: bytes, state: bytes | None) -> str:
    try:
        said = b"" if state is None else b"=" + unquote(state).encode("utf-8", "surrogatepass")
    except ValueError:  # no string: the client sends it back as it is
        said = state or b""
    return "goes on " + hashlib.sha256(call + said).hexdigest()
