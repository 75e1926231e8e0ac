"""Signing in to a server with a person, and out of it. Imports the SDK.

The rule: what the server itself asks for is what is signed in to: it is asked first, and its refusal is what
the flow begins with.
"""

import asyncio

import httpx
import httpx2
from mcp.client.auth.utils import (
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    union_scopes,
)
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER
from pydantic import AnyUrl

from mcpzip.auth.deferred import DeferredOAuth
from mcpzip.auth.discovery import TIMEOUT, find_resource, send
from mcpzip.auth.failures import FAILURES, BusyError, plainly
from mcpzip.auth.flow import OAuth
from mcpzip.auth.grant import Grant
from mcpzip.auth.memory import granted, recall
from mcpzip.auth.provider import Person
from mcpzip.auth.scopes import well_formed
from mcpzip.auth.store import Store
from mcpzip.config.schema import ServerConfig
from mcpzip.http.client import Client
from mcpzip.model.errors import LoginError
from mcpzip.model.quoting import shortened
from mcpzip.system.threads import in_thread
from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    MODERN_VERSION,
    initialize_params,
    join_object,
    quote,
    stamp_request,
)
from mcpzip.wire.client_info import CLIENT_INFO

_ACCEPT = "application/json, text/event-stream"
_SESSION_HEADER = "mcp-session-id"


async def sign_in(
    server: ServerConfig, store: Store, person: Person | None, *, force: bool = False
) -> Grant | None:
    """Signs in to ``server`` and keeps what is granted. None: it wants no login.

    Where it is signed in to already, that stays, unless ``force`` says otherwise or a call lacked a scope.
    person: who is asked; None where the machine signs in by itself. Raises LoginError.
    """
    auth = OAuth(server, store, person=person)
    try:
        await auth.catch_up()
        refusal = await _refusal(auth, force=force)
        if refusal is None:
            return auth.grant if auth.grant is not None and auth.grant.access_token else None
        _forget_other_addresses(auth, person)
        await auth.run(_asking_for(refusal, auth))
        grant = granted(auth.context, server.url, auth.now())
        async with auth.alone():
            await in_thread(lambda: store.save(grant), "auth")
    except LoginError as error:
        if str(error)[:1].isupper():
            raise
        raise LoginError(f"{server.name}: {error}") from error  # it was begun as a part of a sentence
    except FAILURES as error:
        raise LoginError(f"{server.name}: {plainly(error)}.") from error
    return grant


async def sign_out(server: ServerConfig, store: Store) -> list[str]:
    """Has the server forget what it granted, where it can (RFC 7009), and forgets it here.

    Returns sentences on what could not be done. Raises LoginError when it can't be forgotten here.
    """
    auth, left = OAuth(server, store), list[str]()
    try:
        async with auth.alone():
            grant = await in_thread(lambda: store.load(server.url), "auth")
            recall(auth.context, grant, auth.config)
            if grant is not None:
                left = await _revoke(auth, grant)
            await in_thread(lambda: store.remove(server.url), "auth")
    except (OSError, BusyError) as error:
        raise LoginError(f"{server.name}: the sign-in can't be removed: {plainly(error)}.") from error
    return left


async def _revoke(auth: OAuth, grant: Grant) -> list[str]:
    metadata = auth.context.oauth_metadata
    tokens = {"refresh_token": grant.refresh_token, "access_token": grant.access_token}
    if not any(tokens.values()):
        return []
    where = None if metadata is None else metadata.revocation_endpoint
    if where is None:
        return ["Its authorization server can't be told; what it granted stays good there until it expires."]
    for kind, token in tokens.items():
        if not token:
            continue
        data = {"token": token, "token_type_hint": kind, "client_id": str(grant.client.get("client_id", ""))}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        try:
            data, headers = auth.context.prepare_token_auth(data, headers)
            response = await send(httpx2.Request("POST", str(where), data=data, headers=headers), auth.near)
        except FAILURES as error:
            return [f"Its authorization server was not told: {plainly(error)}."]
        if response.status_code != 200:
            return [f"Its authorization server refused to forget the {kind} (HTTP {response.status_code})."]
    return []


async def _refusal(auth: OAuth, *, force: bool) -> httpx2.Response | None:
    """How ``auth``'s server refuses to be asked; None when there is nothing to sign in for."""
    grant = auth.grant
    good = grant is not None and not force and not grant.ended and not grant.wanted_scope
    refusal = await _asked(auth, auth if good and grant is not None and grant.access_token else None)
    if refusal is not None or (good and grant is not None and grant.access_token):
        return refusal
    # It is open so far, and may refuse what it is asked later on.
    if await find_resource(auth.server.url) is None:
        return None
    return httpx2.Response(401, request=_message(auth.server, "tools/list", modern=True))


async def _asked(auth: OAuth, signed: OAuth | None) -> httpx2.Response | None:
    """The server's refusal of a first few harmless requests; None when it refuses none."""
    server, url = auth.server, auth.server.url
    client = Client(url, None if signed is None else DeferredOAuth.loaded(signed))
    try:
        if server.transport == "sse":
            stream = httpx2.Request("GET", url, headers={**server.headers, "Accept": "text/event-stream"})
            return await _refused(client, stream)
        modern = await _refused(client, _message(server, "tools/list", modern=True))
        if modern is not None:
            return modern
        opening = _message(server, "initialize", modern=False)
        session = dict[str, str]()
        refused = await _refused(client, opening, session)
        if refused is not None or not session:
            return refused
        listing = _message(server, "tools/list", modern=False)
        listing.headers.update(session)
        refused = await _refused(client, listing)
        bye = httpx2.Request("DELETE", url, headers={**server.headers, **session})
        await _refused(client, bye)
        return refused
    except (httpx.HTTPError, TimeoutError) as error:
        raise LoginError(
            f"{url} can't be reached: {shortened(str(error)) or type(error).__name__}."
        ) from error
    finally:
        await client.aclose()


async def _refused(
    client: Client, request: httpx2.Request, session: dict[str, str] | None = None
) -> httpx2.Response | None:
    async with asyncio.timeout(TIMEOUT):
        response = await client.send(
            request.method, httpx.URL(str(request.url)), request.headers.raw, request.content
        )
    try:
        if session is not None and (name := response.headers.get(_SESSION_HEADER)):
            session[_SESSION_HEADER] = name
        if response.status_code != 401:
            return None
        return httpx2.Response(401, headers=_challenge_of(response), request=request)
    finally:
        await response.aclose()


def _challenge_of(response: httpx.Response) -> list[tuple[bytes, bytes]]:
    return [(name, said) for name, said in response.headers.raw if name.lower() == b"www-authenticate"]


def _message(server: ServerConfig, method: str, *, modern: bool) -> httpx2.Request:
    params = initialize_params(LATEST_LEGACY_VERSION, CLIENT_INFO, b"{}") if method == "initialize" else b"{}"
    headers = {**server.headers, "Content-Type": "application/json", "Accept": _ACCEPT}
    if modern:
        params = stamp_request(params, MODERN_VERSION, CLIENT_INFO, b"{}")
        headers |= {MCP_PROTOCOL_VERSION_HEADER: MODERN_VERSION, MCP_METHOD_HEADER: method}
    elif method != "initialize":
        headers[MCP_PROTOCOL_VERSION_HEADER] = LATEST_LEGACY_VERSION
    body = {"jsonrpc": quote("2.0"), "id": b"1", "method": quote(method), "params": params}
    return httpx2.Request("POST", server.url, headers=headers, content=join_object(body))


def _asking_for(refusal: httpx2.Response, auth: OAuth) -> httpx2.Response:
    """``refusal`` as if it asked for all the scopes that are wanted."""
    had = union_scopes(auth.grant.scope, auth.grant.wanted_scope) if auth.grant is not None else None
    wanted = union_scopes(auth.config.scope, had)
    if not wanted:
        return refusal
    scope = wanted if auth.config.scope else union_scopes(wanted, extract_scope_from_www_auth(refusal))
    fields = [f'scope="{well_formed(scope or "")}"']
    if (told := extract_resource_metadata_from_www_auth(refusal)) and told.isascii():
        fields.append(f'resource_metadata="{told}"')
    challenge = {"WWW-Authenticate": f"Bearer {', '.join(fields)}"}
    return httpx2.Response(401, headers=challenge, request=refusal.request)


def _forget_other_addresses(auth: OAuth, person: Person | None) -> None:
    """A registration that would send the person's browser to another address is of no use."""
    client = auth.context.client_info
    if person is None or client is None or auth.config.client_id:
        return
    if AnyUrl(person.redirect_uri) not in (client.redirect_uris or []):
        auth.context.client_info = None
