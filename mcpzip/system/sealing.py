"""Seals data that goes through other hands and comes back: encrypted, and bound to what it is for.

A token is base64url without padding of: the version (1 byte), the id of the key (4), a nonce (12), and the
AES-256-GCM ciphertext with its tag (16 more than the plaintext). The plaintext begins with the time of expiry
(8 bytes, Unix seconds, 0 for none). The key of the cipher is derived from a key of the ring and the purpose
(HKDF-SHA256, RFC 5869), so that a token of one purpose is none of another.

The nonce is random, so one key seals at most 2**32 tokens of one purpose (NIST SP 800-38D, 8.3): 1,000 a
second for 49 days. The package ``cryptography`` is imported when the first ring is made.
"""

import base64
import binascii
import hashlib
import os
import re
import struct
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

SHORTEST_KEY, LONGEST_KEY = 32, 1024
"""Bytes of a key: no fewer than AES-256 has."""
MOST_KEYS = 16
"""Keys of a ring: one seals, and the others open what was sealed before a rotation or two."""
LARGEST = 1 << 20
"""Bytes of a plaintext."""
LARGEST_SHORT = 256
"""Bytes of a plaintext of a short token."""

_VERSION = 1
_HEAD = struct.Struct(">B4s12s")
_EXPIRY = struct.Struct(">Q")
_TAG = 16
_SMALLEST_TOKEN = _HEAD.size + _EXPIRY.size + _TAG
LONGEST_TOKEN = ((_SMALLEST_TOKEN + LARGEST) * 4 + 2) // 3
"""Characters."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_KEY = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


class SealError(Exception):
    """Why a token isn't opened: the rest of a sentence that begins with "the token". Whoever sent it is told
    nothing of it, because it would help to forge one.
    """


class SealingMissingError(Exception):
    """The package ``cryptography`` is not installed; the extra ``team`` brings it."""


def read_key(text: str) -> bytes:
    """The key in ``text``, which is base64 in either alphabet. Raises ValueError with what is wrong, which
    doesn't repeat the text.
    """
    text = text.strip()
    if not _KEY.fullmatch(text):
        raise ValueError("it is not base64")
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        key = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except binascii.Error:
        raise ValueError("it is not base64") from None
    if not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise ValueError(f"it has {len(key):,} bytes, and not {SHORTEST_KEY} to {LONGEST_KEY:,}")
    return key


class KeyRing:
    """Seals with its first key, and opens what any of its keys has sealed."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """keys: 1 to `MOST_KEYS`, as `read_key` returns them. Raises SealingMissingError, and ValueError for
        keys that are none.
        """
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise SealingMissingError from None
        if not 1 <= len(keys) <= MOST_KEYS:
            raise ValueError(f"a ring has 1 to {MOST_KEYS} keys")
        if any(not SHORTEST_KEY <= len(key) <= LONGEST_KEY for key in keys):
            raise ValueError(f"a key has {SHORTEST_KEY} to {LONGEST_KEY:,} bytes")
        self._keys = {key_id(key): key for key in keys}
        if len(self._keys) < len(keys):
            raise ValueError("a key is there twice")
        self._first = key_id(keys[0])
        self._ciphers: dict[tuple[bytes, str], AESGCM] = {}
        self._short_ciphers: dict[tuple[bytes, str], AESSIV] = {}

    def __repr__(self) -> str:
        """Without the keys."""
        return f"KeyRing({', '.join(each.hex() for each in self._keys)})"

    def seal(
        self, purpose: str, plaintext: bytes, associated_data: bytes = b"", *, expires: float = 0
    ) -> str:
        """A token from which ``open`` returns ``plaintext``, given the same purpose and associated data.

        purpose: one of a few fixed texts. expires: Unix time in seconds from which on it isn't opened; 0 for
        never. Raises ValueError for a plaintext of more than `LARGEST` bytes.
        """
        if len(plaintext) > LARGEST:
            raise ValueError(f"no more than {LARGEST:,} bytes are sealed")
        head = _HEAD.pack(_VERSION, self._first, os.urandom(12))
        content = _EXPIRY.pack(max(0, int(expires))) + plaintext
        sealed = self._cipher(self._first, purpose).encrypt(head[5:], content, head + associated_data)
        return base64.urlsafe_b64encode(head + sealed).rstrip(b"=").decode("ascii")

    def is_current(self, token: str) -> bool:
        """Whether ``token``, which this ring opens, is sealed with its first key."""
        head = base64.urlsafe_b64decode(token[:8])
        return head[1:5] == self._first

    def open(
        self, purpose: str, token: str, associated_data: bytes = b"", *, now: float | None = None
    ) -> bytes:
        """The plaintext of ``token``. now: Unix time in seconds; default: the clock's. Raises SealError."""
        if len(token) > LONGEST_TOKEN or not _TOKEN.fullmatch(token):
            raise SealError("is none")
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except binascii.Error:
            raise SealError("is none") from None
        if len(raw) < _SMALLEST_TOKEN or raw[0] != _VERSION:
            raise SealError("is none, or of another version")
        if base64.urlsafe_b64encode(raw).rstrip(b"=") != token.encode("ascii"):
            raise SealError("is none")  # its last character has bits that are no part of it
        _, key, nonce = _HEAD.unpack_from(raw)
        if key not in self._keys:
            raise SealError("is sealed with a key that isn't in the ring")
        from cryptography.exceptions import InvalidTag

        head, sealed = raw[: _HEAD.size], raw[_HEAD.size :]
        try:
            content = self._cipher(key, purpose).decrypt(nonce, sealed, head + associated_data)
        except InvalidTag:
            raise SealError("was changed, or is for something else") from None
        (expires,) = _EXPIRY.unpack_from(content)
        if expires and expires <= (time.time() if now is None else now):
            raise SealError("has expired")
        return content[_EXPIRY.size :]

    def seal_short(self, purpose: str, plaintext: bytes, associated_data: bytes = b"") -> bytes:
        """The same in 16 bytes more than ``plaintext``, for what people or models copy (AES-SIV, RFC 5297).
        The same arguments have the same token, and it doesn't expire.
        """
        if not 1 <= len(plaintext) <= LARGEST_SHORT:
            raise ValueError(f"1 to {LARGEST_SHORT:,} bytes are sealed")
        return self._short_cipher(self._first, purpose).encrypt(plaintext, [associated_data])

    def open_short(self, purpose: str, token: bytes, associated_data: bytes = b"") -> bytes:
        """What `seal_short` has sealed. Raises SealError."""
        from cryptography.exceptions import InvalidTag

        if not _TAG < len(token) <= _TAG + LARGEST_SHORT:
            raise SealError("is none")
        for key in self._keys:
            try:
                return self._short_cipher(key, purpose).decrypt(token, [associated_data])
            except InvalidTag:
                pass
        raise SealError("was changed, or is for something else")

    def _short_cipher(self, key: bytes, purpose: str) -> "AESSIV":
        cipher = self._short_ciphers.get((key, purpose))
        if cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV

            cipher = AESSIV(self._derived(key, b"mcpzip seal short 1 " + purpose.encode(), 64))
            self._short_ciphers[key, purpose] = cipher
        return cipher

    def _cipher(self, key: bytes, purpose: str) -> "AESGCM":
        cipher = self._ciphers.get((key, purpose))
        if cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            cipher = AESGCM(self._derived(key, b"mcpzip seal 1 " + purpose.encode(), 32))
            self._ciphers[key, purpose] = cipher
        return cipher

    def _derived(self, key: bytes, info: bytes, size: int) -> bytes:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        return HKDF(SHA256(), size, None, info).derive(self._keys[key])


def key_id(key: bytes) -> bytes:
    """The 4 bytes by which a token names its key; they tell nothing else of it."""
    return hashlib.sha256(b"mcpzip key id " + key).digest()[:4]


def bound_to(*texts: str | bytes) -> bytes:
    """Associated data of several texts: no two different lists of texts have the same."""
    parts = [text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text for text in texts]
    return b"".join(struct.pack(">Q", len(part)) + part for part in parts)
