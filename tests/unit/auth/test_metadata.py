"""Metadata that servers publish: where they are, what is read of them, and when two of them are the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.auth.metadata import (
    ProtectedResourceMetadata,
    ServerMetadata,
    as_dict,
    covers,
    read,
    recall,
    resource_metadata_urls,
    same_issuer,
    server_metadata_urls,
)

SERVER = {
    "issuer": "https://as.example",
    "authorization_endpoint": "https://as.example/authorize",
    "token_endpoint": "https://as.example/token",
}
RESOURCE = {"resource": "https://mcp.example/mcp", "authorization_servers": ["https://as.example"]}


def test_where_a_resource_has_its_metadata() -> None:
    root = "https://mcp.example/.well-known/oauth-protected-resource"
    assert resource_metadata_urls("https://mcp.example/a/mcp?x=1") == [f"{root}/a/mcp", root]
    assert resource_metadata_urls("https://mcp.example/") == [root]
    told = "https://mcp.example/elsewhere"
    assert resource_metadata_urls("https://mcp.example/mcp", told) == [told, f"{root}/mcp", root]


def test_where_an_authorization_server_has_its_metadata() -> None:
    known = "https://as.example/.well-known"
    assert server_metadata_urls("https://as.example/tenant/", "https://mcp.example/mcp") == [
        f"{known}/oauth-authorization-server/tenant",
        f"{known}/openid-configuration/tenant",
        "https://as.example/tenant/.well-known/openid-configuration",
    ]
    for issuer in ("https://as.example", "https://as.example/"):
        assert server_metadata_urls(issuer, "https://mcp.example/mcp") == [
            f"{known}/oauth-authorization-server",
            f"{known}/openid-configuration",
        ]
    legacy = ["https://mcp.example/.well-known/oauth-authorization-server"]
    assert server_metadata_urls(None, "https://mcp.example/mcp") == legacy


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("issuer", None),
        ("issuer", "as.example"),
        ("issuer", ["https://as.example"]),
        ("authorization_endpoint", "javascript://as.example/%0aalert(1)"),
        ("token_endpoint", "file:///etc/passwd"),
        ("token_endpoint", "https://"),
        ("token_endpoint", "http://[::1"),
        ("token_endpoint", "http://x:99999/"),
        ("token_endpoint", "https://as.example/\n"),
        ("token_endpoint", "https://as.example/" + "x" * 10_000),
        ("registration_endpoint", 7),
        ("revocation_endpoint", "ftp://as.example"),
        ("scopes_supported", "read"),
        ("scopes_supported", ["x" * 10_000]),
        ("scopes_supported", ["x"] * 10_001),
    ],
)
def test_metadata_with_a_wrong_member_are_none(member: str, value: object) -> None:
    assert read(json.dumps({**SERVER, member: value}).encode(), ServerMetadata) is None


@pytest.mark.parametrize("servers", [None, [], ["as.example"], ["https://as.example"] * 101])
def test_a_resource_names_its_authorization_servers(servers: object) -> None:
    body = json.dumps({**RESOURCE, "authorization_servers": servers}).encode()
    assert read(body, ProtectedResourceMetadata) is None


def test_members_that_are_not_used_may_be_anything() -> None:
    more = {"jwks_uri": 7, "scopes_supported": None, "client_id_metadata_document_supported": True}
    found = read(json.dumps({**SERVER, **more}).encode(), ServerMetadata)
    assert found is not None
    assert found.client_id_metadata_document_supported
    assert recall(as_dict(found), ServerMetadata) == found
    assert as_dict(found) == {**SERVER, "client_id_metadata_document_supported": True}
    assert as_dict(None) is recall(None, ServerMetadata) is None


@given(
    st.binary(max_size=100)
    | st.text(max_size=20).map(lambda text: json.dumps({**SERVER, "issuer": text}).encode())
)
def test_any_document_is_metadata_or_none(document: bytes) -> None:
    found = read(document, ServerMetadata)
    assert found is None or found.issuer.startswith(("http", "HTTP"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://as.example", "https://as.example/", True),
        ("https://AS.example:443/", "https://as.example", True),
        ("https://as.example/a", "https://as.example/a/", False),
        ("https://as.example/?a=https://b.example:443/", "https://as.example/?a=https://b.example/", False),
        ("https://as.example/a", "https://as.example/A", False),
        ("http://as.example", "https://as.example", False),
        ("https://as.example:8443", "https://as.example", False),
        ("https://as.example", "https://as.example.evil.example", False),
    ],
)
def test_the_same_issuer(one: str, other: str, same: bool) -> None:
    assert same_issuer(one, other) is same_issuer(other, one) is same


@pytest.mark.parametrize(
    ("resource", "server", "covered"),
    [
        ("https://mcp.example", "https://mcp.example/mcp", True),
        ("https://MCP.example:443/mcp/", "https://mcp.example/mcp", True),
        ("https://mcp.example/mcp", "https://mcp.example:443/mcp?tenant=1", True),
        ("https://mcp.example/m", "https://mcp.example/mcp", False),
        ("https://mcp.example/mcp/deeper", "https://mcp.example/mcp", False),
        ("http://mcp.example/mcp", "https://mcp.example/mcp", False),
        ("https://mcp.example:8443/mcp", "https://mcp.example/mcp", False),
        ("https://mcp.example.evil.example/", "https://mcp.example/mcp", False),
    ],
)
def test_what_a_token_for_a_resource_is_for(resource: str, server: str, covered: bool) -> None:
    assert covers(resource, server) is covered
