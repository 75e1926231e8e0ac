"""Checks of a subject that is an OAuth resource server: whom it lets in, and what it tells the others.

The rule: the runner plays the authorization server, so every token is real but for what the check changes.
Nothing here is about who may use which tool.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from mcpzip_conformance.channel.http import HttpChannel
from mcpzip_conformance.check import CONTRACT, MAY, MUST, SHOULD, SPEC_2025, SPEC_2026, check, expect
from mcpzip_conformance.checks.access_tokens import (
    ECHO,
    PROTECTED,
    accepted,
    asked,
    bearer,
    challenge,
    metadata,
    metadata_found,
    path_in,
    paths_of,
    protected,
    refused,
)
from mcpzip_conformance.checks.clustered import others_refused, remote, session_of
from mcpzip_conformance.errors import Finding, NotPlayableError
from mcpzip_conformance.issuer import PEOPLE
from mcpzip_conformance.raw_http import PING, RawHttp, initialize
from mcpzip_conformance.scene import SHOP
from mcpzip_conformance.stage import Stage

AUTHORIZATION = SPEC_2025 + "/basic/authorization"
MODERN = SPEC_2026 + "/basic/authorization"
DISCOVERY = AUTHORIZATION + "#protected-resource-metadata-discovery-requirements"
HANDLING = AUTHORIZATION + "#token-handling"
USAGE = AUTHORIZATION + "#token-requirements"
AUDIENCE = AUTHORIZATION + "#token-audience-binding-and-validation"
SCOPES = AUTHORIZATION + "#scope-challenge-handling"
PRIVILEGE = AUTHORIZATION + "#access-token-privilege-restriction"
HIJACKING = SPEC_2025 + "/basic/security_best_practices#session-hijacking"
WARNING = SPEC_2025 + "/basic/transports#security-warning"
RFC = "https://www.rfc-editor.org/rfc/rfc"

_HOUR = 3600
_COOL_DOWN = 32.0
"""Seconds: libraries ask for an issuer's keys every half a minute at most."""
_NOT_LET_IN = (401, 404, 405)
"""Of a request in a session without its token: it may have no GET and no DELETE, or hide the session."""
_EVIL = "evil.example"


# What anybody is told


@check("resource-server.no-token", MUST, AUTHORIZATION + "#error-handling", needs=PROTECTED)
async def no_token(stage: Stage) -> None:
    """A request without a token is answered with 401 and a challenge for Bearer, in both eras; one with
    another kind of credentials too."""
    async with protected(stage) as (http, _):
        for headers in ({}, {"Authorization": "Basic YW5uYTpzZWNyZXQ="}):
            for told in await asked(stage, http, headers):
                expect(told.status == 401, f"With {headers or 'no token'} it answers {told}.")
                expect(challenge(told), f"With {headers or 'no token'} its 401 has no challenge for Bearer.")


@check("resource-server.metadata", MUST, DISCOVERY, needs=PROTECTED)
async def resource_metadata(stage: Stage) -> None:
    """Anybody can read the metadata of the resource, where its challenge says or at a well-known path. They
    name the issuer, and as `resource` the URL for which tokens are."""
    async with protected(stage) as (http, issuer):
        found = await metadata_found(stage, http, issuer)
        expect(found, f"There are no metadata: neither where a 401 says nor at {paths_of(issuer.resource)}.")
        servers = found.get("authorization_servers")
        named = isinstance(servers, list) and issuer.url in servers
        expect(named, f"They name the authorization servers {servers!r}, and the issuer is {issuer.url}.")
        resource = str(found.get("resource"))
        expect(
            resource.rstrip("/") == issuer.resource.rstrip("/"),
            f"They are of the resource {resource!r}, and tokens are for {issuer.resource}.",
        )


@check("resource-server.metadata-url", SHOULD, DISCOVERY, needs=PROTECTED)
async def metadata_url(stage: Stage) -> None:
    """A challenge has the URL of the metadata (`resource_metadata`), and they are there."""
    async with protected(stage) as (http, _):
        for told in await asked(stage, http, {}):
            path = path_in(told)
            expect(path, f"Its challenge is {told.headers.get('www-authenticate')!r}.")
            expect(await metadata(http, path), f"At {path} there are no metadata.")


@check("resource-server.well-known", SHOULD, RFC + "9728#section-3.1", needs=PROTECTED)
async def well_known(stage: Stage) -> None:
    """The metadata are at the well-known path with the path of the resource behind it, and at the one
    without, where clients look next."""
    async with protected(stage) as (http, issuer):
        for path in paths_of(issuer.resource):
            expect(await metadata(http, path), f"At {path} there are no metadata.")


@check("resource-server.forged-host", MUST, CONTRACT, needs=PROTECTED)
async def forged_host(stage: Stage) -> None:
    """What a request says in `Host`, `X-Forwarded-Host` or `Forwarded` changes neither the metadata nor the
    challenge, and no token for that host is accepted."""
    spoofed = (
        {"X-Forwarded-Host": _EVIL, "X-Forwarded-Proto": "https"},
        {"Forwarded": f"host={_EVIL};proto=https"},
        {"Host": _EVIL},
    )
    async with protected(stage) as (http, issuer):
        stranger = issuer.token(aud=f"https://{_EVIL}/mcp")
        for headers in spoofed:
            for told in await asked(stage, http, headers):
                where = challenge(told).get("resource_metadata", "")
                expect(_EVIL not in where, f"With {headers} its challenge names {where}.")
            for told in await asked(stage, http, {**headers, **bearer(stranger)}):
                let_in = told.reply.result is not None
                expect(not let_in, f"With {headers} a token for https://{_EVIL}/mcp is answered with {told}.")
            for path in paths_of(issuer.resource):
                resource = str((await metadata(http, path, headers)).get("resource"))
                expect(_EVIL not in resource, f"With {headers} its metadata are of the resource {resource}.")


# Whom a token is for


@check("resource-server.audience", MUST, AUDIENCE, needs=PROTECTED)
async def audience(stage: Stage) -> None:
    """A token for another resource is refused with 401: another host, another path, a URL that only begins
    alike, a list of others, or none at all."""
    async with protected(stage) as (http, issuer):
        ours = issuer.resource.rstrip("/")
        others: list[object] = [
            "https://other.example/mcp",
            f"{ours}-other",
            f"{ours}/other",
            f"{ours}.{_EVIL}",
            ["https://other.example/mcp", issuer.url],
            [],
            None,
        ]
        for other in others:
            await refused(stage, http, issuer.token(aud=other), f"A token for {other!r}")


@check("resource-server.audience-list", MUST, RFC + "7519#section-4.1.3", needs=PROTECTED)
async def audience_list(stage: Stage) -> None:
    """A token for several resources, among them this one, is accepted."""
    async with protected(stage) as (http, issuer):
        several = ["https://other.example/mcp", issuer.resource]
        await accepted(stage, http, issuer.token(aud=several), f"A token for {several}")


@check("resource-server.audience-slash", MAY, AUTHORIZATION + "#canonical-server-uri", needs=PROTECTED)
async def audience_slash(stage: Stage) -> None:
    """A token for the resource with a slash at its end is accepted: clients write its URL in either way."""
    async with protected(stage) as (http, issuer):
        resource = issuer.resource.rstrip("/") + "/"
        await accepted(stage, http, issuer.token(aud=resource), f"A token for {resource}")


# Whose a token is, and when


@check("resource-server.issuer", MUST, RFC + "9068#section-4", needs=PROTECTED)
async def issuer_checked(stage: Stage) -> None:
    """A token of another issuer is refused with 401, also if its name is nearly the same, and one without an
    issuer."""
    async with protected(stage) as (http, issuer):
        for other in ("https://login.example", f"{issuer.url}/", f"{issuer.url}.{_EVIL}", None):
            await refused(stage, http, issuer.token(iss=other), f"A token of the issuer {other!r}")


@check("resource-server.expired", MUST, HANDLING, needs=PROTECTED)
async def expired(stage: Stage) -> None:
    """A token that has expired is refused with 401, and so is one that hasn't begun."""
    async with protected(stage) as (http, issuer):
        now = int(time.time())
        old = issuer.token(exp=now - _HOUR, iat=now - 2 * _HOUR)
        await refused(stage, http, old, "A token that expired an hour ago")
        await refused(stage, http, issuer.token(nbf=now + _HOUR), "A token that begins in an hour")


# Signatures


@check("resource-server.algorithm", MUST, RFC + "8725#section-3.1", needs=PROTECTED)
async def algorithm(stage: Stage) -> None:
    """A token without a signature (`none`, in any spelling) is refused with 401, and so is one with HS256
    whose secret is the issuer's public key."""
    async with protected(stage) as (http, issuer):
        for name in ("none", "None", "nOnE"):
            await refused(stage, http, issuer.unsigned(name), f"A token with the algorithm {name}")
        for of in ("pem", "jwk"):
            forged = issuer.signed_by_public_key(of)
            await refused(stage, http, forged, f"A token with HS256 and the public key ({of}) as its secret")


@check("resource-server.signature", MUST, HANDLING, needs=PROTECTED)
async def signature(stage: Stage) -> None:
    """A token is refused with 401 that was changed, or signed by another key: under the id of the issuer's
    key, under an unknown id, under none, or with that key in its header."""
    async with protected(stage) as (http, issuer):
        forged = {
            "A token that was changed": issuer.changed(),
            "A token by another key, under the id of the issuer's": issuer.by_a_stranger(),
            "A token by an unknown key": issuer.by_a_stranger(kid="unheard-of"),
            "A token by another key, without an id": issuer.by_a_stranger(kid=None),
            "A token by a key in its own header": issuer.with_its_own_key(),
        }
        for which, token in forged.items():
            await refused(stage, http, token, which)


@check("resource-server.critical", MUST, RFC + "7515#section-4.1.11", needs=PROTECTED)
async def critical(stage: Stage) -> None:
    """A token whose header names an extension that must be understood (`crit`), and isn't known, is refused
    with 401."""
    async with protected(stage) as (http, issuer):
        name = "https://example.com/unheard-of"
        token = issuer.token(header={"crit": [name], name: True})
        await refused(stage, http, token, "A token with an unknown critical extension")


@check("resource-server.rotated-key", SHOULD, RFC + "8725#section-3.1", needs=PROTECTED)
async def rotated_key(stage: Stage) -> None:
    """When the issuer has a new key, tokens with it are accepted without a restart, within half a minute: for
    so long a resource server may not ask again, so that forged tokens don't make it ask."""
    async with protected(stage) as (http, issuer):
        issuer.rotate()
        deadline = time.monotonic() + _COOL_DOWN
        while True:
            try:
                await accepted(stage, http, issuer.token(), "A token with the issuer's new key")
            except Finding:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(1.0)
            else:
                return


# Requests


@check("resource-server.query", SHOULD, USAGE, needs=PROTECTED)
async def query(stage: Stage) -> None:
    """A token in the query of the URL, where logs and other servers see it, lets nobody in."""
    async with protected(stage) as (http, issuer):
        told = await http.post(initialize(), {}, f"?access_token={issuer.token()}")
        expect(told.reply.result is None, f"It is answered with {told}.")


@check("resource-server.every-request", MUST, USAGE, needs=PROTECTED)
async def every_request(stage: Stage) -> None:
    """Every request needs its token, also in a session: requests, the stream (GET) and the end (DELETE)
    without one, or with one that has expired, are refused."""
    async with protected(stage) as (http, issuer):
        good = bearer(issuer.token())
        old = bearer(issuer.token(exp=int(time.time()) - _HOUR))
        headers = await http.session(more=good)
        for lacking, which in (({}, "without a token"), (old, "with a token that has expired")):
            for verb, told in (
                ("ping", await http.post(PING, {**headers, **lacking})),
                ("GET", await http.get({"Accept": "text/event-stream", **headers, **lacking})),
                ("DELETE", await http.delete({**headers, **lacking})),
            ):
                expect(told.status in _NOT_LET_IN, f"A {verb} {which} in a session is answered with {told}.")
        told = await http.post(PING, {**headers, **good})
        expect(told.reply.result is not None, f"With its token, a ping is then answered with {told}.")


@check("resource-server.scope", MUST, SCOPES, needs=PROTECTED)
async def scope(stage: Stage) -> None:
    """A token without the scope that is needed lets nobody in."""
    async with _scoped(stage) as (http, token):
        for told in await asked(stage, http, bearer(token)):
            expect(told.status in (401, 403), f"A token without the scope is answered with {told}.")


@check("resource-server.scope-challenge", SHOULD, SCOPES, needs=PROTECTED)
async def scope_challenge(stage: Stage) -> None:
    """A token without the scope that is needed is answered with 403, `insufficient_scope`, the scope and the
    URL of the metadata, so that a client can ask for more."""
    wanted = stage.subject.authorization
    async with _scoped(stage) as (http, token):
        for told in await asked(stage, http, bearer(token)):
            expect(told.status == 403, f"A token without the scope is answered with {told}.")
            said = challenge(told)
            named = wanted is not None and wanted.scope in said.get("scope", "").split()
            complete = said.get("error") == "insufficient_scope" and named and said.get("resource_metadata")
            expect(complete, f"Its challenge is {told.headers.get('www-authenticate')!r}.")


@asynccontextmanager
async def _scoped(stage: Stage) -> AsyncIterator[tuple[RawHttp, str]]:
    """A subject that runs, and a token that is good but for its scope. Raises NotPlayableError if the subject
    needs none."""
    declared = stage.subject.authorization
    if declared is None or not declared.scope:
        raise NotPlayableError("Its file names no scope that it needs.")
    async with protected(stage) as (http, issuer):
        yield http, issuer.token(scope="openid")


@check("resource-server.session-of-another-person", MUST, HIJACKING, needs=PROTECTED)
async def session_of_another_person(stage: Stage) -> None:
    """The session of one person is closed to another one with a token of their own: to requests, to its
    stream, and to its end."""
    player = await stage.started(remote(stage, ECHO))
    async with RawHttp(stage, player) as http, RawHttp(stage, player, stage.credentials(PEOPLE[1])) as other:
        await others_refused(http, other, await session_of(http), "")


@check("resource-server.origin", MUST, WARNING, needs=PROTECTED)
async def origin(stage: Stage) -> None:
    """A request of a web page that was not allowed is refused with 403, also with a good token."""
    async with protected(stage) as (http, issuer):
        for told in await asked(stage, http, {**bearer(issuer.token()), "Origin": f"https://{_EVIL}"}):
            expect(told.status == 403, f"With the Origin https://{_EVIL} it answers {told}.")


@check("resource-server.token-passthrough", MUST, PRIVILEGE, needs=PROTECTED)
async def token_passthrough(stage: Stage) -> None:
    """The token of a client reaches no server: neither in a message nor, if the server is on HTTP, in a
    header."""
    player = await stage.through(remote(stage, ECHO))
    channel = player.client.channel
    assert isinstance(channel, HttpChannel), "the check needs http"
    with suppress(Finding):  # only what the server got counts
        await player.call(SHOP, "echo", b'{"n":1}')
    record = stage.record(SHOP)
    expect(record.calls("echo"), "The call reached no server.")
    signature = channel.headers["Authorization"].rpartition(".")[2]
    expect(signature.encode() not in record.path.read_bytes(), "The server got the token.")
