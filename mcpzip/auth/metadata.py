"""What servers publish about themselves: protected resource metadata (RFC 9728) and authorization server
metadata (RFC 8414, OpenID Connect Discovery 1.0) (pure).

The rules: only the members that are used here are read. Each has a largest size, and each URL is one of HTTP:
a document in which one is not so is not used at all.
"""

from typing import Annotated, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from mcpzip.auth.codec import normalized

Url = Annotated[str, msgspec.Meta(max_length=8_192)]
Words = Annotated[list[Annotated[str, msgspec.Meta(max_length=1_000)]], msgspec.Meta(max_length=10_000)]
Model = TypeVar("Model", bound=msgspec.Struct)


class ProtectedResourceMetadata(msgspec.Struct, omit_defaults=True):
    """RFC 9728, section 2."""

    resource: Url
    authorization_servers: Annotated[list[Url], msgspec.Meta(min_length=1, max_length=100)]
    scopes_supported: Words | None = None

    def __post_init__(self) -> None:
        _check_urls(self.resource, *self.authorization_servers)
        self.resource = normalized(self.resource)


class ServerMetadata(msgspec.Struct, omit_defaults=True):
    """Of an authorization server: RFC 8414, section 2; RFC 9207, section 3; and, for client ID metadata
    documents, draft-ietf-oauth-client-id-metadata-document, section 5.
    """

    issuer: Url
    authorization_endpoint: Url
    token_endpoint: Url
    registration_endpoint: Url | None = None
    revocation_endpoint: Url | None = None
    scopes_supported: Words | None = None
    token_endpoint_auth_methods_supported: Words | None = None
    code_challenge_methods_supported: Words | None = None
    client_id_metadata_document_supported: bool | None = None
    authorization_response_iss_parameter_supported: bool | None = None

    def __post_init__(self) -> None:
        _check_urls(self.issuer, self.authorization_endpoint, self.token_endpoint)
        _check_urls(
            *(url for url in (self.registration_endpoint, self.revocation_endpoint) if url is not None)
        )


def read(document: bytes, kind: type[Model]) -> Model | None:
    """What ``document`` says, or None if it is not of this kind."""
    try:
        return msgspec.json.decode(document, type=kind, strict=False)
    except (ValueError, RecursionError):
        return None


def recall(stored: dict[str, object] | None, kind: type[Model]) -> Model | None:
    """What a grant has kept of such a document, or None if that can't be used."""
    try:
        return None if stored is None else msgspec.convert(stored, kind, strict=False)
    except (ValueError, RecursionError):
        return None


def as_dict(document: msgspec.Struct | None) -> dict[str, object] | None:
    """``document`` as a grant keeps it."""
    return None if document is None else msgspec.to_builtins(document)


def resource_metadata_urls(server_url: str, metadata_url: str = "") -> list[str]:
    """Where the metadata of the server at ``server_url`` may be, in the order in which they are asked for
    (RFC 9728, 3.1). metadata_url: where a challenge said that they are.
    """
    known = f"{_base(server_url)}/.well-known/oauth-protected-resource"
    path = urlsplit(server_url).path
    return [*([metadata_url] if metadata_url else []), *([known + path] if path.strip("/") else []), known]


def server_metadata_urls(issuer: str | None, server_url: str) -> list[str]:
    """The same for the authorization server ``issuer`` (RFC 8414, 3.1 and 5; OpenID Connect Discovery 1.0,
    4). None is for an MCP server that is its own authorization server (MCP 2025-03-26).
    """
    base, path = _base(issuer or server_url), urlsplit(issuer or "").path.rstrip("/")
    oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
    if issuer is None:
        return [base + oauth]
    urls = [base + oauth + path, base + openid + path]
    return [*urls, base + path + openid] if path else urls


def endpoint(server_url: str, path: str) -> str:
    """An endpoint of a server without metadata that is its own authorization server (MCP 2025-03-26)."""
    return _base(server_url) + path


def same_issuer(one: str, other: str) -> bool:
    """Whether both are the same issuer. A root URL is the same with and without its last slash."""
    return _rooted(one) == _rooted(other)


def covers(resource: str, server_url: str) -> bool:
    """Whether a token for ``resource`` is one for the server: the same origin, and its path or one above it
    (RFC 8707).
    """
    there, here = urlsplit(normalized(resource)), urlsplit(normalized(server_url))
    if (there.scheme, there.netloc) != (here.scheme, here.netloc):
        return False
    return f"{here.path.removesuffix('/')}/".startswith(f"{there.path.removesuffix('/')}/")


def _rooted(issuer: str) -> str:
    url = normalized(issuer)
    return f"{url}/" if url == _base(url) else url


def _base(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _check_urls(*urls: str) -> None:
    for url in urls:
        parts = urlsplit(url)  # which may raise ValueError, and its port too
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError("not a URL of HTTP")
        try:
            httpx.URL(url)
        except httpx.InvalidURL as error:
            raise ValueError(str(error)) from None
