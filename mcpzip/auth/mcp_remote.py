"""What mcp-remote keeps for a server: read, so that who signed in there need not do it again here.

    $MCP_REMOTE_CONFIG_DIR or ~/.mcp-auth/
        mcp-remote-v1/               since 0.3.2
        mcp-remote-0.1.38/           a folder a release, before that
            {hash}_tokens.json       the token response; since 0.1.46 with ``expires_at``, in ms
            {hash}_client_info.json  the registration (RFC 7591); absent for a client configured by hand

The hash is mcp-remote's ``getServerUrlHash`` (read in the npm packages 0.0.22 to 0.15.1): the MD5, in hex, of
the server's URL and whatever else was on the command line, joined by ``|``. Up to 0.1.29 the URL stood alone;
from 0.1.30 on ``--resource`` and then the headers follow it, as JSON in the order of their names, with their
``${VAR}`` unreplaced. Headers whose variables mcp-remote replaced are therefore never found here, nor is what
was signed in to with its options for the authorization request.

The rules: only the files of this very hash are opened, for a file under another name is another server's;
nothing is written there; what is torn or foreign is passed over in silence.
"""

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping

import msgspec

from mcpzip.auth.grant import Grant
from mcpzip.auth.scopes import well_formed
from mcpzip.config.paths import expand_home
from mcpzip.model import limits
from mcpzip.system.files import read_bytes_limited

SOURCE = "mcp-remote"
"""What `Grant.source` says of it."""

HASHES_HEADERS = (0, 1, 30)
"""The first version whose hash takes in more than the URL."""

_FOLDER = re.compile(r"mcp-remote-(?:v(\d{1,9})|(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-(\d{1,9}))?)", re.ASCII)
_NO_SUFFIX = 1 << 31  # 0.0.8 is later than 0.0.8-0 (Semantic Versioning 2.0.0, 11)


def read(url: str, headers: Mapping[str, str], env: Mapping[str, str]) -> Grant | None:
    """What mcp-remote was granted for the server at ``url``; None when that is nothing of use.

    url, headers: as the config has them. env: where the home folder is, and mcp-remote's own variable.
    The newest store that has something is taken. Reads a few small files; never raises.
    """
    base = env.get("MCP_REMOTE_CONFIG_DIR") or expand_home("~/.mcp-auth", env)
    for version, folder in sorted(_folders(base), reverse=True):
        alone = version < (0, *HASHES_HEADERS)
        for resource in ("",) if alone else ("", url):
            name = server_hash(url) if alone else server_hash(url, resource, headers)
            if grant := _grant(os.path.join(folder, name), url, resource):
                return grant
    return None


def server_hash(url: str, resource: str = "", headers: Mapping[str, str] | None = None) -> str:
    """What mcp-remote calls the server at ``url``, asked for with ``--resource`` and ``--header``."""
    parts = [url]
    if resource:
        parts.append(resource)
    if headers:
        # JSON.stringify, whose replacer is the sorted names
        parts.append(json.dumps(dict(sorted(headers.items())), ensure_ascii=False, separators=(",", ":")))
    text = "|".join(parts).encode("utf-8", "replace")
    return hashlib.md5(text, usedforsecurity=False).hexdigest()


def _folders(base: str) -> Iterator[tuple[tuple[int, ...], str]]:
    """The stores in ``base``, each with what orders them: the number of the format, then the version."""
    try:
        names = os.listdir(base)
    except OSError:
        return
    for name in names:
        if found := _FOLDER.fullmatch(name):
            store, *version, suffix = found.groups()
            numbers = [int(each) for each in version if each]
            order = (int(store),) if store else (0, *numbers, int(suffix) if suffix else _NO_SUFFIX)
            yield order, os.path.join(base, name)


def _grant(stem: str, url: str, resource: str) -> Grant | None:
    tokens, written_at = _document(f"{stem}_tokens.json")
    access = _text(tokens, "access_token")
    if not access or _text(tokens, "token_type").lower() not in ("", "bearer"):
        return None
    client, _ = _document(f"{stem}_client_info.json")
    issuer = _text(tokens, "issuer") or _text(client, "issuer")
    refresh = _text(tokens, "refresh_token")
    expires_at, lasts = _number(tokens, "expires_at"), _number(tokens, "expires_in")
    if expires_at is not None:
        expires_at /= 1000
    elif lasts is not None:
        expires_at = written_at + lasts
    grant = Grant(
        url=url,
        resource=resource,
        issuer=issuer,
        # mcp-remote notes the issuer there; it is no part of the registration
        client={k: v for k, v in client.items() if k != "issuer"} if _text(client, "client_id") else {},
        access_token=access,
        refresh_token=refresh,
        scope=well_formed(_text(tokens, "scope")),
        expires_at=expires_at,
        obtained_at=written_at,
        source=SOURCE,
    )
    return grant if refresh or not grant.expired(time.time()) else None


def _document(path: str) -> tuple[dict[str, object], float]:
    """The object in the file, {} when there is none, and when it was written (Unix s)."""
    try:
        there = os.stat(path)
        if not stat.S_ISREG(there.st_mode):  # a pipe would keep us waiting
            return {}, 0.0
        found = msgspec.json.decode(read_bytes_limited(path, limits.MCP_REMOTE))
    except (OSError, ValueError, RecursionError):  # absent or unreadable; torn, or not UTF-8
        return {}, 0.0
    return (found, there.st_mtime) if isinstance(found, dict) else ({}, 0.0)


def _text(document: Mapping[str, object], key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""


def _number(document: Mapping[str, object], key: str) -> float | None:
    value = document.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e15:
        return None
    return float(value)
