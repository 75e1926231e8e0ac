"""People sign in to a server with ``auth.per_user`` on the page of a real `mcpzip serve --http`: with whose
account each call is made, and that nobody signs in for somebody else.
"""

import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from helpers.driver import MODERN, PATIENCE, until
from helpers.team_page import Browser, running
from helpers.ui_client import Answer
from mcpzip_fakes.launch import FakeServer

from mcpzip.identity.api_keys import new_key

StartFake = Callable[..., FakeServer]
WITH_KEYS = {"api_keys": "keys.json", "page": "127.0.0.1:0"}
LINK = re.compile(r"http://127\.0\.0\.1:\d+/sign-ins")


class Team:
    """A running mcpzip, people of it, and the server to which each of them signs in."""

    def __init__(self, origin: str, url: str, tracker: FakeServer, keys: Path) -> None:
        self.origin, self.url, self.tracker, self._keys = origin, url, tracker, keys
        self.ann, self.bob = self.browser("ann"), self.browser("bob")

    def browser(self, name: str) -> Browser:
        browser = Browser(self.origin, new_key(str(self._keys), name, ["keepers"], (), 0.0, None))
        until(lambda: browser.post("/sign-in", {"key": browser.token}).status == 303)
        return browser.sign_in()

    def ask(self, who: Browser, tool: str, **arguments: object) -> str:
        """The text with which mcpzip answers a call by the client of ``who``."""
        version = "io.modelcontextprotocol/protocolVersion"
        meta = {version: MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "Authorization": f"Bearer {who.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        with urlopen(Request(self.url, json.dumps(body).encode(), headers), timeout=PATIENCE) as response:
            return str(response.read().decode())

    def callers(self) -> list[str]:
        """The ids of the tokens with which calls of tools came."""
        lines, found = self.tracker.record.lines(), []
        for at, line in enumerate(lines):
            if line.method == "tools/call":
                checked = (one for one in lines[at:] if one.what == "bearer")
                found += [str(one.detail["token"]) for one in checked if one.connection == line.connection][
                    :1
                ]
        return found


def go(browser: Browser, server: str = "tracker") -> tuple[str, str]:
    """Presses *Sign in*: where the browser is sent, and the cookie that it gets."""
    answer = browser.submit(f"/sign-ins/{server}")
    assert answer.status == 200, answer.words
    (cookie,) = answer.headers.get_all("set-cookie", [])
    assert "HttpOnly; SameSite=Lax" in cookie
    found = re.search(r'content="0; url=([^"]+)"', answer.text)
    assert found, answer.text
    return unescape(found[1]), cookie.partition(";")[0]


def come_back(browser: Browser, url: str, cookie: str | None) -> Answer:
    """What a browser is answered that comes to ``url`` from the authorization server."""
    parts = urlsplit(url)
    return browser.get(
        f"{parts.path}?{parts.query}",
        Cookie=cookie,
        Sec_Fetch_Site="cross-site",
        Sec_Fetch_Mode="navigate",
        Sec_Fetch_Dest="document",
    )


def sign_in(team: Team, browser: Browser) -> Answer:
    url, cookie = go(browser)
    return come_back(browser, team.tracker.auth.leads_to(url), cookie)


@pytest.fixture
def team(fake_mcp: StartFake, tmp_path: Path) -> Iterator[Team]:
    tools = [{"name": "list_issues", "description": "List issues.", "result": {"text": "issues"}}]
    tracker = fake_mcp(name="tracker", tools=tools, transport="http", oauth={})
    server = {**tracker.config, "auth": {"per_user": True}}
    with running(tmp_path, WITH_KEYS, {"tracker": server}) as (origin, url):
        yield Team(origin, url, tracker, tmp_path / "keys.json")


def test_each_person_signs_in_and_calls_with_their_own_account(team: Team) -> None:
    ann, bob = team.ann, team.bob
    told = team.ask(ann, "execute_tool", name="tracker__list_issues")
    assert "you have not signed in" in told
    link = LINK.search(told)
    assert link
    assert link[0] == f"{team.origin}/sign-ins"
    assert ann.get("/sign-in", Cookie=None).status == 401
    assert f"Sign in at {link[0]}" in team.ask(ann, "search_tools", query="list the issues")
    assert "not signed in" in ann.get("/sign-ins").words
    assert "list_issues" not in team.ask(bob, "search_tools", query="list the issues")
    done = sign_in(team, ann)
    assert (done.status, "Signed in to tracker" in done.words) == (200, True), done.words
    assert "signed in, since" in ann.get("/sign-ins").words
    assert "not signed in" in bob.get("/sign-ins").words
    assert "issues" in team.ask(ann, "execute_tool", name="tracker__list_issues")
    assert "list_issues" not in team.ask(bob, "search_tools", query="list the issues")
    assert "you have not signed in" in team.ask(bob, "execute_tool", name="tracker__list_issues")
    assert sign_in(team, bob).status == 200
    assert "issues" in team.ask(bob, "execute_tool", name="tracker__list_issues")
    assert "issues" in ann.call("tracker__list_issues").words
    assert team.callers() == ["access-1", "access-2", "access-1"]

    over = ann.submit("/sign-ins/tracker/sign-out")
    assert "You are signed out of tracker." in over.words
    ended = [(token.id, bool(token.ended)) for token in team.tracker.auth.tokens("access")]
    assert ended == [("access-1", True), ("access-2", False)]
    assert "you have not signed in" in team.ask(ann, "execute_tool", name="tracker__list_issues")
    assert "list_issues" not in ann.get("/servers/tracker").text
    assert "issues" in team.ask(bob, "execute_tool", name="tracker__list_issues")
    assert team.callers()[3:] == ["access-2"]


def test_nobody_signs_in_for_somebody_else(team: Team) -> None:
    mallory, victim = team.bob, team.ann
    url, cookie = go(mallory)
    _, own = go(victim)
    back = team.tracker.auth.leads_to(url)  # the victim was sent the link, and agreed
    for cookies in (None, own, victim.cookie, f"{victim.cookie}; {own}", f"{cookie.partition('=')[0]}=x"):
        answer = come_back(victim, back, cookies)
        assert answer.status == 403
        assert "This browser has begun no such sign-in here" in answer.words
        assert victim.root not in answer.text
    assert "not signed in" in mallory.get("/sign-ins").words
    assert team.tracker.auth.tokens("access") == []
    assert mallory.submit("/sign-out").status == 200  # the session that began is over
    assert come_back(mallory, back, cookie).status == 403
    assert team.tracker.auth.tokens("access") == []


ANSWERS: tuple[tuple[Callable[[str], str], str], ...] = (
    (lambda url: url.replace("iss=http", "iss=https"), "from another authorization server"),
    (lambda url: re.sub("state=[^&]+", "state=x", url), "begun no such sign-in"),
    (lambda url: re.sub("code=[^&]+", "error=access_denied", url), "refused: you, or it, said no"),
    (lambda url: re.sub("code=[^&]+", "code=other", url), "Back to your sign-ins"),
)


def test_an_answer_that_is_none_signs_nobody_in(team: Team) -> None:
    for change, said in ANSWERS:
        url, cookie = go(team.ann)
        answer = come_back(team.ann, change(team.tracker.auth.leads_to(url)), cookie)
        assert (answer.status, said in answer.words) == (403, True), answer.words
        assert "not signed in" in team.ann.get("/sign-ins").words
    url, cookie = go(team.ann)
    back = team.tracker.auth.leads_to(url)
    assert come_back(team.ann, back, cookie).status == 200
    assert come_back(team.ann, back, cookie).status == 403  # it counts once


def test_a_form_of_somebody_else_does_nothing(team: Team) -> None:
    sign_in(team, team.ann)
    token = team.bob.get("/").form_token
    for path in ("/sign-ins/tracker", "/sign-ins/tracker/sign-out"):
        assert team.ann.post(path, {"form_token": token}).status == 403
        assert team.bob.submit(path.replace("tracker", "nothing")).status >= 403
    assert team.bob.submit("/sign-ins/tracker/sign-out").status == 200
    assert "signed in, since" in team.ann.get("/sign-ins").words
