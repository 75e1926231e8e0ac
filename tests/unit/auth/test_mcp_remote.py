"""mcp-remote's store is read as its own versions write it, and nothing else in it is touched.

The hashes and the files are those of the npm packages 0.0.22, 0.1.29, 0.1.30, 0.1.49, 0.8.7 and 0.15.1: their
``getServerUrlHash`` was run on these very values, and ``JSON.stringify(…, null, 2)`` is how they write.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.auth.grant import Grant
from mcpzip.auth.mcp_remote import read, server_hash

URL = "https://mcp.example.com/mcp"
PLAIN = "94baabe3c3fadb285b26c035e4e86046"
RESOURCE = "9f01bb22156aadae95efe33bf615de36"  # --resource URL
HEADERS = {"X-Tenant": 'acmé "1"/\t', "A-First": "1"}
WITH_HEADERS = "95a7ab3384bd2d51c4602b3b0061259e"
BOTH = "bfd312777fac366fb7245d4a20536d89"  # --resource URL --header X-Tenant:t

CLIENT = {
    "redirect_uris": ["http://localhost:9553/oauth/callback"],
    "token_endpoint_auth_method": "none",
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "client_name": "MCP CLI Proxy",
    "client_id": "c-1",
    "client_secret": "cs-1",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def write(home: Path, folder: str, name: str, tokens: object, client: object = CLIENT) -> Path:
    place = home / ".mcp-auth" / folder
    place.mkdir(parents=True, exist_ok=True)
    for kind, document in (("tokens", tokens), ("client_info", client)):
        if document is not None:
            text = document if isinstance(document, str) else json.dumps(document, indent=2)
            (place / f"{name}_{kind}.json").write_text(text, "utf-8")
    return place / f"{name}_tokens.json"


def find(home: Path, headers: dict[str, str] | None = None, url: str = URL) -> Grant | None:
    return read(url, headers or {}, {"HOME": str(home), "USERPROFILE": str(home)})


def in_ms(seconds: float) -> int:
    return round((time.time() + seconds) * 1000)


def test_the_hash_is_the_one_mcp_remote_gives():
    assert server_hash(URL) == PLAIN
    assert server_hash(URL, "", HEADERS) == WITH_HEADERS
    assert server_hash(URL, URL) == RESOURCE
    assert server_hash(URL, URL, {"X-Tenant": "t"}) == BOTH


def test_what_0_15_1_keeps_is_a_grant(home):
    ends = in_ms(3600)
    tokens = {
        "access_token": "at",
        "token_type": "Bearer",
        "expires_in": 3600,
        "scope": "read",
        "refresh_token": "rt",
        "issuer": "https://as.example.com",
        "expires_at": ends,
        "requested_scope": "read write",
    }
    file = write(home, "mcp-remote-v1", PLAIN, tokens, {**CLIENT, "issuer": "https://as.example.com"})
    assert find(home) == Grant(
        url=URL,
        issuer="https://as.example.com",
        client=CLIENT,
        access_token="at",
        refresh_token="rt",
        scope="read",
        expires_at=ends / 1000,
        obtained_at=file.stat().st_mtime,
        source="mcp-remote",
    )


def test_before_0_1_46_the_files_age_tells_when_it_ends(home):
    tokens = {"access_token": "at", "token_type": "bearer", "expires_in": 600, "refresh_token": "rt"}
    file = write(home, "mcp-remote-0.1.29", PLAIN, tokens)
    os.utime(file, (1_700_000_000, 1_700_000_000))
    found = find(home)
    assert found is not None
    assert (found.expires_at, found.obtained_at, found.issuer) == (1_700_000_600, 1_700_000_000, "")
    write(home, "mcp-remote-0.1.29", PLAIN, {"access_token": "at", "token_type": "Bearer"})
    unending = find(home)
    assert unending is not None
    assert unending.expires_at is None


def test_an_expired_token_that_nothing_renews_is_nothing(home):
    write(home, "mcp-remote-v1", PLAIN, {"access_token": "at", "token_type": "Bearer", "expires_at": 1})
    assert find(home) is None


def test_a_client_configured_by_hand_is_not_in_the_store(home):
    write(home, "mcp-remote-v1", PLAIN, {"access_token": "at", "token_type": "Bearer"}, None)
    found = find(home)
    assert found is not None
    assert found.client == {}


def test_the_newest_store_wins(home):
    folders = ["mcp-remote-0.0.9", "mcp-remote-0.0.10-3", "mcp-remote-0.0.10", "mcp-remote-0.1.9"]
    folders += ["mcp-remote-0.1.30", "mcp-remote-0.2.0", "mcp-remote-v1", "mcp-remote-v2", "mcp-remote-v10"]
    for folder in folders:
        write(home, folder, PLAIN, {"access_token": folder, "token_type": "Bearer"})
        found = find(home)
        assert found is not None
        assert found.access_token == folder


def test_what_else_was_on_its_command_line_is_part_of_the_name(home):
    tenant = {"X-Tenant": "t"}
    for folder in ("mcp-remote-0.1.29", "mcp-remote-0.1.30", "mcp-remote-v1"):
        write(home, folder, PLAIN, {"access_token": f"{folder} plain", "token_type": "Bearer"})
    assert find(home).access_token == "mcp-remote-v1 plain"  # type: ignore[union-attr]
    # Up to 0.1.29 headers made no difference.
    assert find(home, HEADERS).access_token == "mcp-remote-0.1.29 plain"  # type: ignore[union-attr]
    write(home, "mcp-remote-0.1.30", WITH_HEADERS, {"access_token": "headers", "token_type": "Bearer"})
    assert find(home, HEADERS).access_token == "headers"  # type: ignore[union-attr]
    write(home, "mcp-remote-v1", BOTH, {"access_token": "both", "token_type": "Bearer"})
    found = find(home, tenant)
    assert found is not None
    assert (found.access_token, found.resource) == ("both", URL)


def test_its_folder_can_be_named(home, tmp_path):
    write(tmp_path / "x", "mcp-remote-v1", PLAIN, {"access_token": "at", "token_type": "Bearer"})
    elsewhere = str(tmp_path / "x" / ".mcp-auth")
    assert read(URL, {}, {"HOME": str(home / "none"), "MCP_REMOTE_CONFIG_DIR": elsewhere}) is not None
    assert read(URL, {}, {"HOME": str(home / "none"), "USERPROFILE": str(home / "none")}) is None


GOOD = {"access_token": "old", "token_type": "Bearer"}


@pytest.mark.parametrize(
    "torn",
    [
        *("", "{", '{"access_token": "a', "[]", "null", '"text"', "\x00", "[" * 100_000),
        *({}, {"access_token": ""}, {"access_token": 7}, {"refresh_token": "r"}),
        {"access_token": "a", "token_type": "DPoP"},
        "x" * (2 << 20),
    ],
)
def test_what_is_torn_or_foreign_is_passed_over(home, torn):
    write(home, "mcp-remote-v1", PLAIN, torn, "{")
    assert find(home) is None
    write(home, "mcp-remote-0.2.7", PLAIN, GOOD, torn)
    found = find(home)
    assert found is not None
    assert (found.access_token, found.client) == ("old", {})


@pytest.mark.parametrize("odd", [True, "soon", -1, 0, 1e300, None, [], {"a": 1}])
def test_an_odd_number_is_none_at_all(home, odd):
    write(home, "mcp-remote-v1", PLAIN, {**GOOD, "expires_in": odd, "expires_at": odd})
    found = find(home)
    assert found is not None
    assert found.expires_at is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_keeps_nobody_waiting(home):
    write(home, "mcp-remote-v1", PLAIN, None, None)
    os.mkfifo(home / ".mcp-auth" / "mcp-remote-v1" / f"{PLAIN}_tokens.json")
    assert find(home) is None


opened: list[str] | None = None


def _note(event: str, args: tuple[object, ...]) -> None:
    if opened is not None and event == "open":
        opened.append(str(args[0]))


@pytest.fixture
def opens() -> Iterator[list[str]]:
    """Every file that the interpreter opens meanwhile, whoever asks."""
    global opened
    if not getattr(sys, "_noted_for_mcp_remote", False):
        sys.addaudithook(_note)
        sys._noted_for_mcp_remote = True  # type: ignore[attr-defined]
    opened = []
    yield opened
    opened = None


def test_the_file_of_another_server_is_never_opened(home, opens):
    others = ["https://mcp.example.com/mcp/", "https://mcp.example.com", "https://other.example/mcp"]
    tokens = {"access_token": "theirs", "token_type": "Bearer"}
    for folder in ("mcp-remote-0.1.29", "mcp-remote-0.2.7", "mcp-remote-v1", "mcp-remote-evil", "else"):
        for other in others:
            write(home, folder, server_hash(other), tokens)
    write(home, "mcp-remote-v1", WITH_HEADERS, tokens)
    write(home, "mcp-remote-evil", PLAIN, tokens)
    write(home, ".", PLAIN, tokens)
    opens.clear()
    assert find(home) is None
    assert [path for path in opens if ".mcp-auth" in path] == []
    mine = write(home, "mcp-remote-0.1.29", PLAIN, {"access_token": "mine", "token_type": "Bearer"})
    opens.clear()
    found = find(home)
    assert found is not None
    assert found.access_token == "mine"
    client = str(mine).replace("_tokens", "_client_info")
    assert [path for path in opens if ".mcp-auth" in path] == [str(mine), client]


def test_nothing_is_written_there(home):
    write(home, "mcp-remote-v1", PLAIN, GOOD)
    place = home / ".mcp-auth"
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    assert find(home) is not None
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    assert not (home / "none").exists()
    assert find(home / "none") is None
    assert not (home / "none").exists()


@given(st.text(max_size=9), st.text(max_size=9), st.dictionaries(st.text(max_size=4), st.text(max_size=4)))
def test_any_url_and_headers_have_a_name(url, resource, headers):
    name = server_hash(url, resource, headers)
    assert len(name) == 32
    assert name == server_hash(url, resource, dict(reversed(headers.items())))
