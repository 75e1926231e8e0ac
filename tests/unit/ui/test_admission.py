"""Which requests reach a page, judging by their heads."""

import pytest

from mcpzip.server.http.request import HttpRequest
from mcpzip.ui.admission import SECURITY_HEADERS, refusal_of

PORT = 4711
OWN = "http://127.0.0.1:4711"
NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def status(method: str = "GET", target: str = "/", **headers: str) -> int | None:
    """What a request with these headers is refused with; None if it is not."""
    named = {"host": "127.0.0.1:4711"} | {name.replace("_", "-"): one for name, one in headers.items()}
    request = HttpRequest(method, target, [(name.encode(), one.encode()) for name, one in named.items()])
    refusal = refusal_of(request, PORT)
    return None if refusal is None else refusal.status


@pytest.mark.parametrize("host", ["127.0.0.1:4711", "localhost:4711", "LOCALHOST:4711"])
def test_our_own_address_is_admitted(host: str) -> None:
    assert status(host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:4711",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:47110",
        "",
        "127.0.0.1.evil:4711",
    ],
)
def test_any_other_name_is_refused(host: str) -> None:
    """Else a web site whose name resolves to loopback could read the page (DNS rebinding)."""
    assert status(host=host) == 421


def test_a_target_with_another_host_is_refused() -> None:
    assert status(target="http://evil.example:4711/") == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:4712", "https://127.0.0.1:4711", ""]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_origin_is_refused(method: str, origin: str) -> None:
    assert status(method, origin=origin) == 403


def test_an_origin_is_the_host_itself() -> None:
    """Another user may listen at the same port of ::1, which localhost may mean."""
    assert status("POST", host="127.0.0.1:4711", origin="http://localhost:4711") == 403
    assert status("POST", host="localhost:4711", origin="http://localhost:4711") is None


def test_a_post_names_its_origin() -> None:
    assert status("POST") == 403
    assert status("POST", origin=OWN, sec_fetch_site="same-origin") is None


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_a_request_of_another_site_is_refused(site: str) -> None:
    assert status(sec_fetch_site=site) == 403
    assert status("POST", origin=OWN, sec_fetch_site=site, **NAVIGATION) == 403
    assert status(sec_fetch_site=site, sec_fetch_mode="navigate", sec_fetch_dest="iframe") == 403


def test_a_link_elsewhere_opens_the_page() -> None:
    assert (
        status(sec_fetch_site="cross-site", **{k.replace("-", "_"): v for k, v in NAVIGATION.items()}) is None
    )


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(method: str) -> None:
    assert status(method) == 405


def test_a_body_that_is_too_large_is_refused_by_its_head() -> None:
    assert status("POST", origin=OWN, content_length="262145") == 413
    assert status("POST", origin=OWN, content_length="262144") is None


def test_two_hosts_are_refused() -> None:
    request = HttpRequest("GET", "/", [(b"host", b"127.0.0.1:4711"), (b"host", b"evil.example")])
    refusal = refusal_of(request, PORT)
    assert refusal is not None
    assert refusal.status == 400


def test_the_policy_allows_nothing_but_our_own_files() -> None:
    policy = dict(SECURITY_HEADERS)[b"content-security-policy"].decode()
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert set(rules.values()) == {"'none'", "'self'"}
