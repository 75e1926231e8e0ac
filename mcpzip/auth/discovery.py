"""Finding the authorization server of an MCP server, and whether what it says may be believed.

The rules: nothing secret goes where others can listen; nobody signs in to a server that can't prove who began
the login (PKCE with S256); what a server of another origin says is said over TLS; no server sends us to an
address that only we can reach (`url_policy`).
"""

import asyncio
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import httpx

from mcpzip.auth.challenge import PROTOCOL_VERSION_HEADER
from mcpzip.auth.codec import canonical, normalized
from mcpzip.auth.grant import Grant
from mcpzip.auth.metadata import (
    ProtectedResourceMetadata,
    ServerMetadata,
    covers,
    endpoint,
    read,
    recall,
    resource_metadata_urls,
    same_issuer,
    server_metadata_urls,
)
from mcpzip.auth.url_policy import check_url, peer_check
from mcpzip.http.bodies import BodyTooLongError, read_response, whole
from mcpzip.http.client import Client
from mcpzip.model.errors import LoginError
from mcpzip.model.limits import AUTH_ANSWER
from mcpzip.model.quoting import shortened
from mcpzip.system.network import is_confidential
from mcpzip.wire import LEGACY_VERSIONS, MODERN_VERSION, MODERN_VERSIONS

TIMEOUT = 30.0
"""Seconds an authorization server has to answer."""

_ENDPOINTS = {
    "authorization_endpoint": "the page to sign in on",
    "token_endpoint": "the token endpoint",
    "registration_endpoint": "the registration endpoint",
    "revocation_endpoint": "the revocation endpoint",
}


@dataclass(frozen=True, slots=True)
class Discovered:
    """What is known of a server as a protected resource, and of its authorization server.

    resource, metadata: None where there are none. issuer: the authorization server that ``resource`` names;
    None for the origin of the server itself (MCP 2025-03-26).
    """

    server_url: str
    resource: ProtectedResourceMetadata | None = None
    issuer: str | None = None
    metadata: ServerMetadata | None = None

    @classmethod
    def of(cls, grant: Grant | None, server_url: str) -> "Discovered":
        """What ``grant`` has kept of it."""
        if grant is None:
            return cls(server_url)
        resource = recall(grant.resource_metadata, ProtectedResourceMetadata)
        issuer = None if resource is None else choose_issuer(resource, grant.issuer)
        return cls(server_url, resource, issuer, recall(grant.server_metadata, ServerMetadata))

    @property
    def expected_issuer(self) -> str:
        """Whose metadata, and whose registrations, these have to be (RFC 8414, 3.3)."""
        return self.issuer or normalized(endpoint(self.server_url, ""))

    @property
    def token_endpoint(self) -> str:
        return endpoint(self.server_url, "/token") if self.metadata is None else self.metadata.token_endpoint

    @property
    def token_resource(self) -> str:
        """What a token is for (RFC 8707): what the server calls itself, if that covers its address."""
        own = canonical(self.server_url)
        named = self.resource.resource if self.resource is not None else own
        return named if covers(named, own) else own

    def resource_parameter(self, protocol_version: str) -> dict[str, str]:
        """The parameter ``resource``, which authorization servers before MCP 2025-06-18 need not know.
        protocol_version: that is spoken with the server, or "".
        """
        known = (*LEGACY_VERSIONS[LEGACY_VERSIONS.index("2025-06-18") :], *MODERN_VERSIONS)
        wanted = self.resource is not None or protocol_version in known
        return {"resource": self.token_resource} if wanted else {}


async def send(
    request: httpx.Request, server_urls: Collection[str], environment: Mapping[str, str] = os.environ
) -> httpx.Response:
    """Sends a request to an authorization server; the response is read. Redirects are followed within the
    origin only.

    server_urls: see `url_policy.check_url`. environment: may set an HTTP proxy, as in the functions below.
    Raises LoginError for a URL on which others can listen, or to which the server may not send us, or an
    answer too large or too slow, httpx.HTTPError.
    """
    url = str(request.url)
    if not is_confidential(url):
        raise LoginError(
            f"{shortened(url)} is not encrypted, and secrets would go there; it has to be https."
        )
    check_url("what it names", url, server_urls)
    client, check = Client(url, environment=environment), peer_check(url, server_urls)
    try:
        async with asyncio.timeout(TIMEOUT):
            response = await client.send(
                request.method,
                request.url,
                request.headers.raw,
                request.content,
                check_peer=check,
            )
            return read_response(response, await whole(response, AUTH_ANSWER))
    except TimeoutError as error:
        raise LoginError(f"{request.url.host} has not answered within {TIMEOUT:g} s.") from error
    except BodyTooLongError as error:
        raise LoginError(f"{request.url.host} answers with more than {AUTH_ANSWER:,} bytes.") from error
    finally:
        await client.aclose()


@lru_cache(maxsize=64)  # each request asks, and parsing both URLs takes 18 µs
def is_shown_tokens(url: str, server_url: str) -> bool:
    """Whether a token for the server at ``server_url`` may go to ``url``: to its origin, unheard."""
    own, there = httpx.URL(server_url), httpx.URL(url)
    same = (own.scheme, own.port) == (there.scheme, there.port)
    upgraded = (own.scheme, own.port, there.scheme, there.port) == ("http", None, "https", None)
    return own.host == there.host and (same or upgraded) and is_confidential(url)


def choose_issuer(resource: ProtectedResourceMetadata, wanted: str) -> str:
    """The authorization server that ``resource`` names: ``wanted`` if it is one of them, else the first."""
    advertised = resource.authorization_servers
    return next((server for server in advertised if wanted and same_issuer(server, wanted)), advertised[0])


def check_metadata(metadata: ServerMetadata, server_urls: Collection[str], *, pkce: bool) -> None:
    """Raises LoginError for metadata that must not be followed.

    server_urls: see `url_policy.check_url`. pkce: whether somebody signs in with an authorization code.

    Source: spec basic/authorization ("Authorization Code Protection", "Communication Security"), OAuth 2.1.
    """
    issuer = shortened(metadata.issuer)
    for member, what in _ENDPOINTS.items():
        url = getattr(metadata, member)
        if url is None:
            continue
        if not is_confidential(url):
            raise LoginError(
                f"{what} of {issuer} is {shortened(url)}, which is not encrypted; it has to be https."
            )
        check_url(f"{what} of {issuer}", url, server_urls)
    methods = metadata.code_challenge_methods_supported
    if pkce and "S256" not in (methods or ()):
        said = (
            f"offers {shortened(', '.join(methods[:9]))} only" if methods else "does not say that it has it"
        )
        raise LoginError(f"{issuer} {said}, and PKCE with S256 is what keeps a stolen code from being used.")


async def find_resource(
    server_url: str,
    metadata_url: str = "",
    server_urls: Collection[str] = (),
    *,
    must_answer: bool = True,
    environment: Mapping[str, str] = os.environ,
) -> ProtectedResourceMetadata | None:
    """The metadata of the server as a protected resource (RFC 9728); None if it has none.

    metadata_url: where its challenge said that they are. server_urls: see `url_policy.check_url`; the server
    itself is added. must_answer: whether a failure of the server (HTTP 429, 5xx), which says nothing about
    what it has, is an error. Raises LoginError, httpx.HTTPError.
    """
    server_urls, failed = (server_url, *server_urls), 0
    for url in resource_metadata_urls(server_url, metadata_url):
        check_url("what tells of its sign-in", url, server_urls)
        answer = await _get(url, server_urls, environment)
        if answer.status_code == 429 or answer.status_code >= 500:
            failed = answer.status_code
        found = read(answer.content, ProtectedResourceMetadata) if answer.status_code == 200 else None
        if found is not None:
            if not covers(found.resource, server_url):
                raise LoginError(
                    f"it says that it is {shortened(found.resource)}, and tokens for that are not for "
                    f"{server_url}; tell whoever runs it."
                )
            return found
    if failed and must_answer:
        raise LoginError(f"it answers HTTP {failed} where it would say how to sign in; try again later.")
    return None


async def find_server(
    issuer: str | None,
    server_url: str,
    server_urls: Collection[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> ServerMetadata | None:
    """The metadata of the authorization server (RFC 8414, OpenID Connect Discovery 1.0); None without any.

    issuer: None for the origin of the server itself (MCP 2025-03-26). server_urls: see
    `url_policy.check_url`; the server itself is added. Raises LoginError, also for the metadata of another
    issuer, httpx.HTTPError.
    """
    server_urls = (server_url, *server_urls)
    if issuer is not None:
        check_url("its authorization server", issuer, server_urls)
    for url in server_metadata_urls(issuer, server_url):
        check_url("what tells of its sign-in", url, server_urls)
        answer = await _get(url, server_urls, environment)
        found = read(answer.content, ServerMetadata) if answer.status_code == 200 else None
        if found is not None:
            if issuer is not None and normalized(found.issuer) != normalized(issuer):
                raise other_issuer(found, issuer)
            return found
        if answer.status_code != 200 and not 300 <= answer.status_code < 500:
            return None
    return None


def other_issuer(metadata: ServerMetadata, expected: str) -> LoginError:
    """The error for metadata of another issuer than ``expected`` (RFC 8414, 3.3)."""
    return LoginError(
        f"its authorization server is {shortened(expected)}, and what is there says that it is "
        f"{shortened(metadata.issuer)}; tell whoever runs it."
    )


async def _get(url: str, server_urls: Collection[str], environment: Mapping[str, str]) -> httpx.Response:
    request = httpx.Request("GET", url, headers={PROTOCOL_VERSION_HEADER: MODERN_VERSION})
    return await send(request, server_urls, environment)
