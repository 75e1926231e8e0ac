"""What is read of a ``WWW-Authenticate`` header."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.auth.challenge import Challenge
from mcpzip.auth.scopes import union


def challenge(header: str | bytes, status: int = 401) -> Challenge:
    request = httpx.Request("POST", "https://mcp.example/mcp", headers={"Mcp-Protocol-Version": "2026-07-28"})
    return Challenge.of(httpx.Response(status, headers=[(b"www-authenticate", header)], request=request))  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("header", "scope", "error", "metadata"),
    [
        ("Bearer", "", "", ""),
        ('Bearer scope="read write"', "read write", "", ""),
        ("Bearer scope=read, error=invalid_token", "read", "invalid_token", ""),
        (
            'bearer SCOPE = "read" ,resource_metadata="https://x.example/a,b"',
            "read",
            "",
            "https://x.example/a,b",
        ),
        (
            'Bearer error_description="no \\"scope=all\\", error=x", error="invalid_token"',
            "",
            "invalid_token",
            "",
        ),
        ('Basic realm="a", Bearer scope="read"', "read", "", ""),
        ('Bearer scope="read", scope="write"', "read", "", ""),
        ('Bearer x_scope="all"', "", "", ""),
        ('Bearer scope="read \x9b2J é"', "read", "", ""),
        ('Bearer scope=""', "", "", ""),
    ],
)
def test_what_a_challenge_says(header: str, scope: str, error: str, metadata: str) -> None:
    found = challenge(header.encode("latin-1"))
    assert (found.scope, found.error, found.resource_metadata) == (scope, error, metadata)
    assert (found.status, found.protocol_version) == (401, "2026-07-28")


def test_only_a_403_lacks_a_scope() -> None:
    header = 'Bearer error="insufficient_scope", scope="write"'
    assert challenge(header, 403).insufficient_scope
    assert not challenge(header, 401).insufficient_scope
    assert not challenge('Bearer error="invalid_token"', 403).insufficient_scope


@given(st.binary(max_size=200).filter(lambda raw: not {*raw} & {*b"\r\n\0"}))
def test_any_header_is_borne(header: bytes) -> None:
    found = challenge(header)
    assert found.scope.isascii()


@pytest.mark.parametrize("part", ["a", 'x="', 'x="\\', "x=", " ", "x =", '\\"', "="])
def test_a_long_header_is_read_in_one_go(part: str) -> None:
    """A name without an end was looked for at each of its letters."""
    assert challenge(part * 100_000).error == ""


def test_a_union_of_scopes_has_each_once() -> None:
    assert union("read write", None, "", "write pay") == "read write pay"
    assert union(None, "") == ""
