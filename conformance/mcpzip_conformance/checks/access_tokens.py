"""What the checks of the group resource-server have in common: the subject behind its issuer, and requests
with one token.

The rule: a token that is refused is good but for one thing; that the good one is accepted is asked first, so
that a subject which refuses everything fails.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import msgspec

from mcpzip.wire import MODERN_VERSION, stamp_request
from mcpzip_conformance.check import expect
from mcpzip_conformance.checks.clustered import remote
from mcpzip_conformance.issuer import Issuer
from mcpzip_conformance.player import CLIENT_INFO
from mcpzip_conformance.raw_http import RawHttp, Response, initialize, request
from mcpzip_conformance.scene import server, tool
from mcpzip_conformance.stage import Stage

PROTECTED = ("http", "issuer")
WELL_KNOWN = "/.well-known/oauth-protected-resource"

ECHO = server(tools=[tool("echo")])
_PARAMETER = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_MODERN = {"MCP-Protocol-Version": MODERN_VERSION, "Mcp-Method": "tools/list"}


@asynccontextmanager
async def protected(stage: Stage) -> AsyncIterator[tuple[RawHttp, Issuer]]:
    """A subject that runs, requests to it without a token, and its issuer. A good token was accepted."""
    player = await stage.started(remote(stage, ECHO))
    async with RawHttp(stage, player, {}) as http:
        issuer = stage.values.issuer
        await accepted(stage, http, issuer.token(), "A good token")
        yield http, issuer


def bearer(token: str) -> dict[str, str]:
    """The header with a token."""
    return {"Authorization": f"Bearer {token}"}


async def asked(stage: Stage, http: RawHttp, headers: dict[str, str]) -> list[Response]:
    """The answers to the first request of a client of each era that the subject speaks."""
    answers = [await http.post(initialize(), headers)]
    if "modern" not in stage.subject.missing():
        body = request("tools/list", stamp_request(None, MODERN_VERSION, CLIENT_INFO, b"{}"))
        answers.append(await http.post(body, {**_MODERN, **headers}))
    return answers


async def accepted(stage: Stage, http: RawHttp, token: str, which: str) -> None:
    """Raises Finding unless requests with this token are answered."""
    for told in await asked(stage, http, bearer(token)):
        expect(told.reply.result is not None, f"{which} is answered with {told}.")


async def refused(stage: Stage, http: RawHttp, token: str, which: str) -> None:
    """Raises Finding unless requests with this token are answered with 401."""
    for told in await asked(stage, http, bearer(token)):
        expect(told.status == 401, f"{which} is answered with {told}.")


def challenge(told: Response) -> dict[str, str]:
    """The parameters of the challenge of a 401 or a 403 (RFC 6750, section 3); {} if it has none for
    Bearer."""
    said = told.headers.get("www-authenticate", "")
    at = re.search(r"(?:^|[\s,])Bearer(?:\s|,|$)", said, re.IGNORECASE)
    if at is None:
        return {}
    found = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(said[at.end() :])}
    return {"": "Bearer", **found}


async def metadata(http: RawHttp, path: str, headers: dict[str, str] | None = None) -> dict[str, object]:
    """The metadata of the resource (RFC 9728) at this path of the subject; {} if there are none."""
    told = await http.get({"Accept": "application/json", **(headers or {})}, path)
    if told.status != 200:
        return {}
    try:
        found = msgspec.json.decode(told.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def paths_of(resource: str) -> tuple[str, str]:
    """Where the metadata of a resource can be (RFC 9728, section 3.1): with its path, and without."""
    return WELL_KNOWN + urlsplit(resource).path.rstrip("/"), WELL_KNOWN


def path_in(told: Response) -> str:
    """The path of the metadata that a challenge names; "" if it names none."""
    return urlsplit(challenge(told).get("resource_metadata", "")).path


async def metadata_found(stage: Stage, http: RawHttp, issuer: Issuer) -> dict[str, object]:
    """The metadata, as a client finds them: where the challenge says, or at the well-known paths."""
    [told, *_] = await asked(stage, http, {})
    for path in filter(None, (path_in(told), *paths_of(issuer.resource))):
        if found := await metadata(http, path):
            return found
    return {}
