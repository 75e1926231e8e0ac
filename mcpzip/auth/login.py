"""Signing in to a server with a person, and out of it.

The rule: the server itself says what it wants: it is asked first, and the login begins with its refusal.
"""

import asyncio
from dataclasses import replace
from functools import partial

import httpx

from mcpzip.auth.challenge import PROTOCOL_VERSION_HEADER, Challenge
from mcpzip.auth.client import authenticate, client_of
from mcpzip.auth.discovery import TIMEOUT, Discovered, find_resource
from mcpzip.auth.errors import ERRORS, BusyError, describe
from mcpzip.auth.grant import Grant
from mcpzip.auth.oauth import OAuth
from mcpzip.auth.scopes import union
from mcpzip.auth.store import Store
from mcpzip.auth.token_client import Login
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
_METHOD_HEADER, _SESSION_HEADER = "mcp-method", "mcp-session-id"


async def sign_in(
    server: ServerConfig, store: Store, login: Login | None, *, force: bool = False
) -> Grant | None:
    """Signs in to ``server`` and keeps what is granted. None: it wants no login.

    Where it is signed in to already, that stays, unless ``force`` says otherwise or a call lacked a scope.
    login: with whom; None where the machine signs in by itself. Raises LoginError.
    """
    auth = OAuth(server, store, login=login)
    try:
        await auth.catch_up()
        refusal = await _refusal(auth, force=force)
        if refusal is None:
            return auth.grant if auth.grant is not None and auth.grant.access_token else None
        grant = await auth.authorize(_with_wanted_scope(refusal, auth))
        async with auth.locked():
            grant = await in_thread(partial(store.save, grant), "auth")
    except LoginError as error:
        if str(error)[:1].isupper():
            raise
        raise LoginError(f"{server.name}: {error}") from error  # it was begun as a part of a sentence
    except ERRORS as error:
        raise LoginError(f"{server.name}: {describe(error)}.") from error
    return grant


async def sign_out(server: ServerConfig, store: Store) -> list[str]:
    """Has the server forget what it granted, where it can (RFC 7009), and forgets it here.

    Returns sentences on what could not be done. Raises LoginError when it can't be forgotten here.
    """
    auth, left = OAuth(server, store), list[str]()
    try:
        async with auth.locked():
            grant = await in_thread(lambda: store.load(server.url), "auth")
            if grant is not None:
                left = await _revoke(auth, grant)
            await in_thread(lambda: store.remove(server.url), "auth")
    except (OSError, BusyError) as error:
        raise LoginError(f"{server.name}: the sign-in can't be removed: {describe(error)}.") from error
    return left


async def _revoke(auth: OAuth, grant: Grant) -> list[str]:
    metadata = Discovered.of(grant, auth.server.url).metadata
    client = client_of(grant, auth.config, metadata)
    tokens = {"refresh_token": grant.refresh_token, "access_token": grant.access_token}
    if not any(tokens.values()):
        return []
    where = None if metadata is None else metadata.revocation_endpoint
    if where is None:
        return ["Its authorization server can't be told; what it granted stays good there until it expires."]
    for kind, token in tokens.items():
        if not token:
            continue
        form = {"token": token, "token_type_hint": kind, "client_id": str(grant.client.get("client_id", ""))}
        try:
            headers = authenticate(client, form) if client is not None else {}
            response = await auth.post(where, form, headers)
        except ERRORS as error:
            return [f"Its authorization server was not told: {describe(error)}."]
        if response.status_code != 200:
            return [f"Its authorization server refused to forget the {kind} (HTTP {response.status_code})."]
    return []


async def _refusal(auth: OAuth, *, force: bool) -> Challenge | None:
    """How ``auth``'s server refuses to be asked; None when there is nothing to sign in for."""
    grant = auth.grant
    good = grant is not None and not force and not grant.ended and not grant.wanted_scope
    refusal = await _asked(auth, auth if good and grant is not None and grant.access_token else None)
    if refusal is not None or (good and grant is not None and grant.access_token):
        return refusal
    # It is open so far, and may refuse what it is asked later on.
    if await find_resource(auth.server.url, must_answer=False) is None:
        return None
    return Challenge(protocol_version=MODERN_VERSION)


async def _asked(auth: OAuth, signed: OAuth | None) -> Challenge | None:
    """The server's refusal of a first few harmless requests; None when it refuses none."""
    server, url = auth.server, auth.server.url
    client = Client(url, signed)
    try:
        if server.transport == "sse":
            stream = httpx.Request("GET", url, headers={**server.headers, "Accept": "text/event-stream"})
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
        bye = httpx.Request("DELETE", url, headers={**server.headers, **session})
        await _refused(client, bye)
        return refused
    except (httpx.HTTPError, TimeoutError) as error:
        raise LoginError(
            f"{url} can't be reached: {shortened(str(error)) or type(error).__name__}."
        ) from error
    finally:
        await client.aclose()


async def _refused(
    client: Client, request: httpx.Request, session: dict[str, str] | None = None
) -> Challenge | None:
    async with asyncio.timeout(TIMEOUT):
        response = await client.send(request.method, request.url, request.headers.raw, request.content)
    try:
        if session is not None and (name := response.headers.get(_SESSION_HEADER)):
            session[_SESSION_HEADER] = name
        return Challenge.of(response) if response.status_code == 401 else None
    finally:
        await response.aclose()


def _message(server: ServerConfig, method: str, *, modern: bool) -> httpx.Request:
    params = initialize_params(LATEST_LEGACY_VERSION, CLIENT_INFO, b"{}") if method == "initialize" else b"{}"
    headers = {**server.headers, "Content-Type": "application/json", "Accept": _ACCEPT}
    if modern:
        params = stamp_request(params, MODERN_VERSION, CLIENT_INFO, b"{}")
        headers |= {PROTOCOL_VERSION_HEADER: MODERN_VERSION, _METHOD_HEADER: method}
    elif method != "initialize":
        headers[PROTOCOL_VERSION_HEADER] = LATEST_LEGACY_VERSION
    body = {"jsonrpc": quote("2.0"), "id": b"1", "method": quote(method), "params": params}
    return httpx.Request("POST", server.url, headers=headers, content=join_object(body))


def _with_wanted_scope(challenge: Challenge, auth: OAuth) -> Challenge:
    """``challenge`` as if it asked for all the scopes that are wanted."""
    had = union(auth.grant.scope, auth.grant.wanted_scope) if auth.grant is not None else ""
    wanted = union(auth.config.scope, had)
    if wanted and not auth.config.scope:
        wanted = union(wanted, challenge.scope)
    return replace(challenge, scope=wanted) if wanted else challenge
