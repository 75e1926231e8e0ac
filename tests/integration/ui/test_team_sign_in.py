"""People sign in to the page for a team at an issuer that runs."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from helpers.driver import PATIENCE, until
from helpers.team_page import Browser, running
from helpers.ui_client import Answer
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.oauth.server import FakeAuth

from mcpzip.identity.api_keys import new_key
from mcpzip.identity.claims import LEEWAY

URL = "https://mcp.example.org/mcp"
CALLBACK = "http://127.0.0.1:1/sign-in/callback"  # the port of a redirect URI on loopback may be any
PUBLIC = {"id": "page", "redirect_uris": [CALLBACK]}
ANN = {"sub": "1", "preferred_username": "ann", "groups": ["clerks"]}
BOB = {"sub": "2", "preferred_username": "bob", "groups": ["keepers"]}

StartAuth = Callable[..., FakeAuth]
StartFake = Callable[..., FakeServer]


class Issuer:
    """An issuer, and the page that has a client there."""

    def __init__(self, auth: FakeAuth, origin: str) -> None:
        self.auth, self.origin = auth, origin

    def browser(self) -> Browser:
        return Browser(self.origin, "")

    def begin(self, browser: Browser) -> tuple[str, str]:
        """Where a browser is sent, and the cookie that it gets."""
        answer = browser.get("/sign-in/issuer", Cookie=None)
        assert answer.status == 303, answer
        return answer.headers["location"], answer.headers["set-cookie"].partition(";")[0]

    def come_back(self, browser: Browser, url: str, cookie: str | None) -> Answer:
        """What a browser is answered that the issuer sends back to ``url``."""
        parts = urlsplit(url)
        return browser.get(
            f"{parts.path}?{parts.query}",
            Cookie=cookie,
            Sec_Fetch_Site="cross-site",
            Sec_Fetch_Mode="navigate",
            Sec_Fetch_Dest="document",
        )

    def sign_in(self, **claims: object) -> Browser:
        """A browser of whoever has these claims."""
        self.auth.configure(claims=claims)
        browser = self.browser()
        url, cookie = self.begin(browser)
        answer = self.come_back(browser, self.auth.leads_to(url), cookie)
        assert answer.status == 200, answer.words
        return signed_in(browser, answer)

    def sign_in_for(self, seconds: int, **claims: object) -> Browser:
        """A browser of whoever has these claims, whose token expires after ``seconds`` and three times as
        long as a sign-in takes on this machine.
        """
        began = time.monotonic()
        self.sign_in(**ANN)
        taken = time.monotonic() - began
        # The leeway, because clocks may differ by a minute.
        return self.sign_in(**claims, exp=int(time.time() + seconds + 3 * taken - LEEWAY))


def signed_in(browser: Browser, answer: Answer) -> Browser:
    """``browser``, with what it was given."""
    given = [each for each in answer.headers.get_all("set-cookie", []) if "SameSite=Strict" in each]
    assert len(given) == 1
    assert "HttpOnly" in given[0]
    browser.cookie = given[0].partition(";")[0]
    found = re.search(r'content="0; url=([^"]+)/"', answer.text)
    assert found, answer.text
    browser.root = found[1]
    return browser


@contextmanager
def page_at(auth: FakeAuth, folder: Path, servers: dict[str, object], **page: object) -> Iterator[Issuer]:
    http = {
        "public_url": URL,
        "issuers": [{"issuer": auth.issuer, "scopes": ["mcp"]}],
        "page": {"listen": "127.0.0.1:0", "client_id": "page", **page},
    }
    with running(folder, http, servers) as (origin, _):
        yield Issuer(auth, origin)


@pytest.fixture
def auth(fake_auth: StartAuth) -> FakeAuth:
    return fake_auth(
        access_tokens="jwt", resources=[URL], scopes=["mcp"], registration=False, clients=[PUBLIC], claims=ANN
    )


@pytest.fixture
def issuer(auth: FakeAuth, fake_mcp: StartFake, tmp_path: Path) -> Iterator[Issuer]:
    desk = fake_mcp(name="desk", tools=[{"name": "file_memo", "result": {"text": "filed"}}])
    vault = fake_mcp(name="vault", tools=[{"name": "unseal", "result": {"text": "open"}}])
    with page_at(auth, tmp_path, {"desk": desk.config, "vault": vault.config}) as found:
        yield found


def test_a_person_signs_in_and_sees_what_the_token_lets_them(issuer: Issuer) -> None:
    ann, bob = issuer.sign_in(**ANN), issuer.sign_in(**BOB)
    assert "ann" in ann.get("/").words
    until(lambda: "file_memo" in ann.get("/servers/desk").text)
    until(lambda: "unseal" in bob.get("/servers/vault").text)
    assert ann.get("/servers/vault").status == 404
    assert "filed" in ann.call("desk__file_memo").words
    assert "open" in bob.call("vault__unseal").words
    assert ann.submit("/sign-out").status == 200
    assert ann.get("/").status == 401
    assert bob.get("/").status == 200


def test_the_request_has_what_protects_it(issuer: Issuer) -> None:
    browser = issuer.browser()
    page = browser.get("/sign-in/x", Cookie=None)
    assert page.status == 401
    assert f"Sign in at {issuer.auth.issuer}" in page.words
    assert "API key" not in page.words
    url, cookie = issuer.begin(browser)
    asked = {name: value[0] for name, value in parse_qs(urlsplit(url).query).items()}
    assert url.startswith(issuer.auth.issuer)
    assert asked["redirect_uri"] == f"{issuer.origin}/sign-in/callback"
    assert (asked["code_challenge_method"], asked["resource"], asked["scope"]) == ("S256", URL, "mcp")
    assert asked["state"] in cookie
    other, other_cookie = issuer.begin(browser)
    assert parse_qs(urlsplit(other).query)["state"] != [asked["state"]]
    assert other_cookie != cookie


def test_nobody_is_signed_in_by_what_another_browser_began(issuer: Issuer) -> None:
    mallory, victim = issuer.browser(), issuer.browser()
    url, cookie = issuer.begin(mallory)
    back = issuer.auth.leads_to(url)
    _, own = issuer.begin(victim)
    name = own.partition("=")[0]
    for cookies in (None, own, f"{name}=a.b", f"{name}={'a' * 500}.b", f"{name}="):
        answer = issuer.come_back(victim, back, cookies)
        assert answer.status == 403
        assert "SameSite=Strict" not in str(answer.headers)
    assert issuer.auth.requests("token") == []
    assert issuer.come_back(mallory, back, cookie).status == 200
    again = issuer.come_back(mallory, back, cookie)
    assert (again.status, "has been tried already" in again.words) == (403, True)
    assert len(issuer.auth.requests("token")) == 1


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"iss": "wrong"}, "another authorization server"),
        ({"iss": "missing"}, "without saying from which"),
        ({"claims": {**ANN, "aud": "https://other.example.org"}}, "it is for another resource (aud)"),
        ({"claims": {**ANN, "scope": "other"}}, "it lacks the scope mcp"),
        ({"claims": {**ANN, "sub": None}}, "it lacks the claim sub"),
        ({"access_tokens": "opaque"}, "it is of no kind that is accepted here"),
        ({"approve": "deny"}, "did not sign you in"),
    ],
)
def test_who_is_not_let_in_is_told_why(issuer: Issuer, settings: dict[str, object], why: str) -> None:
    issuer.auth.configure(**settings)
    browser = issuer.browser()
    url, cookie = issuer.begin(browser)
    answer = issuer.come_back(browser, issuer.auth.leads_to(url), cookie)
    assert answer.status == 403
    assert why in answer.words
    cookies = answer.headers.get_all("set-cookie", [])
    assert len(cookies) == 1
    assert "Max-Age=0" in cookies[0]


def test_what_the_issuer_says_of_a_refusal_is_only_text(issuer: Issuer) -> None:
    browser = issuer.browser()
    url, cookie = issuer.begin(browser)
    state = parse_qs(urlsplit(url).query)["state"][0]
    said = f"/sign-in/callback?state={state}&error=%3Cscript%3E&error_description=%3Cb%3Eno%1B%5B31m"
    answer = issuer.come_back(browser, said, cookie)
    assert answer.status == 403
    assert "<script>" not in answer.text.replace('<script src="/static/script.js" defer></script>', "")
    assert "<b>" not in answer.text
    assert "\x1b" not in answer.text


def test_a_token_that_has_expired_is_refreshed_with_the_groups_of_then(issuer: Issuer) -> None:
    browser = issuer.sign_in_for(2, **ANN)
    assert browser.get("/servers/vault").status == 404
    issuer.auth.configure(claims={**ANN, "groups": ["keepers"]})
    until(lambda: browser.get("/servers/vault").status == 200)
    assert len(issuer.auth.refreshes()) == 1
    assert issuer.auth.refreshes()[0].fields["resource"] == URL


def test_a_sign_in_ends_with_what_the_issuer_granted(issuer: Issuer) -> None:
    browser = issuer.sign_in_for(2, **ANN)
    issuer.auth.revoke_refresh()
    until(lambda: browser.get("/").status == 401)
    assert browser.get("/").status == 401


def test_two_tabs_of_a_browser_can_begin(issuer: Issuer) -> None:
    browser = issuer.browser()
    first, _ = issuer.begin(browser)
    second, cookie = issuer.begin(browser)  # which takes the place of the first one's
    early = issuer.come_back(browser, issuer.auth.leads_to(first), cookie)
    assert (early.status, early.headers["set-cookie"]) == (403, None)
    assert issuer.come_back(browser, issuer.auth.leads_to(second), cookie).status == 200


def test_a_stream_of_changes_ends_with_the_token(issuer: Issuer) -> None:
    browser = issuer.sign_in_for(2, **ANN)
    stream = HTTPConnection("127.0.0.1", int(browser.host.rpartition(":")[2]), timeout=PATIENCE)
    try:
        headers = {"Host": browser.host, "Cookie": browser.cookie}
        stream.request("GET", f"{browser.root}/events", headers=headers)
        answer = stream.getresponse()
        issuer.auth.revoke_refresh()
        while answer.readline():  # it ends
            pass
    finally:
        stream.close()
    assert browser.get("/").status == 401


def test_a_refreshed_token_of_somebody_else_ends_the_session(issuer: Issuer) -> None:
    browser = issuer.sign_in_for(2, **ANN)
    issuer.auth.configure(claims=BOB)
    until(lambda: browser.get("/").status == 401)
    assert issuer.auth.refreshes()


def test_an_issuer_that_is_away_ends_no_session(auth: FakeAuth, issuer: Issuer) -> None:
    browser = issuer.sign_in_for(5, **ANN)
    token_before = browser.get("/")
    auth.stop()
    answer = until(lambda: (found := browser.get("/")).status == 503 and found)
    assert "Try again later" in answer.words
    assert "127.0.0.1" not in answer.words.replace(issuer.auth.issuer, "")
    url, cookie = issuer.begin(other := issuer.browser())  # its metadata are known for a while
    state = parse_qs(urlsplit(url).query)["state"][0]
    back = f"/sign-in/callback?state={state}&code=c&iss={issuer.auth.issuer}"
    said = issuer.come_back(other, back, cookie)
    assert (said.status, "can't be asked now" in said.words) == (503, True)
    assert "Connect" not in said.words
    form = token_before.form_token
    assert browser.post("/sign-out", {"form_token": form}).status == 200
    assert browser.get("/").status == 401


def test_a_client_with_a_secret_and_keys_beside_it(
    fake_auth: StartAuth, fake_mcp: StartFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGE_SECRET", "the-secret-of-the-page")
    client = {**PUBLIC, "secret": "the-secret-of-the-page"}
    auth = fake_auth(access_tokens="jwt", resources=[URL], scopes=["mcp"], clients=[client], claims=ANN)
    auth.configure(metadata={"code_challenge_methods_supported": ""})  # as that of Entra ID
    http = {
        "public_url": URL,
        "issuers": [{"issuer": auth.issuer, "scopes": ["mcp"]}],
        "api_keys": "keys.json",
        "page": {"listen": "127.0.0.1:0", "client_id": "page", "client_secret": "${PAGE_SECRET}"},
    }
    key = new_key(str(tmp_path / "keys.json"), "cleo", ("clerks",), (), 0.0, None)
    with running(tmp_path, http, {"desk": fake_mcp(name="desk", tools=["t"]).config}) as (origin, _):
        issuer = Issuer(auth, origin)
        assert "ann" in issuer.sign_in(**ANN).get("/").words
        assert "cleo" in Browser(origin, key).sign_in().get("/").words
        [asked] = auth.requests("token")
        assert asked.headers["authorization"].startswith("Basic ")
        assert "client_secret" not in asked.fields
