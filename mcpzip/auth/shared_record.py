"""A sign-in as it lies in a store that processes share (pure, but for the cipher's nonce).

The rules: the grant is sealed, and bound to the namespace and to the server that it is for: whoever can write
to the store can't put one in place of another. Tokens that one process was granted are not lost because
another one noted that there are none.

    {"format":"mcpzip-shared-sign-in","version":1,"refreshing":"…","sealed":"…"}

The sealed part is what a file of the sign-in holds (`mcpzip.auth.codec`).
"""

import msgspec

from mcpzip.auth import codec
from mcpzip.auth.grant import Grant
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.sealing import KeyRing, SealError, bound_to

FORMAT = Format("mcpzip-shared-sign-in", 1, "a sign-in")
PURPOSE = "sign-in"


class SharedRecord(Head):
    """What lies in the store. refreshing: which process shows the refresh token to the authorization server
    now, and has not written yet what came of it; "" for none. sealed: the grant.
    """

    refreshing: str
    sealed: str


def encode(grant: Grant, ring: KeyRing, namespace: str, refreshing: str = "") -> bytes:
    """Raises ValueError for what can't be written down, or is too large."""
    name = codec.key(grant.url, grant.person)
    sealed = ring.seal(PURPOSE, codec.encode(grant), bound_to(namespace, name))
    return msgspec.json.encode(SharedRecord(FORMAT.name, FORMAT.version, refreshing, sealed))


def decode(data: bytes) -> SharedRecord:
    """Raises UnusableError."""
    return FORMAT.decode(data, SharedRecord)


def opened(record: SharedRecord, ring: KeyRing, namespace: str, name: str) -> Grant:
    """The grant of the server whose `codec.key` is ``name``. Raises UnusableError."""
    try:
        data = ring.open(PURPOSE, record.sealed, bound_to(namespace, name))
    except SealError as error:
        raise UnusableError(str(error)) from None
    return codec.decode(data, name).grant


def settled(before: Grant | None, ours: Grant, theirs: Grant | None) -> Grant:
    """What to keep when somebody wrote ``theirs`` while we made ``ours`` of ``before``.

    New tokens are kept, those granted last if both are new. A note of ours, such as that a refresh failed, is
    about tokens that theirs replaced.
    """
    if theirs is None:
        return ours
    had = before.access_token if before is not None else ""
    if not ours.access_token or ours.access_token == had:
        return theirs
    replaced = bool(theirs.access_token) and theirs.access_token != had
    return theirs if replaced and theirs.obtained_at > ours.obtained_at else ours
