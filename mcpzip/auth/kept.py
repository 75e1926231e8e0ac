"""How a grant is written down (pure).

The rules: a file says what it is, of which version, and of which server. What a later version wrote is not
read, and stays until somebody signs in again. What doesn't hold together is no grant: tokens are only given
back for the server, the resource and the issuer that they are for and from.

    {"format":"mcpzip-sign-in","version":1,"grant":{"url":"https://…/mcp","access_token":"…",…}}

With its secrets elsewhere it has ``"keyring":{"slot":"a","parts":1,"check":"…"}`` in their place.
``format`` and ``version`` come first in every version, so that any of them can tell what it holds.
"""

import hashlib
import re
from typing import Literal

import msgspec

from mcpzip.auth.grant import Grant
from mcpzip.model import limits
from mcpzip.system.formats import Format, Head, UnusableError

FORMAT = Format("mcpzip-sign-in", 1, "a sign-in")
Slot = Literal["a", "b"]

_URL = re.compile(r"([^:/?#]+://)([^/?#]*)([^#]*)(?:#.*)?", re.DOTALL)


class Elsewhere(msgspec.Struct, frozen=True):
    """Where in a keyring the secrets of a grant are.

    parts: how many texts they are in. check: the first half of their SHA-256, in hex.
    """

    slot: Slot
    parts: int
    check: str


class Kept(Head, omit_defaults=True):
    """What a file holds. keyring: where the secrets are; None for in ``grant`` itself."""

    grant: Grant
    keyring: Elsewhere | None = None


def canonical(url: str) -> str:
    """``url`` with its scheme and host in small letters and without a fragment (RFC 8707, section 2).

    It is otherwise as it was: two spellings that a server may tell apart are two servers.
    """
    parts = _URL.fullmatch(url)
    if parts is None:
        return url
    scheme, authority, rest = parts[1], parts[2], parts[3]
    user, at, host = authority.rpartition("@")
    return f"{_small(scheme)}{user}{at}{_small(host)}{rest}"


def key(url: str) -> str:
    """The name under which a server's grant is kept: the first half of the SHA-256 of `canonical`, in hex."""
    return hashlib.sha256(canonical(url).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def encode(grant: Grant, keyring: Elsewhere | None = None) -> bytes:
    """``grant`` as a file holds it. Raises ValueError for what can't be written down, or is too large."""
    data = msgspec.json.encode(Kept(FORMAT.name, FORMAT.version, grant, keyring))
    if len(data) > limits.SIGN_IN:
        raise ValueError(f"larger than {limits.SIGN_IN:,} bytes")
    return data


def decode(data: bytes, name: str) -> Kept:
    """What the file called ``name`` (a `key`) holds. Raises `UnusableError`."""
    kept = FORMAT.decode(data, Kept)
    if key(kept.grant.url) != name:
        raise UnusableError("holds the sign-in of another server")
    if not _of_one_issuer(kept.grant):
        raise UnusableError("holds tokens of one issuer and the metadata of another")
    if kept.grant.resource and _origin(kept.grant.resource) != _origin(kept.grant.url):
        raise UnusableError("holds tokens for another server")
    return kept


def _origin(url: str) -> str:
    """Scheme and host, within which a resource has to be (`mcp.shared.auth_utils.check_resource_allowed`)."""
    parts = _URL.fullmatch(canonical(url))
    return parts[1] + parts[2] if parts else url


def _of_one_issuer(grant: Grant) -> bool:
    """Whether the issuers that ``grant`` names are the same; a last slash, which parsers add, is none."""
    stated = (grant.server_metadata or {}).get("issuer")
    if not grant.issuer or not stated:
        return True
    return isinstance(stated, str) and stated.removesuffix("/") == grant.issuer.removesuffix("/")


def _small(text: str) -> str:
    """``text`` with A to Z in small letters; `str.lower` would make some other letters into one of these."""
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
