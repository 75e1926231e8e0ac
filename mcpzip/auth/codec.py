"""The file format of a grant (pure).

The rules: a file names its format, its version and its server. A file that a newer version wrote is not
read, and stays until somebody signs in again. A file whose server, person, resource or issuer do not match is
not used: tokens are only given back for the server and the resource that they are for, to the person whose
they are, and the issuer that they are from.

    {"format":"mcpzip-sign-in","version":1,"grant":{"url":"https://…/mcp","access_token":"…",…}}

With its secrets elsewhere it has ``"keyring":{"slot":"a","parts":1,"check":"…"}`` in their place.
``format`` and ``version`` come first in every version, so that any of them can tell what it holds.
"""

import hashlib
import re
from functools import lru_cache
from typing import Literal

import msgspec

from mcpzip.auth.grant import Grant
from mcpzip.model import limits
from mcpzip.model.principal import PrincipalId
from mcpzip.system.formats import Format, Head, UnusableError

FORMAT = Format("mcpzip-sign-in", 1, "a sign-in")
Slot = Literal["a", "b"]

_DEFAULT_PORT = re.compile(r"\A(?:(https://[^/?#]*):443|(http://[^/?#]*):80)(?=[/?#]|\Z)")
_URL = re.compile(r"([^:/?#]+://)([^/?#]*)([^#]*)(?:#.*)?", re.DOTALL)


class KeyringEntry(msgspec.Struct, frozen=True):
    """Where in a keyring the secrets of a grant are.

    parts: how many texts they are in. check: the first half of their SHA-256, in hex.
    """

    slot: Slot
    parts: int
    check: str


class StoredGrant(Head, omit_defaults=True):
    """What a file holds. keyring: where the secrets are; None for in ``grant`` itself."""

    grant: Grant
    keyring: KeyringEntry | None = None


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


def normalized(url: str) -> str:
    """`canonical`, and without a default port."""
    return _DEFAULT_PORT.sub(r"\1\2", canonical(url))


@lru_cache(maxsize=1_024)  # each request asks
def key(url: str, person: PrincipalId | None = None) -> str:
    """The name under which a server's grant is kept: the first half of the SHA-256 of `canonical`, in hex.
    For that of a ``person``, who it is goes in before.
    """
    whose = "" if person is None else "".join(f"{len(part)}:{part}" for part in ("person", *person))
    return hashlib.sha256(f"{whose}{canonical(url)}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def encode(grant: Grant, keyring: KeyringEntry | None = None) -> bytes:
    """``grant`` as a file holds it. Raises ValueError for what can't be written down, or is too large."""
    data = msgspec.json.encode(StoredGrant(FORMAT.name, FORMAT.version, grant, keyring))
    if len(data) > limits.SIGN_IN:
        raise ValueError(f"larger than {limits.SIGN_IN:,} bytes")
    return data


def decode(data: bytes, name: str) -> StoredGrant:
    """What the file called ``name`` (a `key`) holds. Raises `UnusableError`."""
    stored = FORMAT.decode(data, StoredGrant)
    if key(stored.grant.url, stored.grant.person) != name:
        raise UnusableError("holds the sign-in of another server, or person")
    if not _of_one_issuer(stored.grant):
        raise UnusableError("holds tokens of one issuer and the metadata of another")
    if stored.grant.resource and _origin(stored.grant.resource) != _origin(stored.grant.url):
        raise UnusableError("holds tokens for another server")
    return stored


def _origin(url: str) -> str:
    """Scheme and host, within which a resource has to be (`metadata.covers`)."""
    parts = _URL.fullmatch(normalized(url))
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
