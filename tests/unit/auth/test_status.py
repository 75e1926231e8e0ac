"""How a server is said to be signed in to."""

import json

import pytest

from mcpzip.auth.grant import Grant
from mcpzip.auth.status import Listing, address, left_over, status_of
from mcpzip.config.schema import AuthConfig, ServerConfig

URL, NOW, COMMAND = "https://tracker.example/mcp?key=hush", 1_000.0, "mcpzip auth login tracker"
GOOD = {"url": URL, "issuer": "https://as.example", "access_token": "acc-hush", "scope": "read"}
PERSON, MACHINE = AuthConfig(), AuthConfig(grant="client_credentials")


@pytest.mark.parametrize(
    ("auth", "told", "listing", "state", "reason", "asked"),
    [
        (PERSON, None, "never", "unknown", "", False),
        (PERSON, None, "done", "not signed in", "", False),
        (PERSON, None, "refused", "needs login", "nobody has signed in", True),
        (PERSON, {"url": URL}, "refused", "needs login", "nobody has signed in", True),
        (PERSON, GOOD, "refused", "signed in", "", False),
        (PERSON, {**GOOD, "expires_at": 900.0}, "done", "needs login", "has expired", True),
        (PERSON, {**GOOD, "expires_at": 900.0, "refresh_token": "r-hush"}, "done", "signed in", "", False),
        (PERSON, {"url": URL, "refresh_token": "r-hush"}, "done", "signed in", "", False),
        (PERSON, {"url": URL, "refused": "it has ended"}, "done", "needs login", "it has ended", True),
        (PERSON, {**GOOD, "refused": "HTTP 503", "retry_at": 1.0}, "done", "failing", "HTTP 503", False),
        (PERSON, {**GOOD, "wanted_scope": "read write"}, "done", "signed in", "asks for read write", True),
        (MACHINE, None, "refused", "credentials", "", False),
        (MACHINE, {**GOOD, "expires_at": 900.0}, "done", "signed in", "", False),
        (MACHINE, {"url": URL, "refused": "wrong secret"}, "done", "failing", "wrong secret", False),
        (None, GOOD, "done", "off", "", False),
    ],
)
def test_what_is_kept_says_how_it_stands(
    auth: AuthConfig | None,
    told: dict[str, object] | None,
    listing: Listing,
    state: str,
    reason: str,
    asked: bool,
) -> None:
    server = ServerConfig("tracker", "http", url=URL, auth=auth)
    grant = Grant(**told) if told else None
    found = status_of(server, grant, listing, NOW, COMMAND)
    assert found.state == state
    assert reason in found.reason
    assert bool(found.reason) == bool(reason)
    assert found.command == (COMMAND if asked else None)
    assert found.wrong == (state in ("needs login", "failing"))
    assert "hush" not in repr(found) + json.dumps(found.as_json())


def test_a_disabled_server_is_nobodys_trouble() -> None:
    server = ServerConfig("tracker", "http", url=URL, auth=PERSON, disabled=True)
    assert not status_of(server, None, "refused", NOW, COMMAND).wrong


def test_what_is_left_over_is_shown_without_secrets() -> None:
    found = left_over(Grant(**{**GOOD, "url": "https://me:hush@tracker.example/mcp?key=hush"}), NOW, "c")
    assert (found.name, found.state) == ("https://tracker.example/mcp", "not in this config")
    assert "hush" not in repr(found) + json.dumps(found.as_json())
    assert address("https://tracker.example:8443/mcp") == "https://tracker.example:8443/mcp"
