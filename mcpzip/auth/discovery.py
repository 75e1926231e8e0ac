"""What an authorization server says of itself, and whether we may believe it. Imports the SDK.

The rules: nothing secret goes where others can listen; nothing is signed in to that can't prove who began it
(PKCE with S256); everything said by a server of another origin is said by TLS; nobody sends us to places
that only we can reach (`places`).
"""

import asyncio
from collections.abc import Collection

import httpx
import httpx2
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_oauth_metadata_request,
    handle_auth_metadata_response,
    handle_protected_resource_response,
    validate_metadata_issuer,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url

from mcpzip.auth.places import check_place, guard
from mcpzip.auth.sdk_messages import for_sdk
from mcpzip.http.bodies import BodyTooLongError, read_response, whole
from mcpzip.http.client import Client
from mcpzip.model.errors import LoginError
from mcpzip.model.limits import AUTH_ANSWER
from mcpzip.model.quoting import shortened
from mcpzip.system.network import environment_proxy, is_confidential

TIMEOUT = 30.0
"""Seconds an authorization server has to answer."""

_ENDPOINTS = {
    "authorization_endpoint": "the page to sign in on",
    "token_endpoint": "the token endpoint",
    "registration_endpoint": "the registration endpoint",
    "revocation_endpoint": "the revocation endpoint",
}


async def send(request: httpx2.Request, near: Collection[str]) -> httpx2.Response:
    """Sends a request of the flow's own; the response is read. Redirects are followed within the origin only.

    near: see `places.check_place`. Raises LoginError for a URL on which others can listen, or that leads
    where the server may not send us, or an answer too large or too slow, httpx.HTTPError.
    """
    url = str(request.url)
    if not is_confidential(url):
        raise LoginError(
            f"{shortened(url)} is not encrypted, and secrets would go there; it has to be https."
        )
    check_place("what it names", url, near)
    trace = None
    if environment_proxy(url) is None:  # else it is the proxy that finds out where it leads
        trace = guard(url, near)
    client = Client(url)
    try:
        async with asyncio.timeout(TIMEOUT):
            response = await client.send(
                request.method, httpx.URL(url), request.headers.raw, await request.aread(), trace=trace
            )
            return await for_sdk(read_response(response, await whole(response, AUTH_ANSWER)))
    except TimeoutError as error:
        raise LoginError(f"{request.url.host} has not answered within {TIMEOUT:g} s.") from error
    except BodyTooLongError as error:
        raise LoginError(f"{request.url.host} answers with more than {AUTH_ANSWER:,} bytes.") from error
    finally:
        await client.aclose()


def is_shown_tokens(url: str, server_url: str) -> bool:
    """Whether a token for the server at ``server_url`` may go to ``url``: to its origin, unheard."""
    own, there = httpx.URL(server_url), httpx.URL(url)
    same = (own.scheme, own.port) == (there.scheme, there.port)
    upgraded = (own.scheme, own.port, there.scheme, there.port) == ("http", None, "https", None)
    return own.host == there.host and (same or upgraded) and is_confidential(url)


def check_metadata(metadata: OAuthMetadata, near: Collection[str], *, person: bool) -> None:
    """Raises LoginError for metadata that must not be followed. near: see `places.check_place`. person:
    whether somebody signs in with PKCE.

    Source: spec basic/authorization ("Authorization Code Protection", "Communication Security"), OAuth 2.1.
    """
    issuer = shortened(str(metadata.issuer))
    for member, what in _ENDPOINTS.items():
        url = getattr(metadata, member)
        if url is None:
            continue
        if not is_confidential(str(url)):
            raise LoginError(
                f"{what} of {issuer} is {shortened(str(url))}, which is not encrypted; it has to be https."
            )
        check_place(f"{what} of {issuer}", str(url), near)
    methods = metadata.code_challenge_methods_supported
    if person and (methods is None or "S256" not in methods):
        said = (
            f"offers {shortened(', '.join(methods[:9]))} only" if methods else "does not say that it has it"
        )
        raise LoginError(f"{issuer} {said}, and PKCE with S256 is what keeps a stolen code from being used.")


def check_resource(resource: ProtectedResourceMetadata, server_url: str) -> None:
    """Raises LoginError when ``resource`` describes another server than that at ``server_url``
    (RFC 9728, 3.3).
    """
    if not check_resource_allowed(resource_url_from_server_url(server_url), str(resource.resource)):
        raise LoginError(
            f"it says that it is {shortened(str(resource.resource))}, and tokens for that are not for "
            f"{server_url}; "
            "ask whoever runs it."
        )


async def find_resource(server_url: str, told: str | None = None) -> ProtectedResourceMetadata | None:
    """The metadata of the server as a protected resource (RFC 9728); None when it has none. told: where its
    challenge said that they are. Raises LoginError, httpx.HTTPError.
    """
    near = (server_url,)
    if told is not None:
        check_place("what tells of it", told, near)
    for url in build_protected_resource_metadata_discovery_urls(told, server_url):
        answer = await send(create_oauth_metadata_request(url), near)
        if (found := await handle_protected_resource_response(answer)) is not None:
            check_resource(found, server_url)
            return found
    return None


async def find_server(
    issuer: str | None, server_url: str, near: Collection[str] = ()
) -> OAuthMetadata | None:
    """The metadata of the authorization server (RFC 8414, OpenID Connect Discovery 1.0); None without any.

    issuer: None for the origin of the server itself (revision 2025-03-26). near: see `places.check_place`;
    the server is in it. Raises LoginError,
    mcp.client.auth.OAuthFlowError when it names another issuer, httpx.HTTPError.
    """
    near = (server_url, *near)
    if issuer is not None:
        check_place("its authorization server", issuer, near)
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, server_url):
        goes_on, found = await handle_auth_metadata_response(
            await send(create_oauth_metadata_request(url), near)
        )
        if found is not None:
            if issuer is not None:
                validate_metadata_issuer(found, issuer)
            return found
        if not goes_on:
            return None
    return None
