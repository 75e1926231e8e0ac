"""What one replica seals and opens: sessions, and requests that it forwards.

The rules: what is sealed says to which replica it belongs, so that no request goes to an address that a
client chose; possession of it is no permission, because who may use it is compared where it is used.
"""

import binascii
import hashlib
import ipaddress
import re
import secrets
import time
from base64 import b32decode, b32encode
from collections.abc import Mapping

import msgspec

from mcpzip.model import limits
from mcpzip.model.principal import Principal, PrincipalId
from mcpzip.proxy.exchange import ENVELOPE_MEMBERS
from mcpzip.system.sealing import KeyRing, SealError, bound_to
from mcpzip.wire.canonical_json import canonical

SESSION_LIFETIME = 7 * 86_400.0
"""Seconds from its beginning on that a session can be rebuilt: clients keep one for days, not for weeks."""
FORWARD_LIFETIME = 30.0
"""Seconds that a forwarded request is good: the clocks of two replicas may differ by so much."""

STATE_LIFETIME = 86_400.0
"""Seconds that a person may take to answer. What mcpzip itself keeps for that ends sooner."""

_SESSION, _FORWARD, _STATE, _HANDLE = "session", "forward", "state", "handle"
_HANDLES = re.compile(rb"(?<![A-Za-z0-9])[rpq][0-9]{1,9}[-_]([a-z2-7]{36,160})(?![A-Za-z0-9])")
"""Of kept results, paused programs and questions to clients; in the name of a variable with an underscore."""
_SHORTEST_ID = 32


class Owner(msgspec.Struct, frozen=True, array_like=True):
    """A replica. address: HOST:PORT of its private address, "" for none. instance: another one after each
    start.
    """

    address: str
    instance: bytes


class SealedSession(msgspec.Struct, frozen=True, array_like=True):
    """What is in the Mcp-Session-Id of a session. home: where it began. version: that was agreed on. info,
    capabilities: of the client, JSON texts. person: who began it, None where nobody signs in. created: Unix
    time.
    """

    home: Owner
    version: str
    info: bytes
    capabilities: bytes
    person: PrincipalId | None
    created: float

    def is_of(self, principal: Principal | None) -> bool:
        """Whether it is the session of ``principal``."""
        return self.person == (None if principal is None else principal.id)


class Forwarded(msgspec.Struct, frozen=True, array_like=True):
    """What a replica says of a request that it forwards. nonce: of this request alone. expires: Unix time
    from which on it isn't taken. digest: of the body. principal: who makes the request; client: the IP
    address from which it came.
    """

    nonce: bytes
    expires: float
    digest: bytes
    principal: Principal | None
    client: str


class Replica:
    """This process among its replicas. owner: itself. drain: see `config.schema.ReplicasConfig`."""

    def __init__(self, ring: KeyRing, address: str = "", drain: float = 0.0) -> None:
        self._ring, self.drain = ring, drain
        self.owner = Owner(address, secrets.token_bytes(8))
        self._seen: dict[bytes, float] = {}
        """When the forwarded requests expire that came here, by nonce, the oldest first."""

    def is_here(self, owner: Owner) -> bool:
        """Whether what belongs to ``owner`` can be nowhere else: it is this process, or one before it at its
        address, or it can't be reached.
        """
        return not owner.address or owner.address == self.owner.address

    # --- sessions

    def seal_session(
        self, version: str, info: bytes, capabilities: bytes, principal: Principal | None
    ) -> str:
        """The Mcp-Session-Id of a new session. What is too long for a header isn't in it."""
        person = None if principal is None else principal.id
        info = info if len(info) <= limits.SEALED_INFO else b""
        capabilities = capabilities if len(capabilities) <= limits.SEALED_CAPABILITIES else b"{}"
        now = time.time()
        session = SealedSession(self.owner, version, info, capabilities, person, now)
        return self._ring.seal(_SESSION, msgspec.msgpack.encode(session), expires=now + SESSION_LIFETIME)

    def open_session(self, token: str) -> SealedSession | None:
        """The session with this Mcp-Session-Id; None if it is none, or too old."""
        if not _SHORTEST_ID <= len(token) <= limits.SEALED_SESSION:
            return None
        try:
            return msgspec.msgpack.decode(self._ring.open(_SESSION, token), type=SealedSession)
        except (SealError, msgspec.DecodeError):
            return None

    # --- what a client brings back

    def seal_state(self, state: bytes, asked: bytes, principal: Principal | None) -> str:
        """The `requestState` with which ``principal`` is asked something in place of ``state`` (JSON text).
        asked: what the request is, see `request_digest`. Raises ValueError if it is too long.
        """
        plaintext = msgspec.msgpack.encode((self.owner, state))
        bound = bound_to(asked, *_names(principal))
        return self._ring.seal(_STATE, plaintext, bound, expires=time.time() + STATE_LIFETIME)

    def open_state(self, token: str, asked: bytes, principal: Principal | None) -> tuple[Owner, bytes] | None:
        """Who has sealed a `requestState`, and what; None if it is another person's or request's, too old, or
        none.
        """
        try:
            plaintext = self._ring.open(_STATE, token, bound_to(asked, *_names(principal)))
            return msgspec.msgpack.decode(plaintext, type=tuple[Owner, bytes])
        except (SealError, msgspec.DecodeError):
            return None

    def handle_suffix(self, principal: Principal | None) -> str:
        """The end of a handle of ``principal``, which says where that is. "" without a private address."""
        if not self.owner.address:
            return ""
        plaintext = secrets.token_bytes(4) + _packed(self.owner.address)
        sealed = self._ring.seal_short(_HANDLE, plaintext, bound_to(*_names(principal)))
        return b32encode(sealed).decode("ascii").rstrip("=").lower()

    def handle_owner(self, suffix: str, principal: Principal | None) -> Owner | None:
        """Where what the handle with this end names is; None if it is none of ``principal``."""
        try:
            sealed = b32decode(suffix.upper() + "=" * (-len(suffix) % 8))
            found = self._ring.open_short(_HANDLE, sealed, bound_to(*_names(principal)))
        except (binascii.Error, SealError):
            return None
        return Owner(_unpacked(found[4:]), b"")

    def owner_in(self, text: bytes, principal: Principal | None) -> Owner | None:
        """The first other replica to which something belongs that ``text`` names by its handle; None for
        none. Of a long text the beginning is searched.
        """
        for at, found in enumerate(_HANDLES.finditer(text, 0, limits.HANDLES_SEARCHED)):
            if at >= limits.HANDLES_OPENED:
                break
            owner = self.handle_owner(found[1].decode("ascii"), principal)
            if owner is not None and not self.is_here(owner):
                return owner
        return None

    # --- forwarded requests

    def seal_forward(
        self, to: str, method: str, body: bytes, principal: Principal | None, client: str
    ) -> str:
        """What lets a request in at the private address ``to``, once."""
        expires, digest = time.time() + FORWARD_LIFETIME, hashlib.sha256(body).digest()
        said = Forwarded(secrets.token_bytes(16), expires, digest, principal, client)
        return self._ring.seal(_FORWARD, msgspec.msgpack.encode(said), bound_to(to, method))

    def open_forward(self, token: str, method: str) -> Forwarded | None:
        """What another replica says of a request that it sends here; None if it was not made by one, or came
        before, or too many others did.
        """
        now = time.time()
        try:
            raw = self._ring.open(_FORWARD, token, bound_to(self.owner.address, method))
            said = msgspec.msgpack.decode(raw, type=Forwarded)
        except (SealError, msgspec.DecodeError):
            return None
        if not now < said.expires <= now + 2 * FORWARD_LIFETIME:  # longer than it would be remembered
            return None
        while self._seen:
            oldest = next(iter(self._seen))
            if self._seen[oldest] > now:
                break
            del self._seen[oldest]
        if said.nonce in self._seen or len(self._seen) >= limits.FORWARDS_REMEMBERED:
            return None
        self._seen[said.nonce] = now + 2 * FORWARD_LIFETIME
        return said


def is_body(said: Forwarded, body: bytes) -> bool:
    """Whether ``body`` is that of the forwarded request."""
    return secrets.compare_digest(hashlib.sha256(body).digest(), said.digest)


def request_digest(method: str, fields: Mapping[str, bytes]) -> bytes:
    """What a request is, whatever it brings back of an earlier one: its method, and its params without their
    envelope. Long params are told by what they name only.
    """
    named = {key: value for key, value in fields.items() if key not in ENVELOPE_MEMBERS}
    if sum(map(len, named.values())) > limits.STATE_PARAMS:
        named = {key: value for key, value in named.items() if key in ("name", "uri")}
    found = hashlib.sha256()
    for key in sorted(named):
        found.update(bound_to(key, canonical(named[key])))
    return bound_to(method, found.digest())


def _names(principal: Principal | None) -> tuple[str, ...]:
    return () if principal is None else principal.id


def _packed(address: str) -> bytes:
    """HOST:PORT in few bytes."""
    host, _, port = address.rpartition(":")
    try:
        return b"4" + ipaddress.IPv4Address(host).packed + int(port).to_bytes(2, "big")
    except ValueError:
        return b"=" + address.encode()


def _unpacked(data: bytes) -> str:
    if data[:1] == b"4" and len(data) == 7:
        return f"{ipaddress.IPv4Address(data[1:5])}:{int.from_bytes(data[5:], 'big')}"
    return data[1:].decode("utf-8", "replace")
